//! One choice by pingora-load-balancing beside our own, in one run: `bash tests/peers/pingora/run`.
//!
//! Prints nanoseconds and, in brackets, baselines; exits with 1 if pingora's takes less than [`TIMES`] as long as ours,
//! whatever the algorithm and the number of upstreams.
//!
//! pingora's `select` gives a backend to keep, a copy with an allocation of its own. Ours are shown twice: the choice alone, and with the
//! member kept and the request counted in and, given up, out again, which pingora has nothing like. The target is about
//! the first; the last column shows the second too.

#[path = "../../../../soul-client/benches/common/mod.rs"]
mod common;
#[path = "../../../../soul-client/benches/pick/keys.rs"]
mod keys;
#[path = "../../../../soul-client/benches/pick/stopwatch.rs"]
mod stopwatch;

use std::{hint::black_box, process::ExitCode, sync::Arc};

use pingora_load_balancing::{
    LoadBalancer,
    selection::{BackendIter, BackendSelection, RoundRobin, consistent::KetamaHashing},
};
use soul_client::balance::{Balancer, Key, PickContext, Settings, policy};

use common::{addresses, upstreams};
use keys::Keys;
use stopwatch::{Stopwatch, baseline};

const NOW: i64 = 1_612_500_000_000;
const STOPWATCH: Stopwatch = Stopwatch { calls: None };

/// The least that is asked for.
const TIMES: f64 = 3.0;

/// How often a comparison that failed is measured again: neighbours on the machine make a number larger, never smaller.
const AGAIN: usize = 3;

fn main() -> ExitCode {
    println!(
        "{:<28}{:>8}{:>20}{:>20}{:>20}{:>20}",
        "nanoseconds (baselines)", "B", "our choice", "kept and counted", "pingora `select`", "times"
    );
    let mut enough = true;
    for size in [10, 100, 10_000] {
        enough &= compare("round robin", "plainRoundRobin", size, select::<RoundRobin>);
    }
    for size in [10, 100, 10_000] {
        enough &= compare("ring of 160, ketama", "ringHash", size, select::<KetamaHashing>);
    }
    if enough { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Measures and prints one line; `false` if we are not that much faster.
fn compare(what: &str, policy: &str, size: usize, theirs: fn(usize) -> f64) -> bool {
    let [mut choice, mut kept, mut select] = [f64::INFINITY; 3];
    for _ in 0..=AGAIN {
        choice = choice.min(ours(policy, size, false));
        kept = kept.min(ours(policy, size, true));
        select = select.min(theirs(size));
        if select >= TIMES * choice {
            break;
        }
    }
    let b = baseline(STOPWATCH, size);
    let cell = |ns: f64| format!("{ns:.0} ({:.1})", ns / b);
    let times = format!("{:.1}, kept {:.1}", select / choice, select / kept);
    let row = format!("{what}, {size}");
    println!("{row:<28}{b:>8.0}{:>20}{:>20}{:>20}{times:>20}", cell(choice), cell(kept), cell(select));
    select >= TIMES * choice
}

fn ours(policy: &str, size: usize, keep: bool) -> f64 {
    let policy = policy::by_name(policy).unwrap_or_else(|error| panic!("{error}"));
    let settings = Settings { policy, ..Settings::default() };
    let balancer = Balancer::new(upstreams(&addresses(0, size)), settings, NOW);
    let mut keys = Keys::new();
    STOPWATCH.time(|| {
        let context = PickContext::at(NOW).key(Key::Text(keys.next()));
        if keep {
            drop(black_box(balancer.choose(black_box(&context))));
        } else {
            black_box(balancer.with(|snapshot| snapshot.pick(black_box(&context)).map(Arc::as_ptr)));
        }
    })
}

fn select<S>(size: usize) -> f64
where
    S: BackendSelection + 'static,
    S::Iter: BackendIter,
{
    let balancer: LoadBalancer<S> = LoadBalancer::try_from_iter(addresses(0, size))
        .unwrap_or_else(|error| panic!("addresses of the bench: {error}"));
    let mut keys = Keys::new();
    STOPWATCH.time(|| {
        let chosen = balancer.select(keys.next().as_bytes(), 256);
        assert!(black_box(chosen).is_some(), "a list in which nobody is down");
    })
}
