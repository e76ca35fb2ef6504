//! How nanoseconds are measured, and the baseline that they are compared with.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;

use crate::common::addresses;

const BATCHES: usize = 40;
const RUNS: usize = 4;
/// About how long one batch takes, at least half of it: less than a slice of time that the system gives to a program.
const BATCH: Duration = Duration::from_micros(200);

/// Measures calls.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch {
    /// Makes so many calls, and gives no number.
    pub(crate) calls: Option<u32>,
}

impl Stopwatch {
    /// Nanoseconds for one call.
    pub(crate) fn time(self, mut what: impl FnMut()) -> f64 {
        if let Some(calls) = self.calls {
            batch(&mut what, calls);
            return f64::NAN;
        }
        let quickest = |what: &mut _, calls, batches: usize| {
            (0..batches).map(|_| batch(what, calls)).min().unwrap_or_default()
        };
        // By the quickest of several, for a batch that was interrupted seems to be long enough with one call.
        let mut calls = 1_u32;
        while quickest(&mut what, calls, 5) < BATCH / 2 && calls < 1 << 24 {
            calls *= 2;
        }
        let run = |what: &mut _| quickest(what, calls, BATCHES).as_secs_f64() * 1e9 / f64::from(calls);
        (0..RUNS).map(|_| run(&mut what)).fold(f64::INFINITY, f64::min)
    }
}

fn batch(what: &mut impl FnMut(), calls: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..calls {
        what();
    }
    start.elapsed()
}

/// B: a round robin as one writes it who writes it well. One step of an atomic counter, taken modulo the length of a list that is read
/// through `ArcSwap::load`, and the member there; the member is looked at and not kept.
///
/// That is three locked steps, two of them for the guard, and a division: 16 ns where a locked step takes 4.6. Our own
/// choices read the list without a locked step, so they may well cost less than one B; keeping a member by its `Arc`
/// takes two more locked steps, and counting a request in and out again two.
pub(crate) fn baseline(stopwatch: Stopwatch, size: usize) -> f64 {
    let members = ArcSwap::from_pointee(addresses(0, size).into_iter().map(Arc::new).collect::<Vec<_>>());
    let position = AtomicUsize::new(0);
    stopwatch.time(|| {
        let members = members.load();
        let index = position.fetch_add(1, Relaxed) % members.len();
        black_box(&members[index]);
    })
}
