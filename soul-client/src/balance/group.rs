//! What the states of one chain of sets have in common.

use std::sync::{
    Mutex, OnceLock,
    atomic::{
        AtomicI64, AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use super::{
    parts::Parts,
    traffic::{Fading, Part, Traffic, Whole},
};

/// Shared by all states that were born in one chain of sets; outlives each set.
///
/// It lets a choice ask "has anything changed?" with one read, and bounds how many may be ejected.
#[derive(Debug)]
pub(super) struct Group {
    /// States that are down, ejected or on a ramp. While it is 0 a choice need look at nobody's health.
    troubled: AtomicU32,
    /// Grows with every change of health and every ejection or return.
    changes: AtomicU64,
    /// Members that the configuration lets take traffic.
    size: AtomicU32,
    /// How many of them a probe found down.
    down: AtomicU32,
    /// How many of them are ejected.
    ejected: AtomicU32,
    /// When the first ejection ends; `i64::MAX` if there is none.
    next_probe_ms: AtomicI64,
    /// When success rates are looked at next.
    next_sweep_ms: AtomicI64,
    /// Takes memory only once a policy asked for it.
    in_flight: OnceLock<Box<AtAll>>,
    /// Held while the leases of an upstream are worked out ([`lease`](super::lease)).
    leases: Mutex<()>,
}

/// Requests under way at all members, counted only where a policy asks for it. Written by every request then, hence on
/// a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct AtAll {
    traffic: Traffic,
    parts: Parts<Part>,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            troubled: AtomicU32::new(0),
            changes: AtomicU64::new(0),
            in_flight: OnceLock::new(),
            leases: Mutex::default(),
            size: AtomicU32::new(0),
            down: AtomicU32::new(0),
            ejected: AtomicU32::new(0),
            next_probe_ms: AtomicI64::new(i64::MAX),
            next_sweep_ms: AtomicI64::new(0),
        }
    }
}

impl Group {
    /// Whether nobody is down, ejected or on a ramp.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.troubled.load(Relaxed) == 0
    }

    /// Whether fewer than this share of the members are healthy. One that is both down and ejected counts twice, until the next
    /// recount.
    #[inline]
    pub(super) fn is_panic(&self, threshold: f64) -> bool {
        if threshold <= 0.0 || self.is_calm() {
            return false;
        }
        let size = self.size.load(Relaxed);
        let healthy = size.saturating_sub(self.down.load(Relaxed)).saturating_sub(self.ejected.load(Relaxed));
        f64::from(healthy) < f64::from(size) * threshold
    }

    pub(super) fn trouble_began(&self) {
        self.troubled.fetch_add(1, Relaxed);
    }

    pub(super) fn trouble_ended(&self) {
        self.troubled.fetch_sub(1, Relaxed);
    }

    #[inline]
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Acquire)
    }

    /// Notes a change, after it was made.
    pub(super) fn changed(&self) {
        self.changes.fetch_add(1, Release);
    }

    /// Requests under way at all members, as this thread knows them ([`UpstreamState::in_flight_at`](super::UpstreamState::in_flight_at)).
    pub(super) fn in_flight_at(&self, now_ms: i64) -> u32 {
        let whole =
            |all: &AtAll| Whole { shared: &all.traffic, parts: &all.parts }.known(now_ms, Fading::USUAL);
        self.in_flight.get().map_or(0, |all| whole(all).in_flight)
    }

    /// Where requests of a place are counted ([`UpstreamState::traffic`](super::UpstreamState)).
    pub(super) fn traffic(&self, place: u32) -> &Traffic {
        let all = self.in_flight.get_or_init(Box::default);
        let part = (place as usize).checked_sub(1).and_then(|index| all.parts.get(index));
        part.map_or(&all.traffic, |part| &part.traffic)
    }

    pub(super) fn leases(&self) -> &Mutex<()> {
        &self.leases
    }

    /// Makes the part of a place, of so many.
    pub(super) fn open(&self, place: u32, count: u32) {
        if let Some(index) = (place as usize).checked_sub(1) {
            let all = self.in_flight.get_or_init(Box::default);
            all.parts.get_or_init(index, count as usize, Part::default);
        }
    }

    #[cfg(test)]
    pub(super) fn ejected(&self) -> u32 {
        self.ejected.load(Relaxed)
    }

    /// Puts the numbers right when a set is built. A change in the same moment may be counted twice or not at all;
    /// the next build puts that right as well.
    pub(super) fn recount(&self, size: u32, down: u32, ejected: u32) {
        self.size.store(size, Relaxed);
        self.down.store(down, Relaxed);
        self.ejected.store(ejected, Relaxed);
    }

    pub(super) fn went_down(&self) {
        self.down.fetch_add(1, Relaxed);
        self.changed();
    }

    pub(super) fn came_up(&self) {
        let _ = self.down.fetch_update(Relaxed, Relaxed, |down| Some(down.saturating_sub(1)));
        self.changed();
    }

    /// Takes a place among the ejected; `false` if there is none. The share is rounded down, but one member may always be
    /// ejected, and never the last that takes traffic.
    pub(super) fn reserve_ejection(&self, max_share: f64) -> bool {
        let size = self.size.load(Relaxed);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let most = ((f64::from(size) * max_share) as u32).max(1);
        let down = self.down.load(Relaxed);
        let reserve = |ejected: u32| {
            let others = size.saturating_sub(down).saturating_sub(ejected);
            (ejected < most && others > 1).then_some(ejected + 1)
        };
        self.ejected.fetch_update(Relaxed, Relaxed, reserve).is_ok()
    }

    /// Gives the place back.
    pub(super) fn release_ejection(&self) {
        let _ = self.ejected.fetch_update(Relaxed, Relaxed, |ejected| Some(ejected.saturating_sub(1)));
        self.changed();
    }

    /// Whether success rates are to be looked at. Says so to one caller only, and again after a while.
    pub(super) fn take_sweep(&self, now_ms: i64, every_ms: i64) -> bool {
        let next = self.next_sweep_ms.load(Relaxed);
        let then = now_ms.saturating_add(every_ms);
        next <= now_ms && self.next_sweep_ms.compare_exchange(next, then, Relaxed, Relaxed).is_ok()
    }

    /// An ejection will end then.
    pub(super) fn probe_at(&self, at_ms: i64) {
        self.next_probe_ms.fetch_min(at_ms, Relaxed);
    }

    /// Whether an ejection has ended. Says so to one caller only, who then looks for it and names the next time
    /// with [`Group::probe_at`].
    pub(super) fn take_probe(&self, now_ms: i64) -> bool {
        let next = self.next_probe_ms.load(Relaxed);
        next <= now_ms && self.next_probe_ms.compare_exchange(next, i64::MAX, Relaxed, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ejections_stop_at_the_share_and_before_the_last() {
        for (size, down, share, most) in [
            (0, 0, 0.5, 0),
            (1, 0, 0.5, 0),
            (1, 0, 1.0, 0),
            (2, 0, 0.5, 1),
            (3, 0, 0.5, 1),
            (3, 0, 0.1, 1),
            (4, 0, 0.5, 2),
            (4, 0, 1.0, 3),
            (4, 2, 1.0, 1),
            (4, 3, 1.0, 0),
            (10, 0, 0.5, 5),
            (10, 7, 0.5, 2),
        ] {
            let group = Group::default();
            group.recount(size, down, 0);
            let given = (0..20).filter(|_| group.reserve_ejection(share)).count();
            assert_eq!(given, most, "{size} members, {down} down, share {share}");
            group.release_ejection();
            assert_eq!(group.reserve_ejection(share), most > 0);
        }
    }

    #[test]
    fn an_ended_ejection_is_told_once() {
        let group = Group::default();
        assert!(!group.take_probe(i64::MAX - 1));
        group.probe_at(20);
        group.probe_at(10);
        assert!(!group.take_probe(9));
        assert!(group.take_probe(10));
        assert!(!group.take_probe(10));
    }
}
