use soul_client::soul_client;

#[soul_client(path = "/order/save", crate = 1)]
fn save() {}

fn main() {}
