//! A list that was given.

use std::collections::HashMap;

use super::{BoxFuture, Discover, DiscoverError, Feed, Listed, feed};
use crate::balance::Upstream;

/// Lists that the program, or its configuration, gives once.
///
/// # Examples
/// ```
/// use soul_client::call::discover::StaticList;
///
/// let source = StaticList::new().with("orders", ["10.0.0.2:8188", "10.0.0.3:8188"]);
/// # let _ = source;
/// ```
#[doc(alias = "ConfigurationBasedServerList")]
#[doc(alias = "listOfServers")]
#[derive(Clone, Debug, Default)]
pub struct StaticList {
    services: HashMap<String, Vec<Upstream>>,
}

impl StaticList {
    /// No service yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service by the addresses, `host:port`, of its upstreams.
    #[must_use]
    pub fn with<A: Into<String>>(
        self,
        service: impl Into<String>,
        addresses: impl IntoIterator<Item = A>,
    ) -> Self {
        self.with_upstreams(service, addresses.into_iter().map(Upstream::new))
    }

    /// Adds a service by its upstreams.
    #[must_use]
    pub fn with_upstreams(
        mut self,
        service: impl Into<String>,
        upstreams: impl IntoIterator<Item = Upstream>,
    ) -> Self {
        self.services.insert(service.into(), upstreams.into_iter().collect());
        self
    }

    /// Whether it has the service.
    #[must_use]
    pub fn has(&self, service: &str) -> bool {
        self.services.contains_key(service)
    }

    fn list(&self, service: &str) -> Listed {
        self.services.get(service).cloned().ok_or_else(|| {
            DiscoverError::unknown_service(format!("look for `{service}` in the given list: it is not there"))
        })
    }
}

impl Discover for StaticList {
    fn fetch<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
        Box::pin(std::future::ready(self.list(service)))
    }

    /// Said once; the feed then ends, which changes nothing.
    fn watch(&self, service: &str) -> Option<Feed> {
        let (publisher, feed) = feed();
        publisher.report(self.list(service));
        Some(feed)
    }

    fn describe(&self) -> String {
        "a given list".to_owned()
    }
}
