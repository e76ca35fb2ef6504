use soul_client::soul_client;

#[soul_client(path = "/order/save", desc = "Save", desc = "Save order")]
fn save() {}

fn main() {}
