//! One call: choose, send, record, and if need be again.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::{
    AttemptError, CallError, CallErrorKind, CallEvent, CallOptions, Destination, Failed, Retry, Situation,
    Transport,
    clock::ENDLESS,
    config::Effective,
    context::{Context, State},
    guard::guarded_call,
    left::{Left, Next},
};
use crate::balance::{Balancer, FastRandom, Key, Member, Outcome, Pick, PickContext, Tried};

/// An answer, and how it came about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Served<R> {
    /// The answer.
    pub response: R,
    /// Who gave it.
    pub upstream: Arc<Member>,
    /// How many attempts it took.
    pub attempts: u64,
    /// By which settings.
    pub settings: Arc<Effective>,
    /// When the whole call must be over, its body included.
    pub deadline: Instant,
}

/// Makes a call.
///
/// The outcome of an attempt is recorded, and the attempt counted out, when the head of the answer is there: a body may be a stream
/// without end, and what it takes is for the reader to say. A call that is dropped counts out at once and records nothing.
///
/// # Cancel safety
/// Whatever was sent may have been acted on.
pub(super) async fn execute<T: Transport>(
    context: &Context,
    transport: &T,
    request: T::Request,
    options: &CallOptions,
) -> Result<Served<T::Response>, CallError> {
    let state = context.state();
    let settings = state.settings(context.name(), options)?;
    let started = Instant::now();
    let deadline = after(started, settings.total_timeout);
    context.listeners().tell(context.name(), &CallEvent::Started);
    let mut call = Call {
        context,
        transport,
        options,
        retry: settings.retry(),
        state,
        settings,
        deadline,
        tried: Tried::new(),
        sent_to: Vec::new(),
        attempts: 0,
    };
    let result = call.run(request).await;
    call.tell_end(&result, started.elapsed());
    result
}

/// A moment later.
fn after(moment: Instant, time: Duration) -> Instant {
    moment.checked_add(time.min(ENDLESS)).unwrap_or(moment)
}

struct Call<'a, T> {
    context: &'a Context,
    transport: &'a T,
    options: &'a CallOptions,
    state: Arc<State>,
    settings: Arc<Effective>,
    retry: Retry,
    deadline: Instant,
    /// Upstreams that were sent the request.
    tried: Tried,
    /// The same: one that left the list and came back has another state, and is the same nevertheless.
    sent_to: Vec<Arc<Member>>,
    attempts: u64,
}

/// What came of an attempt.
enum Attempt<R> {
    /// An answer that is not to be repeated.
    Done(R),
    /// Something that is to be repeated, if that may be.
    Again(Last<R>),
}

/// What a call ends with if there is no further attempt.
enum Last<R> {
    /// An answer that says that something is wrong.
    Answer { response: R, retry_after: Option<Duration> },
    /// No answer.
    Error(AttemptError),
}

impl<T: Transport> Call<'_, T> {
    async fn run(&mut self, request: T::Request) -> Result<Served<T::Response>, CallError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.state.first_list(self.context, left).await?;
        if let Some(budget) = self.state.budget() {
            budget.deposit(self.context.now_ms());
        }
        let may_repeat = self.retry.repeats(&self.transport.method(&request));
        let mut left = Left::of(&self.retry);
        let mut request = request;
        let mut pick = self.choose().ok_or_else(|| self.error(CallErrorKind::NoInstance))?;
        loop {
            let member = Arc::clone(pick.member());
            let replay = if left.any() { self.transport.replay(&request) } else { None };
            self.note(&member);
            let last = match self.attempt(pick, &member, request).await {
                Attempt::Done(response) => return Ok(self.served(response, member)),
                Attempt::Again(last) => last,
            };
            let next = match self.next(&last, may_repeat, &mut left, replay.is_some()) {
                Ok(next) => self.choose_next(next, &member, last.retry_after()).await,
                Err(kind) => Err(kind),
            };
            match (next, replay) {
                (Ok(next), Some(replay)) => (pick, request) = (next, replay),
                (Ok(_), None) => return self.end(last, member, CallErrorKind::BodyNotReplayable),
                (Err(kind), _) => return self.end(last, member, kind),
            }
        }
    }

    /// Sends the request to the one that was chosen, and records what came of it.
    async fn attempt(&mut self, pick: Pick, member: &Member, request: T::Request) -> Attempt<T::Response> {
        self.attempts += 1;
        let (attempt, upstream) = (self.attempts, member.upstream().base_url());
        self.tell(&CallEvent::Sending { upstream, attempt });
        let destination = Destination {
            service: self.context.name(),
            upstream: member.upstream(),
            settings: &self.settings,
            deadline: self.deadline,
        };
        let sent = Instant::now();
        let left = self.deadline.saturating_duration_since(sent);
        let bound = self.attempt_bound();
        let within = bound.min(left);
        // A timer needs up to a millisecond to ring, in which a quick upstream has answered: no time means no attempt.
        let answered = match within {
            Duration::ZERO => None,
            _ => timeout(within, self.transport.send(request, destination)).await.ok(),
        };
        let result = answered.unwrap_or_else(|| {
            let text = format!("there was no answer within {:.3} s", within.as_secs_f64());
            Err(AttemptError::new(Failed::TimedOut, text))
        });
        let elapsed = sent.elapsed();
        match result {
            Ok(response) => {
                let answer = self.transport.answer(&response);
                pick.complete(answer.outcome(), elapsed, self.context.now_ms());
                if !answer.status.is_some_and(|status| self.retry.statuses.contains(status)) {
                    return Attempt::Done(response);
                }
                let status = answer.status.map(|status| status.as_u16());
                self.tell(&CallEvent::Failed { upstream, attempt, failed: None, status, elapsed });
                Attempt::Again(Last::Answer { response, retry_after: answer.retry_after })
            }
            Err(error) => {
                let failed = error.kind();
                // Who gets the short rest of a call's time is not to blame that others used it up.
                let had_its_time = bound <= left || attempt == 1;
                match failed {
                    Failed::Refused => drop(pick.complete(Outcome::Refused, elapsed, self.context.now_ms())),
                    Failed::TimedOut if !had_its_time => drop(pick),
                    Failed::TimedOut | Failed::Broken => {
                        pick.complete(Outcome::TimedOut, elapsed, self.context.now_ms());
                    }
                    Failed::Invalid => drop(pick),
                }
                let failed = Some(failed);
                self.tell(&CallEvent::Failed { upstream, attempt, failed, status: None, elapsed });
                Attempt::Again(Last::Error(error.at(upstream)))
            }
        }
    }

    /// Longest time for the head of an answer. Connecting is given all its time, or a request that was surely not sent would look like
    /// one that may have been.
    fn attempt_bound(&self) -> Duration {
        const HAIR: Duration = Duration::from_millis(50);
        self.settings.read_timeout.max(self.settings.connect_timeout.saturating_add(HAIR))
    }

    /// Whether there may be another attempt; the error says why not.
    fn next(
        &self,
        last: &Last<T::Response>,
        may_repeat: bool,
        left: &mut Left,
        has_replay: bool,
    ) -> Result<Next, CallErrorKind> {
        let failed = last.failed();
        if failed == Some(Failed::Invalid) {
            return Err(CallErrorKind::InvalidRequest);
        }
        if Instant::now() >= self.deadline {
            return Err(CallErrorKind::DeadlineExceeded);
        }
        // One that asks to be spared is not asked again at once.
        let next = left.take(last.retry_after().is_none()).ok_or(CallErrorKind::AllTried)?;
        if failed != Some(Failed::Refused) && !may_repeat {
            return Err(CallErrorKind::NotRepeatable);
        }
        if !has_replay {
            return Err(CallErrorKind::BodyNotReplayable);
        }
        Ok(next)
    }

    fn note(&mut self, member: &Arc<Member>) {
        self.tried.insert(member.state());
        let name = member.upstream().base_url();
        if self.sent_to.iter().all(|known| known.upstream().base_url() != name) {
            self.sent_to.push(Arc::clone(member));
        }
    }

    /// Waits until the next attempt is due, and chooses for it.
    async fn choose_next(
        &mut self,
        next: Next,
        last: &Arc<Member>,
        retry_after: Option<Duration>,
    ) -> Result<Pick, CallErrorKind> {
        let repeat = u32::try_from(self.attempts - 1).unwrap_or(u32::MAX);
        let mut pause = self.retry.pause(repeat, &FastRandom);
        // Where there is no other: then as it asked, or not at all.
        if let Some(asked) = retry_after.filter(|_| !self.has_others()) {
            if asked > self.retry.longest_retry_after {
                return Err(CallErrorKind::AllTried);
            }
            pause = pause.max(asked);
        }
        if after(Instant::now(), pause) >= self.deadline {
            return Err(CallErrorKind::DeadlineExceeded);
        }
        if self.state.budget().is_some_and(|budget| !budget.withdraw(self.context.now_ms())) {
            return Err(CallErrorKind::BudgetExhausted);
        }
        let same = next == Next::Same;
        self.tell(&CallEvent::Retrying { attempt: self.attempts + 1, same, pause });
        if !pause.is_zero() {
            sleep(pause).await;
        }
        match next {
            Next::Same => Ok(last.begin(self.context.now_ms())),
            Next::Other => {
                let snapshot = self.context.balancer().snapshot();
                for known in self.sent_to.iter().map(|member| member.upstream()) {
                    let again = snapshot.all_at(known.address());
                    let again = again.filter(|member| member.upstream().base_url() == known.base_url());
                    again.for_each(|member| self.tried.insert(member.state()));
                }
                self.choose().ok_or(CallErrorKind::AllTried)
            }
        }
    }

    fn pick_context(&self) -> PickContext<'_> {
        let context = PickContext::at(self.context.now_ms()).tried(&self.tried);
        match &self.options.key {
            Some(key) => context.key(Key::Text(key)),
            None => context,
        }
    }

    fn choose(&self) -> Option<Pick> {
        self.by_policy(|balancer, context| self.options.preference.choose(balancer, context))
    }

    /// Whether anybody may be chosen who was not tried.
    fn has_others(&self) -> bool {
        self.by_policy(|balancer, context| balancer.current().pick(context).map(drop)).is_some()
    }

    /// Nobody is chosen by a policy of the user's own that panics.
    fn by_policy<R>(&self, look: impl FnOnce(&Balancer, &PickContext<'_>) -> Option<R>) -> Option<R> {
        guarded_call(|| look(self.context.balancer(), &self.pick_context())).unwrap_or_else(|panicked| {
            let service = self.context.name();
            tracing::error!(service, %panicked, "the policy failed, and nobody is chosen");
            None
        })
    }

    fn served(&self, response: T::Response, upstream: Arc<Member>) -> Served<T::Response> {
        let settings = Arc::clone(&self.settings);
        Served { response, upstream, attempts: self.attempts, settings, deadline: self.deadline }
    }

    /// Better an answer that says what is wrong than an error that says there is none.
    fn end(
        &self,
        last: Last<T::Response>,
        member: Arc<Member>,
        kind: CallErrorKind,
    ) -> Result<Served<T::Response>, CallError> {
        match last {
            Last::Answer { response, .. } => Ok(self.served(response, member)),
            Last::Error(error) => Err(self.error(kind).with_source(error)),
        }
    }

    fn error(&self, kind: CallErrorKind) -> CallError {
        let situation = Situation {
            tried: self.sent_to.len(),
            attempts: self.attempts,
            ..self.state.situation(self.context.balancer())
        };
        CallError::new(kind, self.context.name()).with_situation(situation)
    }

    fn tell(&self, event: &CallEvent<'_>) {
        self.context.listeners().tell(self.context.name(), event);
    }

    fn tell_end(&self, result: &Result<Served<T::Response>, CallError>, elapsed: Duration) {
        let attempts = self.attempts;
        match result {
            _ if self.context.listeners().is_empty() => {}
            Ok(served) => self.tell(&CallEvent::Succeeded {
                upstream: served.upstream.upstream().base_url(),
                attempts,
                status: self.transport.answer(&served.response).status.map(|status| status.as_u16()),
                elapsed,
            }),
            Err(error) => self.tell(&CallEvent::Exhausted { kind: error.kind(), attempts, elapsed }),
        }
    }
}

impl<R> Last<R> {
    fn failed(&self) -> Option<Failed> {
        match self {
            Self::Answer { .. } => None,
            Self::Error(error) => Some(error.kind()),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Answer { retry_after, .. } => *retry_after,
            Self::Error(_) => None,
        }
    }
}
