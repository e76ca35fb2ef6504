use soul_client::soul_client;

#[soul_client(path = "/order")]
pub struct Orders;

#[soul_client(path = "/order")]
impl Orders {}

#[soul_client(path = "/order")]
pub const PATH: &str = "/order";

fn main() {}
