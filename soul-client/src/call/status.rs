//! How the upstreams of a service are doing.

use std::time::Duration;

/// How the upstreams of a service are doing, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MembershipStatus {
    /// Name of the service.
    pub service: String,
    /// Where its list comes from.
    pub source: String,
    /// How many upstreams the list has.
    pub all: usize,
    /// How many of them may serve.
    pub up: usize,
    /// How many of them are left out because requests failed.
    pub ejected: usize,
    /// Whether health is not heeded, since too few are healthy.
    pub panic: bool,
    /// Number of the snapshot that serves; grows with each change.
    pub generation: u64,
    /// Time since the source last said, or confirmed, the list; `None` before the first.
    pub age: Option<Duration>,
    /// How often in a row the source has failed since.
    pub missed_cycles: u64,
    /// Why it failed the last time, while it does.
    pub last_error: Option<String>,
}

impl MembershipStatus {
    /// Whether the list is older than it should be, since the source fails.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.missed_cycles > 0
    }
}
