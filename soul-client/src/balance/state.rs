//! What is learnt of one upstream at run time.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicI64, AtomicU32, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    time::Duration,
};

use super::{
    group::Group,
    health::{Health, flags},
    policy::Decay,
    success_rate::Window,
};

/// State of one upstream: health, counters, response times and ejection. Shared and kept while its protocol and
/// url stay in the list, through any number of refreshes and changes of weight.
///
/// Reads and writes are relaxed: a choice may be a moment late, never torn but for a response time and its age, which
/// are two numbers and may for one choice be those of two requests.
#[repr(C)]
pub struct UpstreamState {
    // In this order: before it are the counts of the `Arc`, behind it what is cold, so that of the two lines that a processor may
    // fetch at once both are this upstream's. A boundary of 128 would say so too, but leave half of the cache empty.
    hot: Hot,
    cold: Cold,
    /// Differs from that of every other state of the process.
    id: u64,
    protocol: Box<str>,
    url: Box<str>,
    group: Arc<Group>,
}

/// Enough for sixteen million requests in flight at one upstream.
const IN_FLIGHT_BITS: u32 = 24;

/// What a request that succeeds reads and writes, from the choice to the end: one cache line.
#[derive(Default)]
#[repr(align(64))]
struct Hot {
    /// See [`flags`].
    flags: AtomicU32,
    /// Requests in flight in the lower [`IN_FLIGHT_BITS`] bits, requests so far above them: one step counts both.
    requests: AtomicU64,
    /// 0 while it is not ejected.
    ejected_until_ms: AtomicI64,
    /// Start of the ramp after it came or came back; 0 is none.
    ramp_from_ms: AtomicI64,
    /// Peak-sensitive average of the response time, nanoseconds, bits of an `f64`; 0.0 is unmeasured.
    peak_ns: AtomicU64,
    /// When that was.
    peak_at_ms: AtomicI64,
    /// Decaying mean of the response time, as the peak.
    mean_ns: AtomicU64,
    mean_at_ms: AtomicI64,
    /// Failures in a row.
    failures: AtomicU32,
}

/// What is written when a request fails, or only where a setting asks for it.
#[derive(Default)]
struct Cold {
    /// Refused connections in a row.
    refusals: AtomicU32,
    /// Ejections in a row.
    ejections: AtomicU32,
    /// Length of the ramp.
    ramp_ms: AtomicI64,
    /// When it was last chosen, where a policy wants to know.
    picked_at_ms: AtomicI64,
    given_up: AtomicU64,
    failed: AtomicU64,
    /// There only where success rates are looked at: elsewhere it would be a third of all.
    window: OnceLock<Box<Window>>,
}

impl UpstreamState {
    pub(super) fn new(protocol: &str, url: &str, group: &Arc<Group>) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            hot: Hot::default(),
            cold: Cold::default(),
            id: NEXT_ID.fetch_add(1, Relaxed),
            protocol: protocol.into(),
            url: url.into(),
            group: Arc::clone(group),
        })
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    #[inline]
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
        Health::from_flags(self.hot.flags.load(Relaxed))
    }

    /// Notes what a probe found and gives what was known before, so that the caller can tell a change.
    pub fn set_health(&self, health: Health) -> Health {
        let others = |flags| flags & !(flags::UP | flags::DOWN) | health.flags();
        let before = Health::from_flags(self.change_flags(others));
        match (before == Health::Down, health == Health::Down) {
            (false, true) => self.group.went_down(),
            (true, false) => self.group.came_up(),
            _ => {}
        }
        before
    }

    /// Changes the flags and tells the group of trouble; gives what they were.
    fn change_flags(&self, change: impl Fn(u32) -> u32) -> u32 {
        let before =
            self.hot.flags.fetch_update(Relaxed, Relaxed, |flags| Some(change(flags))).unwrap_or_default();
        match (before & flags::TROUBLE != 0, change(before) & flags::TROUBLE != 0) {
            (false, true) => self.group.trouble_began(),
            (true, false) => self.group.trouble_ended(),
            _ => {}
        }
        before
    }

    /// Requests it is serving now.
    #[must_use]
    #[inline]
    pub fn in_flight(&self) -> u32 {
        #[allow(clippy::cast_possible_truncation)]
        let requests = self.hot.requests.load(Relaxed) as u32;
        requests & ((1 << IN_FLIGHT_BITS) - 1)
    }

    /// Requests it was given so far; wraps after 2^40.
    #[must_use]
    pub fn picks(&self) -> u64 {
        self.hot.requests.load(Relaxed) >> IN_FLIGHT_BITS
    }

    /// Requests that ended, but for those given up by their callers; wraps as [`UpstreamState::picks`].
    #[must_use]
    pub fn completed(&self) -> u64 {
        let requests = self.hot.requests.load(Relaxed);
        let in_flight = requests & ((1 << IN_FLIGHT_BITS) - 1);
        (requests >> IN_FLIGHT_BITS).wrapping_sub(in_flight).wrapping_sub(self.given_up())
    }

    /// Requests that were given up by their callers; wraps.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.cold.given_up.load(Relaxed)
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

    /// The response time as the peak-sensitive average has it: up at once, down slowly. `None` before the first; an
    /// estimate where the policy begins with one.
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

    #[inline]
    pub(super) fn count_in(&self) {
        self.hot.requests.fetch_add((1 << IN_FLIGHT_BITS) + 1, Relaxed);
    }

    #[inline]
    pub(super) fn count_out(&self) {
        self.hot.requests.fetch_sub(1, Relaxed);
    }

    // === choosing ===

    /// Whether nothing stands against it. One read.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.hot.flags.load(Relaxed) & flags::TROUBLE == 0
    }

    /// Whether neither a probe nor an ejection stands against it. An ejection that has ended no longer does, though the first
    /// request after it may be the only one.
    #[inline]
    pub(super) fn is_available(&self, now_ms: i64) -> bool {
        let flags = self.hot.flags.load(Relaxed);
        flags & flags::DOWN == 0 && (flags & flags::EJECTED == 0 || self.ejection_ms() <= now_ms)
    }

    /// When it was last chosen; 0 is never.
    pub(super) fn picked_at_ms(&self) -> i64 {
        self.cold.picked_at_ms.load(Relaxed)
    }

    pub(super) fn set_picked_at(&self, now_ms: i64) {
        self.cold.picked_at_ms.store(now_ms, Relaxed);
    }

    // === response times ===

    /// 0 before the first.
    #[inline]
    pub(super) fn peak_ns(&self) -> f64 {
        f64::from_bits(self.hot.peak_ns.load(Relaxed))
    }

    /// The peak-sensitive average and its age in milliseconds.
    #[inline]
    pub(super) fn peak_and_age(&self, now_ms: i64) -> (f64, f64) {
        let age = now_ms.wrapping_sub(self.hot.peak_at_ms.load(Relaxed));
        #[allow(clippy::cast_precision_loss)]
        (self.peak_ns(), age.max(0) as f64)
    }

    /// The peak-sensitive average, decayed to a moment. Reads only.
    pub(super) fn decayed_peak_ns(&self, now_ms: i64, per_tau: f64, decay: Decay) -> f64 {
        let peak = self.peak_ns();
        let age = now_ms.wrapping_sub(self.hot.peak_at_ms.load(Relaxed));
        #[allow(clippy::cast_precision_loss)]
        if age <= 0 { peak } else { peak * decay.factor(age as f64, per_tau) }
    }

    #[inline]
    pub(super) fn set_peak(&self, ns: f64, now_ms: i64) {
        self.hot.peak_ns.store(ns.to_bits(), Relaxed);
        self.hot.peak_at_ms.store(now_ms, Relaxed);
    }

    #[inline]
    pub(super) fn mean_ns(&self) -> f64 {
        f64::from_bits(self.hot.mean_ns.load(Relaxed))
    }

    /// A response time enters both averages.
    #[inline]
    pub(super) fn observe(&self, ns: f64, now_ms: i64, per_peak_tau: f64, per_mean_tau: f64) {
        let mean = self.mean_ns();
        if mean == 0.0 && self.hot.failures.load(Relaxed) == 0 {
            // What was there is an estimate.
            self.set_peak(ns, now_ms);
        } else {
            self.observe_peak(ns, now_ms, per_peak_tau);
        }
        let age = now_ms.wrapping_sub(self.hot.mean_at_ms.load(Relaxed));
        let mean = if mean == 0.0 { ns } else { mix(mean, ns, age, per_mean_tau) };
        self.hot.mean_ns.store(mean.to_bits(), Relaxed);
        self.hot.mean_at_ms.store(now_ms, Relaxed);
    }

    /// A response time enters the peak-sensitive average only.
    #[inline]
    pub(super) fn observe_peak(&self, ns: f64, now_ms: i64, per_tau: f64) {
        let peak = self.peak_ns();
        let age = now_ms.wrapping_sub(self.hot.peak_at_ms.load(Relaxed));
        let peak = if ns > peak { ns } else { mix(peak, ns, age, per_tau) };
        self.set_peak(peak, now_ms);
    }

    // === outcomes ===

    pub(super) fn count_failed(&self) {
        self.cold.failed.fetch_add(1, Relaxed);
    }

    pub(super) fn count_given_up(&self) {
        self.cold.given_up.fetch_add(1, Relaxed);
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

    /// Whether neither a failure nor an ejection is to be forgotten, so that a success teaches nothing.
    #[inline]
    pub(super) fn is_sound(&self) -> bool {
        self.hot.failures.load(Relaxed) == 0 && self.ejection_ms() == 0
    }

    /// Writes only where there was a failure, which is rare.
    #[inline]
    pub(super) fn forget_failures(&self) {
        if self.hot.failures.load(Relaxed) != 0 {
            self.hot.failures.store(0, Relaxed);
            self.cold.refusals.store(0, Relaxed);
        }
    }

    /// How often it succeeded lately.
    pub(super) fn window(&self) -> &Window {
        self.cold.window.get_or_init(Box::default)
    }

    // === ejection ===

    /// 0 while it is not ejected.
    #[inline]
    pub(super) fn ejection_ms(&self) -> i64 {
        self.hot.ejected_until_ms.load(Relaxed)
    }

    /// Moves the end of the ejection, unless it is no longer what it was.
    pub(super) fn move_ejection(&self, from_ms: i64, to_ms: i64) -> bool {
        let moved = self.hot.ejected_until_ms.compare_exchange(from_ms, to_ms, Acquire, Relaxed).is_ok();
        if moved && from_ms == 0 {
            self.change_flags(|flags| flags | flags::EJECTED);
        }
        moved
    }

    pub(super) fn count_ejection(&self) {
        self.cold.ejections.fetch_add(1, Relaxed);
    }

    /// Ends the ejection, if there is one; gives whether there was.
    pub(super) fn end_ejection(&self) -> bool {
        self.forget_failures();
        self.cold.ejections.store(0, Relaxed);
        if self.ejection_ms() == 0 {
            return false;
        }
        // The flag first: the next ejection can only begin when the time is 0, and sets it again.
        self.change_flags(|flags| flags & !flags::EJECTED);
        let ended = self.hot.ejected_until_ms.swap(0, Release) != 0;
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
        self.change_flags(|flags| flags | flags::RAMP);
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
            self.change_flags(|flags| flags & !flags::RAMP);
            return None;
        }
        #[allow(clippy::cast_precision_loss)]
        Some(passed.max(0) as f64 / length as f64)
    }
}

/// The new average of an old one and a number that came `age_ms` later.
///
/// - `per_tau`: one through the decay constant in milliseconds.
fn mix(old: f64, new: f64, age_ms: i64, per_tau: f64) -> f64 {
    // Requests that end in the same millisecond count as half a millisecond apart, or all but the first
    // would have no weight at all.
    #[allow(clippy::cast_precision_loss)]
    let age = (age_ms as f64).max(0.5);
    new + (old - new) * Decay::Rational.factor(age, per_tau)
}

impl Drop for UpstreamState {
    fn drop(&mut self) {
        if !self.is_calm() {
            self.group.trouble_ended();
        }
    }
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
mod tests;
