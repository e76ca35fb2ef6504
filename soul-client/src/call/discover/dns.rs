//! The addresses of a host name.

use std::{collections::HashMap, net::SocketAddr};

use super::{BoxFuture, Discover, DiscoverError, Listed};
use crate::balance::Upstream;

/// Learns upstreams from the system's resolver: every address of a name, with a port that is given.
///
/// The name is that of the service, with a [domain](Self::domain) behind it if one is set, or a [host](Self::host) set for the service.
/// Each upstream says under `host` in its metadata which name it came from, for a `Host` header or TLS. A name that cannot be resolved is
/// an error, so the last list is kept.
///
/// The system's resolver tells neither how long an answer is good nor ports, so the name is asked again by
/// [`Refresh::Polling`](super::Refresh::Polling), and `SRV` records are not read: where they are needed, a resolver crate in a
/// [closure](super::discover_fn) does it.
///
/// # Examples
/// ```
/// use soul_client::call::discover::DnsDiscover;
///
/// // `orders` is `orders.shop.svc.cluster.local:8080`.
/// let source = DnsDiscover::new(8080).domain("shop.svc.cluster.local").host("stock", "stock.example", 80);
/// # let _ = source;
/// ```
#[derive(Clone, Debug)]
pub struct DnsDiscover {
    port: u16,
    domain: Option<String>,
    hosts: HashMap<String, (String, u16)>,
    protocol: Option<String>,
    family: Family,
}

/// Which addresses count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// All.
    #[default]
    Any,
    /// Those of IPv4.
    V4,
    /// Those of IPv6.
    V6,
}

impl Family {
    fn has(self, address: &SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

impl DnsDiscover {
    /// Services are host names, and listen at `port`.
    #[must_use]
    pub fn new(port: u16) -> Self {
        Self { port, domain: None, hosts: HashMap::new(), protocol: None, family: Family::Any }
    }

    /// Sets what stands behind the name of a service, without a leading dot.
    #[must_use]
    pub fn domain(self, domain: impl Into<String>) -> Self {
        Self { domain: Some(domain.into()), ..self }
    }

    /// Sets host and port of one service.
    #[must_use]
    pub fn host(mut self, service: impl Into<String>, host: impl Into<String>, port: u16) -> Self {
        self.hosts.insert(service.into(), (host.into(), port));
        self
    }

    /// Sets the scheme of all upstreams, written with `://`. Default `http://`.
    #[must_use]
    pub fn protocol(self, protocol: impl Into<String>) -> Self {
        Self { protocol: Some(protocol.into()), ..self }
    }

    /// Sets which addresses count. Default [`Family::Any`].
    #[must_use]
    pub fn family(self, family: Family) -> Self {
        Self { family, ..self }
    }

    fn target(&self, service: &str) -> (String, u16) {
        self.hosts.get(service).cloned().unwrap_or_else(|| match &self.domain {
            Some(domain) => (format!("{service}.{domain}"), self.port),
            None => (service.to_owned(), self.port),
        })
    }

    async fn resolve(&self, service: &str) -> Listed {
        let (host, port) = self.target(service);
        let attempt = || DiscoverError::new(format!("resolve `{host}` for `{service}`"));
        let found = tokio::net::lookup_host((&*host, port)).await;
        let found = found.map_err(|error| attempt().with_source(error))?;
        let mut addresses: Vec<_> = found.filter(|address| self.family.has(address)).collect();
        // A resolver gives them in a new order each time, and more than once.
        addresses.sort_unstable();
        addresses.dedup();
        if addresses.is_empty() {
            let text = format!("it has no address of the family {}", self.family.as_str());
            return Err(attempt().with_source(text));
        }
        let upstream = |address: SocketAddr| {
            let upstream = Upstream::new(address.to_string()).with_metadata("host", &host);
            match &self.protocol {
                Some(protocol) => upstream.with_protocol(protocol),
                None => upstream,
            }
        };
        Ok(addresses.into_iter().map(upstream).collect())
    }
}

impl Discover for DnsDiscover {
    fn fetch<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
        Box::pin(self.resolve(service))
    }

    fn describe(&self) -> String {
        "DNS".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_addresses_of_this_machine_are_found_by_its_name() {
        let source = DnsDiscover::new(8188).family(Family::V4).protocol("https://");
        let list = source.fetch("localhost").await.unwrap();
        let local = list.iter().find(|u| u.base_url() == "https://127.0.0.1:8188").unwrap();
        assert_eq!(local.metadata()["host"], "localhost");
        assert_eq!(
            source.host("orders", "localhost", 81).fetch("orders").await.unwrap()[0].address(),
            "127.0.0.1:81"
        );
    }

    #[tokio::test]
    async fn a_name_that_is_none_is_an_error_that_says_it() {
        // `.invalid` never exists (RFC 6761).
        let error = DnsDiscover::new(80).domain("invalid").fetch("orders").await.unwrap_err();
        assert!(error.chain().starts_with("resolve `orders.invalid` for `orders`: "), "{}", error.chain());
    }

    #[tokio::test]
    async fn no_address_of_the_family_is_an_error_and_no_empty_list() {
        let source = DnsDiscover::new(80).family(Family::V6);
        let error = source.fetch("127.0.0.1").await.unwrap_err();
        assert!(error.chain().ends_with("no address of the family IPv6"), "{}", error.chain());
    }
}
