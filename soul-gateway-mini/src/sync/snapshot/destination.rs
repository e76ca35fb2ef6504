//! Where the requests for an upstream go, and how many did.

use std::sync::Arc;

use http::HeaderValue;
use soul_client::balance::Upstream;

use crate::{
    model::{Target, escape},
    shard::Counter,
};

/// One address with everything about it that a request needs, prepared. Two selectors with the same address share
/// it, and so do snapshots one after the other.
#[derive(Debug)]
pub(crate) struct Destination {
    target: Target,
    /// `host:port`, key of its connections and name in logs.
    address: Arc<str>,
    host: HeaderValue,
    /// Put in front of every path; empty but for an address such as `10.0.0.2:8188/orders`.
    prefix: Box<str>,
    attempts: Counter,
    failures: Counter,
}

impl Destination {
    /// # Errors
    /// When the address cannot be read, or its protocol is not spoken here.
    pub(super) fn of(upstream: &Upstream) -> Result<Self, String> {
        let protocol = upstream.protocol().trim();
        if protocol.eq_ignore_ascii_case("https://") {
            return Err("`https://` is not spoken to upstreams yet, use `http://`".to_owned());
        }
        if !protocol.eq_ignore_ascii_case("http://") {
            return Err(format!("the protocol `{protocol}` is not spoken to upstreams, use `http://`"));
        }
        let (authority, prefix) = upstream.address().split_at(path_start(upstream.address()));
        let target: Target = authority.parse().map_err(|e| format!("{e}"))?;
        if prefix.contains('?') {
            return Err(format!("`{prefix}` is more than a path, expected `host:port` or `host:port/path`"));
        }
        let address = target.to_string();
        let host = HeaderValue::from_str(&address).map_err(|e| e.to_string())?;
        Ok(Self {
            target,
            address: address.into(),
            host,
            prefix: escape::target(prefix.trim_end_matches('/')).into(),
            attempts: Counter::default(),
            failures: Counter::default(),
        })
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn address(&self) -> &Arc<str> {
        &self.address
    }

    /// Its `Host`.
    pub(crate) fn host(&self) -> &HeaderValue {
        &self.host
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What tells destinations apart: address and prefix.
    pub(super) fn key(&self) -> (Arc<str>, Box<str>) {
        (Arc::clone(&self.address), self.prefix.clone())
    }

    pub(crate) fn count_attempt(&self) {
        self.attempts.add_one();
    }

    pub(crate) fn count_failure(&self) {
        self.failures.add_one();
    }

    pub(crate) fn attempts(&self) -> u64 {
        self.attempts.sum()
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.sum()
    }
}

fn path_start(address: &str) -> usize {
    let after_scheme = address.find("://").map_or(0, |at| at + 3);
    address[after_scheme..].find('/').map_or(address.len(), |at| after_scheme + at)
}

#[cfg(test)]
mod tests {
    use soul_client::wire::soul::DivideUpstream;

    use super::*;

    fn destination(protocol: Option<&str>, url: &str) -> Result<Destination, String> {
        let protocol = protocol.map(str::to_owned);
        Destination::of(&Upstream::from(&DivideUpstream { protocol, ..DivideUpstream::registered(url) }))
    }

    #[test]
    fn an_address_may_have_a_path_in_front_of_all_others() {
        let plain = destination(None, " 10.0.0.2:8188 ").unwrap();
        assert_eq!((&**plain.address(), plain.prefix()), ("10.0.0.2:8188", ""));
        let nested = destination(Some("http://"), "orders.internal:8188/v1/").unwrap();
        assert_eq!((&**nested.address(), nested.prefix()), ("orders.internal:8188", "/v1"));
        assert_eq!(nested.host(), "orders.internal:8188");
        assert_eq!(destination(None, "a:1/my orders/%20{x}").unwrap().prefix(), "/my%20orders/%20%7Bx%7D");
    }

    #[test]
    fn what_cannot_be_spoken_to_is_refused() {
        for (protocol, url, reason) in [
            (Some("https://"), "a:1", "`https://` is not spoken to upstreams yet, use `http://`"),
            (Some("ws://"), "a:1", "the protocol `ws://` is not spoken to upstreams, use `http://`"),
            (None, "", "the address is blank, expected `host:port`"),
            (None, "a:b", "`b` is not a port, expected 1 to 65535"),
            (None, "a:1/v1?x=1", "`/v1?x=1` is more than a path, expected `host:port` or `host:port/path`"),
        ] {
            assert_eq!(destination(protocol, url).unwrap_err(), reason);
        }
    }
}
