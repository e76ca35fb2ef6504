//! What is configured of one upstream.

use crate::wire::{gson, soul::DivideUpstream};

use super::soul;

/// Prefix of an upstream that names no protocol.
const DEFAULT_PROTOCOL: &str = "http://";

/// One upstream as configured; immutable. What is learnt about it is in [`UpstreamState`](super::UpstreamState).
///
/// # Units
/// Weight is relative. `timestamp` is milliseconds since the epoch, `warmup` milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Protocol, then the address: `http://10.0.0.2:8188`.
    base_url: String,
    /// Where the address begins in `base_url`.
    address_at: usize,
    url: String,
    weight: i32,
    status: bool,
    timestamp: i64,
    warmup: i32,
}

impl Upstream {
    /// The url exactly as configured; Soul's keys and hashes are made of this text.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `host:port`: the url without blanks around it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.base_url[self.address_at..]
    }

    /// The scheme with `://`, as configured; `http://` if none is.
    #[must_use]
    pub fn protocol(&self) -> &str {
        &self.base_url[..self.address_at]
    }

    /// What a request's path is appended to: protocol and address.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The configured weight; may be negative.
    #[must_use]
    pub fn weight(&self) -> i32 {
        self.weight
    }

    /// Whether it is switched on.
    #[must_use]
    pub fn status(&self) -> bool {
        self.status
    }

    /// Start of its warm-up; 0 is none.
    #[must_use]
    pub fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// Length of its warm-up; 0 or less means Soul's default of ten minutes.
    #[must_use]
    pub fn warmup(&self) -> i32 {
        self.warmup
    }

    /// Whether the configuration lets it take traffic: switched on, with a weight and an address.
    #[must_use]
    pub fn takes_traffic(&self) -> bool {
        self.status && self.weight > 0 && !self.address().is_empty()
    }

    /// The weight at a moment: less while it warms up, 0 while it is switched off.
    #[must_use]
    pub fn weight_at(&self, now_ms: i64) -> i32 {
        soul::effective_weight(now_ms, self.status, self.weight, self.timestamp, self.warmup)
    }
}

impl From<&DivideUpstream> for Upstream {
    fn from(wire: &DivideUpstream) -> Self {
        let protocol = wire.protocol.as_deref().filter(|p| !gson::is_blank(p)).unwrap_or(DEFAULT_PROTOCOL);
        let url = wire.upstream_url.clone().unwrap_or_default();
        // Java's `trim`: everything up to the space, control characters included.
        let address = url.trim_matches(|c: char| c <= ' ');
        Self {
            base_url: format!("{protocol}{address}"),
            address_at: protocol.len(),
            weight: wire.weight,
            status: wire.status,
            timestamp: wire.timestamp,
            warmup: wire.warmup,
            url,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_protocol_is_http_and_blanks_around_the_url_are_cut() {
        for (protocol, base_url) in [
            (None, "http://10.0.0.2:80"),
            (Some(" "), "http://10.0.0.2:80"),
            (Some("https://"), "https://10.0.0.2:80"),
        ] {
            let upstream = Upstream::from(&DivideUpstream {
                protocol: protocol.map(str::to_owned),
                ..DivideUpstream::registered(" 10.0.0.2:80\n")
            });
            assert_eq!(upstream.base_url(), base_url);
            assert_eq!(upstream.address(), "10.0.0.2:80");
            assert_eq!(upstream.url(), " 10.0.0.2:80\n");
            assert!(upstream.takes_traffic());
        }
    }

    #[test]
    fn without_an_address_it_takes_no_traffic() {
        for url in ["", " "] {
            assert!(!Upstream::from(&DivideUpstream::registered(url)).takes_traffic());
        }
    }
}
