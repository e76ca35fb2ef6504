//! How many retries a service gets, however many calls fail.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Bounds the retries of all calls to one service together: a share of the calls, and some per second on top for a
/// service that is called rarely. It keeps retries from multiplying the load of a service that is failing.
///
/// # Source
/// Finagle's retry budget; tower and linkerd have the same numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetSettings {
    /// Retries for each call. Default 0.2.
    pub ratio: f64,
    /// Retries per second that are always there. Default 10.
    pub min_per_second: u32,
    /// Over how long both are counted. Default 10 s.
    pub window: Duration,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self { ratio: 0.2, min_per_second: 10, window: Duration::from_secs(10) }
    }
}

impl BudgetSettings {
    /// How many retries there may be in a window in which so many calls were made.
    #[must_use]
    pub fn allowed(&self, calls: u64) -> u64 {
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let allowed = calls as f64 * self.ratio + f64::from(self.min_per_second) * self.window.as_secs_f64();
        // A hair more, for 0.2 is not quite a fifth.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let allowed = (allowed + 1e-6) as u64;
        allowed
    }
}

/// In how many pieces the window moves on.
const SLOTS: usize = 10;

/// What was spent of a [`BudgetSettings`]. Shared by all calls to a service; takes no lock.
#[derive(Debug)]
pub(crate) struct Budget {
    settings: BudgetSettings,
    slot_ms: i64,
    calls: Counter,
    retries: Counter,
}

impl Budget {
    pub(crate) fn new(settings: BudgetSettings) -> Self {
        let slot_ms = i64::try_from(settings.window.as_millis() / SLOTS as u128).unwrap_or(i64::MAX).max(1);
        Self { settings, slot_ms, calls: Counter::default(), retries: Counter::default() }
    }

    /// A call begins.
    pub(crate) fn deposit(&self, now_ms: i64) {
        self.calls.add(self.slot(now_ms));
    }

    /// Takes a retry out, if there is one left. Calls that ask in the same moment may all be refused the last one; never do they
    /// get more than there is.
    pub(crate) fn withdraw(&self, now_ms: i64) -> bool {
        let slot = self.slot(now_ms);
        self.retries.add(slot);
        let granted = self.retries.sum(slot) <= self.settings.allowed(self.calls.sum(slot));
        if !granted {
            self.retries.take_back(slot);
        }
        granted
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn slot(&self, now_ms: i64) -> u32 {
        now_ms.div_euclid(self.slot_ms) as u32
    }
}

/// Counts in a ring of slots. Each is its number in the upper half and the count in the lower; both wrap.
#[derive(Debug, Default)]
struct Counter([AtomicU64; SLOTS]);

impl Counter {
    fn add(&self, slot: u32) {
        let fresh = u64::from(slot) << 32;
        let step = |old: u64| Some(if old >> 32 == u64::from(slot) { old + 1 } else { fresh + 1 });
        let _ = self.place(slot).fetch_update(Relaxed, Relaxed, step);
    }

    fn take_back(&self, slot: u32) {
        let is_there = |old: u64| old >> 32 == u64::from(slot) && old & u64::from(u32::MAX) > 0;
        let _ = self.place(slot).fetch_update(Relaxed, Relaxed, |old| is_there(old).then(|| old - 1));
    }

    fn sum(&self, slot: u32) -> u64 {
        let is_recent = |old: &u64| slot.wrapping_sub((old >> 32) as u32) < SLOTS as u32;
        self.0
            .iter()
            .map(|place| place.load(Relaxed))
            .filter(is_recent)
            .map(|old| old & u64::from(u32::MAX))
            .sum()
    }

    fn place(&self, slot: u32) -> &AtomicU64 {
        &self.0[slot as usize % SLOTS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long after the beginning of slots, which stand at 0.
    const START: i64 = 1_612_500_000_000;

    fn withdrawn(budget: &Budget, now_ms: i64, wanted: u32) -> u32 {
        (0..wanted).map(|_| u32::from(budget.withdraw(now_ms))).sum()
    }

    #[test]
    fn a_fifth_of_the_calls_and_ten_per_second() {
        for (calls, retries) in [(0, 100), (1, 100), (5, 101), (1000, 300)] {
            let budget = Budget::new(BudgetSettings::default());
            (0..calls).for_each(|_| budget.deposit(START));
            assert_eq!(withdrawn(&budget, START, 2000), retries, "{calls} calls");
            assert_eq!(withdrawn(&budget, START, 10), 0, "a refusal takes nothing");
        }
    }

    #[test]
    fn it_fills_again_as_the_window_moves_on() {
        let settings = BudgetSettings { ratio: 0.0, min_per_second: 1, ..BudgetSettings::default() };
        let budget = Budget::new(settings);
        assert_eq!(withdrawn(&budget, START, 5), 5);
        assert_eq!(withdrawn(&budget, START + 5_000, 9), 5);
        assert_eq!(withdrawn(&budget, START + 9_999, 9), 0);
        assert_eq!(withdrawn(&budget, START + 10_000, 9), 5);
        assert_eq!(withdrawn(&budget, START + 60_000, 99), 10);
    }

    #[test]
    fn a_dead_service_gets_a_fifth_more_and_ten_per_second() {
        let budget = Budget::new(BudgetSettings::default());
        let (mut calls, mut retries) = (0_u64, 0_u64);
        // A thousand calls a second for a minute, each of which would be retried three times.
        for ms in 0..60_000 {
            budget.deposit(START + ms);
            calls += 1;
            retries += u64::from(withdrawn(&budget, START + ms, 3));
        }
        // A window that begins anew owes nothing to the one before: one window's reserve on top.
        let most = calls / 5 + 10 * 60 + 100 + 200;
        assert!(retries <= most && retries > calls / 5, "{retries} of at most {most}");
    }

    #[test]
    fn nothing_at_all_can_be_set() {
        let settings = BudgetSettings { ratio: 0.0, min_per_second: 0, ..BudgetSettings::default() };
        let budget = Budget::new(settings);
        (0..1000).for_each(|_| budget.deposit(START));
        assert_eq!(withdrawn(&budget, START, 10), 0);
    }

    #[test]
    fn threads_never_get_more_than_there_is() {
        let budget = Budget::new(BudgetSettings { ratio: 0.0, ..BudgetSettings::default() });
        let got: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| withdrawn(&budget, START, 100))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(got <= 100 && got > 90, "{got}");
    }

    #[test]
    fn slots_may_wrap() {
        let budget =
            Budget::new(BudgetSettings { ratio: 0.0, min_per_second: 1, ..BudgetSettings::default() });
        let end = (i64::from(u32::MAX) + 1) * 1_000;
        assert_eq!(withdrawn(&budget, end - 1, 6), 6);
        assert_eq!(withdrawn(&budget, end, 6), 4);
    }
}
