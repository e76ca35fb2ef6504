//! What the requests of one selector share when things go badly: a budget of retries, and a queue before busy upstreams.

use std::sync::{
    Arc, OnceLock,
    atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
        fence,
    },
};

use soul_client::balance::{
    BudgetSettings, RetryBudget,
    parts::{self, Parts},
};
use tokio::sync::{Notify, futures::Notified};

use crate::shard;

/// The retries of a selector's requests. Takes memory only once there were requests to count or retries to grant.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    budget: OnceLock<Box<RetryBudget>>,
    /// Requests that the budget knows of.
    told: AtomicU64,
    spent: AtomicU64,
    denied: AtomicU64,
}

impl Retries {
    fn budget(&self) -> &RetryBudget {
        self.budget.get_or_init(|| Box::new(RetryBudget::new(BudgetSettings::default())))
    }

    /// There were so many requests so far. To be told now and then, so that no request has to count for this.
    pub(crate) fn requests(&self, so_far: u64, now_ms: i64) {
        let new = so_far.saturating_sub(self.told.swap(so_far, Relaxed));
        if new > 0 {
            self.budget().deposit_many(u32::try_from(new).unwrap_or(u32::MAX), now_ms);
        }
    }

    /// Whether one more attempt may be made; without settings always.
    pub(crate) fn spend(&self, settings: Option<&BudgetSettings>, now_ms: i64) -> bool {
        let granted = settings.is_none_or(|settings| self.budget().withdraw_by(settings, now_ms));
        if granted { &self.spent } else { &self.denied }.fetch_add(1, Relaxed);
        granted
    }

    /// Attempts after the first that were made.
    pub(crate) fn spent(&self) -> u64 {
        self.spent.load(Relaxed)
    }

    /// Those that were not, for the budget was spent.
    pub(crate) fn denied(&self) -> u64 {
        self.denied.load(Relaxed)
    }
}

/// Requests that wait until one of a selector's upstreams has room for them, first come, first served.
///
/// None is forgotten: whoever waits looks for room once after it was counted in, and whoever makes room looks for waiters
/// after it did. None is woken in vain again and again, either: a wake-up follows only room that was made, or taken.
///
/// Takes memory only once a request asked for a place, or is to tell of its end.
#[derive(Debug, Default)]
pub(crate) struct Queue(OnceLock<Box<Places>>);

#[derive(Debug, Default)]
struct Places {
    line: Arc<Line>,
    /// The line as the requests of each lane hold it, so that these are counted in and out by themselves.
    own: Parts<Arc<Own>>,
}

#[derive(Debug)]
struct Own(Arc<Line>);

#[derive(Debug, Default)]
struct Line {
    waiting: AtomicUsize,
    room: Notify,
}

/// A request that takes room. When this is dropped, those who wait are told that there is room again.
#[derive(Debug)]
pub(crate) struct Room(Arc<Own>);

impl Drop for Room {
    fn drop(&mut self) {
        self.0.0.wake();
    }
}

impl Queue {
    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.0.get().map_or(0, |places| places.line.waiting())
    }

    /// A place at the end of it, if fewer than so many wait.
    pub(crate) fn enter(&self, most: usize) -> Option<Waiting<'_>> {
        let line = &self.0.get_or_init(Box::default).line;
        let before = line.waiting.fetch_update(SeqCst, SeqCst, |now| (now < most).then_some(now + 1)).ok()?;
        fence(SeqCst);
        Some(Waiting { line, first: before == 0 })
    }

    /// There is room.
    pub(crate) fn wake(&self) {
        fence(SeqCst);
        if let Some(places) = self.0.get() {
            places.line.wake();
        }
    }

    /// To be kept by a request as long as it takes room.
    pub(crate) fn room(&self) -> Room {
        let Places { line, own } = &**self.0.get_or_init(Box::default);
        Room(Arc::clone(own.get_or_init(parts::own(), shard::count(), || Arc::new(Own(Arc::clone(line))))))
    }
}

impl Line {
    fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    fn wake(&self) {
        fence(SeqCst);
        if self.waiting() > 0 {
            self.room.notify_one();
        }
    }
}

/// A place in a queue, until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'q> {
    line: &'q Line,
    /// Whether nobody was there before, so that nobody else sees room which was made in this moment.
    pub(crate) first: bool,
}

impl<'q> Waiting<'q> {
    /// To be made before room is looked for, and awaited after there was none.
    pub(crate) fn room(&self) -> Notified<'q> {
        self.line.room.notified()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.line.waiting.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, time::Duration};

    use super::*;

    #[test]
    fn retries_are_a_share_of_the_requests_and_some_more() {
        let (retries, settings) = (Retries::default(), BudgetSettings::default());
        let now = 1_612_500_000_000;
        retries.requests(400, now);
        retries.requests(1000, now);
        let granted = (0..1000).filter(|_| retries.spend(Some(&settings), now)).count();
        assert_eq!((granted, retries.spent(), retries.denied()), (300, 300, 700));
        assert!(retries.spend(None, now), "without a budget");
    }

    #[tokio::test]
    async fn a_queue_has_an_end_and_wakes_one_at_a_time_in_order() {
        let queue = Queue::default();
        queue.wake();
        let (first, second) = (queue.enter(2).unwrap(), queue.enter(2).unwrap());
        assert!(first.first && !second.first);
        assert!(queue.enter(2).is_none(), "it is full");
        let (mut one, mut two) = (pin!(first.room()), pin!(second.room()));
        assert!(!one.as_mut().enable() && !two.as_mut().enable(), "nobody was woken before anybody waited");
        queue.wake();
        one.await;
        let soon = tokio::time::timeout(Duration::from_millis(1), two.as_mut());
        assert!(soon.await.is_err(), "only the first");
        drop(first);
        queue.wake();
        two.await;
        drop(second);
        assert_eq!(queue.waiting(), 0);
    }
}
