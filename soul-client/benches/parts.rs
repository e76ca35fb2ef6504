//! What it costs that threads write the same memory, and that they do not: nanoseconds of one thread from a choice to its end,
//! alone and while all others do the same, in one part and in one for each thread.
//!
//! ```text
//! cargo bench -p soul-client --bench parts              # as many threads as cores
//! cargo bench -p soul-client --bench parts -- 8
//! ```
//!
//! The last column is what matters: 1 is a choice that other threads do not feel. Threads wait for each other before each burst of some
//! choices, and only bursts count that all of them made at the same time, so that what other programs take of the cores does not make
//! threads look as if they kept out of each other's way.

use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use soul_client::balance::{Outcome, PickContext, SetSettings, Upstream, UpstreamSet, Way, parts};

const POLICIES: [&str; 4] = ["roundRobin", "weightedRoundRobin", "leastRequest", "peakEwma"];

/// Bursts of each thread, one after the other.
const BURSTS: usize = 600;

/// Bursts that all made together, of which the median counts; and how often they are begun anew while there are fewer.
const ENOUGH: usize = 200;
const ATTEMPTS: usize = 10;

/// Choices in a burst: a tenth of a millisecond, in which a thread is seldom interrupted.
const CHOICES: u32 = 2_000;

/// Choices in one millisecond of the clock that choices go by: a busy core makes fewer.
const A_MILLISECOND: i64 = 100;

/// Share of a burst that all threads have to be at it.
const TOGETHER: f64 = 0.8;

fn main() {
    let words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let threads = words.filter_map(|word| word.parse().ok()).next().unwrap_or(cores).max(2);
    let together = format!("{threads} threads");
    println!(
        "{:20} {:>6} {:>10} {together:>10} {:>7} {:>8}",
        "ns a request", "parts", "alone", "ratio", "bursts"
    );
    for policy in POLICIES {
        for parts in [1, threads] {
            let set = set(policy, parts);
            let ((alone, _), (together, bursts)) = (median(&set, policy, 1), median(&set, policy, threads));
            println!(
                "{policy:20} {parts:6} {alone:10.1} {together:10.1} {:7.2} {bursts:8}",
                together / alone
            );
        }
    }
}

/// Two upstreams: as few as there may be to choose from, so that all threads meet at both.
fn set(policy: &str, parts: usize) -> Arc<UpstreamSet> {
    let list = ["10.0.0.2:80", "10.0.0.3:80"].map(Upstream::new).to_vec();
    let ways = policy.parse::<Way>().into_iter().collect();
    UpstreamSet::build_with(list, None, SetSettings { ways, parts, ..SetSettings::default() }, 0)
}

/// Nanoseconds from a choice to its end while so many threads make them, and of how many bursts that is the median.
fn median(set: &UpstreamSet, policy: &str, threads: usize) -> (f64, usize) {
    let mut times = Vec::new();
    for _ in 0..ATTEMPTS {
        times.extend(bursts(set, policy, threads));
        if times.len() >= ENOUGH {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    (times.get(times.len() / 2).copied().unwrap_or(f64::NAN), times.len())
}

/// The mean of all threads of each burst that they made together.
fn bursts(set: &UpstreamSet, policy: &str, threads: usize) -> Vec<f64> {
    let arrived = &AtomicUsize::new(0);
    let work = |index| {
        parts::enter(index);
        let way: Way = policy.parse().unwrap_or_else(|e| panic!("{e}"));
        let mut choices = 0_i64;
        let mut burst = || {
            for _ in 0..CHOICES {
                choices += 1;
                let now_ms = 1_612_500_000_000 + choices / A_MILLISECOND;
                let pick = set.choose(way, &PickContext::at(now_ms)).expect("two may be chosen");
                pick.complete(Outcome::Success, Duration::from_micros(900), now_ms);
            }
        };
        burst();
        let bursts = (1..=BURSTS).map(|number| {
            arrived.fetch_add(1, SeqCst);
            // Awake, so that all are at it when the last one comes.
            while arrived.load(SeqCst) < number * threads {
                hint::spin_loop();
            }
            let start = Instant::now();
            burst();
            (start, Instant::now())
        });
        bursts.collect::<Vec<_>>()
    };
    let bursts: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|index| scope.spawn(move || work(index))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that counts")).collect()
    });
    let together = |number: usize| {
        let spans = || bursts.iter().map(|bursts: &Vec<(Instant, Instant)>| bursts[number]);
        let (first, last) = (spans().map(|(start, _)| start).min()?, spans().map(|(_, end)| end).max()?);
        let (begun, ended) = (spans().map(|(start, _)| start).max()?, spans().map(|(_, end)| end).min()?);
        let together = ended.saturating_duration_since(begun).as_secs_f64();
        let all: f64 = spans().map(|(start, end)| (end - start).as_secs_f64()).sum();
        let mean = all / threads as f64 * 1e9 / f64::from(CHOICES);
        (together >= (last - first).as_secs_f64() * TOGETHER).then_some(mean)
    };
    (0..BURSTS).filter_map(together).collect()
}
