//! Where the requests for an upstream go, and how many did.

use std::sync::Arc;

use http::HeaderValue;
use rustls::pki_types::ServerName;
use soul_client::balance::Upstream;

use crate::{
    model::{Target, escape},
    shard::Counter,
};

/// What is spoken to an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    /// HTTP/1.1.
    Http,
    /// HTTP inside TLS, with whoever proves to be this; of which version is agreed on there.
    Https(ServerName<'static>),
    /// HTTP/2 without TLS, as both sides know before.
    H2c,
}

/// One address with everything about it that a request needs, prepared. Two selectors with the same address share
/// it, and so do snapshots one after the other.
#[derive(Debug)]
pub(crate) struct Destination {
    protocol: Protocol,
    target: Target,
    /// `host:port`, key of its connections and name in logs.
    address: Arc<str>,
    host: HeaderValue,
    /// Put in front of every path; empty but for an address such as `10.0.0.2:8188/orders`.
    prefix: Box<str>,
    attempts: Counter,
    failures: Counter,
}

/// What tells destinations apart.
pub(super) type Key = (Protocol, Arc<str>, Box<str>);

impl Destination {
    /// # Errors
    /// When the address cannot be read, or its protocol is not spoken here.
    pub(super) fn of(upstream: &Upstream) -> Result<Self, String> {
        let (scheme, address) = match upstream.address().find("://") {
            Some(at) => upstream.address().split_at(at + 3),
            None => (upstream.protocol(), upstream.address()),
        };
        let scheme = scheme.trim();
        let (authority, prefix) = address.split_at(address.find('/').unwrap_or(address.len()));
        let is = |name: &str| scheme.eq_ignore_ascii_case(name);
        let (secure, h2c) = (is("https://"), is("h2c://") || is("grpc://"));
        if !secure && !h2c && !is("http://") {
            return Err(format!(
                "the protocol `{scheme}` is not spoken to upstreams, use `http://`, `https://`, `h2c://` or `grpc://`"
            ));
        }
        // The scheme is a matter of the port, where the address has none.
        let whole = if secure { format!("https://{}", authority.trim()) } else { authority.to_owned() };
        let target: Target = whole.parse().map_err(|e| format!("{e}"))?;
        let protocol = match (secure, h2c) {
            (true, _) => Protocol::Https(server_name(target.host())?),
            (_, true) => Protocol::H2c,
            _ => Protocol::Http,
        };
        if prefix.contains('?') {
            return Err(format!("`{prefix}` is more than a path, expected `host:port` or `host:port/path`"));
        }
        let address = target.to_string();
        let host = HeaderValue::from_str(&address).map_err(|e| e.to_string())?;
        Ok(Self {
            protocol,
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

    pub(crate) fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// What tells destinations apart: protocol, address and prefix.
    pub(super) fn key(&self) -> Key {
        (self.protocol.clone(), Arc::clone(&self.address), self.prefix.clone())
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

fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(host.to_owned()).map_err(|_| {
        format!("`{host}` is no name that a certificate can be for, use one of a host or an address")
    })
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
    fn the_scheme_is_the_protocols_or_the_addresss_own() {
        for (protocol, url, address, name) in [
            (Some("https://"), "orders.internal", "orders.internal:443", Some("orders.internal")),
            (Some("HTTPS://"), "10.0.0.2:8443/v1", "10.0.0.2:8443", Some("10.0.0.2")),
            (None, "https://[::1]:1", "[::1]:1", Some("::1")),
            (Some("https://"), "http://a", "a:80", None),
            (None, "a", "a:80", None),
        ] {
            let destination = destination(protocol, url).unwrap();
            let name = name.map_or(Protocol::Http, |name| Protocol::Https(name.try_into().unwrap()));
            assert_eq!((&**destination.address(), destination.protocol()), (address, &name), "{url}");
        }
        for protocol in ["h2c://", "grpc://"] {
            assert_eq!(destination(Some(protocol), "a:1").unwrap().protocol(), &Protocol::H2c);
        }
    }

    #[test]
    fn what_cannot_be_spoken_to_is_refused() {
        for (protocol, url, reason) in [
            (
                Some("ws://"),
                "a:1",
                "the protocol `ws://` is not spoken to upstreams, use `http://`, `https://`, `h2c://` or `grpc://`",
            ),
            (
                Some("https://"),
                "a_b..c:1",
                "`a_b..c` is no name that a certificate can be for, use one of a host or an address",
            ),
            (None, "", "the address is blank, expected `host:port`"),
            (None, "a:b", "`b` is not a port, expected 1 to 65535"),
            (None, "a:1/v1?x=1", "`/v1?x=1` is more than a path, expected `host:port` or `host:port/path`"),
        ] {
            assert_eq!(destination(protocol, url).unwrap_err(), reason);
        }
    }
}
