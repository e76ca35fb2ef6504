//! What is learnt of one upstream at run time.

mod ejection;
mod times;

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};

use super::{
    group::Group,
    health::{Health, flags},
    parts::Parts,
    success_rate::Window,
    traffic::{Fading, Part, Traffic, Whole},
};

/// State of one upstream: health, counters, response times and ejection. Shared and kept while its protocol and
/// url stay in the list, through any number of refreshes and changes of weight.
///
/// Where lists have several [parts](super::parts), each thread counts its requests and their times in one of its own, and what is read
/// here is all of them together.
#[repr(C)]
pub struct UpstreamState {
    // In this order: before it are the counts of the `Arc`, behind it what is cold, so that of the two lines that a processor may
    // fetch at once both are this upstream's. A boundary of 128 would say so too, but leave half of the cache empty.
    hot: Hot,
    cold: Cold,
    /// Differs from that of every other state of the process.
    id: u64,
    /// The protocol, and the url behind it.
    name: Box<str>,
    url_at: usize,
    group: Arc<Group>,
}

/// What a request that succeeds reads and writes, from the choice to the end: one cache line. Where threads have parts of their own
/// it is only read.
#[derive(Default)]
#[repr(align(64))]
struct Hot {
    /// See [`flags`].
    flags: AtomicU32,
    /// Failures in a row.
    failures: AtomicU32,
    /// 0 while it is not ejected.
    ejected_until_ms: AtomicI64,
    /// Start of the ramp after it came or came back; 0 is none.
    ramp_from_ms: AtomicI64,
    /// Of requests that belong to no part.
    traffic: Traffic,
}

/// How exactly it is known when an upstream was last chosen.
const PICKED_AT_STEP_MS: u64 = 50;

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
    /// Of the others. The flag [`flags::PARTED`] says whether there are any.
    parts: Parts<Part>,
}

impl UpstreamState {
    pub(super) fn new(protocol: &str, url: &str, group: &Arc<Group>) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            hot: Hot::default(),
            cold: Cold::default(),
            id: NEXT_ID.fetch_add(1, Relaxed),
            name: [protocol, url].concat().into(),
            url_at: protocol.len(),
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
        &self.name[..self.url_at]
    }

    /// The url as configured.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.name[self.url_at..]
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
    ///
    /// Where there are several parts, all of them are read. Of two threads that each count a request in and then ask, at least one
    /// sees both.
    #[must_use]
    #[inline]
    pub fn in_flight(&self) -> u32 {
        if self.is_parted() { self.whole().in_flight() } else { self.hot.traffic.in_flight() }
    }

    /// Requests it is serving at a moment, as a choice goes by them: those of this thread's part exactly, and of the others as they
    /// were not longer than a millisecond before.
    #[must_use]
    #[inline]
    pub fn in_flight_at(&self, now_ms: i64) -> u32 {
        if self.is_parted() {
            self.whole().known(now_ms, Fading::USUAL).in_flight
        } else {
            self.hot.traffic.in_flight()
        }
    }

    /// Requests it was given so far; wraps after 2^40.
    #[must_use]
    pub fn picks(&self) -> u64 {
        self.whole().picks()
    }

    /// Requests that ended, but for those given up by their callers; wraps as [`UpstreamState::picks`].
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.picks().wrapping_sub(self.in_flight().into()).wrapping_sub(self.given_up())
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

    /// Counts a request in; dropping the result counts it out, however the request ended.
    #[must_use = "dropping it at once counts the request out"]
    pub fn begin(self: &Arc<Self>) -> InFlight {
        self.traffic(0).count_in();
        InFlight { state: Arc::clone(self) }
    }

    // === parts ===

    #[inline]
    fn is_parted(&self) -> bool {
        self.hot.flags.load(Relaxed) & flags::PARTED != 0
    }

    fn whole(&self) -> Whole<'_> {
        Whole { shared: &self.hot.traffic, parts: &self.cold.parts }
    }

    /// Where requests of a place write: 0 is that of those without a part, and one more than its number that of a part.
    #[inline]
    pub(super) fn traffic(&self, place: u32) -> &Traffic {
        if place == 0 { &self.hot.traffic } else { self.own_traffic(place) }
    }

    fn own_traffic(&self, place: u32) -> &Traffic {
        self.part(place).map_or(&self.hot.traffic, |part| &part.traffic)
    }

    fn part(&self, place: u32) -> Option<&Part> {
        self.cold.parts.get((place as usize).checked_sub(1)?)
    }

    /// Whether no more than so many requests are in flight, of which one was just counted in at a place.
    #[inline]
    pub(super) fn fits(&self, place: u32, limit: u32) -> bool {
        match self.part(place) {
            Some(part) => self.whole().fits(part, limit, self.group.leases()),
            None => self.in_flight() <= limit,
        }
    }

    /// Makes the part of a place, of so many.
    pub(super) fn open(&self, place: u32, count: u32) {
        if place > 0 {
            self.change_flags(|flags| flags | flags::PARTED);
            self.cold.parts.get_or_init(place as usize - 1, count as usize, Part::default);
        }
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

    /// To some milliseconds, lest every request writes to what all threads read.
    pub(super) fn set_picked_at(&self, now_ms: i64) {
        if now_ms.wrapping_sub(self.picked_at_ms()).unsigned_abs() > PICKED_AT_STEP_MS {
            self.cold.picked_at_ms.store(now_ms, Relaxed);
        }
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
}

impl Drop for UpstreamState {
    fn drop(&mut self) {
        if !self.is_calm() {
            self.group.trouble_ended();
        }
    }
}

impl fmt::Debug for UpstreamState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamState")
            .field("protocol", &self.protocol())
            .field("url", &self.url())
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
        self.state.traffic(0).count_out();
    }
}

#[cfg(test)]
mod tests;
