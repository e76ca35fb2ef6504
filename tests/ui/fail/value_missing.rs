use soul_client::soul_client;

#[soul_client(path = , enabled)]
fn save() {}

fn main() {}
