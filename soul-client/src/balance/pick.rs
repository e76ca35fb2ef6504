//! A chosen upstream and the request it was chosen for.

use std::{sync::Arc, time::Duration};

use super::{
    list::Member,
    outlier::{OutlierDetector, Verdict, millis},
    policy::Tuning,
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
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recorder {
    pub(super) tuning: Tuning,
    pub(super) outliers: Option<OutlierDetector>,
    pub(super) slow_start: Option<SlowStart>,
    /// One through the decay constants, in milliseconds: divisions take long.
    per_peak_tau: f64,
    per_mean_tau: f64,
    /// Whether success rates are looked at.
    counts_successes: bool,
    /// Where requests are counted that are recorded by this: see [`UpstreamState::traffic`].
    place: u32,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new(Tuning::default(), None, None)
    }
}

impl Recorder {
    pub(super) fn new(
        tuning: Tuning,
        outliers: Option<OutlierDetector>,
        slow_start: Option<SlowStart>,
    ) -> Self {
        let (per_peak_tau, per_mean_tau) = (per_ms(tuning.peak_tau), per_ms(tuning.mean_tau));
        let counts_successes = outliers.as_ref().is_some_and(|o| o.success_rate.is_some());
        Self { tuning, outliers, slow_start, per_peak_tau, per_mean_tau, counts_successes, place: 0 }
    }

    /// The same in another place.
    pub(super) fn at(&self, place: u32) -> Self {
        Self { place, ..self.clone() }
    }

    /// - `probe`: as [`Pick`] has it.
    #[inline]
    fn record(
        &self,
        state: &UpstreamState,
        outcome: Outcome,
        elapsed: Duration,
        probe: i64,
        now_ms: i64,
    ) -> Option<Verdict> {
        // Nearly every request: all that it tells is how long it took.
        if outcome == Outcome::Success && probe == NO_PROBE && !self.counts_successes && state.is_sound() {
            state.observe(self.place, nanos(elapsed), now_ms, self.per_peak_tau, self.per_mean_tau);
            return None;
        }
        let probe = Some(probe.wrapping_abs()).filter(|&probe| probe != NO_PROBE);
        self.judge(state, outcome, elapsed, probe, now_ms)
    }

    #[inline(never)]
    fn judge(
        &self,
        state: &UpstreamState,
        outcome: Outcome,
        elapsed: Duration,
        probe: Option<i64>,
        now_ms: i64,
    ) -> Option<Verdict> {
        if outcome.is_failure() {
            state.count_failed();
        }
        let verdict = self.outliers.as_ref().and_then(|o| o.record(state, outcome, probe, now_ms));
        if verdict == Some(Verdict::Restored) {
            // What it costs is what it takes now, and no longer the penalty for having failed.
            state.set_peak(nanos(elapsed), now_ms, true);
            if let Some(slow_start) = &self.slow_start {
                slow_start.start(state, now_ms);
            }
        }
        self.observe(state, outcome, elapsed, now_ms);
        verdict
    }

    fn observe(&self, state: &UpstreamState, outcome: Outcome, elapsed: Duration, now_ms: i64) {
        let failure_penalty = self.tuning.failure_penalty;
        let penalty = match outcome {
            Outcome::Success => {
                let (per_peak_tau, per_mean_tau) = (self.per_peak_tau, self.per_mean_tau);
                return state.observe(self.place, nanos(elapsed), now_ms, per_peak_tau, per_mean_tau);
            }
            Outcome::Overloaded { retry_after } => {
                failure_penalty.max(retry_after.map(|r| r.min(RETRY_AFTER_MAX)))
            }
            Outcome::Refused | Outcome::TimedOut | Outcome::BadGateway => failure_penalty,
        };
        // Without a penalty a quick failure is no quick answer: it is not recorded at all.
        if let Some(penalty) = penalty {
            let (cost, traffic) = (nanos(penalty.max(elapsed)), state.traffic(self.place));
            traffic.observe_peak(cost.max(traffic.peak_ns()), now_ms, self.per_peak_tau);
        }
    }
}

/// One through a time in milliseconds.
pub(super) fn per_ms(tau: Duration) -> f64 {
    1.0 / (tau.as_secs_f64() * 1e3).max(1e-3)
}

/// At least one nanosecond, for 0 means unmeasured.
pub(super) fn nanos(duration: Duration) -> f64 {
    let nanos =
        duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into());
    // Signed, for which there is a conversion in hardware.
    #[allow(clippy::cast_precision_loss)]
    let nanos = i64::try_from(nanos).unwrap_or(i64::MAX) as f64;
    nanos.max(1.0)
}

/// One request under way at the upstream that was chosen for it.
///
/// It is counted in flight until this is completed or dropped. Dropped means that the request was given up by
/// its caller, which tells nothing of the upstream and records nothing. That may be on another thread than the one that chose, which
/// still counts in the part where it was counted in.
#[derive(Debug)]
#[must_use = "dropping it at once counts the request out"]
pub struct Pick {
    member: Arc<Member>,
    /// End of the lease, if it is the one request let through after an ejection; less than 0, the end of the ejection, if it was
    /// chosen although it is ejected; else [`NO_PROBE`], and [`COMPLETED`] at the end. One number, so that this is two words, which go from call to call in registers.
    probe: i64,
}

/// It is a request like any other.
const NO_PROBE: i64 = 0;

/// The outcome was recorded.
const COMPLETED: i64 = i64::MIN;

impl Pick {
    #[inline]
    pub(super) fn new(member: &Arc<Member>, claim: Claim, now_ms: i64) -> Self {
        let (state, recorder) = (member.state(), member.recorder());
        state.traffic(recorder.place).count_in();
        let tuning = &recorder.tuning;
        if tuning.notes_picks {
            state.set_picked_at(now_ms);
        }
        if tuning.counts_all {
            state.group().traffic(recorder.place).count_in();
        }
        let probe = match claim {
            Claim::Free | Claim::Taken => NO_PROBE,
            Claim::Probe(lease) => lease,
            Claim::Suspect(until) => -until,
        };
        Self { member: Arc::clone(member), probe }
    }

    /// The chosen one: what is configured and what is learnt. Where a list has several [parts](super::parts), it has a member of its
    /// own for each; they have one state.
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
        self.lease().is_some()
    }

    /// Whether its upstream serves no more than so many requests with this one: to be asked before the request is sent, and when
    /// the answer is no, this is to be dropped. Of requests that ask in the same moment too many may be told no, but never too many
    /// yes. [`u32::MAX`] is no limit.
    ///
    /// In several [parts](super::parts) each thread has a share of the limit, and looks at the others only when that is used up, under
    /// a lock; what is counted by [`UpstreamState::begin`] belongs to no part, and is heeded only then.
    #[must_use]
    #[inline]
    pub fn fits(&self, limit: u32) -> bool {
        self.member.state().fits(self.member.recorder().place, limit)
    }

    /// Counts the request out and records how it ended. Gives what that changed.
    ///
    /// - `elapsed`: from sending the request to the head of the answer, or to the failure.
    /// - `now_ms`: by the same clock as the choice.
    #[inline]
    pub fn complete(mut self, outcome: Outcome, elapsed: Duration, now_ms: i64) -> Option<Verdict> {
        self.record(outcome, elapsed, now_ms)
    }

    /// Records how the request ended while it is still in flight, as an answer is whose body is yet to come: it is counted out when
    /// this is dropped. Gives what that changed; only the first record counts.
    ///
    /// - `elapsed`, `now_ms`: as for [`Pick::complete`].
    #[inline]
    pub fn record(&mut self, outcome: Outcome, elapsed: Duration, now_ms: i64) -> Option<Verdict> {
        if self.probe == COMPLETED {
            return None;
        }
        let probe = std::mem::replace(&mut self.probe, COMPLETED);
        self.member.recorder().record(self.member.state(), outcome, elapsed, probe, now_ms)
    }

    fn lease(&self) -> Option<i64> {
        Some(self.probe).filter(|&probe| probe > NO_PROBE)
    }

    /// Nothing was learnt of the upstream.
    #[cold]
    fn give_up(&self) {
        let state = self.member.state();
        state.count_given_up();
        if let Some(lease) = self.lease() {
            // The next request may try at once: `1` is long ago.
            if state.move_ejection(lease, 1) {
                state.group().probe_at(1);
            }
        }
    }
}

impl Drop for Pick {
    #[inline]
    fn drop(&mut self) {
        let (state, recorder) = (self.member.state(), self.member.recorder());
        state.traffic(recorder.place).count_out();
        // As at the beginning: the settings of a member never change.
        if recorder.tuning.counts_all {
            state.group().traffic(recorder.place).count_out();
        }
        if self.probe != COMPLETED {
            self.give_up();
        }
    }
}

/// Lets one request through to an ejected upstream whose time is over.
pub(super) enum Claim {
    /// It is not ejected, or takes all traffic again.
    Free,
    /// This request is the one; its lease ends then.
    Probe(i64),
    /// It is ejected until then and was chosen nonetheless, which some policies and panic do. How that ends counts as of a probe.
    Suspect(i64),
    /// Another request is the one.
    Taken,
}

#[inline]
pub(super) fn claim(member: &Member, now_ms: i64) -> Claim {
    let until = member.state().ejection_ms();
    if until == 0 { Claim::Free } else { claim_ejected(member, until, now_ms) }
}

#[cold]
fn claim_ejected(member: &Member, until: i64, now_ms: i64) -> Claim {
    let state = member.state();
    if until > now_ms {
        return Claim::Suspect(until);
    }
    let Some(outliers) = member.recorder().outliers.as_ref().filter(|o| o.half_open) else {
        return Claim::Free;
    };
    let lease = now_ms.saturating_add(millis(outliers.half_open_lease)).max(2);
    if !state.move_ejection(until, lease) {
        return Claim::Taken;
    }
    // Should the request never end, another one may try then.
    state.group().probe_at(lease);
    Claim::Probe(lease)
}
