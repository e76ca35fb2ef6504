//! What is common to the tests of choices; Soul's arithmetic itself is held by the golden vectors.

mod budget;
mod hashing;
mod health;
mod names;
mod order;
mod parts;
mod prefer;
mod set;
mod shares;
mod snapshot;

use std::{cell::RefCell, collections::BTreeMap, sync::Arc, time::Duration};

use super::*;
use crate::wire::soul::DivideUpstream;

const NOW: i64 = 1_612_500_000_000;

fn node(url: &str, weight: i32) -> DivideUpstream {
    DivideUpstream { weight, ..DivideUpstream::registered(url) }
}

fn off(url: &str) -> DivideUpstream {
    DivideUpstream { status: false, ..node(url, 50) }
}

fn build(nodes: &[DivideUpstream], previous: Option<&Arc<UpstreamSet>>, choice: Choice) -> Arc<UpstreamSet> {
    UpstreamSet::build(nodes.iter().map(Upstream::from).collect(), previous, choice)
}

fn strict(nodes: &[DivideUpstream]) -> Arc<UpstreamSet> {
    build(nodes, None, Choice::Strict)
}

fn url(member: Option<&Arc<Member>>) -> Option<&str> {
    member.map(|m| m.upstream().url())
}

fn counts(set: &UpstreamSet, balance: LoadBalance, picks: usize) -> BTreeMap<&str, usize> {
    let rng = RefCell::new(fastrand::Rng::with_seed(11));
    let source = |bound| rng.borrow_mut().u32(..bound);
    let mut counts = BTreeMap::new();
    for i in 0..picks {
        let key = i.to_string();
        let context = PickContext::at(NOW).key(Key::Text(&key)).random(&source);
        *counts.entry(url(set.pick(balance, &context)).unwrap()).or_default() += 1;
    }
    counts
}

fn down(set: &UpstreamSet, url: &str) {
    for member in set.members().iter().filter(|m| m.upstream().url() == url) {
        member.state().set_health(Health::Down);
    }
}

/// A policy by name over a list; nothing is left to chance and there is no panic.
fn settings(policy: &str) -> Settings {
    Settings { policy: policy::by_name(policy).unwrap(), panic_threshold: 0.0, ..Settings::default() }
}

fn seeded(seed: u64) -> impl Fn(u32) -> u32 {
    let rng = RefCell::new(fastrand::Rng::with_seed(seed));
    move |bound| rng.borrow_mut().u32(..bound)
}

fn upstreams(weights: &[i32]) -> Vec<Upstream> {
    weights.iter().enumerate().map(|(i, &w)| Upstream::new(format!("10.0.0.{i}:80")).with_weight(w)).collect()
}

/// The number at the end of an address made by [`upstreams`].
fn number(pick: &Pick) -> usize {
    let address = pick.upstream().address();
    address.rsplit(['.', ':']).nth(1).unwrap().parse().unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// How often each was chosen, when every request succeeds at once, one in a millisecond.
fn picked(balancer: &Balancer, count: usize, picks: usize, seed: u64) -> Vec<usize> {
    let source = seeded(seed);
    let mut counts = vec![0; count];
    for i in 0..picks {
        let key = i.to_string();
        let now = NOW + i64::try_from(i).unwrap();
        let pick = balancer.choose(&PickContext::at(now).key(Key::Text(&key)).random(&source)).unwrap();
        counts[number(&pick)] += 1;
        pick.complete(Outcome::Success, ms(10), now);
    }
    counts
}
