use soul_client::soul_client;

#[soul_client(path = "order/save")]
fn save() {}

#[soul_client(path = "http://localhost:8188/order/find")]
fn find() {}

fn main() {}
