use soul_client::soul_client;

#[soul_client(desc = "Save order")]
fn save() {}

#[soul_client]
fn find() {}

fn main() {}
