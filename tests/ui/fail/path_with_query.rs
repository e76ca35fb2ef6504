use soul_client::soul_client;

#[soul_client(path = "/order/find?id=1")]
fn find() {}

#[soul_client(path = "/order/list#top")]
fn list() {}

#[soul_client(path = "/order/ save")]
fn save() {}

fn main() {}
