//! The one timer of a connection.
//!
//! A timer of the runtime costs a fifth of a microsecond to make, arm and drop, and a request has several things to wait
//! for. So a connection has one, and those that wait only store until when they do. The timer goes off at the earliest
//! time it was ever armed for, looks whether that is still meant, and is armed anew: a few times for all requests that
//! fall into one time limit, instead of a few times each.

use std::{
    ops::Deref,
    pin::Pin,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    task::Context,
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// No time at all.
const NEVER: u64 = u64::MAX;

/// Until when is waited, written by whoever waits and read by the [`Timer`] of the same task.
///
/// Invariant: one waits at a time. All of a connection runs in one task, so nothing is ever written by two at once; the
/// numbers are atomic because the compiler cannot know.
#[derive(Debug)]
pub(super) struct Alarm {
    origin: Instant,
    /// When the clock was last read, in microseconds from `origin` as all numbers here. Reading it again costs more than
    /// most of what is done in between.
    seen: AtomicU64,
    deadline: AtomicU64,
    rung: AtomicBool,
    /// Until when the whole request may take, and whether it took longer.
    whole: AtomicU64,
    over: AtomicBool,
    /// Whether it is the connection itself that waits, for its next request.
    idle: AtomicBool,
}

impl Alarm {
    pub(super) fn new() -> Self {
        Self {
            origin: Instant::now(),
            seen: AtomicU64::new(0),
            deadline: AtomicU64::new(NEVER),
            rung: AtomicBool::new(false),
            whole: AtomicU64::new(NEVER),
            over: AtomicBool::new(false),
            idle: AtomicBool::new(true),
        }
    }

    /// Sets until when is waited, whatever was said before.
    pub(super) fn set(&self, deadline: Instant) {
        self.deadline.store(self.number(deadline), Relaxed);
        self.rung.store(false, Relaxed);
    }

    fn number(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.origin).as_micros()).unwrap_or(NEVER)
    }

    /// Sets for how long is waited from now on; a time of zero is without an end.
    pub(super) fn set_pause(&self, limit: Duration) {
        self.saw(Instant::now());
        self.set_pause_seen(limit);
    }

    /// The same, from when the clock was last read on.
    fn set_pause_seen(&self, limit: Duration) {
        if limit.is_zero() {
            return self.clear();
        }
        let limit = u64::try_from(limit.as_micros()).unwrap_or(NEVER);
        self.deadline.store(self.seen.load(Relaxed).saturating_add(limit), Relaxed);
        self.rung.store(false, Relaxed);
    }

    /// Notes what the clock says.
    pub(super) fn saw(&self, now: Instant) {
        self.seen.store(self.number(now), Relaxed);
    }

    /// Nobody waits.
    pub(super) fn clear(&self) {
        self.deadline.store(NEVER, Relaxed);
        self.rung.store(false, Relaxed);
    }

    /// Whether somebody waits.
    pub(super) fn is_set(&self) -> bool {
        self.deadline.load(Relaxed) != NEVER
    }

    /// Whether the time that was set is over, or that of the whole request.
    pub(super) fn has_rung(&self) -> bool {
        self.rung.load(Relaxed) || self.is_over()
    }

    /// Whether the whole request takes too long.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// A request has come: the connection itself waits for nothing any more.
    pub(super) fn begin(&self) {
        self.idle.store(false, Relaxed);
        self.clear();
    }

    /// A request has come now, which may take so long to the end of its answer; a time of zero is without an end.
    pub(super) fn busy(&self, now: Instant, whole: Duration) {
        self.begin();
        self.saw(now);
        if !whole.is_zero() {
            self.whole.store(self.number(now + whole), Relaxed);
        }
    }

    /// The whole request may take until then at most, whatever was allowed before.
    pub(super) fn end_by(&self, deadline: Instant) {
        self.whole.fetch_min(self.number(deadline), Relaxed);
    }

    /// The connection waits for its next request, for so long and no longer.
    pub(super) fn idle(&self, limit: Duration) {
        self.saw(Instant::now());
        self.idle_since_seen(limit);
    }

    /// The same, from when the clock was last read: at the end of an answer, which had it read.
    pub(super) fn idle_since_seen(&self, limit: Duration) {
        self.idle.store(true, Relaxed);
        self.whole.store(NEVER, Relaxed);
        self.over.store(false, Relaxed);
        self.set_pause_seen(limit);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.idle.load(Relaxed)
    }
}

/// What wakes the task of a connection when the time of its [`Alarm`] is over.
pub(super) struct Timer<A> {
    alarm: A,
    sleep: Pin<Box<Sleep>>,
    /// For when it is armed, as the alarm counts; [`NEVER`] if it is not.
    armed: u64,
}

impl<A: Deref<Target = Alarm>> Timer<A> {
    pub(super) fn new(alarm: A) -> Self {
        Self { sleep: Box::pin(sleep_until(alarm.origin)), alarm, armed: NEVER }
    }

    pub(super) fn alarm(&self) -> &A {
        &self.alarm
    }

    /// To be called first when the task is polled: notes whether the time is over, and says whether it is just now.
    pub(super) fn ring(&mut self) -> bool {
        if self.armed == NEVER || !self.sleep.is_elapsed() {
            return false;
        }
        self.armed = NEVER;
        let now = Instant::now();
        let mut rings = false;
        let Alarm { deadline, rung, whole, over, .. } = &*self.alarm;
        for (time, noted) in [(deadline, rung), (whole, over)] {
            let at = time.load(Relaxed);
            if at != NEVER && self.at(at) <= now {
                time.store(NEVER, Relaxed);
                noted.store(true, Relaxed);
                rings = true;
            }
        }
        rings
    }

    /// To be called last when the task is polled: sees to it that the task is woken when the time is over.
    pub(super) fn arm(&mut self, cx: &mut Context<'_>) {
        let deadline = self.alarm.deadline.load(Relaxed).min(self.alarm.whole.load(Relaxed));
        if deadline >= self.armed {
            return;
        }
        self.armed = deadline;
        let at = self.at(deadline);
        self.sleep.as_mut().reset(at);
        if self.sleep.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    fn at(&self, deadline: u64) -> Instant {
        self.alarm.origin + Duration::from_micros(deadline)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, task::Poll};

    use super::*;

    /// Waits until it rings.
    async fn rings(timer: &mut Timer<&Alarm>) -> Duration {
        let began = Instant::now();
        poll_fn(|cx| {
            if timer.ring() {
                return Poll::Ready(());
            }
            timer.arm(cx);
            Poll::Pending
        })
        .await;
        began.elapsed()
    }

    /// What a poll of its task does to it that brings nothing.
    async fn arm(timer: &mut Timer<&Alarm>) {
        poll_fn(|cx| {
            timer.arm(cx);
            Poll::Ready(())
        })
        .await;
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn it_rings_at_the_time_set_last() {
        let alarm = Alarm::new();
        let mut timer = Timer::new(&alarm);
        let early = SECOND..SECOND + SECOND / 100;
        alarm.set_pause(SECOND);
        assert!(early.contains(&rings(&mut timer).await) && alarm.has_rung());

        alarm.set_pause(SECOND * 3);
        assert!(!alarm.has_rung(), "what is set anew has not rung yet");
        arm(&mut timer).await;
        alarm.set_pause(SECOND);
        assert!(early.contains(&rings(&mut timer).await), "an earlier time counts");

        alarm.set_pause(SECOND / 2);
        arm(&mut timer).await;
        alarm.set_pause(SECOND);
        assert!(early.contains(&rings(&mut timer).await), "so does a later one");
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_the_whole_request_counts_whatever_is_set_meanwhile() {
        let alarm = Alarm::new();
        let mut timer = Timer::new(&alarm);
        alarm.busy(Instant::now(), SECOND * 2);
        alarm.set_pause(SECOND);
        rings(&mut timer).await;
        assert!(alarm.has_rung() && !alarm.is_over());
        alarm.set_pause(SECOND * 30);
        let took = rings(&mut timer).await;
        assert!(took < SECOND + SECOND / 100 && alarm.is_over(), "{took:?}");
        alarm.set_pause(SECOND);
        assert!(alarm.has_rung(), "it stays so to the end of the request");
        alarm.idle(SECOND);
        assert!(!alarm.has_rung());
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_silent_when_nobody_waits_any_more() {
        let alarm = Alarm::new();
        let mut timer = Timer::new(&alarm);
        for clear in [|alarm: &Alarm| alarm.clear(), |alarm: &Alarm| alarm.set_pause(Duration::ZERO)] {
            alarm.set_pause(SECOND);
            arm(&mut timer).await;
            clear(&alarm);
            assert!(tokio::time::timeout(SECOND * 5, rings(&mut timer)).await.is_err());
        }
    }
}
