use soul_client::soul_client;

#[soul_client(path = "/order")]
pub struct Orders;

#[soul_client(path = "/order")]
pub const PATH: &str = "/order";

#[soul_client(path = "/order")]
thread_local! {}

fn main() {}
