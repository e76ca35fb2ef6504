//! What is configured of one upstream.

use std::{collections::BTreeMap, time::Duration};

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
    base_url: Box<str>,
    /// The url, where it is not the address.
    url: Option<Box<str>>,
    /// There only where somebody said something.
    labels: Option<Box<Labels>>,
    timestamp: i64,
    /// Where the address begins in `base_url`.
    address_at: u32,
    weight: i32,
    warmup: i32,
    status: bool,
}

/// What is known of few upstreams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Labels {
    zone: Option<Box<str>>,
    metadata: BTreeMap<String, String>,
}

impl Upstream {
    /// An upstream at `host:port`: plain HTTP, switched on, with the weight that a registration gives.
    ///
    /// # Examples
    /// ```
    /// use soul_client::balance::Upstream;
    ///
    /// let upstream = Upstream::new("10.0.0.2:8188").with_weight(10).with_zone("eu-1");
    /// assert_eq!(upstream.base_url(), "http://10.0.0.2:8188");
    /// assert_eq!(upstream.zone(), Some("eu-1"));
    /// ```
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self::from(&DivideUpstream::registered(address))
    }

    /// Sets the scheme, written with `://`.
    #[must_use]
    pub fn with_protocol(self, protocol: &str) -> Self {
        let base_url = format!("{protocol}{}", self.address()).into();
        Self { base_url, address_at: place(protocol), ..self }
    }

    /// Sets the weight; 0 or less takes no traffic.
    #[must_use]
    pub fn with_weight(self, weight: i32) -> Self {
        Self { weight, ..self }
    }

    /// Switches it on or off.
    #[must_use]
    pub fn with_status(self, status: bool) -> Self {
        Self { status, ..self }
    }

    /// Sets Soul's warm-up: its start, milliseconds since the epoch, and its length in milliseconds.
    #[must_use]
    pub fn with_warmup(self, timestamp: i64, warmup: i32) -> Self {
        Self { timestamp, warmup, ..self }
    }

    /// Sets the zone.
    #[must_use]
    pub fn with_zone(mut self, zone: impl Into<Box<str>>) -> Self {
        self.labels.get_or_insert_default().zone = Some(zone.into());
        self
    }

    /// Adds a word on it, such as a version.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.get_or_insert_default().metadata.insert(key.into(), value.into());
        self
    }

    /// Where it stands; upstreams without a zone are one zone of their own.
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.labels.as_ref()?.zone.as_deref()
    }

    /// What else is known of it.
    #[must_use]
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        static NOTHING: BTreeMap<String, String> = BTreeMap::new();
        self.labels.as_ref().map_or(&NOTHING, |labels| &labels.metadata)
    }

    /// The url exactly as configured; Soul's keys and hashes are made of this text.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or(self.address())
    }

    /// `host:port`: the url without blanks around it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.base_url[self.address_at as usize..]
    }

    /// The scheme with `://`, as configured; `http://` if none is.
    #[must_use]
    pub fn protocol(&self) -> &str {
        &self.base_url[..self.address_at as usize]
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

    /// The length of its warm-up, if that is under way.
    pub(super) fn warmup_at(&self, now_ms: i64) -> Option<Duration> {
        let weight_of_many =
            |now_ms| soul::effective_weight(now_ms, true, 1 << 20, self.timestamp, self.warmup);
        (self.timestamp > 0 && weight_of_many(now_ms) < 1 << 20).then(|| soul::warmup(self.warmup))
    }

    /// How long the weight stays what it is, milliseconds; `None` while it warms up.
    pub(super) fn steady_for(&self, now_ms: i64) -> Option<i64> {
        soul::steady_for(now_ms, self.status, self.weight, self.timestamp, self.warmup)
    }
}

impl From<&DivideUpstream> for Upstream {
    fn from(wire: &DivideUpstream) -> Self {
        let protocol = wire.protocol.as_deref().filter(|p| !gson::is_blank(p)).unwrap_or(DEFAULT_PROTOCOL);
        let url = wire.upstream_url.as_deref().unwrap_or_default();
        // Java's `trim`: everything up to the space, control characters included.
        let address = url.trim_matches(|c: char| c <= ' ');
        Self {
            base_url: format!("{protocol}{address}").into(),
            url: (url != address).then(|| url.into()),
            labels: None,
            address_at: place(protocol),
            weight: wire.weight,
            status: wire.status,
            timestamp: wire.timestamp,
            warmup: wire.warmup,
        }
    }
}

/// Where the address begins behind a protocol.
fn place(protocol: &str) -> u32 {
    // OK to be wrong for one of four gigabytes: nobody has that.
    u32::try_from(protocol.len()).unwrap_or(0)
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
