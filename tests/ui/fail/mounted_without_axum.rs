// This package has `soul-client` without its feature `axum`.
use soul_client::soul_client;

#[soul_client(get, path = "/order/find")]
async fn find() {}

fn main() {
    let _ = find();
}
