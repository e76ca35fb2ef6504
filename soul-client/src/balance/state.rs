//! What is learnt of one upstream at run time.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{group::Group, policy::Decay};

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

/// State of one upstream: health, counters, response times and ejection. Shared and kept while its protocol and
/// url stay in the list, through any number of refreshes and changes of weight.
///
/// Reads and writes are relaxed: a choice may be a moment late, never torn but for a response time and its age, which
/// are two numbers and may for one choice be those of two requests.
pub struct UpstreamState {
    hot: Hot,
    cold: Cold,
    /// Differs from that of every other state of the process.
    id: u64,
    protocol: String,
    url: String,
    group: Arc<Group>,
}

/// What a choice reads: one cache line and its neighbour, which no other upstream's counting touches.
#[derive(Default)]
#[repr(align(128))]
struct Hot {
    health: AtomicU8,
    in_flight: AtomicU32,
    picks: AtomicU64,
    /// 0 while it is not ejected.
    ejected_until_ms: AtomicI64,
    /// Start of the ramp after it came or came back; 0 is none.
    ramp_from_ms: AtomicI64,
    /// Peak-sensitive average of the response time, nanoseconds, bits of an `f64`; 0.0 is unmeasured.
    peak_ns: AtomicU64,
    /// When that was.
    peak_at_ms: AtomicI64,
    /// When it was last chosen.
    picked_at_ms: AtomicI64,
    /// Failures in a row.
    failures: AtomicU32,
}

/// What is written at the end of a request and read when a picker is built.
#[derive(Default)]
#[repr(align(128))]
struct Cold {
    /// Refused connections in a row.
    refusals: AtomicU32,
    /// Ejections in a row.
    ejections: AtomicU32,
    /// Length of the ramp.
    ramp_ms: AtomicI64,
    /// Decaying mean of the response time, as the peak.
    mean_ns: AtomicU64,
    mean_at_ms: AtomicI64,
    completed: AtomicU64,
    failed: AtomicU64,
}

impl UpstreamState {
    pub(super) fn new(protocol: &str, url: &str, group: &Arc<Group>) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            hot: Hot::default(),
            cold: Cold::default(),
            id: NEXT_ID.fetch_add(1, Relaxed),
            protocol: protocol.to_owned(),
            url: url.to_owned(),
            group: Arc::clone(group),
        })
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn group(&self) -> &Arc<Group> {
        &self.group
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
        Health::from_code(self.hot.health.load(Relaxed))
    }

    /// Notes what a probe found and gives what was known before, so that the caller can tell a change.
    pub fn set_health(&self, health: Health) -> Health {
        let before = Health::from_code(self.hot.health.swap(health as u8, Relaxed));
        match (before == Health::Down, health == Health::Down) {
            (false, true) => self.group.went_down(),
            (true, false) => self.group.came_up(),
            _ => {}
        }
        before
    }

    /// Requests it is serving now.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.hot.in_flight.load(Relaxed)
    }

    /// Requests it was given so far; wraps.
    #[must_use]
    pub fn picks(&self) -> u64 {
        self.hot.picks.load(Relaxed)
    }

    /// Requests that ended with a known outcome; wraps.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.cold.completed.load(Relaxed)
    }

    /// How many of them failed; wraps.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.cold.failed.load(Relaxed)
    }

    /// Failures since the last success.
    #[must_use]
    pub fn consecutive_failures(&self) -> u32 {
        self.hot.failures.load(Relaxed)
    }

    /// Ejections since it last proved itself.
    #[must_use]
    pub fn ejections(&self) -> u32 {
        self.cold.ejections.load(Relaxed)
    }

    /// Until when it is ejected, milliseconds since the epoch. Afterwards it stays here until a request has
    /// proved it, and then it is `None`.
    #[must_use]
    pub fn ejected_until_ms(&self) -> Option<i64> {
        Some(self.hot.ejected_until_ms.load(Relaxed)).filter(|&until| until != 0)
    }

    /// The response time as the peak-sensitive average has it: up at once, down slowly. `None` before the first.
    #[must_use]
    pub fn peak_response_time(&self) -> Option<Duration> {
        to_duration(self.peak_ns())
    }

    /// The decaying mean of the response time. `None` before the first.
    #[must_use]
    pub fn mean_response_time(&self) -> Option<Duration> {
        to_duration(self.mean_ns())
    }

    /// Counts a request in; dropping the result counts it out, however the request ended.
    #[must_use = "dropping it at once counts the request out"]
    pub fn begin(self: &Arc<Self>) -> InFlight {
        self.count_in();
        InFlight { state: Arc::clone(self) }
    }

    pub(super) fn count_in(&self) {
        self.hot.in_flight.fetch_add(1, Relaxed);
        self.hot.picks.fetch_add(1, Relaxed);
    }

    pub(super) fn count_out(&self) {
        self.hot.in_flight.fetch_sub(1, Relaxed);
    }

    // === choosing ===

    /// Whether neither a probe nor an ejection stands against it. An ejection that has ended no longer does, though the first
    /// request after it may be the only one.
    pub(super) fn is_available(&self, now_ms: i64) -> bool {
        self.hot.health.load(Relaxed) != Health::Down as u8
            && self.hot.ejected_until_ms.load(Relaxed) <= now_ms
    }

    /// When it was last chosen; 0 is never.
    pub(super) fn picked_at_ms(&self) -> i64 {
        self.hot.picked_at_ms.load(Relaxed)
    }

    pub(super) fn set_picked_at(&self, now_ms: i64) {
        self.hot.picked_at_ms.store(now_ms, Relaxed);
    }

    // === response times ===

    /// 0 before the first.
    pub(super) fn peak_ns(&self) -> f64 {
        f64::from_bits(self.hot.peak_ns.load(Relaxed))
    }

    /// The peak-sensitive average, decayed to a moment. Reads only.
    pub(super) fn decayed_peak_ns(&self, now_ms: i64, tau_ms: f64, decay: Decay) -> f64 {
        let peak = self.peak_ns();
        let age = now_ms.wrapping_sub(self.hot.peak_at_ms.load(Relaxed));
        if age <= 0 { peak } else { peak * decay.factor(age, tau_ms) }
    }

    pub(super) fn set_peak(&self, ns: f64, now_ms: i64) {
        self.hot.peak_ns.store(ns.to_bits(), Relaxed);
        self.hot.peak_at_ms.store(now_ms, Relaxed);
    }

    pub(super) fn mean_ns(&self) -> f64 {
        f64::from_bits(self.cold.mean_ns.load(Relaxed))
    }

    /// A response time enters both averages.
    pub(super) fn observe(&self, ns: f64, now_ms: i64, peak_tau_ms: f64, mean_tau_ms: f64) {
        self.observe_peak(ns, now_ms, peak_tau_ms);
        let mean = self.mean_ns();
        let age = now_ms.wrapping_sub(self.cold.mean_at_ms.load(Relaxed));
        let mean = if mean == 0.0 { ns } else { mix(mean, ns, age, mean_tau_ms) };
        self.cold.mean_ns.store(mean.to_bits(), Relaxed);
        self.cold.mean_at_ms.store(now_ms, Relaxed);
    }

    /// A response time enters the peak-sensitive average only.
    pub(super) fn observe_peak(&self, ns: f64, now_ms: i64, tau_ms: f64) {
        let peak = self.peak_ns();
        let age = now_ms.wrapping_sub(self.hot.peak_at_ms.load(Relaxed));
        let peak = if ns > peak { ns } else { mix(peak, ns, age, tau_ms) };
        self.set_peak(peak, now_ms);
    }

    // === outcomes ===

    pub(super) fn count_outcome(&self, failed: bool) {
        self.cold.completed.fetch_add(1, Relaxed);
        if failed {
            self.cold.failed.fetch_add(1, Relaxed);
        }
    }

    /// Gives failures and refusals in a row.
    pub(super) fn count_failure(&self, refused: bool) -> (u32, u32) {
        let failures = self.hot.failures.fetch_add(1, Relaxed).wrapping_add(1);
        let refusals = if refused {
            self.cold.refusals.fetch_add(1, Relaxed).wrapping_add(1)
        } else {
            self.cold.refusals.store(0, Relaxed);
            0
        };
        (failures, refusals)
    }

    /// Writes only where there was a failure, which is rare.
    pub(super) fn forget_failures(&self) {
        if self.hot.failures.load(Relaxed) != 0 {
            self.hot.failures.store(0, Relaxed);
            self.cold.refusals.store(0, Relaxed);
        }
    }

    // === ejection ===

    /// 0 while it is not ejected.
    pub(super) fn ejection_ms(&self) -> i64 {
        self.hot.ejected_until_ms.load(Relaxed)
    }

    /// Moves the end of the ejection, unless it is no longer what it was.
    pub(super) fn move_ejection(&self, from_ms: i64, to_ms: i64) -> bool {
        self.hot.ejected_until_ms.compare_exchange(from_ms, to_ms, Relaxed, Relaxed).is_ok()
    }

    pub(super) fn count_ejection(&self) {
        self.cold.ejections.fetch_add(1, Relaxed);
    }

    /// Ends the ejection, if there is one; gives whether there was.
    pub(super) fn end_ejection(&self) -> bool {
        self.forget_failures();
        self.cold.ejections.store(0, Relaxed);
        let ended = self.hot.ejected_until_ms.swap(0, Relaxed) != 0;
        if ended {
            self.group.release_ejection();
        }
        ended
    }

    // === ramp ===

    /// From a moment on it takes less than its share for a while.
    pub(super) fn start_ramp(&self, from_ms: i64, length_ms: i64) {
        self.cold.ramp_ms.store(length_ms, Relaxed);
        self.hot.ramp_from_ms.store(from_ms, Relaxed);
    }

    /// How far the ramp is, from 0 to 1; `None` if there is none. One read for most.
    pub(super) fn ramp(&self, now_ms: i64) -> Option<f64> {
        let from = self.hot.ramp_from_ms.load(Relaxed);
        if from == 0 {
            return None;
        }
        let length = self.cold.ramp_ms.load(Relaxed);
        let passed = now_ms.wrapping_sub(from);
        if passed >= length {
            self.hot.ramp_from_ms.store(0, Relaxed);
            return None;
        }
        #[allow(clippy::cast_precision_loss)]
        Some(passed.max(0) as f64 / length as f64)
    }
}

/// The new average of an old one and a number that came `age_ms` later.
fn mix(old: f64, new: f64, age_ms: i64, tau_ms: f64) -> f64 {
    // Requests that end in the same millisecond count as half a millisecond apart, or all but the first
    // would have no weight at all.
    #[allow(clippy::cast_precision_loss)]
    let age = (age_ms.max(0) as f64).max(0.5);
    let keep = (-age / tau_ms).exp();
    old.mul_add(keep, new * (1.0 - keep))
}

fn to_duration(ns: f64) -> Option<Duration> {
    (ns > 0.0).then(|| Duration::try_from_secs_f64(ns / 1e9).unwrap_or(Duration::MAX))
}

impl fmt::Debug for UpstreamState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamState")
            .field("protocol", &self.protocol)
            .field("url", &self.url)
            .field("health", &self.health())
            .field("in_flight", &self.in_flight())
            .field("picks", &self.picks())
            .field("ejected_until_ms", &self.ejected_until_ms())
            .field("peak_response_time", &self.peak_response_time())
            .finish_non_exhaustive()
    }
}

/// One request under way at an upstream, of which only the number counts. [`Pick`](super::Pick) also records how it
/// ended.
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
        self.state.count_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> Arc<UpstreamState> {
        UpstreamState::new("http://", "a", &Arc::default())
    }

    #[test]
    fn a_request_is_counted_in_and_out() {
        let state = state();
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
        let state = state();
        assert_eq!(state.health(), Health::Unknown);
        let before = state.group().changes();
        assert_eq!(state.set_health(Health::Down), Health::Unknown);
        assert_eq!(state.set_health(Health::Up), Health::Down);
        assert_eq!(state.set_health(Health::Up), Health::Up);
        assert_eq!(state.group().changes(), before + 2);
    }

    #[test]
    fn the_peak_rises_at_once_and_falls_slowly() {
        let state = state();
        assert_eq!(state.peak_response_time(), None);
        state.observe(1e6, 1_000, 10_000.0, 10_000.0);
        assert_eq!(state.peak_response_time(), Some(Duration::from_millis(1)));
        state.observe(100e6, 1_001, 10_000.0, 10_000.0);
        assert_eq!(state.peak_response_time(), Some(Duration::from_millis(100)));
        assert!(state.mean_response_time().unwrap() < Duration::from_millis(2));
        // After one decay constant a third of the peak is left.
        let decayed = state.decayed_peak_ns(11_001, 10_000.0, Decay::Exact);
        assert!((decayed / 100e6 - (-1_f64).exp()).abs() < 1e-12);
        state.observe(1e6, 11_001, 10_000.0, 10_000.0);
        assert!((state.peak_ns() / 1e6 - (99.0 * (-1_f64).exp() + 1.0)).abs() < 1e-6);
    }

    #[test]
    fn what_a_choice_reads_is_in_one_block_of_its_own() {
        assert_eq!(size_of::<Hot>(), 128);
    }
}
