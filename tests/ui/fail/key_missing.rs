use soul_client::soul_client;

#[soul_client(= "/order/save", path = "/order/save")]
fn save() {}

#[soul_client(path = "/order/find", fetch)]
fn find() {}

#[soul_client(route)]
fn list() {}

#[soul_client(path: "/order/purge")]
fn purge() {}

fn main() {}
