//! Sending a request to an upstream, and to another one where that is safe.
//!
//! | what failed | who may see it again |
//! |---|---|
//! | no connection was made | any upstream not tried yet, up to `failover_limit` and the rule's `retry`: nothing was sent |
//! | an idle connection had just been closed | the same upstream, once, on a new connection, if a repetition is harmless |
//! | the upstream went away while it was asked, on a new connection | an upstream not tried yet, once and within `failover_limit`, if a repetition is harmless |
//! | that again, no answer in time, or none that can be read | an upstream not tried yet, up to the rule's `retry`, if a repetition is harmless |
//!
//! Harmless is what has an idempotent method, and no body or one that was kept so far (`replay_body_bytes`). A POST reaches one
//! upstream at most once.
//!
//! Soul's `retry` says how often a request is repeated that took too long. It says nothing of upstreams that go away: there Soul's HTTP client
//! repeats a request once by itself, whatever `retry` says, and at the same upstream. Here another one is asked, and no more than one: a request
//! that ends whoever reads it must not go through all of them.
//!
//! Of all attempts after the first, a selector's requests have a budget together, so that a service that fails is not asked a
//! multiple of what it could not answer.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use http::Response;
use tokio::{sync::futures::Notified, time::Instant};

use super::{AnswerBody, CallerFault, RequestTarget, Sending};
use crate::{
    clock::Moment,
    gateway::{
        connection::Caller,
        error::Refusal,
        grpc,
        plugin::divide::{Candidate, Candidates},
    },
    sync::Flow,
};

/// Requests of a selector that wait while one of its upstreams is tried with fewer.
const MOST_IN_TRIAL: usize = 1024;

/// How long each of them may, if not as long as in a queue: a trial is over before. After several, one after the other, there was a
/// queue each time.
const TRIAL_PATIENCE: Duration = Duration::from_millis(2_500);

/// How often each of them looks whether that is over.
const TRIAL_LOOK: Duration = Duration::from_millis(20);

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
    sending: &mut Sending<'_>,
    candidates: &mut Candidates<'r, '_>,
    tally: &mut Tally<'r>,
    came: Moment,
) -> Result<Response<AnswerBody>, Refusal> {
    if sending.is_too_large() {
        return Err(Refusal::Caller(CallerFault::TooLarge));
    }
    let Sending { forwarder, caller, .. } = *sending;
    let rule = candidates.rule();
    let mut timeout = rule.timeout();
    if sending.grpc
        && let Some(limit) = grpc::timeout(&sending.head.headers)
    {
        let until = came.at + limit;
        caller.alarm.end_by(until);
        timeout = timeout.min(limit);
        sending.patience = Some(Patience { whole: limit, until });
    }
    (tally.target, tally.allowed) = (Some(sending.target.clone()), rule.retry());
    let mut left =
        Left { failovers: forwarder.failover_limit, seen_once: false, retries: rule.retry(), timeout };
    let patience = sending.patience;
    let deadline_from = |start: Instant| {
        let deadline = start + timeout;
        patience.map_or(deadline, |patience| deadline.min(patience.until))
    };
    let mut deadline = deadline_from(came.at);
    loop {
        let mut candidate = candidates.take().ok_or(Refusal::NoUpstream)?;
        if forwarder.room.queue > 0
            || candidates.stats().queue.waiting() > 0
            || candidate.is_at_limit(&forwarder.room)
        {
            let upstream = candidate.end.destination.address();
            candidates.put_back(candidate);
            // On the heap, for it is seldom.
            let search = room(&forwarder.room, candidates, caller, tally.retries, &mut deadline);
            candidate = Box::pin(search).await.map_err(|none| match none {
                NoRoom::Busy => Refusal::Busy,
                NoRoom::Late => sending.given_up(upstream).map_or_else(
                    || Refusal::Late { upstream: Arc::clone(upstream), after: timeout },
                    |given_up| given_up.refusal,
                ),
            })?;
            deadline = patience.map_or(deadline, |patience| deadline.min(patience.until));
        }
        tally.upstream = Some(candidate.end.destination.address());
        let failure = match sending.attempt(candidate, deadline, timeout, &mut tally.answered).await {
            Ok(response) => return Ok(response),
            Err(failure) => failure,
        };
        let again = left.after(&failure, sending.is_whole(), deadline);
        let Some(again) = again.filter(|_| !caller.alarm.is_over()) else {
            return Err(failure.refusal);
        };
        let now = caller.lane.now();
        if !candidates.advance(now)
            || !candidates.stats().retries.spend(forwarder.retry_budget.as_ref(), now.ms)
        {
            return Err(failure.refusal);
        }
        tally.retries += 1;
        if again == Again::WithNewTime {
            deadline = deadline_from(now.at);
        }
    }
}

/// How many requests an upstream gets at once, and what becomes of those beyond.
#[derive(Clone, Copy, Debug)]
pub(in crate::gateway) struct RoomSettings {
    /// Requests at one upstream; the largest number is no limit.
    pub(in crate::gateway) limit: u32,
    /// Requests of one selector that wait; 0 is none.
    pub(in crate::gateway) queue: usize,
    /// How long each may.
    pub(super) patience: Duration,
    /// Whether an upstream that takes on more than it can serve gets fewer.
    pub(super) adaptive: bool,
}

impl RoomSettings {
    /// How many requests an upstream gets at once.
    pub(in crate::gateway) fn limit_of(&self, flow: Option<&Flow>) -> u32 {
        flow.map_or(self.limit, |flow| self.limit.min(flow.limit()))
    }
}

/// Why a request has no room at any upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoRoom {
    /// There was none, or none soon enough.
    Busy,
    /// Its own time was over first.
    Late,
}

/// An upstream that has room for the request, now or after a while in the queue.
///
/// A request that has failed elsewhere does not wait: it has had its time.
///
/// - `deadline`: until when the request is to be answered; the time in the queue is added, for it is not the upstream's.
///
/// # Errors
/// When none has, and the queue is full or took too long.
async fn room<'r>(
    settings: &RoomSettings,
    candidates: &mut Candidates<'r, '_>,
    caller: &Caller,
    retries: u32,
    deadline: &mut Instant,
) -> Result<Candidate<'r>, NoRoom> {
    let queue = &candidates.stats().queue;
    let came = Instant::now();
    // Those who wait came first.
    let others = queue.waiting() > 0 && retries == 0;
    if !others && let Some(candidate) = candidates.with_room(settings, caller.lane.now()) {
        return Ok(candidate);
    }
    let most_waiting = if others { candidates.most_waiting_anywhere() } else { candidates.most_waiting() };
    // If no trial is left, and more wait than may, they are just being told.
    let being_told = others && queue.waiting() > settings.queue;
    if retries == 0 && (most_waiting > 0 || being_told) {
        let most = if most_waiting == 0 { MOST_IN_TRIAL } else { most_waiting.min(MOST_IN_TRIAL) };
        return trial(settings, candidates, caller, *deadline, most.max(settings.queue)).await;
    }
    candidates.anew(settings);
    let until = came + settings.patience;
    let mut waiting = queue.enter(if retries == 0 { settings.queue } else { 0 }).ok_or(NoRoom::Busy)?;
    loop {
        let mut room = pin!(waiting.room());
        room.as_mut().enable();
        if !waiting.first && !is_woken(room.as_mut(), until, caller).await {
            return Err(none_in_time(caller));
        }
        candidates.anew(settings);
        if let Some(candidate) = candidates.with_room(settings, caller.lane.now()) {
            *deadline += came.elapsed();
            return Ok(candidate);
        }
        if waiting.first && !is_woken(room, until, caller).await || caller.alarm.is_over() {
            return Err(none_in_time(caller));
        }
        waiting.first = true;
    }
}

/// The same while an upstream finds out how many requests it can do with: those beyond wait here as long as that takes, since it
/// may come out that it can do with all of them. Else they would wait there, so this is time of the rule, unlike that in a queue.
///
/// - `most`: how many may wait.
async fn trial<'r>(
    settings: &RoomSettings,
    candidates: &mut Candidates<'r, '_>,
    caller: &Caller,
    deadline: Instant,
    most: usize,
) -> Result<Candidate<'r>, NoRoom> {
    let queue = &candidates.stats().queue;
    let waiting = queue.enter(most).ok_or(NoRoom::Busy)?;
    let until = deadline.min(Instant::now() + settings.patience.max(TRIAL_PATIENCE));
    // Whoever waits is at no upstream, and must not take the place of one that could be.
    candidates.anew(settings);
    let mut room = pin!(waiting.room());
    room.as_mut().enable();
    let mut looks = waiting.first;
    let found = loop {
        // Without room there may still be an end of the trial. Whoever only looks keeps its place in the line.
        if !looks && is_woken(room.as_mut(), until.min(Instant::now() + TRIAL_LOOK), caller).await {
            room.set(waiting.room());
            room.as_mut().enable();
        }
        looks = false;
        if caller.alarm.is_over() || Instant::now() >= deadline {
            break Err(NoRoom::Late);
        }
        candidates.anew(settings);
        if let Some(candidate) = candidates.with_room(settings, caller.lane.now()) {
            break Ok(candidate);
        }
        let is_over = queue.waiting() > candidates.most_waiting().max(settings.queue);
        if is_over || Instant::now() >= until {
            // Once more: the trial may have ended between the two looks, with room for all.
            candidates.anew(settings);
            break candidates.with_room(settings, caller.lane.now()).ok_or(NoRoom::Busy);
        }
    };
    drop(waiting);
    // There may be more room, or none to wait for: the next one is to know soon.
    queue.wake();
    found
}

/// Whether there was room before this time, and before that of the request was over.
async fn is_woken(room: Pin<&mut Notified<'_>>, until: Instant, caller: &Caller) -> bool {
    let mut room = pin!(tokio::time::timeout_at(until, room));
    poll_fn(|cx| match room.as_mut().poll(cx) {
        Poll::Ready(woken) => Poll::Ready(woken.is_ok()),
        // Its timer has this task polled.
        Poll::Pending if caller.alarm.is_over() => Poll::Ready(false),
        Poll::Pending => Poll::Pending,
    })
    .await
}

fn none_in_time(caller: &Caller) -> NoRoom {
    if caller.alarm.is_over() { NoRoom::Late } else { NoRoom::Busy }
}

/// The time that a caller gives its request: what takes longer is given up, and no upstream is to blame for it.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    pub(super) whole: Duration,
    until: Instant,
}

impl Patience {
    pub(super) fn is_over(self) -> bool {
        /// Timers go off by whole ticks, and the alarm counts microseconds.
        const TICK: Duration = Duration::from_millis(1);
        Instant::now() + TICK >= self.until
    }
}

/// How often and until when a request may be tried again.
struct Left {
    failovers: usize,
    /// Whether one went away that may have seen the request.
    seen_once: bool,
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
    pub(super) elsewhere: Elsewhere,
}

/// Whether another upstream may be asked, whatever the rule's `retry` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// This one can have seen nothing of the request.
    Freely,
    /// It went away while it was asked what may be asked twice.
    Once,
    /// It is there, and may work on the request.
    No,
}

impl Elsewhere {
    /// - `nothing_sent`: the upstream can have seen nothing.
    /// - `went_away`: it has ended its connection without an answer.
    pub(super) fn after(nothing_sent: bool, went_away: bool) -> Self {
        match (nothing_sent, went_away) {
            (true, _) => Self::Freely,
            (false, true) => Self::Once,
            (false, false) => Self::No,
        }
    }
}

impl Left {
    /// Whether another upstream may be tried after `failure`. `whole`: the request is still, or again, all there.
    fn after(&mut self, failure: &Failure, whole: bool, deadline: Instant) -> Option<Again> {
        if !whole || matches!(failure.refusal, Refusal::Caller(_) | Refusal::GivenUp { .. }) {
            return None;
        }
        let elsewhere = match failure.elsewhere {
            Elsewhere::Freely => true,
            Elsewhere::Once => !std::mem::replace(&mut self.seen_once, true),
            Elsewhere::No => false,
        };
        if elsewhere && self.failovers > 0 && Instant::now() < deadline {
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
