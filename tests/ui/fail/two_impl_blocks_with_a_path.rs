use soul_client::soul_client;

struct Orders;

#[soul_client(path = "/order")]
impl Orders {}

#[soul_client(path = "/orders")]
impl Orders {}

fn main() {
    let _ = Orders;
}
