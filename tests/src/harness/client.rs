//! The HTTP client of the stories.

use reqwest::{Client, ClientBuilder};

/// A client, to be adapted. No proxy of the environment has any business between the parts.
pub fn client_builder() -> ClientBuilder {
    Client::builder().no_proxy()
}

/// A plain client.
///
/// # Panics
/// When none can be built.
#[must_use]
pub fn client() -> Client {
    client_builder().build().expect("build a client")
}
