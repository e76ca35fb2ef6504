//! How many retries a service gets, however many calls fail: of the SDK's callers, or of the gateway's.

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
pub struct RetryBudget {
    settings: BudgetSettings,
    slot_ms: i64,
    calls: Counter,
    retries: Counter,
}

impl RetryBudget {
    /// One of which nothing was spent.
    #[must_use]
    pub fn new(settings: BudgetSettings) -> Self {
        let slot_ms = i64::try_from(settings.window.as_millis() / SLOTS as u128).unwrap_or(i64::MAX).max(1);
        Self { settings, slot_ms, calls: Counter::default(), retries: Counter::default() }
    }

    /// A call begins.
    pub fn deposit(&self, now_ms: i64) {
        self.deposit_many(1, now_ms);
    }

    /// So many calls have begun lately: for whoever counts them elsewhere and tells of them now and then.
    pub fn deposit_many(&self, calls: u32, now_ms: i64) {
        self.calls.add(calls, self.slot(now_ms));
    }

    /// Takes a retry out, if there is one left. Calls that ask in the same moment may all be refused the last one; never do they
    /// get more than there is.
    pub fn withdraw(&self, now_ms: i64) -> bool {
        self.withdraw_by(&self.settings, now_ms)
    }

    /// The same by other settings, but for the window, which stays.
    pub fn withdraw_by(&self, settings: &BudgetSettings, now_ms: i64) -> bool {
        let slot = self.slot(now_ms);
        self.retries.add(1, slot);
        let granted = self.retries.sum(slot) <= settings.allowed(self.calls.sum(slot));
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
    fn add(&self, count: u32, slot: u32) {
        let (fresh, count) = (u64::from(slot) << 32, u64::from(count));
        let step = |old: u64| Some(if old >> 32 == u64::from(slot) { old + count } else { fresh + count });
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
