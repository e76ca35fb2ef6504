//! A chosen upstream and the request it was chosen for.

use std::{sync::Arc, time::Duration};

use super::{
    outlier::{OutlierDetector, Verdict, millis},
    policy::Tuning,
    set::Member,
    slow_start::SlowStart,
    state::UpstreamState,
    upstream::Upstream,
};

/// How a request ended, as far as it tells of the upstream's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It answered, with whatever the request deserved.
    Success,
    /// It could not be connected to; nothing was sent.
    Refused,
    /// It did not answer in time, or the connection broke.
    TimedOut,
    /// It answered 502, 503 or 504.
    BadGateway,
    /// It answered 429, or 503 with `Retry-After`: alive, but to be spared. Raises its cost and ejects nobody.
    Overloaded {
        /// How long it asked to be spared.
        retry_after: Option<Duration>,
    },
}

impl Outcome {
    /// Whether it counts as a failure of the upstream.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Refused | Self::TimedOut | Self::BadGateway)
    }
}

/// Longest time that `Retry-After` is heeded for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// How outcomes are turned into state; one for all members of a set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Recorder {
    pub(super) tuning: Tuning,
    pub(super) outliers: Option<OutlierDetector>,
    pub(super) slow_start: Option<SlowStart>,
}

impl Recorder {
    fn record(
        &self,
        state: &UpstreamState,
        outcome: Outcome,
        elapsed: Duration,
        probe: Option<i64>,
        now_ms: i64,
    ) -> Option<Verdict> {
        state.count_outcome(outcome.is_failure());
        let verdict = self.outliers.as_ref().and_then(|o| o.record(state, outcome, probe, now_ms));
        if verdict == Some(Verdict::Restored) {
            // What it costs is what it takes now, and no longer the penalty for having failed.
            state.set_peak(nanos(elapsed), now_ms);
            if let Some(slow_start) = &self.slow_start {
                slow_start.start(state, now_ms);
            }
        }
        self.observe(state, outcome, elapsed, now_ms);
        verdict
    }

    fn observe(&self, state: &UpstreamState, outcome: Outcome, elapsed: Duration, now_ms: i64) {
        let Tuning { peak_tau, mean_tau, failure_penalty, .. } = self.tuning;
        let peak_tau = tau_ms(peak_tau);
        let penalty = match outcome {
            Outcome::Success => {
                return state.observe(nanos(elapsed), now_ms, peak_tau, tau_ms(mean_tau));
            }
            Outcome::Overloaded { retry_after } => {
                failure_penalty.max(retry_after.map(|r| r.min(RETRY_AFTER_MAX)))
            }
            Outcome::Refused | Outcome::TimedOut | Outcome::BadGateway => failure_penalty,
        };
        // Without a penalty a quick failure is no quick answer: it is not recorded at all.
        let cost = nanos(penalty.map_or(Duration::ZERO, |penalty| penalty.max(elapsed)));
        if cost > 0.0 {
            state.observe_peak(cost.max(state.peak_ns()), now_ms, peak_tau);
        }
    }
}

pub(super) fn tau_ms(tau: Duration) -> f64 {
    (tau.as_secs_f64() * 1e3).max(f64::MIN_POSITIVE)
}

/// At least one nanosecond, for 0 means unmeasured.
pub(super) fn nanos(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e9).max(1.0)
}

/// One request under way at the upstream that was chosen for it.
///
/// It is counted in flight until this is completed or dropped. Dropped means that the request was given up by
/// its caller, which tells nothing of the upstream and records nothing.
#[derive(Debug)]
#[must_use = "dropping it at once counts the request out"]
pub struct Pick {
    member: Arc<Member>,
    /// End of the lease, if it is the one request let through after an ejection.
    probe: Option<i64>,
    /// Whether it is counted for the whole group.
    counted: bool,
}

impl Pick {
    pub(super) fn new(member: &Arc<Member>, probe: Option<i64>, now_ms: i64) -> Self {
        let state = member.state();
        state.count_in();
        let tuning = &member.recorder().tuning;
        if tuning.notes_picks {
            state.set_picked_at(now_ms);
        }
        if tuning.counts_all {
            state.group().count_in();
        }
        Self { member: Arc::clone(member), probe, counted: tuning.counts_all }
    }

    /// The chosen one: what is configured and what is learnt.
    #[must_use]
    pub fn member(&self) -> &Arc<Member> {
        &self.member
    }

    /// What is configured of it.
    #[must_use]
    pub fn upstream(&self) -> &Upstream {
        self.member.upstream()
    }

    /// What is learnt of it.
    #[must_use]
    pub fn state(&self) -> &Arc<UpstreamState> {
        self.member.state()
    }

    /// Whether it is the one request that an ejected upstream gets to prove itself.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.probe.is_some()
    }

    /// Counts the request out and records how it ended. Gives what that changed.
    ///
    /// - `elapsed`: from sending the request to the head of the answer, or to the failure.
    /// - `now_ms`: by the same clock as the choice.
    pub fn complete(mut self, outcome: Outcome, elapsed: Duration, now_ms: i64) -> Option<Verdict> {
        let probe = self.probe.take();
        self.member.recorder().record(self.member.state(), outcome, elapsed, probe, now_ms)
    }
}

impl Drop for Pick {
    fn drop(&mut self) {
        let state = self.member.state();
        state.count_out();
        if self.counted {
            state.group().count_out();
        }
        if let Some(lease) = self.probe {
            // Nothing was learnt, so the next request may try at once: `1` is long ago.
            if state.move_ejection(lease, 1) {
                state.group().probe_at(1);
            }
        }
    }
}

/// Lets one request through to an ejected upstream whose time is over.
pub(super) enum Claim {
    /// It is not ejected, takes all traffic again, or was chosen although it is ejected, which some policies and panic do.
    Free,
    /// This request is the one; its lease ends then.
    Probe(i64),
    /// Another request is the one.
    Taken,
}

pub(super) fn claim(member: &Member, now_ms: i64) -> Claim {
    let state = member.state();
    let until = state.ejection_ms();
    let half_open = || member.recorder().outliers.as_ref().filter(|o| o.half_open);
    match half_open() {
        _ if until == 0 || until > now_ms => Claim::Free,
        None => Claim::Free,
        Some(outliers) => {
            let lease = now_ms.saturating_add(millis(outliers.half_open_lease)).max(2);
            if !state.move_ejection(until, lease) {
                return Claim::Taken;
            }
            // Should the request never end, another one may try then.
            state.group().probe_at(lease);
            Claim::Probe(lease)
        }
    }
}
