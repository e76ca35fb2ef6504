//! A choice, and counting its request in and out, allocates nothing: by every policy, for every kind of key.
//!
//! A test of its own because the counting allocator is that of the whole program.

use std::time::Duration;

use soul_client::balance::{
    Balancer, Choice, Health, Key, LoadBalance, Outcome, PickContext, SetSettings, Settings, Tried, Upstream,
    UpstreamSet, Way, policy,
};

const NOW: i64 = 1_612_500_000_000;

fn upstreams() -> Vec<Upstream> {
    (0..20).map(|i| Upstream::new(format!("10.0.0.{i}:80")).with_weight(1 + i % 3)).collect()
}

/// Allocations while this thread does something, the first time aside: `arc-swap` makes a slot for every thread.
fn allocations(mut what: impl FnMut()) -> u64 {
    what();
    allocation_counter::measure(|| {
        for _ in 0..200 {
            what();
        }
    })
    .count_total
}

#[test]
fn by_every_policy() {
    for name in policy::KNOWN {
        let settings = Settings { policy: policy::by_name(name).unwrap(), ..Settings::default() };
        let balancer = Balancer::new(upstreams(), settings, NOW);
        balancer.set_health("10.0.0.3:80", Health::Down, NOW);
        let mut tried = Tried::new();
        tried.insert(balancer.snapshot().all()[5].state());
        let mut keys =
            (0_u64..).map(|i| [Key::Hash(i), Key::Text("10.1.1.1"), Key::SoulHash(7)][i as usize % 3]);
        // An ejection makes `roundRobin` work out its order anew, which does allocate.
        let failure = if name == "roundRobin" { Outcome::Success } else { Outcome::BadGateway };
        let count = allocations(|| {
            let context = PickContext::at(NOW).key(keys.next().unwrap());
            let pick = balancer.choose(&context).unwrap();
            let retry = balancer.choose(&context.tried(&tried)).unwrap();
            pick.complete(Outcome::Success, Duration::from_millis(3), NOW);
            retry.complete(failure, Duration::from_millis(3), NOW);
            drop(balancer.choose(&PickContext::at(NOW)));
        });
        assert_eq!(count, 0, "{name}");
    }
}

#[test]
fn by_every_rule_of_the_gateway() {
    for choice in [Choice::Strict, Choice::Soul] {
        let set = UpstreamSet::build(upstreams(), None, choice);
        let mut tried = Tried::new();
        tried.insert(set.members()[5].state());
        for balance in LoadBalance::ALL {
            let count = allocations(|| {
                let context = PickContext::at(NOW).key(Key::Text("10.1.1.1"));
                drop(set.pick(balance, &context).unwrap().state().begin());
                drop(set.pick(balance, &context.tried(&tried)).unwrap().state().begin());
            });
            assert_eq!(count, 0, "{balance} {choice:?}");
        }
    }
}

/// Once a thread has sent to every upstream, where it has a part of its own.
#[test]
fn in_several_parts() {
    for name in policy::KNOWN {
        let way: Way = name.parse().unwrap();
        let settings = SetSettings { ways: vec![way], parts: 4, ..SetSettings::default() };
        let set = UpstreamSet::build_with(upstreams(), None, settings, NOW);
        let keys: Vec<_> = (0..3000).map(|i| i.to_string()).collect();
        let mut moments = (0_usize..).map(|i| (NOW + i as i64 / 100, &keys[i % keys.len()]));
        let mut choose = || {
            let (now, key) = moments.next().unwrap();
            let pick = set.choose(way, &PickContext::at(now).key(Key::Text(key))).unwrap();
            pick.complete(Outcome::Success, Duration::from_millis(3), now);
        };
        (0..6000).for_each(|_| choose());
        assert_eq!(allocations(choose), 0, "{name}");
    }
}

#[test]
fn the_counter_counts() {
    assert!(allocations(|| drop(std::hint::black_box(Box::new(1)))) >= 200);
}
