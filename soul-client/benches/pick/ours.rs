//! Our choices, alone and with the life of the request that they are for.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use soul_client::balance::{
    Balancer, Key, Outcome, PickContext, Settings, Upstream,
    policy::{self, Decay, LeastRequest, Maglev, PeakEwma, Policy, RingHash, SoulHash},
};

use crate::{
    common::{addresses, upstreams},
    keys::Keys,
    stopwatch::Stopwatch,
    table::Table,
};

pub(crate) const NOW: i64 = 1_612_500_000_000;

pub(crate) const RANDOM: &str = "pick uniformRandom";
pub(crate) const ROUND_ROBIN: &str = "pick plainRoundRobin";
pub(crate) const ALIAS: &str = "pick weightedRandom";
pub(crate) const LEAST_REQUEST: &str = "pick leastRequest";
pub(crate) const EWMA_REAL: &str = "pick peakEwma, real clock, rational decay";
pub(crate) const EWMA_COARSE: &str = "pick peakEwma, coarse clock, rational decay";
pub(crate) const RING: &str = "pick ringHash";
pub(crate) const MAGLEV: &str = "pick maglev";
pub(crate) const SOUL_HASH: &str = "pick hash (Soul's, cached)";
pub(crate) const LEAST_LIFE: &str = "life leastRequest, no clock";
pub(crate) const EWMA_LIFE: &str = "life peakEwma, coarse clock for choices, two clock reads";

pub(crate) fn add(table: &mut Table) {
    by_name(table);
    by_response_time(table);
    by_key(table);
    lives(table);
}

fn by_name(table: &mut Table) {
    for (row, weights) in [
        (RANDOM, false),
        (ROUND_ROBIN, false),
        (ALIAS, true),
        ("pick weightedRoundRobin", true),
        (LEAST_REQUEST, false),
        ("pick leastActive", false),
        ("pick ZoneAvoidanceRule", false),
        ("pick BestAvailableRule", false),
    ] {
        table.add(row, move |stopwatch, size| {
            let addresses = addresses(0, size);
            let list = if weights { weighted(&addresses) } else { upstreams(&addresses) };
            let policy = policy::by_name(row.strip_prefix("pick ")?).ok()?;
            let balancer = Balancer::new(list, Settings { policy, ..Settings::default() }, NOW);
            Some(pick_only(stopwatch, &balancer))
        });
    }
}

fn by_response_time(table: &mut Table) {
    for (row, decay) in
        [("pick peakEwma, real clock, exact decay", Decay::Exact), (EWMA_REAL, Decay::Rational)]
    {
        table.add(row, move |stopwatch, size| {
            let clock = Clock::start();
            let balancer = measured(PeakEwma { decay, ..PeakEwma::default() }, size, NOW);
            Some(stopwatch.time(|| pick(&balancer, &PickContext::at(clock.ms(Instant::now())))))
        });
    }
    table.add(EWMA_COARSE, |stopwatch, size| {
        Some(pick_only(stopwatch, &measured(PeakEwma::default(), size, NOW - 20)))
    });
}

fn by_key(table: &mut Table) {
    fn row(table: &mut Table, name: &str, policy: impl Policy + Clone + 'static) {
        table.add(name, move |stopwatch, size| {
            let balancer = balancer(policy.clone(), size);
            let mut keys = Keys::new();
            Some(stopwatch.time(|| pick(&balancer, &PickContext::at(NOW).key(Key::Text(keys.next())))))
        });
    }
    row(table, RING, RingHash::default());
    row(table, MAGLEV, Maglev);
    row(table, SOUL_HASH, SoulHash);
}

fn lives(table: &mut Table) {
    table.add(LEAST_LIFE, |stopwatch, size| {
        Some(life_without_clock(stopwatch, &balancer(LeastRequest, size)))
    });
    table.add("life leastRequest, given up", |stopwatch, size| {
        let balancer = balancer(LeastRequest, size);
        Some(stopwatch.time(|| drop(balancer.choose(black_box(&PickContext::at(NOW))))))
    });
    table.add("life peakEwma, no clock", |stopwatch, size| {
        Some(life_without_clock(stopwatch, &measured(PeakEwma::default(), size, NOW - 20)))
    });
    table.add(EWMA_LIFE, |stopwatch, size| {
        let balancer = measured(PeakEwma::default(), size, NOW - 20);
        Some(stopwatch.time(|| {
            if let Some(pick) = balancer.choose(black_box(&PickContext::at(NOW))) {
                let sent = Instant::now();
                pick.complete(Outcome::Success, sent.elapsed(), NOW);
            }
        }))
    });
    table.add("life peakEwma, real clock throughout, two clock reads", |stopwatch, size| {
        let clock = Clock::start();
        let balancer = measured(PeakEwma::default(), size, NOW);
        Some(stopwatch.time(|| {
            let sent = Instant::now();
            if let Some(pick) = balancer.choose(black_box(&PickContext::at(clock.ms(sent)))) {
                let answered = Instant::now();
                pick.complete(Outcome::Success, answered.duration_since(sent), clock.ms(answered));
            }
        }))
    });
}

/// Milliseconds since the epoch, from a clock that does not go back.
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn ms(&self, at: Instant) -> i64 {
        NOW + i64::try_from(at.duration_since(self.0).as_millis()).unwrap_or(0)
    }
}

fn pick_only(stopwatch: Stopwatch, balancer: &Balancer) -> f64 {
    let context = PickContext::at(NOW);
    stopwatch.time(|| pick(balancer, &context))
}

/// A choice without the life of a request.
fn pick(balancer: &Balancer, context: &PickContext<'_>) {
    black_box(balancer.with(|snapshot| snapshot.pick(black_box(context)).map(Arc::as_ptr)));
}

/// A choice and all of the request's life, by somebody who knows the time and how long it took.
fn life_without_clock(stopwatch: Stopwatch, balancer: &Balancer) -> f64 {
    stopwatch.time(|| {
        if let Some(pick) = balancer.choose(black_box(&PickContext::at(NOW))) {
            pick.complete(Outcome::Success, black_box(Duration::from_millis(1)), NOW);
        }
    })
}

fn balancer(policy: impl Policy + 'static, size: usize) -> Balancer {
    Balancer::new(upstreams(&addresses(0, size)), Settings::with_policy(policy), NOW)
}

/// Everyone has a response time, as there is in operation.
fn measured(policy: impl Policy + 'static, size: usize, now_ms: i64) -> Balancer {
    let balancer = balancer(policy, size);
    for (i, member) in balancer.snapshot().all().iter().enumerate() {
        member.begin(now_ms).complete(Outcome::Success, Duration::from_micros(900 + i as u64 % 300), now_ms);
    }
    balancer
}

fn weighted(addresses: &[String]) -> Vec<Upstream> {
    let weight = |i: usize| i32::try_from(1 + i % 10).unwrap_or(1);
    addresses.iter().enumerate().map(|(i, a)| Upstream::new(a).with_weight(weight(i))).collect()
}
