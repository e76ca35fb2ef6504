//! What requests write at an upstream: how many there are, and how long they take. In one place, or in a part for each thread.

use std::{
    ptr,
    sync::atomic::{
        AtomicI64, AtomicU32, AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
};

use super::{
    parts::{self, Parts},
    policy::Decay,
};

/// Enough for sixteen million requests in flight at one upstream.
const IN_FLIGHT_BITS: u32 = 24;

/// How response times fade with their age.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fading {
    /// One through the decay constant in milliseconds.
    pub(super) per_tau: f64,
    pub(super) decay: Decay,
}

impl Fading {
    /// For whoever has none of its own: with a decay constant of ten seconds.
    pub(super) const USUAL: Self = Self { per_tau: 1e-4, decay: Decay::Rational };

    #[inline]
    pub(super) fn factor(self, age_ms: f64) -> f64 {
        self.decay.factor(age_ms, self.per_tau)
    }
}

/// Written by every request, from the choice to the end.
///
/// Requests are counted in one order for all threads, so that of two that each count one and then look at all at least one sees both.
/// Times are relaxed: a choice may be a moment late, never torn but for a response time and its age, which are two numbers
/// and may for one choice be those of two requests.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// Requests in flight in the lower [`IN_FLIGHT_BITS`] bits, requests so far above them: one step counts both.
    requests: AtomicU64,
    /// Peak-sensitive average of the response time, nanoseconds, bits of an `f64`; 0.0 is unmeasured.
    peak_ns: AtomicU64,
    /// When that was.
    peak_at_ms: AtomicI64,
    /// Decaying mean of the response time, as the peak.
    mean_ns: AtomicU64,
    mean_at_ms: AtomicI64,
}

impl Traffic {
    #[inline]
    pub(super) fn count_in(&self) {
        self.requests.fetch_add((1 << IN_FLIGHT_BITS) + 1, SeqCst);
    }

    #[inline]
    pub(super) fn count_out(&self) {
        self.requests.fetch_sub(1, SeqCst);
    }

    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        #[allow(clippy::cast_possible_truncation)]
        let requests = self.requests.load(SeqCst) as u32;
        requests & ((1 << IN_FLIGHT_BITS) - 1)
    }

    /// Wraps after 2^40.
    pub(super) fn picks(&self) -> u64 {
        self.requests.load(Relaxed) >> IN_FLIGHT_BITS
    }

    /// 0 before the first.
    #[inline]
    pub(super) fn peak_ns(&self) -> f64 {
        f64::from_bits(self.peak_ns.load(Relaxed))
    }

    /// The peak-sensitive average and its age in milliseconds.
    #[inline]
    pub(super) fn peak_and_age(&self, now_ms: i64) -> (f64, f64) {
        (self.peak_ns(), age(now_ms, &self.peak_at_ms))
    }

    #[inline]
    pub(super) fn set_peak(&self, ns: f64, now_ms: i64) {
        self.peak_ns.store(ns.to_bits(), Relaxed);
        self.peak_at_ms.store(now_ms, Relaxed);
    }

    #[inline]
    pub(super) fn mean_ns(&self) -> f64 {
        f64::from_bits(self.mean_ns.load(Relaxed))
    }

    /// A response time enters both averages.
    ///
    /// - `sound`: whether nothing failed since the last success.
    #[inline]
    pub(super) fn observe(&self, ns: f64, now_ms: i64, per_peak_tau: f64, per_mean_tau: f64, sound: bool) {
        let mean = self.mean_ns();
        if mean == 0.0 && sound {
            // What was there is an estimate.
            self.set_peak(ns, now_ms);
        } else {
            self.observe_peak(ns, now_ms, per_peak_tau);
        }
        let age = now_ms.wrapping_sub(self.mean_at_ms.load(Relaxed));
        let mean = if mean == 0.0 { ns } else { mix(mean, ns, age, per_mean_tau) };
        self.mean_ns.store(mean.to_bits(), Relaxed);
        self.mean_at_ms.store(now_ms, Relaxed);
    }

    /// A response time enters the peak-sensitive average only.
    #[inline]
    pub(super) fn observe_peak(&self, ns: f64, now_ms: i64, per_tau: f64) {
        let peak = self.peak_ns();
        let age = now_ms.wrapping_sub(self.peak_at_ms.load(Relaxed));
        let peak = if ns > peak { ns } else { mix(peak, ns, age, per_tau) };
        self.set_peak(peak, now_ms);
    }

    #[cfg(test)]
    pub(super) fn set_picks(&self, picks: u64) {
        self.requests.store(picks << IN_FLIGHT_BITS, Relaxed);
    }
}

#[allow(clippy::cast_precision_loss)]
#[inline]
fn age(now_ms: i64, at_ms: &AtomicI64) -> f64 {
    now_ms.wrapping_sub(at_ms.load(Relaxed)).max(0) as f64
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

/// What the requests of one thread write, and what it knows of the others': one cache line, which no other thread writes.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Part {
    pub(super) traffic: Traffic,
    others: Others,
    /// How many requests may be in flight here: see [`lease`](super::lease).
    pub(super) lease: AtomicU64,
}

/// What a thread knows of all parts, as it was when it last looked.
#[derive(Debug, Default)]
struct Others {
    /// In all parts but its own.
    in_flight: AtomicU32,
    /// Of all parts, bits of an `f32`.
    peak_ns: AtomicU32,
    mean_ns: AtomicU32,
    /// The millisecond when it looked: its lower bits, and one more bit, so that 0 is never.
    seen: AtomicU32,
}

/// All that was written of one upstream.
#[derive(Clone, Copy)]
pub(super) struct Whole<'t> {
    /// By whoever has no part of its own.
    pub(super) shared: &'t Traffic,
    pub(super) parts: &'t Parts<Part>,
}

/// What a choice goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) in_flight: u32,
    /// Decayed to the moment; 0 if nothing was measured.
    pub(super) peak_ns: f64,
    pub(super) mean_ns: f64,
}

impl<'t> Whole<'t> {
    fn all(self) -> impl Iterator<Item = &'t Traffic> {
        self.parts.all().map(|part| &part.traffic).chain([self.shared])
    }

    /// Requests in flight. Of two threads that each count a request in and then ask, at least one sees both.
    pub(super) fn in_flight(self) -> u32 {
        self.all().fold(0, |sum, traffic| sum.wrapping_add(traffic.in_flight()))
    }

    /// Wraps after 2^40.
    pub(super) fn picks(self) -> u64 {
        let sum = self.all().fold(0_u64, |sum, traffic| sum.wrapping_add(traffic.picks()));
        sum & ((1 << (u64::BITS - IN_FLIGHT_BITS)) - 1)
    }

    /// All parts as they are now. Of peaks the highest counts, as of one after the other; of means each as much as it is fresh.
    pub(super) fn seen(self, now_ms: i64, fading: Fading) -> Seen {
        let mut seen = Seen { in_flight: self.in_flight(), ..Seen::default() };
        let mut weights = 0.0;
        let decayed = |traffic: &Traffic| {
            let (peak, age) = traffic.peak_and_age(now_ms);
            peak * fading.factor(age)
        };
        for traffic in self.all() {
            let mean = traffic.mean_ns();
            // Where nothing was measured but something stands, it is an estimate, if everybody has it.
            if mean > 0.0 || !ptr::eq(traffic, self.shared) {
                seen.peak_ns = seen.peak_ns.max(decayed(traffic));
            }
            if mean > 0.0 {
                let weight = fading.factor(age(now_ms, &traffic.mean_at_ms));
                seen.mean_ns += mean * weight;
                weights += weight;
            }
        }
        if seen.peak_ns == 0.0 {
            seen.peak_ns = decayed(self.shared);
        }
        if weights > 0.0 {
            seen.mean_ns /= weights;
        }
        seen
    }

    /// The same as this thread knows it: what its own requests wrote as it is, and of the others at most a millisecond old, so that it
    /// seldom reads what others write. How theirs faded until then is as whoever looked first in this millisecond has it.
    pub(super) fn known(self, now_ms: i64, fading: Fading) -> Seen {
        match self.parts.get(parts::own()) {
            Some(part) => part.known(self, now_ms, fading),
            // It never sent a request there, so there is nothing to remember it by either.
            None => self.seen(now_ms, fading),
        }
    }

    /// The highest response time lately, whenever that was.
    pub(super) fn latest(self) -> Seen {
        let at = |traffic: &Traffic| traffic.peak_at_ms.load(Relaxed).max(traffic.mean_at_ms.load(Relaxed));
        self.seen(self.all().map(at).max().unwrap_or_default(), Fading::USUAL)
    }

    /// Sets the peak for all, whatever was measured.
    pub(super) fn set_peak(self, ns: f64, now_ms: i64) {
        self.all().for_each(|traffic| traffic.set_peak(ns, now_ms));
    }
}

impl Part {
    fn known(&self, whole: Whole<'_>, now_ms: i64, fading: Fading) -> Seen {
        let others = &self.others;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let this_ms = now_ms as u32 | 1 << (u32::BITS - 1);
        if others.seen.load(Relaxed) != this_ms {
            self.look(whole, now_ms, fading);
            others.seen.store(this_ms, Relaxed);
        }
        let of = |ns: &AtomicU32| f64::from(f32::from_bits(ns.load(Relaxed)));
        let (peak, age) = self.traffic.peak_and_age(now_ms);
        Seen {
            in_flight: others.in_flight.load(Relaxed).saturating_add(self.traffic.in_flight()),
            peak_ns: of(&others.peak_ns).max(peak * fading.factor(age)),
            mean_ns: of(&others.mean_ns),
        }
    }

    #[cold]
    fn look(&self, whole: Whole<'_>, now_ms: i64, fading: Fading) {
        let seen = whole.seen(now_ms, fading);
        #[allow(clippy::cast_possible_truncation)]
        let bits = |ns: f64| (ns as f32).to_bits();
        // Not all less its own: threads that share this part may count in or out between the two.
        let others = whole.all().filter(|traffic| !ptr::eq(*traffic, &raw const self.traffic));
        let in_flight = others.fold(0_u32, |sum, traffic| sum.saturating_add(traffic.in_flight()));
        self.others.in_flight.store(in_flight, Relaxed);
        self.others.peak_ns.store(bits(seen.peak_ns), Relaxed);
        self.others.mean_ns.store(bits(seen.mean_ns), Relaxed);
    }
}

#[cfg(test)]
mod tests;
