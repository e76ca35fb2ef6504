use soul_client::soul_client;

#[soul_client(path => "/order/save" desc = "Save order")]
fn save() {}

#[soul_client(path("/order/find"))]
fn find() {}

fn main() {}
