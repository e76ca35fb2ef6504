//! How long an upstream takes.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use super::{super::traffic::Fading, UpstreamState};

impl UpstreamState {
    /// The response time as the peak-sensitive average has it: up at once, down slowly. `None` before the first; an
    /// estimate where the policy begins with one.
    #[must_use]
    pub fn peak_response_time(&self) -> Option<Duration> {
        to_duration(self.latest_peak_ns())
    }

    /// The decaying mean of the response time. `None` before the first.
    #[must_use]
    pub fn mean_response_time(&self) -> Option<Duration> {
        to_duration(if self.is_parted() { self.whole().latest().mean_ns } else { self.hot.traffic.mean_ns() })
    }

    /// The peak-sensitive average, which 0 is before the first, and its age in milliseconds.
    #[inline]
    pub(in crate::balance) fn peak_and_age(&self, now_ms: i64, fading: Fading) -> (f64, f64) {
        if self.is_parted() {
            (self.whole().known(now_ms, fading).peak_ns, 0.0)
        } else {
            self.hot.traffic.peak_and_age(now_ms)
        }
    }

    /// The same, decayed to a moment.
    pub(in crate::balance) fn decayed_peak_ns(&self, now_ms: i64, fading: Fading) -> f64 {
        if self.is_parted() {
            return self.whole().seen(now_ms, fading).peak_ns;
        }
        let (peak, age) = self.hot.traffic.peak_and_age(now_ms);
        if age <= 0.0 { peak } else { peak * fading.factor(age) }
    }

    /// The same, as it was when it was last measured.
    pub(in crate::balance) fn latest_peak_ns(&self) -> f64 {
        if self.is_parted() { self.whole().latest().peak_ns } else { self.hot.traffic.peak_ns() }
    }

    /// Replaces the average: for whoever was never measured by an estimate, or for all that was measured.
    pub(in crate::balance) fn set_peak(&self, ns: f64, now_ms: i64, measured: bool) {
        if measured { self.whole().set_peak(ns, now_ms) } else { self.hot.traffic.set_peak(ns, now_ms) }
    }

    /// The decaying mean as a choice goes by it; 0 before the first.
    #[inline]
    pub(in crate::balance) fn mean_ns(&self, now_ms: i64) -> f64 {
        if self.is_parted() {
            self.whole().known(now_ms, Fading::USUAL).mean_ns
        } else {
            self.hot.traffic.mean_ns()
        }
    }

    /// A response time enters both averages.
    #[inline]
    pub(in crate::balance) fn observe(
        &self,
        place: u32,
        ns: f64,
        now_ms: i64,
        per_peak_tau: f64,
        per_mean_tau: f64,
    ) {
        let sound = self.hot.failures.load(Relaxed) == 0;
        self.traffic(place).observe(ns, now_ms, per_peak_tau, per_mean_tau, sound);
    }
}

fn to_duration(ns: f64) -> Option<Duration> {
    (ns > 0.0).then(|| Duration::try_from_secs_f64(ns / 1e9).unwrap_or(Duration::MAX))
}
