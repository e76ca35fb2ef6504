//! The set and its choices; Soul's arithmetic itself is held by the golden vectors.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    thread,
};

use proptest::prelude::*;

use super::{super::*, *};
use crate::wire::soul::DivideUpstream;

// === who may be chosen ===

#[test]
fn strict_never_chooses_what_is_off_weightless_or_down() {
    let set = strict(&[
        off("off"),
        node("zero", 0),
        node("negative", -5),
        node("good", 1),
        node("dead", 50),
        node("", 9),
    ]);
    down(&set, "dead");
    assert_eq!(set.available(), 1);
    for balance in LoadBalance::ALL {
        assert_eq!(counts(&set, balance, 200), BTreeMap::from([("good", 200)]), "{balance}");
    }
}

#[test]
fn strict_chooses_nobody_when_nobody_may_be() {
    let nobody = [
        vec![],
        vec![off("a")],
        vec![node("a", 0)],
        vec![node("a", 0), node("b", 0)],
        vec![node("a", -1), off("b")],
        vec![node("dead", 50)],
        vec![node("dead", 50), node("dead", 1), off("a")],
    ];
    for nodes in nobody {
        let set = strict(&nodes);
        down(&set, "dead");
        assert_eq!(set.available(), 0);
        for balance in LoadBalance::ALL {
            assert_eq!(url(set.pick(balance, &PickContext::at(NOW))), None, "{balance} {nodes:?}");
        }
    }
}

#[test]
fn soul_chooses_the_only_one_whatever_it_is_and_the_weightless_too() {
    for lone in [off("a"), node("a", 0), node("a", -1)] {
        let set = build(&[lone], None, Choice::Soul);
        for balance in LoadBalance::ALL {
            assert_eq!(url(set.pick(balance, &PickContext::at(NOW))), Some("a"), "{balance}");
        }
    }
    let set = build(&[off("a"), node("b", 0)], None, Choice::Soul);
    assert_eq!(counts(&set, LoadBalance::RoundRobin, 10), BTreeMap::from([("a", 10)]));
    assert_eq!(counts(&set, LoadBalance::Random, 1000).len(), 2);
    assert_eq!(counts(&set, LoadBalance::Hash, 1000).len(), 2);
}

#[test]
fn soul_leaves_out_what_the_probe_found_down_or_was_tried() {
    let set = build(&[node("a", 50), node("b", 50)], None, Choice::Soul);
    down(&set, "a");
    for balance in LoadBalance::ALL {
        assert_eq!(counts(&set, balance, 20), BTreeMap::from([("b", 20)]), "{balance}");
    }
    let mut tried = Tried::new();
    tried.insert(set.members()[1].state());
    for balance in LoadBalance::ALL {
        assert_eq!(url(set.pick(balance, &PickContext::at(NOW).tried(&tried))), None, "{balance}");
    }
}

#[test]
fn every_retry_reaches_another_one_until_all_were_tried() {
    let nodes: Vec<_> = (0..12).map(|i| node(&format!("10.0.0.{i}:80"), 1 + i)).collect();
    let set = strict(&nodes);
    for balance in LoadBalance::ALL {
        let mut tried = Tried::new();
        let mut seen = BTreeSet::new();
        while let Some(member) =
            set.pick(balance, &PickContext::at(NOW).key(Key::Text("10.1.1.1")).tried(&tried))
        {
            assert!(
                seen.insert(member.upstream().url()),
                "{balance} chose {} twice",
                member.upstream().url()
            );
            tried.insert(member.state());
        }
        assert_eq!(seen.len(), 12, "{balance}");
    }
}

#[test]
fn each_name_is_told_from_the_others() {
    let nodes: Vec<_> = (0..4).map(|i| node(&format!("10.0.0.{i}:80"), 50)).collect();
    let set = strict(&nodes);
    let picks = |balance| -> Vec<&str> {
        let context = PickContext::at(NOW).key(Key::Text("10.1.1.1"));
        (0..1000).map(|_| url(set.pick(balance, &context)).unwrap()).collect()
    };
    assert_eq!(picks(LoadBalance::Hash).into_iter().collect::<BTreeSet<_>>().len(), 1);
    assert!(picks(LoadBalance::RoundRobin).chunks(4).all(|round| BTreeSet::from_iter(round).len() == 4));
    let random = picks(LoadBalance::Random);
    assert!(random.chunks(4).any(|round| BTreeSet::from_iter(round).len() < 4));
    assert_eq!(random.into_iter().collect::<BTreeSet<_>>().len(), 4);
}

// === shares ===

#[test]
fn random_keeps_the_weights_within_four_deviations() {
    const PICKS: usize = 100_000;
    let set = strict(&[node("a", 50), node("b", 20), node("c", 30)]);
    let counts = counts(&set, LoadBalance::Random, PICKS);
    for (url, share) in [("a", 0.5), ("b", 0.2), ("c", 0.3)] {
        let (expected, got) = (share * PICKS as f64, counts[url] as f64);
        let deviation = (expected * (1.0 - share)).sqrt();
        assert!((got - expected).abs() < 4.0 * deviation, "{url}: {got} of {expected}");
    }
}

#[test]
fn round_robin_keeps_the_weights_exactly_over_a_cycle() {
    for (weights, cycle) in [(vec![50, 20, 30], 10), (vec![1, 1], 2), (vec![2, 1, 1], 4), (vec![100, 1], 101)]
    {
        let nodes: Vec<_> = weights.iter().enumerate().map(|(i, &w)| node(&format!("n{i}"), w)).collect();
        let set = strict(&nodes);
        let scale = weights.iter().sum::<i32>() / cycle;
        for _ in 0..5 {
            let counts = counts(&set, LoadBalance::RoundRobin, cycle as usize);
            let expected: BTreeMap<_, _> = nodes
                .iter()
                .map(|n| (n.upstream_url.as_deref().unwrap(), (n.weight / scale) as usize))
                .collect();
            assert_eq!(counts, expected, "{weights:?}");
        }
    }
}

#[test]
fn round_robin_keeps_the_weights_exactly_under_sixteen_threads() {
    let set = strict(&[node("a", 50), node("b", 20), node("c", 30)]);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    drop(set.pick(LoadBalance::RoundRobin, &PickContext::at(NOW)).unwrap().state().begin());
                }
            });
        }
    });
    let picks: Vec<_> = set.members().iter().map(|m| m.state().picks()).collect();
    assert_eq!(picks, [8000, 3200, 4800]);
    assert!(set.members().iter().all(|m| m.state().in_flight() == 0));
}

#[test]
fn newcomers_in_warm_up_gain_steadily_and_never_take_more_than_their_final_share() {
    const WARMUP_MS: i64 = 10_000;
    for step_ms in [1, 40] {
        let fresh = |url| DivideUpstream { timestamp: NOW, warmup: 10_000, ..node(url, 50) };
        let mut nodes: Vec<_> = ["a", "b", "c"].map(|url| node(url, 50)).into();
        nodes.extend(["x", "y", "z"].map(fresh));
        let set = strict(&nodes);
        let window = 2000 / step_ms;
        let mut before = HashMap::from([("x", 0), ("y", 0), ("z", 0)]);
        let mut now = NOW;
        while now < NOW + WARMUP_MS {
            let mut share = HashMap::from([("x", 0), ("y", 0), ("z", 0)]);
            for _ in 0..window {
                now += step_ms;
                let picked = url(set.pick(LoadBalance::RoundRobin, &PickContext::at(now))).unwrap();
                share.entry(picked).and_modify(|n| *n += 1);
            }
            for (newcomer, &picks) in &share {
                assert!(picks <= window / 6 + 1, "{newcomer} had {picks} of {window}, step {step_ms} ms");
                assert!(picks + 1 >= before[newcomer], "{newcomer} fell to {picks}, step {step_ms} ms");
            }
            before = share;
        }
        assert!(before.values().all(|&picks| picks > window / 8), "{before:?}");
    }
}

#[test]
fn duplicates_share_one_state_and_are_tried_together() {
    let set = strict(&[node("a", 1), node("a", 3), node("b", 2)]);
    assert!(Arc::ptr_eq(set.members()[0].state(), set.members()[1].state()));
    assert_eq!(counts(&set, LoadBalance::RoundRobin, 6)["b"], 2);
    let mut tried = Tried::new();
    tried.insert(set.members()[0].state());
    for balance in LoadBalance::ALL {
        assert_eq!(url(set.pick(balance, &PickContext::at(NOW).tried(&tried))), Some("b"));
    }
}

#[test]
fn a_url_listed_twice_and_once_off_keeps_its_share() {
    let set = strict(&[node("a", 50), node("b", 50), off("a")]);
    for balance in LoadBalance::ALL {
        assert!(counts(&set, balance, 1000)["a"] > 250, "{balance}");
    }
}

#[test]
fn one_url_under_two_protocols_is_two_upstreams() {
    let tls = DivideUpstream { protocol: Some("https://".to_owned()), ..node("a", 1) };
    // On the ring both have the same points, which are those of the last one.
    let set = strict(&[node("a", 1), node("a", 2), tls]);
    let [plain, _, tls] = set.members() else { panic!("three members") };
    assert!(!Arc::ptr_eq(plain.state(), tls.state()));
    tls.state().set_health(Health::Down);
    for balance in LoadBalance::ALL {
        let picked = set.pick(balance, &PickContext::at(NOW)).unwrap();
        assert_eq!(picked.upstream().base_url(), "http://a", "{balance}");
    }
}

#[test]
fn huge_weights_wrap_without_a_panic() {
    let set = strict(&[node("a", i32::MAX), node("b", i32::MAX), node("c", 1)]);
    for balance in LoadBalance::ALL {
        assert_eq!(counts(&set, balance, 1000).values().sum::<usize>(), 1000);
    }
}

// === refresh ===

#[test]
fn an_equal_list_gives_the_same_set() {
    let nodes = [node("a", 50), node("b", 20)];
    let set = strict(&nodes);
    assert!(Arc::ptr_eq(&set, &build(&nodes, Some(&set), Choice::Strict)));
    assert!(!Arc::ptr_eq(&set, &build(&nodes, Some(&set), Choice::Soul)));
    assert!(!Arc::ptr_eq(&set, &build(&nodes[..1], Some(&set), Choice::Strict)));
    assert!(!Arc::ptr_eq(&set, &build(&[node("a", 50), node("b", 21)], Some(&set), Choice::Strict)));
}

#[test]
fn health_and_counters_survive_a_refresh_and_a_new_order() {
    let first = strict(&[node("a", 50), node("b", 50)]);
    down(&first, "a");
    let request = first.members()[1].state().begin();
    let second = build(&[node("c", 50), node("b", 70), node("a", 50)], Some(&first), Choice::Strict);
    let [c, b, a] = second.members() else { panic!("three members") };
    assert_eq!([c, b, a].map(|m| m.state().health()), [Health::Unknown, Health::Unknown, Health::Down]);
    assert_eq!((b.state().in_flight(), b.state().picks(), b.upstream().weight()), (1, 1, 70));
    drop(request);
    assert_eq!(b.state().in_flight(), 0);
    // What left the list starts anew when it comes back.
    let third = build(&[node("b", 50)], Some(&second), Choice::Strict);
    let fourth = build(&[node("a", 50), node("b", 50)], Some(&third), Choice::Strict);
    assert_eq!(fourth.members()[0].state().health(), Health::Unknown);
}

#[test]
fn round_robin_goes_on_after_a_refresh() {
    let nodes = [node("a", 50), node("b", 20), node("c", 30)];
    let uninterrupted = strict(&nodes);
    let mut set = strict(&nodes);
    for i in 0..30 {
        // An added field that plays no part now makes the list differ.
        let changed: Vec<_> = nodes.iter().map(|n| DivideUpstream { warmup: i, ..n.clone() }).collect();
        set = build(&changed, Some(&set), Choice::Strict);
        let context = PickContext::at(NOW);
        let expected = url(uninterrupted.pick(LoadBalance::RoundRobin, &context));
        assert_eq!(url(set.pick(LoadBalance::RoundRobin, &context)), expected, "pick {i}");
    }
}

#[test]
fn a_refreshed_set_hashes_like_one_built_from_nothing() {
    let lists = [
        vec![node("a", 50), node("b", 50)],
        vec![node("a", 50), node("b", 50), node("c", 50)],
        vec![node("c", 50), node("a", 50)],
        vec![node("c", 50), node("a", 50), off("b")],
        vec![node("c", 50), node("a", 50), node("b", 1)],
    ];
    let mut set = None;
    for nodes in lists {
        let refreshed = build(&nodes, set.as_ref(), Choice::Strict);
        assert_eq!(
            counts(&refreshed, LoadBalance::Hash, 500),
            counts(&strict(&nodes), LoadBalance::Hash, 500)
        );
        set = Some(refreshed);
    }
}

#[test]
fn a_node_that_returns_gets_its_share_again() {
    let set = strict(&[node("a", 50), node("b", 50), node("c", 50)]);
    down(&set, "a");
    assert_eq!(counts(&set, LoadBalance::RoundRobin, 100), BTreeMap::from([("b", 50), ("c", 50)]));
    set.members()[0].state().set_health(Health::Up);
    assert!(counts(&set, LoadBalance::RoundRobin, 99).values().all(|&picks| (32..=34).contains(&picks)));
}

// === ejection, panic, ways ===

fn every_way() -> Vec<Way> {
    Way::NAMES.map(|name| name.parse().unwrap()).into()
}

/// One refused connection ejects for three seconds, as in the gateway.
fn suspicious(weights: &[i32]) -> Arc<UpstreamSet> {
    let outliers = OutlierDetector {
        consecutive_failures: 0,
        consecutive_refusals: 1,
        base: ms(3_000),
        longest: ms(3_000),
        jitter: 0.0,
        max_ejected: 1.0,
        ..OutlierDetector::default()
    };
    let settings = SetSettings { ways: every_way(), outliers: Some(outliers), ..SetSettings::default() };
    UpstreamSet::build_with(upstreams(weights), None, settings, NOW)
}

fn refuse(set: &UpstreamSet, at: usize, now_ms: i64) -> Option<Verdict> {
    set.members()[at].begin(now_ms).complete(Outcome::Refused, ms(1), now_ms)
}

/// Who serves some requests by a way, which all succeed.
fn served(set: &UpstreamSet, way: Way, now_ms: i64, requests: usize) -> BTreeSet<usize> {
    let source = seeded(3);
    let serve = |i: usize| {
        let key = i.to_string();
        let context = PickContext::at(now_ms).key(Key::Text(&key)).random(&source);
        let pick = set.choose(way, &context).unwrap();
        let number = number(&pick);
        pick.complete(Outcome::Success, ms(5), now_ms);
        number
    };
    (0..requests).map(serve).collect()
}

#[test]
fn by_every_way_a_refused_one_is_passed_over_and_comes_back_by_one_request() {
    for way in every_way() {
        let set = suspicious(&[50; 4]);
        assert_eq!(refuse(&set, 2, NOW), Some(Verdict::Ejected { until_ms: NOW + 3_000 }), "{way}");
        for refreshed in [false, true] {
            if refreshed {
                set.refresh(NOW);
            }
            assert!(!served(&set, way, NOW + 2_999, 200).contains(&2), "{way} {refreshed}");
        }
        // The key of the trial is one of its own, where keys decide.
        let at = NOW + 3_000;
        set.refresh(at);
        let keys: Vec<_> = (0..400).map(|i| i.to_string()).collect();
        let held: Vec<_> = keys
            .iter()
            .map(|key| set.choose(way, &PickContext::at(at).key(Key::Text(key))).unwrap())
            .collect();
        let on_trial: Vec<_> = held.iter().filter(|pick| number(pick) == 2).collect();
        assert!(on_trial.len() == 1 && on_trial[0].is_probe(), "{way}: {}", on_trial.len());
        let trial = held.into_iter().find(|pick| number(pick) == 2).unwrap();
        assert_eq!(trial.complete(Outcome::Success, ms(5), at), Some(Verdict::Restored), "{way}");
        set.refresh(at);
        let back = served(&set, way, at + 10, 400).contains(&2);
        // The quickest of all is somebody else, where only that counts.
        assert!(back || way.as_str() == "shortestResponse", "{way}");
    }
}

#[test]
fn by_every_way_the_last_one_is_asked_although_it_is_ejected_and_then_trusted() {
    for way in every_way() {
        let set = suspicious(&[50; 2]);
        assert!(refuse(&set, 0, NOW).is_some());
        assert_eq!(refuse(&set, 1, NOW), None, "{way}: never the last one");
        let mut tried = Tried::new();
        tried.insert(set.members()[1].state());
        let context = PickContext::at(NOW + 1).key(Key::Text("k")).tried(&tried);
        let pick = set.choose(way, &context).unwrap();
        assert_eq!(number(&pick), 0, "{way}");
        assert_eq!(pick.complete(Outcome::Success, ms(1), NOW + 1), Some(Verdict::Restored), "{way}");
        tried.insert(set.members()[0].state());
        assert!(set.choose(way, &PickContext::at(NOW + 1).tried(&tried)).is_none(), "{way}");
        // What a probe found down is not asked.
        set.members()[0].probed(Health::Down, NOW + 2);
        set.members()[1].probed(Health::Down, NOW + 2);
        let nobody = set.choose(way, &PickContext::at(NOW + 2).key(Key::Text("k")));
        // Ribbon's go to somebody, healthy or not.
        let somebody = ["AvailabilityFilteringRule", "ZoneAvoidanceRule"].contains(&way.as_str());
        assert_eq!(nobody.is_some(), somebody, "{way}");
    }
}

#[test]
fn in_panic_every_way_chooses_of_all_that_the_configuration_allows() {
    for way in every_way() {
        let settings = SetSettings { ways: vec![way], panic_threshold: 0.5, ..SetSettings::default() };
        let set = UpstreamSet::build_with(upstreams(&[50, 50, 50, 50, 0]), None, settings, NOW);
        for i in 0..2 {
            set.members()[i].probed(Health::Down, NOW);
        }
        set.refresh(NOW);
        assert!(served(&set, way, NOW, 300).is_subset(&[2, 3].into()), "{way}: half are well");
        set.members()[2].probed(Health::Down, NOW);
        set.refresh(NOW);
        let chosen = served(&set, way, NOW, 600);
        assert!(chosen.contains(&0) && !chosen.contains(&4), "{way}: {chosen:?}");
    }
}

#[test]
fn a_way_that_the_set_was_not_built_for_chooses_nobody_and_states_outlive_new_ways() {
    let ewma: Way = "peakEwma".parse().unwrap();
    let without = UpstreamSet::build(upstreams(&[50; 3]), None, Choice::Strict);
    assert!(without.choose(ewma, &PickContext::at(NOW)).is_none());
    let held = without.choose(Way::default(), &PickContext::at(NOW)).unwrap();
    let settings = SetSettings { ways: vec![ewma], ..SetSettings::default() };
    let with = UpstreamSet::build_with(upstreams(&[50; 3]), Some(&without), settings.clone(), NOW);
    assert_eq!(with.members()[number(&held)].state().in_flight(), 1);
    let same = UpstreamSet::build_with(upstreams(&[50; 3]), Some(&with), settings, NOW);
    assert!(Arc::ptr_eq(&with, &same));
    drop(held);
    assert!(with.choose(ewma, &PickContext::at(NOW)).is_some());
}

// === properties ===

fn urls(most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::btree_set("10\\.[0-9]{1,2}\\.0\\.[1-9]:80", 2..most)
        .prop_map(|urls| urls.into_iter().collect())
        .prop_shuffle()
}

#[derive(Clone, Debug)]
struct Case {
    nodes: Vec<DivideUpstream>,
    down: Vec<bool>,
    tried: Vec<bool>,
    picks: Vec<(i64, String, u32)>,
}

fn any_case() -> impl Strategy<Value = Case> {
    let weight = prop_oneof![Just(0), -5..100_i32, Just(i32::MAX), Just(i32::MIN)];
    let time = prop_oneof![Just(0), NOW - 700_000..NOW + 700_000];
    let node = ("[a-h]", weight, any::<bool>(), time.clone(), -5..700_000_i32).prop_map(
        |(url, weight, status, timestamp, warmup)| DivideUpstream {
            status,
            timestamp,
            warmup,
            ..node(&url, weight)
        },
    );
    let flags = || prop::collection::vec(prop::bool::weighted(0.3), 8);
    let picks = prop::collection::vec((time, "[a-z]{0,3}", any::<u32>()), 1..20);
    (prop::collection::vec(node, 0..8), flags(), flags(), picks)
        .prop_map(|(nodes, down, tried, picks)| Case { nodes, down, tried, picks })
}

proptest! {
    #[test]
    fn property_2_removing_a_node_moves_only_its_keys(urls in urls(12), keys in prop::collection::vec(any::<u32>(), 50)) {
        let nodes: Vec<_> = urls.iter().map(|url| node(url, 50)).collect();
        let (all, less) = (strict(&nodes), strict(&nodes[1..]));
        let shunned = strict(&nodes);
        down(&shunned, &urls[0]);
        for key in keys {
            let context = PickContext::at(NOW).key(Key::SoulHash(key));
            let before = url(all.pick(LoadBalance::Hash, &context));
            let after = url(less.pick(LoadBalance::Hash, &context));
            prop_assert!(before == after || before == Some(&urls[0]));
            // Being down is the same as not being there.
            prop_assert_eq!(url(shunned.pick(LoadBalance::Hash, &context)), after);
        }
    }

    #[test]
    fn property_3_the_order_of_the_list_does_not_change_owners(urls in urls(12), keys in prop::collection::vec(any::<u32>(), 50)) {
        let mut nodes: Vec<_> = urls.iter().map(|url| node(url, 50)).collect();
        let shuffled = strict(&nodes);
        nodes.sort_by(|a, b| a.upstream_url.cmp(&b.upstream_url));
        let sorted = strict(&nodes);
        for key in keys {
            let context = PickContext::at(NOW).key(Key::SoulHash(key));
            prop_assert_eq!(url(shuffled.pick(LoadBalance::Hash, &context)), url(sorted.pick(LoadBalance::Hash, &context)));
        }
    }

    #[test]
    fn property_4_a_choice_is_made_exactly_when_one_may_be_and_never_of_another(case in any_case()) {
        for choice in [Choice::Strict, Choice::Soul] {
            let set = build(&case.nodes, None, choice);
            let mut tried = Tried::new();
            for (i, member) in set.members().iter().enumerate() {
                if case.down[i] {
                    member.state().set_health(Health::Down);
                }
                if case.tried[i] {
                    tried.insert(member.state());
                }
            }
            let may = |m: &Member| {
                let configured = choice == Choice::Soul || (m.upstream().status() && m.upstream().weight() > 0);
                configured && m.state().health() != Health::Down && !tried.contains(m.state())
            };
            let anybody = set.members().iter().any(|m| may(m));
            for (now, key, number) in &case.picks {
                let source = |bound| number % bound;
                let context = PickContext::at(*now).key(Key::Text(key)).tried(&tried).random(&source);
                for balance in LoadBalance::ALL {
                    let picked = set.pick(balance, &context);
                    prop_assert_eq!(picked.is_some(), anybody);
                    prop_assert!(picked.is_none_or(|m| may(m)), "{:?} {}", choice, balance);
                }
            }
        }
    }

    #[test]
    fn both_choices_are_one_where_nobody_is_left_out_nor_warms_up(mut case in any_case()) {
        for node in &mut case.nodes {
            node.status = true;
            node.timestamp = 0;
            node.weight = node.weight.saturating_abs().max(1);
        }
        let (strict, soul) = (strict(&case.nodes), build(&case.nodes, None, Choice::Soul));
        for (now, key, number) in &case.picks {
            let source = |bound| number % bound;
            let context = PickContext::at(*now).key(Key::Text(key)).random(&source);
            for balance in LoadBalance::ALL {
                prop_assert_eq!(url(strict.pick(balance, &context)), url(soul.pick(balance, &context)), "{}", balance);
            }
        }
    }

    #[test]
    fn a_weight_in_warm_up_stays_between_one_and_the_configured(
        now in any::<i64>(), weight in 1..i32::MAX, timestamp in any::<i64>(), warmup in any::<i32>(),
    ) {
        let effective = soul::effective_weight(now, true, weight, timestamp, warmup);
        prop_assert!((1..=weight).contains(&effective));
    }
}
