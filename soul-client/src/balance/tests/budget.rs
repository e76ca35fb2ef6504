//! The budget of retries.

use std::thread;

use crate::balance::{BudgetSettings, RetryBudget};

/// Long after the beginning of slots, which stand at 0.
const START: i64 = 1_612_500_000_000;

fn withdrawn(budget: &RetryBudget, now_ms: i64, wanted: u32) -> u32 {
    (0..wanted).map(|_| u32::from(budget.withdraw(now_ms))).sum()
}

#[test]
fn a_fifth_of_the_calls_and_ten_per_second() {
    for (calls, retries) in [(0, 100), (1, 100), (5, 101), (1000, 300)] {
        let budget = RetryBudget::new(BudgetSettings::default());
        (0..calls).for_each(|_| budget.deposit(START));
        assert_eq!(withdrawn(&budget, START, 2000), retries, "{calls} calls");
        assert_eq!(withdrawn(&budget, START, 10), 0, "a refusal takes nothing");
    }
}

#[test]
fn calls_that_were_counted_elsewhere_count_as_much() {
    let budget = RetryBudget::new(BudgetSettings::default());
    budget.deposit_many(1000, START);
    assert_eq!(withdrawn(&budget, START, 2000), 300);
    let none = BudgetSettings { ratio: 0.0, min_per_second: 0, ..BudgetSettings::default() };
    let more = BudgetSettings { ratio: 0.5, ..BudgetSettings::default() };
    assert!(!budget.withdraw_by(&none, START) && budget.withdraw_by(&more, START), "by other settings");
}

#[test]
fn it_fills_again_as_the_window_moves_on() {
    let settings = BudgetSettings { ratio: 0.0, min_per_second: 1, ..BudgetSettings::default() };
    let budget = RetryBudget::new(settings);
    assert_eq!(withdrawn(&budget, START, 5), 5);
    assert_eq!(withdrawn(&budget, START + 5_000, 9), 5);
    assert_eq!(withdrawn(&budget, START + 9_999, 9), 0);
    assert_eq!(withdrawn(&budget, START + 10_000, 9), 5);
    assert_eq!(withdrawn(&budget, START + 60_000, 99), 10);
}

#[test]
fn a_dead_service_gets_a_fifth_more_and_ten_per_second() {
    let budget = RetryBudget::new(BudgetSettings::default());
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
    let budget = RetryBudget::new(settings);
    (0..1000).for_each(|_| budget.deposit(START));
    assert_eq!(withdrawn(&budget, START, 10), 0);
}

#[test]
fn threads_never_get_more_than_there_is() {
    let budget = RetryBudget::new(BudgetSettings { ratio: 0.0, ..BudgetSettings::default() });
    let got: u32 = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| withdrawn(&budget, START, 100))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(got <= 100 && got > 90, "{got}");
}

#[test]
fn slots_may_wrap() {
    let budget =
        RetryBudget::new(BudgetSettings { ratio: 0.0, min_per_second: 1, ..BudgetSettings::default() });
    let end = (i64::from(u32::MAX) + 1) * 1_000;
    assert_eq!(withdrawn(&budget, end - 1, 6), 6);
    assert_eq!(withdrawn(&budget, end, 6), 4);
}
