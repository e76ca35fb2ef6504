//! Values of settings that are no plain ones.

use std::{fmt, sync::Arc, time::Duration};

use crate::call::{Discover, Filter};

/// Where the list of a service comes from if both a registry and the configuration have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListSource {
    /// The registry of the factory; the list of the configuration serves only where there is no registry.
    #[default]
    Registry,
    /// The list of the configuration.
    Static,
}

/// What a request says in its `Host` header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostHeader {
    /// The address of the upstream, as of a request that was sent there directly.
    #[default]
    Upstream,
    /// The name of the service, for upstreams that tell virtual hosts apart.
    Service,
}

/// The times of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Opening a connection. Default 1 s.
    pub connect: Duration,
    /// From sending to the head of the answer, connecting included, and each pause in its body. Where it is no longer than
    /// `connect`, connecting is still given all its time. Default 5 s.
    pub read: Duration,
    /// The whole call: every attempt, every pause between them, and the body. Default 30 s.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(1), read: Duration::from_secs(5), total: Duration::from_secs(30) }
    }
}

/// A source that is set for a service.
#[derive(Clone, Default)]
pub struct Source(pub(in crate::call) Option<Arc<dyn Discover>>);

/// Sources are the same if they are the same in memory.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("None"),
            Some(source) => write!(f, "{} at {:p}", source.describe(), Arc::as_ptr(source)),
        }
    }
}

/// What narrows the list of a service, in order.
#[derive(Clone, Default)]
pub struct Filters(pub(in crate::call) Vec<Arc<dyn Filter>>);

/// Filters are the same if they are the same in memory.
impl fmt::Debug for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|filter| format!("{:p}", Arc::as_ptr(filter)))).finish()
    }
}
