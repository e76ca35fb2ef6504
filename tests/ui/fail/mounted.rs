use soul_client::soul_client;

#[soul_client(get, path = "/order", state = 1)]
fn number_is_no_type() {}

#[soul_client(path = "/order", state = u8)]
fn nothing_is_mounted() {}

#[soul_client(get, get, path = "/order")]
fn twice() {}

#[soul_client(get, path = "/order")]
mod module {}

fn main() {}
