//! The HTTP client of the stories.

use std::sync::Once;

use reqwest::{Client, ClientBuilder};

/// A client, to be adapted. The stories speak plain HTTP; but where another crate of the same build asks `reqwest` for
/// TLS without a provider, as the SDK does, it builds no client at all until one is installed.
pub fn client_builder() -> ClientBuilder {
    static ONCE: Once = Once::new();

    ONCE.call_once(|| {
        // OK to ignore: an error says that another one is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
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
