//! Several parts: threads that choose write nothing that another one writes, and yet it is one service that they choose from.

use std::{
    collections::BTreeSet,
    sync::{
        Barrier,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    thread,
};

use proptest::prelude::*;

use super::{
    super::{parts, *},
    *,
};

/// Runs the same on so many threads, each with parts of its own, and gives what they give.
fn on_each<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let entered = |index| {
            move || {
                parts::enter(index);
                work(index)
            }
        };
        let running: Vec<_> = (0..threads).map(|index| scope.spawn(entered(index))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn parted(policy: &str, weights: &[i32], parts: usize) -> Balancer {
    Balancer::new(upstreams(weights), Settings { parts, ..settings(policy) }, NOW)
}

/// By whatever name, as the rules of a selector choose.
fn set(name: &str, weights: &[i32], parts: usize) -> (Arc<UpstreamSet>, Way) {
    let way: Way = name.parse().unwrap();
    let settings = SetSettings { ways: vec![way], parts, ..SetSettings::default() };
    (UpstreamSet::build_with(upstreams(weights), None, settings, NOW), way)
}

#[test]
fn a_request_holds_and_counts_what_its_thread_has_to_itself() {
    for name in policy::KNOWN {
        let (set, way) = set(name, &[50; 3], 3);
        let shown = || set.members().iter().map(Arc::strong_count).collect::<Vec<_>>();
        let states = || set.members().iter().map(|m| Arc::strong_count(m.state())).collect::<Vec<_>>();
        let choose = |i: usize| {
            let key = i.to_string();
            set.choose(way, &PickContext::at(NOW).key(Key::Text(&key))).unwrap()
        };
        // From now on every thread knows every upstream.
        on_each(3, |_| (0..300).map(choose).collect::<Vec<_>>());
        let before = (shown(), states());
        let held = on_each(3, |_| (0..30).map(choose).collect::<Vec<_>>());
        assert_eq!((shown(), states()), before, "{name}: something is counted that threads share");
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            for (one, other) in held[a].iter().flat_map(|one| held[b].iter().map(move |other| (one, other))) {
                assert!(!Arc::ptr_eq(one.member(), other.member()), "{name}: two threads hold one");
            }
        }
        let in_flight = || set.members().iter().map(|m| m.state().in_flight()).sum::<u32>();
        assert_eq!(in_flight(), 90, "{name}");
        // Wherever it ends, each is counted out where it was counted in.
        thread::spawn(move || drop(held)).join().unwrap();
        assert_eq!(in_flight(), 0, "{name}");
        assert_eq!(set.members()[0].state().group().in_flight_at(NOW + 1), 0, "{name}");
    }
}

#[test]
fn what_a_request_writes_is_on_lines_that_no_other_thread_writes() {
    let (set, way) = set("roundRobin", &[50], 2);
    drop(on_each(2, |_| set.choose(way, &PickContext::at(NOW)).unwrap()));
    let state = set.members()[0].state();
    let line = |place: u32| std::ptr::from_ref(state.traffic(place)).addr() / 64;
    let lines = [0, 1, 2].map(line);
    assert!(lines[0] != lines[1] && lines[0] != lines[2] && lines[1] != lines[2], "{lines:?}");
    // Nobody is without a part, so that the line with the health of the upstream is only read.
    assert_eq!([0, 1, 2].map(|place| state.traffic(place).picks()), [0, 1, 1]);
}

#[test]
fn a_state_goes_on_when_the_number_of_parts_changes() {
    let one = parted("leastRequest", &[50; 2], 1);
    let held: Vec<_> = (0..4).map(|_| one.choose(&PickContext::at(NOW)).unwrap()).collect();
    for parts in [2, 3, 1] {
        one.set_settings(Settings { parts, ..settings("leastRequest") }, NOW);
        let more = on_each(3, |_| one.choose(&PickContext::at(NOW)).unwrap());
        let in_flight = || one.snapshot().all().iter().map(|m| m.state().in_flight()).sum::<u32>();
        assert_eq!(in_flight(), 7, "{parts}");
        drop(more);
        assert_eq!(in_flight(), 4, "{parts}");
    }
    drop(held);
    assert_eq!(one.snapshot().all().iter().map(|m| m.state().in_flight()).sum::<u32>(), 0);
}

#[test]
fn whoever_chooses_by_load_heeds_what_other_threads_do_a_millisecond_later() {
    for name in ["leastRequest", "leastActive", "bestAvailable", "peakEwma", "p2c", "shortestResponse"] {
        let balancer = parted(name, &[50; 2], 2);
        let choose = |now| balancer.choose(&PickContext::at(now)).unwrap();
        // One after the other: while both choose, what the other one holds may be a reason to take the same twice.
        for alone in 0..2 {
            on_each(2, |index| {
                if index == alone {
                    let (a, b) = (choose(NOW), choose(NOW));
                    assert_ne!(number(&a), number(&b), "{name}: its own it knows at once");
                }
            });
        }
        // One of them holds ten more of the first; the other one has to go around them.
        let state = Arc::clone(balancer.snapshot().all()[0].state());
        let first = on_each(2, |index| {
            (index == 0).then(|| {
                let own = balancer.snapshot();
                (0..10).map(|_| Arc::clone(own.members().own(0).unwrap()).begin(NOW)).collect::<Vec<_>>()
            })
        });
        assert_eq!(state.in_flight(), 10);
        let other =
            on_each(2, |index| (index == 1).then(|| (0..4).map(|_| choose(NOW + 1)).collect::<Vec<_>>()));
        let numbers: Vec<_> = other.iter().flatten().flatten().map(number).collect();
        assert_eq!(numbers, [1; 4], "{name}");
        drop(first);
    }
}

#[test]
fn peaks_decay_as_exactly_as_the_setting_says() {
    for (decay, expected) in [(policy::Decay::Exact, 0), (policy::Decay::Rational, 1)] {
        let policy = policy::PeakEwma { decay, ..Default::default() };
        let fresh = Settings { parts: 2, policy: Arc::new(policy), ..settings("peakEwma") };
        let balancer = Balancer::new(upstreams(&[50; 2]), fresh, NOW);
        let own = |index| Arc::clone(balancer.snapshot().members().own(index).unwrap());
        // After three decay constants it is 5.0 ms exactly, and 7.7 ms by the approximation.
        let later = NOW + 30_000;
        on_each(1, |_| {
            own(0).begin(NOW).complete(Outcome::Success, ms(100), NOW);
            own(1).begin(later).complete(Outcome::Success, ms(6), later);
        });
        let chosen = on_each(2, |_| number(&balancer.choose(&PickContext::at(later)).unwrap()));
        assert_eq!(chosen, [expected; 2], "{decay:?}");
    }
}

#[test]
fn a_limit_holds_whatever_threads_look_at_once() {
    let (set, way) = set("random", &[50], 4);
    let (most, taken) = (AtomicU32::new(0), AtomicU32::new(0));
    let start = Barrier::new(4);
    on_each(4, |_| {
        start.wait();
        for i in 0..20_000_i64 {
            let pick = set.choose(way, &PickContext::at(NOW + i / 100)).unwrap();
            if pick.fits(3) {
                let now = taken.fetch_add(1, SeqCst) + 1;
                most.fetch_max(now, SeqCst);
                taken.fetch_sub(1, SeqCst);
            }
            drop(pick);
        }
    });
    let most = most.load(SeqCst);
    assert!((1..=3).contains(&most), "{most}");
    assert_eq!(set.members()[0].state().in_flight(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn property_3_each_part_takes_turns_exactly_and_so_do_all_together(
        weights in prop::collection::vec(1_i32..6, 1..7), threads in 2_usize..5, rounds in 1_usize..4,
        name in prop::sample::select(vec!["roundRobin", "weightedRoundRobin", "plainRoundRobin"]),
    ) {
        let even = name == "plainRoundRobin";
        let total = if even { weights.len() } else { weights.iter().sum::<i32>() as usize };
        let (set, way) = set(name, &weights, threads);
        let picks = on_each(threads, |_| {
            (0..total * rounds).map(|_| number(&set.choose(way, &PickContext::at(NOW)).unwrap())).collect::<Vec<_>>()
        });
        for picks in &picks {
            for (i, weight) in weights.iter().enumerate() {
                let expected = rounds * if even { 1 } else { *weight as usize };
                let count = picks.iter().filter(|n| **n == i).count();
                // Strides are exact in the long run only.
                let off = if name == "weightedRoundRobin" { 2 } else { 0 };
                prop_assert!(count.abs_diff(expected) <= off, "{} {:?}: {:?}", name, weights, picks);
            }
        }
        for (i, (weight, member)) in weights.iter().zip(set.members()).enumerate() {
            let count = picks.iter().flatten().filter(|n| **n == i).count();
            let expected = threads * rounds * if even { 1 } else { *weight as usize };
            let off = if name == "weightedRoundRobin" { 2 * threads } else { 0 };
            prop_assert!(count.abs_diff(expected) <= off, "{} {:?}: {} of {}", name, weights, count, i);
            prop_assert_eq!(member.state().picks(), count as u64);
        }
        if even {
            // Nor do they go from one to the next in step: as long as some have had none nobody has two.
            let firsts: BTreeSet<_> = picks.iter().map(|picks| picks[0]).collect();
            prop_assert_eq!(firsts.len(), threads.min(weights.len()));
        }
    }

    #[test]
    fn property_3_a_change_of_the_list_keeps_the_turns_of_each_part_even(
        before in 2_usize..6, after in 2_usize..6, some in 0_usize..20,
    ) {
        let (set, way) = set("roundRobin", &vec![1; before], 2);
        let choose = |set: &UpstreamSet| number(&set.choose(way, &PickContext::at(NOW)).unwrap());
        on_each(2, |_| (0..some).map(|_| choose(&set)).collect::<Vec<_>>());
        let settings = set.settings().clone();
        let next = UpstreamSet::build_with(upstreams(&vec![1; after]), Some(&set), settings, NOW);
        for picks in on_each(2, |_| (0..after * 3).map(|_| choose(&next)).collect::<Vec<_>>()) {
            prop_assert!((0..after).all(|i| picks.iter().filter(|n| **n == i).count() == 3), "{:?}", picks);
        }
    }
}

#[test]
fn failures_count_wherever_they_happen_and_what_is_back_is_back_for_all() {
    let outliers = OutlierDetector {
        consecutive_failures: 4,
        consecutive_refusals: 0,
        jitter: 0.0,
        ..Default::default()
    };
    let fresh = Settings { parts: 2, outliers: Some(outliers), ..settings("peakEwma") };
    let balancer = Balancer::new(upstreams(&[50; 2]), fresh, NOW);
    let fail = |pick: Pick, now| pick.complete(Outcome::TimedOut, ms(1), now);
    let own = |index| Arc::clone(balancer.snapshot().members().own(index).unwrap());
    assert_eq!(on_each(2, |_| fail(own(0).begin(NOW), NOW)), [None, None]);
    on_each(2, |_| own(1).begin(NOW).complete(Outcome::Success, ms(2), NOW));
    // The penalty of one thread's failures is known to all.
    assert!(
        on_each(2, |_| number(&balancer.choose(&PickContext::at(NOW + 1)).unwrap())).iter().all(|n| *n == 1)
    );
    let verdicts = on_each(2, |_| fail(own(0).begin(NOW), NOW));
    assert_eq!(verdicts.iter().filter(|v| matches!(v, Some(Verdict::Ejected { .. }))).count(), 1);
    let until = balancer.snapshot().all()[0].state().ejected_until_ms().unwrap();
    balancer.refresh(until);
    let probes = on_each(2, |_| balancer.choose(&PickContext::at(until)).unwrap());
    let probe = probes.into_iter().find(Pick::is_probe).unwrap();
    assert_eq!(probe.complete(Outcome::Success, ms(2), until), Some(Verdict::Restored));
    let state = Arc::clone(balancer.snapshot().all()[0].state());
    assert_eq!(state.ejected_until_ms(), None);
    assert!(state.peak_response_time().unwrap() <= ms(2), "{:?}", state.peak_response_time());
}
