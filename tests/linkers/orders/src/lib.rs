//! Handlers in a dependency.

use soul_client::soul_client;

#[soul_client(path = "/order/list")]
pub fn list() {}

#[soul_client(path = "/order")]
pub mod order {
    use super::soul_client;

    #[soul_client(path = "/save")]
    pub fn save() {}
}
