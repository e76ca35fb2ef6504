//! The other end of a caller's connection.

use std::net::IpAddr;

use http::HeaderValue;
use soul_client::balance::java_ip_text;

/// Who calls, prepared for all requests of one connection.
#[derive(Clone)]
pub(super) struct Peer {
    address: IpAddr,
    /// For `X-Forwarded-For`.
    text: HeaderValue,
    /// For `hash`: the text Java would hash.
    key: Box<str>,
}

impl Peer {
    pub(super) fn new(address: IpAddr) -> Self {
        let address = address.to_canonical();
        let key = java_ip_text(address);
        let text = match address {
            IpAddr::V4(_) => HeaderValue::from_str(&key),
            IpAddr::V6(_) => HeaderValue::from_str(&address.to_string()),
        };
        // The text of an address is always the value of a header.
        Self { address, text: text.unwrap_or(HeaderValue::from_static("unknown")), key: (*key).into() }
    }

    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    pub(super) fn text(&self) -> &HeaderValue {
        &self.text
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }
}
