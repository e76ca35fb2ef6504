//! Who is preferred, over every policy.

use std::collections::BTreeSet;

use super::{super::*, *};

fn list() -> Vec<Upstream> {
    let of = |i: usize, zone: &str, version: &str, rank: &str| {
        let upstream = Upstream::new(format!("10.0.0.{i}:80")).with_zone(zone);
        upstream.with_metadata("version", version).with_metadata("rank", rank)
    };
    vec![
        of(0, "eu", "v1", "0"),
        of(1, "eu", "v1", "0"),
        of(2, "us", "v1", "1"),
        of(3, "us", "v2", "1"),
        of(4, "us", "v2", "0"),
        of(5, "eu", "v2", "7"),
    ]
}

fn preferring(name: &str, prefer: Prefer) -> Balancer {
    Balancer::new(list(), Settings { prefer, ..settings(name) }, NOW)
}

/// Who serves many requests of many keys.
fn served(balancer: &Balancer, context: PickContext<'_>) -> Vec<usize> {
    let source = seeded(6);
    let mut served = BTreeSet::new();
    for i in 0..300 {
        let key = i.to_string();
        if let Some(pick) = balancer.choose(&context.key(Key::Text(&key)).random(&source)) {
            served.insert(number(&pick));
            pick.complete(Outcome::Success, ms(5), NOW);
        }
    }
    served.into_iter().collect()
}

fn down(balancer: &Balancer, numbers: &[usize]) {
    for i in numbers {
        balancer.set_health(&format!("10.0.0.{i}:80"), Health::Down, NOW);
    }
}

#[test]
fn over_every_policy_the_own_zone_serves_as_long_as_somebody_is_there() {
    for name in policy::KNOWN {
        let balancer = preferring(name, Prefer { zone: Some("eu".into()), ..Prefer::default() });
        let now = PickContext::at(NOW);
        assert_eq!(served(&balancer, now), [0, 1, 5], "{name}");
        down(&balancer, &[0, 5]);
        assert_eq!(served(&balancer, now), [1], "{name}");
        // Tried, the last of the zone is left for the others.
        let mut tried = Tried::new();
        tried.insert(balancer.snapshot().all()[1].state());
        assert!(served(&balancer, now.tried(&tried)).iter().all(|n| (2..5).contains(n)), "{name}");
        down(&balancer, &[1]);
        let others = served(&balancer, now);
        assert!(!others.is_empty() && others.iter().all(|n| (2..5).contains(n)), "{name}: {others:?}");
        balancer.set_health("10.0.0.0:80", Health::Up, NOW);
        assert_eq!(served(&balancer, now), [0], "{name}");
    }
}

#[test]
fn over_every_policy_a_hint_is_heeded_before_the_zone_and_priorities_by_rank() {
    for name in policy::KNOWN {
        let prefer = Prefer {
            zone: Some("eu".into()),
            hint: Some("version".into()),
            priority: Some("rank".into()),
            ..Prefer::default()
        };
        let balancer = preferring(name, prefer.clone());
        let now = PickContext::at(NOW);
        assert_eq!(served(&balancer, now), [0, 1], "{name}");
        assert_eq!(served(&balancer, now.hint("v2")), [5], "{name}");
        assert_eq!(served(&balancer, now.hint("v9")), [0, 1], "{name}: a hint that nobody has");
        down(&balancer, &[5]);
        assert_eq!(served(&balancer, now.hint("v2")), [4], "{name}");
        down(&balancer, &[3, 4]);
        let others = served(&balancer, now.hint("v2"));
        assert!(!others.is_empty() && others.iter().all(|n| *n < 3), "{name}: {others:?}");

        let strict = preferring(name, Prefer { hint_only: true, ..prefer });
        assert_eq!(served(&strict, now.hint("v2")), [5], "{name}");
        assert_eq!(served(&strict, now.hint("v9")), [0_usize; 0], "{name}");
        down(&strict, &[3, 4, 5]);
        assert_eq!(served(&strict, now.hint("v2")), [0_usize; 0], "{name}");
    }
}

#[test]
fn over_every_policy_a_session_stays_where_it_is_while_that_may_serve() {
    for name in policy::KNOWN {
        let balancer = preferring(name, Prefer { zone: Some("eu".into()), ..Prefer::default() });
        let here = PickContext::at(NOW).sticky("10.0.0.3:80");
        assert_eq!(served(&balancer, here), [3], "{name}");
        let mut tried = Tried::new();
        tried.insert(balancer.snapshot().all()[3].state());
        assert_eq!(served(&balancer, here.tried(&tried)), [0, 1, 5], "{name}");
        down(&balancer, &[3]);
        assert_eq!(served(&balancer, here), [0, 1, 5], "{name}");
        assert_eq!(served(&balancer, PickContext::at(NOW).sticky("10.9.9.9:80")), [0, 1, 5], "{name}");
    }
}

#[test]
fn sessions_do_not_disturb_the_turns_of_the_others() {
    let balancer = Balancer::new(upstreams(&[50; 3]), settings("plainRoundRobin"), NOW);
    let mut turns = Vec::new();
    for _ in 0..6 {
        let stays = balancer.choose(&PickContext::at(NOW).sticky("10.0.0.2:80")).unwrap();
        assert_eq!(number(&stays), 2);
        turns.push(number(&balancer.choose(&PickContext::at(NOW)).unwrap()));
    }
    assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
}
