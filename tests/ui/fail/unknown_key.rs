use soul_client::soul_client;

#[soul_client(path = "/order/save", ruleName = "save order")]
fn save() {}

#[soul_client(path = "/order/find", timeout = 3000)]
fn find() {}

fn main() {}
