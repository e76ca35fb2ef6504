use soul_client::soul_client;

#[soul_client(path = "/order")]
mod orders;

fn main() {}
