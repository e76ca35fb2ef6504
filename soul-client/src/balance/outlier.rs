//! Passive health: upstreams that fail requests are left out for a while.

use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{group::Group, pick::Outcome, state::UpstreamState, success_rate::SuccessRate};

/// Ejects upstreams by the outcomes of requests.
///
/// After so many failures in a row an upstream is ejected; each further ejection in a row lasts twice as long.
/// When it ends, one request is let through (half-open): if it succeeds the upstream is back, else it is ejected
/// again. Ejections by this and what the active probe finds are two inputs of one decision; neither overrules the other, but a probe
/// that finds a dead upstream alive ends its ejection.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use soul_client::balance::OutlierDetector;
///
/// let detector = OutlierDetector { consecutive_failures: 7, ..OutlierDetector::default() };
/// assert_eq!(detector.longest, Duration::from_secs(30));
/// assert!(!OutlierDetector::ribbon().half_open);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OutlierDetector {
    /// Failures in a row of any kind that eject; 0 never. Default 5.
    pub consecutive_failures: u32,
    /// Refused connections in a row that eject; 0 never. Default 3, since there is hardly a doubt.
    pub consecutive_refusals: u32,
    /// Ejects by success rates too; `None`, the default, does not.
    pub success_rate: Option<SuccessRate>,
    /// Length of the first ejection. Default 1 s.
    pub base: Duration,
    /// Length that doubling stops at. Default 30 s.
    pub longest: Duration,
    /// Share of the length by which it varies either way, so that callers do not all come back at once. Default 0.2.
    pub jitter: f64,
    /// Whether only one request is let through at first. Default true.
    pub half_open: bool,
    /// How long that request may take before another one is let through. Default 10 s.
    pub half_open_lease: Duration,
    /// Largest share of the upstreams that may be ejected, rounded down, but always at least one and never the last: of 3 at a half
    /// 1, of 5 it is 2. Who is down by a probe is not counted in, but is not there to be the last one either.
    /// Default 0.5.
    pub max_ejected: f64,
}

impl Default for OutlierDetector {
    fn default() -> Self {
        Self {
            consecutive_failures: 5,
            consecutive_refusals: 3,
            success_rate: None,
            base: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            jitter: 0.2,
            half_open: true,
            half_open_lease: Duration::from_secs(10),
            max_ejected: 0.5,
        }
    }
}

impl OutlierDetector {
    /// As Ribbon's circuit breaker: three failures, then 10, 20, 30, 30 … seconds, and all traffic back after each. The
    /// last upstream is kept nonetheless.
    #[must_use]
    pub fn ribbon() -> Self {
        Self {
            consecutive_failures: 3,
            base: Duration::from_secs(10),
            jitter: 0.0,
            half_open: false,
            max_ejected: 1.0,
            ..Self::default()
        }
    }

    /// Length of the ejection that follows `before` others in a row, without jitter.
    #[must_use]
    pub fn length(&self, before: u32) -> Duration {
        self.base.saturating_mul(1 << before.min(16)).min(self.longest)
    }

    /// Learns from an outcome.
    ///
    /// - `probe`: when the lease of this request ends, if it is the one let through after an ejection.
    pub(super) fn record(
        &self,
        state: &UpstreamState,
        outcome: Outcome,
        probe: Option<i64>,
        now_ms: i64,
    ) -> Option<Verdict> {
        if let Some(rule) = &self.success_rate
            && (outcome == Outcome::Success || outcome.is_failure())
        {
            state.window().count(outcome.is_failure(), now_ms, rule.bucket_ms());
        }
        match outcome {
            Outcome::Success => self.succeeded(state, probe, now_ms),
            Outcome::Overloaded { .. } => {
                // It lives, but it has not shown that it can serve.
                if let Some(lease) = probe {
                    let again = now_ms.saturating_add(millis(self.base));
                    if state.move_ejection(lease, again) {
                        state.group().probe_at(again);
                    }
                }
                None
            }
            Outcome::Refused | Outcome::TimedOut | Outcome::BadGateway => {
                let (failures, refusals) = state.count_failure(outcome == Outcome::Refused);
                let reached = |count: u32, limit: u32| limit != 0 && count >= limit;
                let tripped = reached(failures, self.consecutive_failures)
                    || reached(refusals, self.consecutive_refusals);
                match probe {
                    Some(lease) => self.eject_again(state, lease, now_ms),
                    None if tripped => self.eject(state, now_ms),
                    None => None,
                }
            }
        }
    }

    /// Looks at the success rates, when it is time to. Gives how many it ejected.
    ///
    /// - `states`: of those that may take traffic.
    pub(super) fn sweep<'s>(
        &self,
        group: &Group,
        states: impl Iterator<Item = &'s UpstreamState>,
        now_ms: i64,
    ) -> usize {
        let Some(rule) = self.success_rate.filter(|rule| group.take_sweep(now_ms, rule.bucket_ms())) else {
            return 0;
        };
        let judged: Vec<_> = states
            .filter(|state| state.ejection_ms() == 0)
            .filter_map(|state| Some((state, rule.rate(state.window(), now_ms)?)))
            .collect();
        let rates: Vec<_> = judged.iter().map(|(_, rate)| *rate).collect();
        let Some(threshold) = rule.threshold(&rates) else { return 0 };
        let eject = |(state, rate): (&UpstreamState, f64)| {
            if rate < threshold && self.eject(state, now_ms).is_some() {
                state.window().clear();
                return true;
            }
            false
        };
        judged.into_iter().map(eject).filter(|&ejected| ejected).count()
    }

    fn succeeded(&self, state: &UpstreamState, probe: Option<i64>, now_ms: i64) -> Option<Verdict> {
        state.forget_failures();
        let until = state.ejection_ms();
        // Of an ejected one, answers to requests from before the ejection prove nothing.
        let proved = probe.is_some() || (until != 0 && until <= now_ms && !self.half_open);
        (proved && state.end_ejection()).then_some(Verdict::Restored)
    }

    fn eject(&self, state: &UpstreamState, now_ms: i64) -> Option<Verdict> {
        let until = state.ejection_ms();
        if until == 0 {
            if !state.group().reserve_ejection(self.max_ejected) {
                return None;
            }
            return self.eject_again(state, 0, now_ms).or_else(|| {
                state.group().release_ejection();
                None
            });
        }
        // A late failure of a request from before the ejection does not lengthen it.
        if until > now_ms || self.half_open { None } else { self.eject_again(state, until, now_ms) }
    }

    fn eject_again(&self, state: &UpstreamState, from_ms: i64, now_ms: i64) -> Option<Verdict> {
        let length = self.jittered(self.length(state.ejections()), state, now_ms);
        let until = now_ms.saturating_add(millis(length)).max(1);
        if !state.move_ejection(from_ms, until) {
            return None;
        }
        state.count_ejection();
        state.group().probe_at(until);
        state.group().changed();
        Some(Verdict::Ejected { until_ms: until })
    }

    /// Varied by a hash of what differs from caller to caller and from time to time, in place of a generator.
    fn jittered(&self, length: Duration, state: &UpstreamState, now_ms: i64) -> Duration {
        let hash = xxh3_64_with_seed(state.url().as_bytes(), now_ms.cast_unsigned());
        #[allow(clippy::cast_precision_loss)]
        let unit = (hash >> 11) as f64 / (1_u64 << 53) as f64;
        length.mul_f64((1.0 + self.jitter * (2.0 * unit - 1.0)).max(0.0))
    }
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// What an outcome changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The upstream is ejected.
    Ejected {
        /// Milliseconds since the epoch.
        until_ms: i64,
    },
    /// The upstream has proved itself.
    Restored,
}
