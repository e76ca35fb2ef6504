use soul_client::soul_client;

#[soul_client(path = "")]
fn save() {}

#[soul_client(path = "  ")]
fn find() {}

fn main() {}
