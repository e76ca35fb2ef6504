use soul_client::soul_client;

#[soul_client("/order/save")]
fn save() {}

fn main() {}
