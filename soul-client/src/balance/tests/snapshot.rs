//! One snapshot after the other.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use proptest::prelude::*;

use super::{super::*, *};

#[test]
fn an_equal_list_is_the_same_snapshot_and_changes_no_state() {
    for name in policy::KNOWN {
        let balancer = Balancer::new(upstreams(&[50, 20, 30]), settings(name), NOW);
        let _ = picked(&balancer, 3, 50, 1);
        balancer.set_health("10.0.0.1:80", Health::Down, NOW);
        let held = balancer.choose(&PickContext::at(NOW)).unwrap();
        let before = balancer.snapshot();
        let described = format!("{:?}", before.all());
        let after = balancer.update(upstreams(&[50, 20, 30]), NOW);
        assert!(Arc::ptr_eq(&before, &after), "{name}");
        assert_eq!(format!("{:?}", after.all()), described);
        drop(held);
    }
}

#[test]
fn states_outlive_new_lists_and_new_policies() {
    let balancer = Balancer::new(upstreams(&[50; 3]), settings("peakEwma"), NOW);
    let first = balancer.snapshot();
    let state = Arc::clone(first.all()[1].state());
    let held = first.all()[1].begin(NOW);
    first.all()[1].begin(NOW).complete(Outcome::Success, ms(30), NOW);
    for _ in 0..5 {
        first.all()[1].begin(NOW).complete(Outcome::TimedOut, ms(30), NOW);
    }
    balancer.update(upstreams(&[10, 20, 30, 40]), NOW);
    balancer.set_settings(settings("maglev"), NOW);
    let now = balancer.snapshot();
    assert!(Arc::ptr_eq(now.all()[1].state(), &state));
    assert_eq!((state.in_flight(), state.picks(), state.completed(), state.failed()), (1, 7, 6, 5));
    assert!(state.ejected_until_ms().is_some() && state.mean_response_time() == Some(ms(30)));
    assert_eq!(now.all()[1].upstream().weight(), 20);
    assert_eq!(now.generation(), 3);
    drop(held);
    assert_eq!(state.in_flight(), 0);
}

#[test]
fn a_request_given_up_is_counted_out_and_records_nothing() {
    for name in policy::KNOWN {
        let balancer = Balancer::new(upstreams(&[50; 3]), settings(name), NOW);
        drop(balancer.choose(&PickContext::at(NOW)).unwrap());
        // As a future that is dropped in the middle.
        let pick = balancer.choose(&PickContext::at(NOW)).unwrap();
        let mut future = Box::pin(async move {
            std::future::pending::<()>().await;
            pick.complete(Outcome::TimedOut, ms(1), NOW);
        });
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert_eq!(balancer.snapshot().all().iter().map(|m| m.state().in_flight()).sum::<u32>(), 1);
        drop(future);
        for member in balancer.snapshot().all() {
            let state = member.state();
            assert_eq!(
                (state.in_flight(), state.completed(), state.peak_response_time()),
                (0, 0, None),
                "{name}"
            );
        }
        assert_eq!(balancer.snapshot().members().group().in_flight_at(NOW), 0);
    }
}

#[test]
fn every_retry_reaches_another_one_and_then_any_or_nobody() {
    for name in policy::KNOWN {
        for tried_again in [true, false] {
            let balancer = Balancer::new(
                upstreams(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
                Settings { tried_again, ..settings(name) },
                NOW,
            );
            let mut tried = Tried::new();
            let mut seen = BTreeSet::new();
            for _ in 0..10 {
                let pick = balancer.choose(&PickContext::at(NOW).key(Key::Text("k")).tried(&tried)).unwrap();
                assert!(seen.insert(number(&pick)), "{name} chose {} twice", number(&pick));
                tried.insert(pick.state());
            }
            let more = balancer.choose(&PickContext::at(NOW).key(Key::Text("k")).tried(&tried));
            assert_eq!(more.is_some(), tried_again, "{name}");
        }
    }
}

#[test]
fn nobody_is_chosen_of_nobody() {
    for name in policy::KNOWN {
        for list in [vec![], upstreams(&[0, -5]), vec![Upstream::new("a:1").with_status(false)]] {
            let balancer = Balancer::new(list, settings(name), NOW);
            assert!(balancer.choose(&PickContext::at(NOW).key(Key::Text("k"))).is_none(), "{name}");
        }
    }
}

#[test]
fn the_last_update_is_what_remains() {
    const THREADS: usize = 4;
    let balancer = Balancer::new(upstreams(&[50]), settings("ringHash"), NOW);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                balancer.refresh(NOW);
                if let Some(pick) = balancer.choose(&PickContext::at(NOW).key(Key::Text("k"))) {
                    pick.complete(Outcome::BadGateway, ms(1), NOW);
                }
            }
        });
        let flips = scope.spawn(|| {
            for i in 0..300 {
                let health = if i % 2 == 0 { Health::Down } else { Health::Up };
                balancer.set_health("10.0.0.0:80", health, NOW);
            }
        });
        let writers: Vec<_> = (0..THREADS)
            .map(|t| {
                let balancer = &balancer;
                scope.spawn(move || {
                    for i in 1..60 {
                        balancer.update(upstreams(&vec![50; 1 + (i * (t + 1)) % 9]), NOW);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        flips.join().unwrap();
        let last = balancer.update(upstreams(&[50; 7]), NOW);
        assert_eq!(last.all().len(), 7);
        done.store(true, Relaxed);
    });
    let health = balancer.snapshot().all()[0].state().health();
    balancer.refresh(NOW);
    let snapshot = balancer.snapshot();
    assert_eq!((snapshot.all().len(), health), (7, Health::Up));
    assert!(!snapshot.is_due(NOW - 1) || snapshot.members().group().ejected() > 0);
}

#[test]
fn choices_go_on_while_lists_change() {
    let balancer = Balancer::new(upstreams(&[50; 5]), settings("peakEwma"), NOW);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let choosers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        let pick = balancer.choose(&PickContext::at(NOW)).unwrap();
                        pick.complete(Outcome::Success, ms(1), NOW);
                    }
                })
            })
            .collect();
        for i in 0..300 {
            balancer.update(upstreams(&vec![50; 3 + i % 5]), NOW);
        }
        done.store(true, Relaxed);
        for chooser in choosers {
            chooser.join().unwrap();
        }
    });
    assert!(balancer.snapshot().all().iter().all(|m| m.state().in_flight() == 0));
}

#[test]
fn numbers_that_requests_change_are_taken_up_when_they_are_due() {
    for (name, every) in
        [("weightedResponseTime", 1_000), ("ZoneAvoidanceRule", 1_000), ("WeightedResponseTimeRule", 30_000)]
    {
        let balancer = Balancer::new(upstreams(&[50; 3]), settings(name), NOW);
        assert_eq!(balancer.refresh(NOW + every - 1).generation(), 1, "{name}");
        assert_eq!(balancer.refresh(NOW + every).generation(), 2, "{name}");
    }
    let balancer = Balancer::new(upstreams(&[50; 3]), settings("leastRequest"), NOW);
    assert_eq!(balancer.refresh(i64::MAX - 1).generation(), 1);
}

#[derive(Clone, Debug)]
struct Case {
    weights: Vec<i32>,
    on: Vec<bool>,
    down: Vec<bool>,
    ejected: Vec<bool>,
    tried: Vec<bool>,
    refreshed: bool,
    panic_threshold: f64,
}

fn any_case() -> impl Strategy<Value = Case> {
    let weight = prop_oneof![Just(0), Just(i32::MIN), Just(i32::MAX), -3..60_i32];
    let flags = |p| prop::collection::vec(prop::bool::weighted(p), 9);
    (1_usize..9)
        .prop_flat_map(move |n| {
            (
                prop::collection::vec(weight.clone(), n),
                flags(0.8),
                flags(0.3),
                flags(0.2),
                flags(0.2),
                any::<bool>(),
                prop_oneof![Just(0.0), Just(0.5)],
            )
        })
        .prop_map(|(weights, on, down, ejected, tried, refreshed, panic_threshold)| Case {
            weights,
            on,
            down,
            ejected,
            tried,
            refreshed,
            panic_threshold,
        })
}

/// Those that go to somebody healthy or not, as Ribbon's do.
const TO_SOMEBODY: [&str; 3] = ["AvailabilityFilteringRule", "ZoneAvoidanceRule", "RetryRule"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn property_4_one_is_chosen_exactly_when_one_may_be_and_never_another(case in any_case(), seed in any::<u64>()) {
        let list: Vec<_> = upstreams(&case.weights)
            .into_iter().zip(&case.on).map(|(u, &on)| u.with_status(on)).collect();
        for name in policy::KNOWN {
            let settings = Settings { tried_again: false, panic_threshold: case.panic_threshold, ..settings(name) };
            let balancer = Balancer::new(list.clone(), settings, NOW);
            let mut tried = Tried::new();
            for (i, member) in balancer.snapshot().all().iter().enumerate() {
                if case.down[i] {
                    member.state().set_health(Health::Down);
                }
                if case.ejected[i] {
                    prop_assert!(member.state().move_ejection(0, NOW + 60_000));
                    member.state().group().changed();
                }
                if case.tried[i] {
                    tried.insert(member.state());
                }
            }
            if case.refreshed {
                balancer.refresh(NOW);
            }
            let snapshot = balancer.snapshot();
            let open = |m: &Member| m.upstream().takes_traffic() && !tried.contains(m.state());
            let well = |m: &Member| m.state().health() != Health::Down && m.state().ejected_until_ms().is_none();
            let anybody_well = snapshot.all().iter().any(|m| open(m) && well(m));
            let anybody = snapshot.all().iter().any(|m| open(m));
            let source = seeded(seed);
            for key in 0..6 {
                let context = PickContext::at(NOW).key(Key::Hash(seed.wrapping_mul(key))).tried(&tried).random(&source);
                let pick = balancer.choose(&context);
                prop_assert!(pick.as_ref().is_none_or(|p| open(p.member())), "{}", name);
                let panic = case.panic_threshold > 0.0;
                if !snapshot.is_panic() && anybody_well {
                    prop_assert!(pick.as_ref().is_some_and(|p| well(p.member())), "{}", name);
                } else if panic {
                    prop_assert_eq!(pick.is_some(), anybody, "{}", name);
                } else if !TO_SOMEBODY.contains(&name) {
                    prop_assert!(pick.is_none(), "{}", name);
                }
            }
        }
    }
}

/// What may happen to the upstreams of a service.
#[derive(Clone, Debug)]
enum Event {
    /// The list is this many of ten.
    List(usize),
    Health(usize, Health),
    Refused(usize),
    Policy(&'static str),
    Refresh,
}

fn any_event() -> impl Strategy<Value = Event> {
    let health = prop_oneof![Just(Health::Up), Just(Health::Down), Just(Health::Unknown)];
    prop_oneof![
        2 => (0_usize..10).prop_map(Event::List),
        4 => (0_usize..10, health).prop_map(|(i, health)| Event::Health(i, health)),
        2 => (0_usize..10).prop_map(Event::Refused),
        1 => prop::sample::select(&policy::KNOWN[..]).prop_map(Event::Policy),
        2 => Just(Event::Refresh),
    ]
}

fn apply(balancer: &Balancer, event: &Event, now: i64) {
    match event {
        Event::List(count) => drop(balancer.update(upstreams(&vec![50; *count]), now)),
        Event::Health(i, health) => drop(balancer.set_health(&format!("10.0.0.{i}:80"), *health, now)),
        Event::Refused(i) => {
            if let Some(member) = balancer.snapshot().all().get(*i) {
                member.begin(now).complete(Outcome::Refused, ms(1), now);
            }
        }
        Event::Policy(name) => drop(balancer.set_settings(settings(name), now)),
        Event::Refresh => drop(balancer.refresh(now)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn property_5_a_refresh_with_the_same_list_changes_no_state(
        name in prop::sample::select(&policy::KNOWN[..]),
        events in prop::collection::vec(any_event(), 0..40),
        count in 1_usize..8,
    ) {
        let balancer = Balancer::new(upstreams(&vec![50; count]), settings(name), NOW);
        for (i, event) in (0..).zip(&events) {
            apply(&balancer, event, NOW + i);
        }
        let now = NOW + 40;
        let held: Vec<_> = (0..3).map(|_| balancer.choose(&PickContext::at(now))).collect();
        let list: Vec<_> = balancer.snapshot().all().iter().map(|m| m.upstream().clone()).collect();
        let states: Vec<_> = balancer.snapshot().all().iter().map(|m| Arc::clone(m.state())).collect();
        let before = format!("{states:?}");
        let after = balancer.update(list, now);
        prop_assert_eq!(format!("{:?}", states), before);
        prop_assert!(after.all().iter().zip(&states).all(|(m, state)| Arc::ptr_eq(m.state(), state)));
        drop(held);
    }

    #[test]
    fn property_6_after_any_interleaving_the_last_snapshot_reflects_the_last_event(
        events in prop::collection::vec(any_event(), 1..60),
        threads in 1_usize..4,
        last in 1_usize..10,
    ) {
        let balancer = Balancer::new(upstreams(&[50; 5]), settings("leastRequest"), NOW);
        thread::scope(|scope| {
            for mine in events.chunks(events.len().div_ceil(threads)) {
                scope.spawn(|| mine.iter().for_each(|event| apply(&balancer, event, NOW)));
            }
        });
        // The last of each kind, and what was true of the states before it.
        balancer.update(upstreams(&vec![50; last]), NOW);
        let down = last / 2;
        balancer.set_health(&format!("10.0.0.{down}:80"), Health::Down, NOW);
        let snapshot = balancer.refresh(NOW);
        prop_assert_eq!(snapshot.all().len(), last);
        let well = |m: &Member| m.state().health() != Health::Down && m.state().ejected_until_ms().is_none();
        let expected: Vec<_> = snapshot.all().iter().filter(|m| well(m)).map(|m| m.upstream().url()).collect();
        let up: Vec<_> = snapshot.up().map(|m| m.upstream().url()).collect();
        prop_assert_eq!(up, expected);
        prop_assert!(!well(&snapshot.all()[down]));
        // Every thread sees it, whatever it saw before.
        prop_assert!(balancer.with(|seen| Arc::ptr_eq(seen, &snapshot)));
        thread::scope(|scope| {
            let other = scope.spawn(|| balancer.with(Arc::clone));
            prop_assert!(Arc::ptr_eq(&other.join().unwrap(), &snapshot));
            Ok(())
        })?;
    }
}

#[test]
fn a_thread_that_saw_many_services_sees_the_newest_of_each() {
    let balancers: Vec<_> =
        (1..100).map(|count| Balancer::new(upstreams(&vec![50; count]), settings("random"), NOW)).collect();
    for round in 1..4 {
        for (i, balancer) in balancers.iter().enumerate() {
            assert_eq!(balancer.with(|snapshot| snapshot.all().len()), i + round);
            balancer.update(upstreams(&vec![50; i + round + 1]), NOW);
            // Looking at another one meanwhile disturbs neither.
            let other = &balancers[(i + 32) % balancers.len()];
            let both = balancer.with(|mine| (mine.all().len(), other.with(|other| other.all().len())));
            assert_eq!(both.0, i + round + 1);
            assert_eq!(both.1, other.snapshot().all().len());
        }
    }
}
