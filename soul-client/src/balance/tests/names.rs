//! Each name does what it says and nothing that another one does.

use super::{super::*, *};

/// A list with weights, two zones and a state for each, so that every policy has something to tell by.
fn balancer(name: &str) -> Balancer {
    let list = upstreams(&[5, 1, 1, 2, 3, 4]).into_iter().enumerate();
    let zoned = list.map(|(i, u)| u.with_zone(if i < 3 { "east" } else { "west" })).collect();
    Balancer::new(zoned, settings(name), NOW)
}

/// Who chooses: the balancer of a service, or the set of a selector by the way that its rule names.
enum Chooser {
    Calls(Balancer),
    Rule(Arc<UpstreamSet>, Way),
}

impl Chooser {
    fn calls(name: &str) -> Self {
        Self::Calls(balancer(name))
    }

    fn rule(name: &str) -> Self {
        let list = balancer(name).snapshot().all().iter().map(|m| m.upstream().clone()).collect();
        let way: Way = name.parse().unwrap();
        let settings =
            SetSettings { ways: vec![way], outliers: settings(name).outliers, ..SetSettings::default() };
        Self::Rule(UpstreamSet::build_with(list, None, settings, NOW), way)
    }

    fn choose(&self, context: &PickContext<'_>) -> Option<Pick> {
        match self {
            Self::Calls(balancer) => balancer.choose(context),
            Self::Rule(set, way) => set.choose(*way, context),
        }
    }

    fn refresh(&self, now_ms: i64) {
        match self {
            Self::Calls(balancer) => drop(balancer.refresh(now_ms)),
            Self::Rule(set, _) => set.refresh(now_ms),
        }
    }

    fn states(&self) -> Vec<Arc<UpstreamState>> {
        let states = |all: &[Arc<Member>]| all.iter().map(|m| Arc::clone(m.state())).collect();
        match self {
            Self::Calls(balancer) => states(balancer.snapshot().all()),
            Self::Rule(set, _) => states(set.members()),
        }
    }
}

/// What a policy does in a few situations, by the numbers of those chosen.
fn conduct(chooser: impl Fn() -> Chooser) -> Vec<Option<usize>> {
    let mut conduct = Vec::new();
    let source = seeded(42);

    // Idle, each as slow as its number says.
    let idle = chooser();
    for i in 0..200_i64 {
        let now = NOW + i * 200;
        idle.refresh(now);
        let key = i.to_string();
        let pick = idle.choose(&PickContext::at(now).key(Key::Text(&key)).random(&source));
        conduct.push(pick.as_ref().map(number));
        if let Some(pick) = pick {
            let took = ms(5 * (1 + number(&pick) as u64));
            pick.complete(Outcome::Success, took, now);
        }
    }

    // One key, and nobody answers.
    let busy = chooser();
    let context = PickContext::at(NOW).key(Key::Text("10.1.1.1")).random(&source);
    let held: Vec<_> = (0..60).map(|_| busy.choose(&context)).collect();
    conduct.extend(held.iter().map(|pick| pick.as_ref().map(number)));
    drop(held);
    // One zone is loaded, which is known after a refresh.
    let zoned = chooser();
    let states = zoned.states();
    let load: Vec<_> = (0..30).map(|i| states[i % 3].begin()).collect();
    zoned.refresh(NOW + 60_000);
    let context = PickContext::at(NOW + 60_000).key(Key::Text("10.1.1.1")).random(&source);
    conduct.extend((0..12).map(|_| zoned.choose(&context).as_ref().map(number)));
    drop(load);

    // All are down or ejected, one of them for little.
    let alone = chooser();
    for (i, state) in alone.states().iter().enumerate() {
        if i < 2 {
            state.set_health(Health::Down);
        } else {
            assert!(state.move_ejection(0, NOW + if i == 3 { 300 } else { 5_000 }));
        }
        state.group().changed();
    }
    alone.refresh(NOW);
    let context = PickContext::at(NOW).key(Key::Text("k")).random(&source);
    conduct.extend((0..12).map(|_| alone.choose(&context).as_ref().map(number)));

    // All but one are down and that one is ejected, for long and for little.
    for before_the_end in [5_000, 300] {
        let alone = chooser();
        let states = alone.states();
        let state = &states[4];
        assert!(state.move_ejection(0, NOW + before_the_end));
        state.group().changed();
        for other in states.iter().filter(|other| !Arc::ptr_eq(other, state)) {
            other.set_health(Health::Down);
        }
        alone.refresh(NOW);
        let context = PickContext::at(NOW).key(Key::Text("k")).random(&source);
        conduct.extend((0..6).map(|_| alone.choose(&context).as_ref().map(number)));
    }
    conduct
}

/// Each does the same again, and nothing that another one does.
fn all_differ(chooser: fn(&str) -> Chooser) {
    let conduct = |name| conduct(|| chooser(name));
    let conducts: Vec<_> = policy::KNOWN.iter().map(|name| (name, conduct(name))).collect();
    for (i, (name, this)) in conducts.iter().enumerate() {
        assert_eq!(*this, conduct(name), "`{name}` is not repeatable");
        for (other, that) in &conducts[..i] {
            assert_ne!(this, that, "`{name}` and `{other}`");
        }
    }
}

#[test]
fn no_two_names_do_the_same() {
    all_differ(Chooser::calls);
}

#[test]
fn no_two_names_do_the_same_for_a_rule_of_the_gateway() {
    all_differ(Chooser::rule);
}

fn sequence(name: &str, weights: &[i32], picks: usize) -> Vec<usize> {
    let balancer = Balancer::new(upstreams(weights), settings(name), NOW);
    (0..picks).map(|_| number(&balancer.choose(&PickContext::at(NOW)).unwrap())).collect()
}

#[test]
fn in_turn_smoothly_by_strides_and_plainly() {
    assert_eq!(sequence("roundRobin", &[5, 1, 1], 7), [0, 0, 1, 0, 2, 0, 0]);
    assert_eq!(sequence("plainRoundRobin", &[5, 1, 1], 7), [0, 1, 2, 0, 1, 2, 0]);
    let strides = sequence("weightedRoundRobin", &[5, 1, 1], 70);
    assert_eq!([0, 1, 2].map(|n| strides.iter().filter(|&&s| s == n).count()), [50, 10, 10]);
    assert_ne!(strides[..7], [0, 0, 1, 0, 2, 0, 0]);
}

#[test]
fn random_draws_once_and_alias_twice() {
    let bounds = |name| {
        let bounds = RefCell::new(Vec::new());
        let source = |bound| {
            bounds.borrow_mut().push(bound);
            0
        };
        let balancer = Balancer::new(upstreams(&[50, 20, 30]), settings(name), NOW);
        let _ = balancer.choose(&PickContext::at(NOW).random(&source));
        bounds.take()
    };
    assert_eq!(bounds("random"), [100]);
    assert_eq!(bounds("weightedRandom"), [3, 1 << 24]);
    assert_eq!(bounds("uniformRandom"), [3]);
}

#[test]
fn by_key_one_owner_until_it_is_full() {
    for (name, bounded) in [
        ("hash", false),
        ("ringHash", false),
        ("maglev", false),
        ("boundedHash", true),
        ("boundedRingHash", true),
        ("boundedMaglev", true),
    ] {
        let balancer = Balancer::new(upstreams(&[50; 8]), settings(name), NOW);
        let context = PickContext::at(NOW).key(Key::Text("10.1.1.1"));
        let held: Vec<_> = (0..800).map(|_| balancer.choose(&context).unwrap()).collect();
        let most = balancer.snapshot().all().iter().map(|m| m.state().in_flight()).max().unwrap();
        // 1.25 times the mean of 100, and one request.
        assert_eq!(most, if bounded { 125 } else { 800 }, "{name}");
        drop(held);
        assert_eq!(balancer.snapshot().members().group().in_flight_at(NOW), 0);
        let owners: Vec<_> = (0..3).map(|_| number(&balancer.choose(&context).unwrap())).collect();
        assert!(owners.iter().all(|owner| *owner == owners[0]), "{name}");
    }
}

#[test]
fn hash_is_the_owner_of_soul() {
    let balancer = Balancer::new(upstreams(&[50; 8]), settings("hash"), NOW);
    let urls: Vec<_> = upstreams(&[50; 8]).iter().map(|u| u.url().to_owned()).collect();
    let ring = soul::Ring::new(urls.iter().map(String::as_str));
    for i in 0..500 {
        let ip = format!("10.3.{}.{}", i / 250, i % 250);
        let pick = balancer.choose(&PickContext::at(NOW).key(Key::Text(&ip))).unwrap();
        assert_eq!(Some(number(&pick)), ring.owner(soul::hash(&ip)));
    }
}

/// Holds so many requests at each and says who is chosen next, by chance.
fn next_of(name: &str, weights: &[i32], held: &[usize]) -> Vec<usize> {
    let balancer = Balancer::new(upstreams(weights), settings(name), NOW);
    let snapshot = balancer.snapshot();
    let _held: Vec<_> = snapshot
        .all()
        .iter()
        .zip(held)
        .flat_map(|(member, &count)| (0..count).map(|_| member.state().begin()))
        .collect();
    let source = seeded(1);
    let mut counts = vec![0; weights.len()];
    for _ in 0..1_000 {
        counts[number(&balancer.choose(&PickContext::at(NOW).random(&source)).unwrap())] += 1;
    }
    counts
}

#[test]
fn least_active_is_the_idlest_by_weight_and_best_available_whatever_the_weight() {
    let held = [9, 2, 2, 5, 7, 8];
    let least = next_of("leastActive", &[50, 10, 30, 50, 50, 50], &held);
    assert_eq!(least[1] + least[2], 1_000);
    assert!((200..300).contains(&least[1]), "{least:?}");
    let best = next_of("BestAvailableRule", &[50, 10, 30, 50, 50, 50], &held);
    assert!((450..550).contains(&best[1]), "{best:?}");
}

#[test]
fn least_request_is_the_idler_of_two_and_the_idlest_of_four() {
    let of_six = next_of("leastRequest", &[50; 6], &[0, 1, 2, 3, 4, 5]);
    // The idlest is drawn in one of three pairs, the busiest never wins.
    assert!((280..390).contains(&of_six[0]) && of_six[5] == 0, "{of_six:?}");
    assert_eq!(next_of("leastRequest", &[50; 4], &[1, 0, 2, 3]), [0, 1_000, 0, 0]);
}

/// The shares among upstreams of these response times, in milliseconds.
fn shares_by_times(name: &str, times: &[u64]) -> Vec<usize> {
    let balancer = Balancer::new(upstreams(&vec![50; times.len()]), settings(name), NOW);
    for (member, &time) in balancer.snapshot().all().iter().zip(times) {
        member.begin(NOW).complete(Outcome::Success, ms(time), NOW);
    }
    balancer.refresh(NOW + 60_000);
    let source = seeded(1);
    let mut counts = vec![0; times.len()];
    for _ in 0..10_000 {
        counts[number(&balancer.choose(&PickContext::at(NOW + 60_000).random(&source)).unwrap())] += 1;
    }
    counts
}

#[test]
fn by_response_time_as_ribbon_and_by_speed() {
    let mut times = [10; 10];
    times[3] = 100;
    // (1 - 100/190) / 9 = 5.3 %; by speed 1/91.
    let ribbon = shares_by_times("WeightedResponseTimeRule", &times);
    assert!((460..600).contains(&ribbon[3]), "{ribbon:?}");
    let speed = shares_by_times("weightedResponseTime", &times);
    assert!((70..150).contains(&speed[3]), "{speed:?}");
    // The best only, and the better one of two.
    assert_eq!(shares_by_times("shortestResponse", &times)[3], 0);
    assert_eq!(shares_by_times("peakEwma", &times)[3], 0);
}

#[test]
fn p2c_takes_one_that_was_left_out_for_three_seconds() {
    let balancer = Balancer::new(upstreams(&[50; 5]), settings("p2c"), NOW);
    let snapshot = balancer.snapshot();
    for member in snapshot.all() {
        let time = if member.upstream().address() == "10.0.0.3:80" { 900 } else { 10 };
        member.begin(NOW).complete(Outcome::Success, ms(time), NOW);
    }
    let source = seeded(4);
    let chosen = |now: i64| number(&balancer.choose(&PickContext::at(now).random(&source)).unwrap());
    assert!((0..500).all(|i| chosen(NOW + 1 + i) != 3));
    assert!((0..20).any(|i| chosen(NOW + 3_001 + i) == 3));
}

#[test]
fn zone_avoidance_leaves_out_the_loaded_zone_and_the_dead_one() {
    let balancer = balancer("ZoneAvoidanceRule");
    let snapshot = balancer.snapshot();
    let chosen = |now: i64| {
        balancer.refresh(now);
        let picks = (0..60).map(|_| number(&balancer.choose(&PickContext::at(now)).unwrap()));
        picks.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(chosen(NOW), [0, 1, 2, 3, 4, 5]);
    let load: Vec<_> = (0..9).map(|i| snapshot.all()[i % 3].state().begin()).collect();
    assert_eq!(chosen(NOW + 1_000), [3, 4, 5]);
    drop(load);
    assert_eq!(chosen(NOW + 2_000), [0, 1, 2, 3, 4, 5]);
    for i in 3..6 {
        balancer.set_health(&format!("10.0.0.{i}:80"), Health::Down, NOW + 2_000);
    }
    assert_eq!(chosen(NOW + 2_001), [0, 1, 2]);
}

#[test]
fn availability_filtering_goes_to_somebody_and_round_robin_to_nobody() {
    for (name, somebody) in
        [("AvailabilityFilteringRule", true), ("plainRoundRobin", false), ("RetryRule", false)]
    {
        let balancer = Balancer::new(upstreams(&[50; 3]), settings(name), NOW);
        for i in 0..3 {
            balancer.set_health(&format!("10.0.0.{i}:80"), Health::Down, NOW);
        }
        assert_eq!(balancer.choose(&PickContext::at(NOW)).is_some(), somebody, "{name}");
    }
    let limited = policy::AvailabilityFiltering { limit: Some(2) };
    let balancer = Balancer::new(upstreams(&[50; 3]), Settings::with_policy(limited), NOW);
    let snapshot = balancer.snapshot();
    let _held: Vec<_> = [0, 0, 2, 2].map(|i| snapshot.all()[i].state().begin()).into();
    assert!((0..9).all(|_| number(&balancer.choose(&PickContext::at(NOW)).unwrap()) == 1));
}

#[test]
fn retry_takes_one_whose_ejection_is_about_to_end() {
    for (before_the_end, chosen) in [(501, false), (500, true)] {
        let balancer = Balancer::new(upstreams(&[50]), settings("RetryRule"), NOW);
        let snapshot = balancer.snapshot();
        assert!(snapshot.all()[0].state().move_ejection(0, NOW + before_the_end));
        assert_eq!(balancer.choose(&PickContext::at(NOW)).is_some(), chosen);
    }
}
