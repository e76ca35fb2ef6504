//! What is learnt of one upstream at run time.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};

/// What the probe last found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Health {
    /// Not probed yet; takes traffic, since a registration is a promise of its own.
    #[default]
    Unknown = 0,
    /// It answered.
    Up = 1,
    /// It did not; takes no traffic until it answers again.
    Down = 2,
}

impl Health {
    const fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Up,
            2 => Self::Down,
            _ => Self::Unknown,
        }
    }
}

/// State of one upstream: health and counters. Shared and kept while its protocol and url stay in the list, through
/// any number of refreshes and changes of weight.
///
/// Reads and writes are relaxed: a choice may be a moment late, never torn.
pub struct UpstreamState {
    /// Differs from that of every other state of the process.
    id: u64,
    protocol: String,
    url: String,
    health: AtomicU8,
    counters: Counters,
}

/// On cache lines of their own, so that counting one upstream does not slow the reading of another's health.
#[derive(Default)]
#[repr(align(128))]
struct Counters {
    in_flight: AtomicU32,
    picks: AtomicU64,
}

impl UpstreamState {
    pub(super) fn new(protocol: &str, url: &str) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            id: NEXT_ID.fetch_add(1, Relaxed),
            protocol: protocol.to_owned(),
            url: url.to_owned(),
            health: AtomicU8::default(),
            counters: Counters::default(),
        })
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The scheme with `://`.
    #[must_use]
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// The url as configured.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What the probe last found.
    #[must_use]
    pub fn health(&self) -> Health {
        Health::from_code(self.health.load(Relaxed))
    }

    /// Notes what a probe found and gives what was known before, so that the caller can tell a change.
    pub fn set_health(&self, health: Health) -> Health {
        Health::from_code(self.health.swap(health as u8, Relaxed))
    }

    /// Requests it is serving now.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.counters.in_flight.load(Relaxed)
    }

    /// Requests it was given so far; wraps.
    #[must_use]
    pub fn picks(&self) -> u64 {
        self.counters.picks.load(Relaxed)
    }

    /// Counts a request in; dropping the result counts it out, however the request ended.
    #[must_use = "dropping it at once counts the request out"]
    pub fn begin(self: &Arc<Self>) -> InFlight {
        self.counters.in_flight.fetch_add(1, Relaxed);
        self.counters.picks.fetch_add(1, Relaxed);
        InFlight { state: Arc::clone(self) }
    }
}

impl fmt::Debug for UpstreamState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamState")
            .field("protocol", &self.protocol)
            .field("url", &self.url)
            .field("health", &self.health())
            .field("in_flight", &self.in_flight())
            .field("picks", &self.picks())
            .finish_non_exhaustive()
    }
}

/// One request under way at an upstream.
#[derive(Debug)]
pub struct InFlight {
    state: Arc<UpstreamState>,
}

impl InFlight {
    /// The state of the upstream that serves it.
    #[must_use]
    pub fn state(&self) -> &Arc<UpstreamState> {
        &self.state
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.state.counters.in_flight.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_in_and_out() {
        let state = UpstreamState::new("http://", "a");
        let first = state.begin();
        let second = state.begin();
        assert_eq!((state.in_flight(), state.picks()), (2, 2));
        drop(first);
        assert_eq!((second.state().in_flight(), state.picks()), (1, 2));
        drop(second);
        assert_eq!(state.in_flight(), 0);
    }

    #[test]
    fn a_change_of_health_is_told() {
        let state = UpstreamState::new("http://", "a");
        assert_eq!(state.health(), Health::Unknown);
        assert_eq!(state.set_health(Health::Down), Health::Unknown);
        assert_eq!(state.set_health(Health::Up), Health::Down);
        assert_eq!(state.set_health(Health::Up), Health::Up);
    }
}
