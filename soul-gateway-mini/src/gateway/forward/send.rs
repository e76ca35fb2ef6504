//! Sending a request to an upstream, and to another one where that is safe.
//!
//! | what failed | who may see it again |
//! |---|---|
//! | no connection was made | any upstream not tried yet, up to `failover_limit` and the rule's `retry`: nothing was sent |
//! | an idle connection had just been closed | the same upstream, once, on a new connection, if a repetition is harmless |
//! | no answer in time, or the upstream broke off | an upstream not tried yet, up to the rule's `retry`, if a repetition is harmless |
//!
//! Harmless is what has an idempotent method and no body. A POST reaches one upstream at most once.

use std::{sync::Arc, time::Duration};

use http::Response;
use tokio::time::Instant;

use super::{AnswerBody, Forwarder, Outbound, RequestTarget, Sending};
use crate::{
    clock::Moment,
    gateway::{connection::Caller, error::Refusal, peer::Peer, plugin::divide::Candidates},
};

/// How it went, for log and metrics.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Tally<'r> {
    /// The last upstream that was tried.
    pub(in crate::gateway) upstream: Option<&'r str>,
    /// What it was asked for, without a path of its own.
    pub(in crate::gateway) target: Option<RequestTarget>,
    /// Attempts the rule allows after the first.
    pub(in crate::gateway) allowed: u32,
    /// Attempts after the first.
    pub(in crate::gateway) retries: u32,
    /// When the answer came, if one did.
    pub(in crate::gateway) answered: Option<Moment>,
}

/// Sends a request to the candidates, one after the other as far as that is safe, and gives the head of the answer
/// with its body still to come.
///
/// - `came`: when the request did.
///
/// # Errors
/// What the last attempt failed by.
pub(in crate::gateway) async fn send<'r>(
    forwarder: &Forwarder,
    outbound: Outbound<'_>,
    caller: &Caller,
    peer: &Peer,
    mut candidates: Candidates<'r, '_>,
    tally: &mut Tally<'r>,
    came: Moment,
) -> Result<Response<AnswerBody>, Refusal> {
    let rule = candidates.rule();
    let mut sending = Sending::new(forwarder, outbound, caller, peer)?;
    (tally.target, tally.allowed) = (Some(sending.target.clone()), rule.retry);
    let mut budget =
        Budget { failovers: forwarder.failover_limit, retries: rule.retry, timeout: rule.timeout };
    let mut deadline = came.at + rule.timeout;
    loop {
        let candidate = candidates.take().ok_or(Refusal::NoUpstream)?;
        if candidate.is_at_limit(forwarder.upstream_max_requests) {
            // Another may have room; nothing was asked, so nothing is counted.
            if candidates.advance(caller.lane.now()) {
                continue;
            }
            return Err(Refusal::Busy { upstream: Arc::clone(candidate.destination.address()) });
        }
        tally.upstream = Some(candidate.destination.address());
        let failure = match sending.attempt(candidate, deadline, rule.timeout, &mut tally.answered).await {
            Ok(response) => return Ok(response),
            Err(failure) => failure,
        };
        let again = budget.after(&failure, sending.is_whole(), deadline);
        let Some(again) = again.filter(|_| !caller.alarm.is_over()) else {
            return Err(failure.refusal);
        };
        let now = caller.lane.now();
        if !candidates.advance(now) {
            return Err(failure.refusal);
        }
        tally.retries += 1;
        if again == Again::WithNewTime {
            deadline = now.at + rule.timeout;
        }
    }
}

/// How often and until when a request may be tried again.
struct Budget {
    failovers: usize,
    retries: u32,
    timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// Within the time of the attempt that found no connection.
    InSameTime,
    /// With the rule's time from the start.
    WithNewTime,
}

/// A failed attempt.
pub(super) struct Failure {
    pub(super) refusal: Refusal,
    /// Whether the upstream can have seen nothing.
    pub(super) unsent: bool,
}

impl Budget {
    /// Whether another upstream may be tried after `failure`. `whole`: the request is still, or again, all there.
    fn after(&mut self, failure: &Failure, whole: bool, deadline: Instant) -> Option<Again> {
        if !whole || matches!(failure.refusal, Refusal::Caller(_)) {
            return None;
        }
        if failure.unsent && self.failovers > 0 && Instant::now() < deadline {
            self.failovers -= 1;
            return Some(Again::InSameTime);
        }
        if self.retries > 0 && !self.timeout.is_zero() {
            self.retries -= 1;
            return Some(Again::WithNewTime);
        }
        None
    }
}
