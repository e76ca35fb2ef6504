use soul_client::soul_client;

#[soul_client(path = '/', desc = 1, enabled = "false", register_meta_data = 1)]
fn save() {}

#[soul_client(path = b"/find", desc = c"Find", rule_name = b'f', enabled = "yes")]
fn find() {}

#[soul_client(path = true, desc = -1, enabled = on)]
fn list() {}

fn main() {}
