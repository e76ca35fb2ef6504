use soul_client::soul_client;

#[soul_client(path = '/', desc = 1, enabled = "false", register_meta_data = 1)]
fn save() {}

fn main() {}
