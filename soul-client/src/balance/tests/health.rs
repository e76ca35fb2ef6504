//! Ejection and return.

use super::{super::*, *};

fn two(detector: OutlierDetector) -> Balancer {
    let settings = Settings { outliers: Some(detector), ..settings("plainRoundRobin") };
    Balancer::new(upstreams(&[50; 4]), settings, NOW)
}

fn exact() -> OutlierDetector {
    OutlierDetector { jitter: 0.0, ..OutlierDetector::default() }
}

/// A request to one that ends somehow.
fn request(balancer: &Balancer, to: usize, outcome: Outcome, now: i64) -> Option<Verdict> {
    balancer.snapshot().all()[to].begin(now).complete(outcome, ms(1), now)
}

/// Who is chosen in some requests, which all succeed.
fn chosen(balancer: &Balancer, now: i64, requests: usize) -> Vec<usize> {
    let picks = (0..requests).map(|_| {
        let pick = balancer.choose(&PickContext::at(now)).unwrap();
        let number = number(&pick);
        pick.complete(Outcome::Success, ms(1), now);
        number
    });
    picks.collect()
}

#[test]
fn a_thousand_that_go_down_at_once_are_one_change() {
    let list: Vec<_> =
        (0..2_000).map(|i| Upstream::new(format!("10.0.{}.{}:80", i / 250, i % 250))).collect();
    let twice = list.iter().map(|u| u.clone().with_protocol("https://"));
    let balancer = Balancer::new(list.iter().cloned().chain(twice).collect(), settings("random"), NOW);
    let before = balancer.snapshot().generation();
    let found = |health| list[..1_000].iter().map(move |u| (u.address(), health));
    assert_eq!(balancer.set_healths(found(Health::Down), NOW), 2_000, "of both protocols");
    assert_eq!(balancer.snapshot().generation(), before + 1);
    assert_eq!(balancer.snapshot().up().len(), 2_000);
    assert_eq!(balancer.set_healths(found(Health::Down), NOW), 0);
    assert_eq!(balancer.set_healths([("nobody:80", Health::Down)], NOW), 0);
    assert_eq!(balancer.snapshot().generation(), before + 1);
    assert!(balancer.set_health("10.0.0.0:80", Health::Up, NOW));
    assert_eq!(balancer.snapshot().up().len(), 2_002);
}

fn eject(balancer: &Balancer, to: usize, now: i64) -> i64 {
    for _ in 0..4 {
        assert_eq!(request(balancer, to, Outcome::TimedOut, now), None);
    }
    match request(balancer, to, Outcome::BadGateway, now) {
        Some(Verdict::Ejected { until_ms }) => until_ms,
        other => panic!("{other:?}"),
    }
}

#[test]
fn five_failures_in_a_row_eject_and_three_refusals_do() {
    let balancer = two(exact());
    for _ in 0..3 {
        for _ in 0..4 {
            assert_eq!(request(&balancer, 0, Outcome::BadGateway, NOW), None);
        }
        assert_eq!(request(&balancer, 0, Outcome::Success, NOW), None);
    }
    assert_eq!(eject(&balancer, 0, NOW), NOW + 1_000);
    for _ in 0..2 {
        assert_eq!(request(&balancer, 1, Outcome::Refused, NOW), None);
        assert_eq!(request(&balancer, 1, Outcome::TimedOut, NOW), None);
    }
    // The fifth in a row of any kind.
    assert!(request(&balancer, 1, Outcome::Refused, NOW).is_some());

    let balancer = two(exact());
    assert_eq!(request(&balancer, 0, Outcome::Refused, NOW), None);
    assert_eq!(request(&balancer, 0, Outcome::Refused, NOW), None);
    assert_eq!(
        request(&balancer, 0, Outcome::Refused, NOW),
        Some(Verdict::Ejected { until_ms: NOW + 1_000 })
    );
}

#[test]
fn an_ejection_counts_at_once_and_without_a_refresh() {
    let balancer = two(exact());
    eject(&balancer, 2, NOW);
    assert!(!chosen(&balancer, NOW, 100).contains(&2));
    balancer.refresh(NOW);
    assert_eq!(balancer.snapshot().up().len(), 3);
    assert!(!chosen(&balancer, NOW + 999, 100).contains(&2));
}

#[test]
fn one_request_proves_it_and_then_it_is_back() {
    let balancer = two(exact());
    let until = eject(&balancer, 2, NOW);
    balancer.refresh(NOW);
    let probe = balancer.choose(&PickContext::at(until)).unwrap();
    assert!(probe.is_probe() && number(&probe) == 2);
    // Nobody else goes there meanwhile, refreshed or not.
    assert!(!chosen(&balancer, until, 50).contains(&2));
    balancer.refresh(until);
    assert!(!chosen(&balancer, until, 50).contains(&2));
    assert_eq!(probe.complete(Outcome::Success, ms(3), until + 3), Some(Verdict::Restored));
    balancer.refresh(until + 3);
    let after = chosen(&balancer, until + 3, 100);
    assert_eq!(after.iter().filter(|&&n| n == 2).count(), 25);
    let state = Arc::clone(balancer.snapshot().all()[2].state());
    assert_eq!((state.ejections(), state.consecutive_failures(), state.ejected_until_ms()), (0, 0, None));
}

#[test]
fn each_ejection_in_a_row_lasts_twice_as_long_up_to_thirty_seconds() {
    let balancer = two(exact());
    let mut until = eject(&balancer, 2, NOW);
    let mut lengths = Vec::new();
    for _ in 0..7 {
        let probe = balancer.choose(&PickContext::at(until)).unwrap();
        assert!(probe.is_probe());
        let Some(Verdict::Ejected { until_ms }) = probe.complete(Outcome::Refused, ms(1), until) else {
            panic!("it was not ejected again")
        };
        lengths.push((until_ms - until) / 1_000);
        until = until_ms;
    }
    assert_eq!(lengths, [2, 4, 8, 16, 30, 30, 30]);
}

#[test]
fn a_probe_that_is_given_up_or_lost_makes_room_for_the_next() {
    let balancer = two(exact());
    let until = eject(&balancer, 2, NOW);
    drop(balancer.choose(&PickContext::at(until)).filter(Pick::is_probe).unwrap());
    let second = balancer.choose(&PickContext::at(until)).filter(Pick::is_probe).unwrap();
    // It never ends; after its lease another one may try.
    assert!(!balancer.choose(&PickContext::at(until + 9_999)).unwrap().is_probe());
    let third = balancer.choose(&PickContext::at(until + 10_000)).unwrap();
    assert!(third.is_probe());
    assert_eq!(third.complete(Outcome::Success, ms(1), until + 10_001), Some(Verdict::Restored));
    // The lost one is late and changes nothing.
    assert_eq!(second.complete(Outcome::Refused, ms(9), until + 10_002), None);
    assert_eq!(balancer.snapshot().all()[2].state().ejected_until_ms(), None);
}

#[test]
fn answers_to_requests_from_before_neither_lengthen_nor_end_an_ejection() {
    let balancer = two(exact());
    let late: Vec<_> = (0..8).map(|_| balancer.snapshot().all()[2].begin(NOW)).collect();
    let until = eject(&balancer, 2, NOW);
    for (i, pick) in late.into_iter().enumerate() {
        let outcome = if i % 2 == 0 { Outcome::BadGateway } else { Outcome::Success };
        assert_eq!(pick.complete(outcome, ms(500), NOW + 500), None);
    }
    assert_eq!(balancer.snapshot().all()[2].state().ejected_until_ms(), Some(until));
}

#[test]
fn one_whose_success_rate_is_far_below_the_others_is_ejected_though_it_never_fails_five_times_in_a_row() {
    for (rule, ejected) in [(None, false), (Some(SuccessRate::default()), true)] {
        let outliers = OutlierDetector { success_rate: rule, ..exact() };
        let settings = Settings { outliers: Some(outliers), ..settings("uniformRandom") };
        let balancer = Balancer::new(upstreams(&[50; 6]), settings, NOW);
        for round in 0..120_i64 {
            let now = NOW + round * 50;
            for to in 0..6 {
                // Every other request to one of them fails, and every tenth to all.
                let failed = round % 10 == 0 || (to == 2 && round % 2 == 1);
                let outcome = if failed { Outcome::BadGateway } else { Outcome::Success };
                assert_eq!(request(&balancer, to, outcome, now), None);
            }
            balancer.refresh(now);
        }
        let snapshot = balancer.snapshot();
        let out: Vec<_> =
            (0..6).filter(|&i| snapshot.all()[i].state().ejected_until_ms().is_some()).collect();
        assert_eq!(out, if ejected { vec![2] } else { vec![] });
        assert_eq!(snapshot.up().len(), if ejected { 5 } else { 6 });
    }
}

#[test]
fn success_rates_of_few_upstreams_or_few_requests_eject_nobody() {
    for (count, requests) in [(4, 200), (6, 99)] {
        let outliers = OutlierDetector { success_rate: Some(SuccessRate::default()), ..exact() };
        let settings = Settings { outliers: Some(outliers), ..settings("uniformRandom") };
        let balancer = Balancer::new(upstreams(&vec![50; count]), settings, NOW);
        for i in 0..requests {
            for to in 0..count {
                let outcome = if to == 0 && i % 3 != 0 { Outcome::BadGateway } else { Outcome::Success };
                request(&balancer, to, outcome, NOW);
            }
        }
        balancer.refresh(NOW + 1_000);
        assert_eq!(balancer.snapshot().up().len(), count);
    }
}

#[test]
fn at_most_half_are_ejected_and_never_the_last() {
    let balancer = two(exact());
    eject(&balancer, 0, NOW);
    eject(&balancer, 1, NOW);
    for _ in 0..20 {
        assert_eq!(request(&balancer, 2, Outcome::Refused, NOW), None);
    }
    let balancer = two(OutlierDetector { max_ejected: 1.0, ..exact() });
    for i in 0..3 {
        eject(&balancer, i, NOW);
    }
    for _ in 0..20 {
        assert_eq!(request(&balancer, 3, Outcome::Refused, NOW), None);
    }
    // Nor is the last one ejected that a probe has not found down.
    let balancer = two(OutlierDetector { max_ejected: 1.0, ..exact() });
    for i in 0..3 {
        balancer.set_health(&format!("10.0.0.{i}:80"), Health::Down, NOW);
    }
    for _ in 0..20 {
        assert_eq!(request(&balancer, 3, Outcome::Refused, NOW), None);
    }
}

#[test]
fn as_ribbon_all_traffic_is_back_after_ten_twenty_and_thirty_seconds() {
    let balancer = two(OutlierDetector::ribbon());
    let mut now = NOW;
    assert_eq!(request(&balancer, 2, Outcome::TimedOut, now), None);
    assert_eq!(request(&balancer, 2, Outcome::TimedOut, now), None);
    for seconds in [10, 20, 30, 30] {
        let until_ms = now + seconds * 1_000;
        assert_eq!(request(&balancer, 2, Outcome::TimedOut, now), Some(Verdict::Ejected { until_ms }));
        balancer.refresh(now);
        assert_eq!(balancer.snapshot().up().len(), 3);
        balancer.refresh(until_ms);
        let picks: Vec<_> = (0..8).map(|_| balancer.choose(&PickContext::at(until_ms)).unwrap()).collect();
        assert!(picks.iter().filter(|p| number(p) == 2).count() >= 2);
        assert!(!picks.iter().any(Pick::is_probe));
        now = until_ms;
    }
    assert_eq!(request(&balancer, 2, Outcome::Success, now), Some(Verdict::Restored));
    assert_eq!(balancer.snapshot().all()[2].state().ejections(), 0);
}

#[test]
fn one_that_asks_to_be_spared_costs_more_and_stays() {
    let balancer = Balancer::new(upstreams(&[50; 4]), settings("peakEwma"), NOW);
    let retry_after = Some(Duration::from_secs(60));
    for _ in 0..20 {
        assert_eq!(request(&balancer, 2, Outcome::Overloaded { retry_after }, NOW), None);
    }
    let state = Arc::clone(balancer.snapshot().all()[2].state());
    assert_eq!(state.peak_response_time(), retry_after);
    assert_eq!(state.ejected_until_ms(), None);
    assert!(!chosen(&balancer, NOW, 100).contains(&2));
}

#[test]
fn one_that_fails_fast_does_not_look_fast() {
    for name in ["peakEwma", "shortestResponse", "p2c", "leastRequest", "leastActive", "BestAvailableRule"] {
        let balancer = Balancer::new(upstreams(&[50; 10]), settings(name), NOW);
        let source = seeded(2);
        let mut failed = 0;
        let mut running = std::collections::VecDeque::new();
        for i in 0..20_000_i64 {
            let now = NOW + i;
            if i % 50 == 0 {
                balancer.refresh(now);
            }
            let pick = balancer.choose(&PickContext::at(now).random(&source)).unwrap();
            if number(&pick) == 3 {
                failed += 1;
                pick.complete(Outcome::BadGateway, ms(1), now);
            } else {
                running.push_back(pick);
            }
            if running.len() > 20
                && let Some(pick) = running.pop_front()
            {
                pick.complete(Outcome::Success, ms(20), now);
            }
        }
        assert!(failed <= 40, "{name}: {failed} of 20000");
    }
}

#[test]
fn the_penalty_is_gone_when_it_has_proved_itself() {
    let balancer = Balancer::new(upstreams(&[50; 4]), settings("peakEwma"), NOW);
    let until = eject(&balancer, 2, NOW);
    let state = Arc::clone(balancer.snapshot().all()[2].state());
    assert_eq!(state.peak_response_time(), Some(Duration::from_secs(5)));
    let probe = balancer.choose(&PickContext::at(until)).filter(Pick::is_probe).unwrap();
    probe.complete(Outcome::Success, ms(7), until);
    assert_eq!(state.peak_response_time(), Some(ms(7)));
}

#[test]
fn a_probe_that_finds_it_alive_ends_an_ejection_and_begins_a_ramp() {
    let slow = Settings { slow_start: Some(SlowStart::over(ms(5_000))), ..settings("uniformRandom") };
    let balancer = Balancer::new(upstreams(&[50; 4]), slow, NOW);
    eject(&balancer, 2, NOW);
    balancer.set_health("10.0.0.2:80", Health::Down, NOW);
    balancer.set_health("10.0.0.2:80", Health::Up, NOW + 10);
    let state = Arc::clone(balancer.snapshot().all()[2].state());
    assert_eq!(state.ejected_until_ms(), None);
    assert_eq!(state.ramp(NOW + 10), Some(0.0));
    assert_eq!(state.ramp(NOW + 2_510), Some(0.5));
    assert_eq!(state.ramp(NOW + 5_010), None);
}

#[test]
fn in_panic_health_does_not_count_and_weight_does() {
    for name in policy::KNOWN {
        let mut list = upstreams(&[50; 5]);
        list.push(Upstream::new("10.0.0.5:80").with_weight(0));
        list.push(Upstream::new("10.0.0.6:80").with_status(false));
        let panicking = Settings { panic_threshold: 0.5, ..settings(name) };
        let balancer = Balancer::new(list, panicking, NOW);
        let down = |i: usize| balancer.set_health(&format!("10.0.0.{i}:80"), Health::Down, NOW);
        down(0);
        down(1);
        assert!(!balancer.snapshot().is_panic());
        let counts = picked(&balancer, 7, 500, 3);
        assert_eq!((counts[0], counts[1], counts[5], counts[6]), (0, 0, 0, 0), "{name}");
        down(2);
        assert!(balancer.snapshot().is_panic(), "{name}");
        let counts = picked(&balancer, 7, 5_000, 3);
        assert!(counts[..5].iter().all(|&count| count > 0), "{name}: {counts:?}");
        assert_eq!((counts[5], counts[6]), (0, 0), "{name}");
        balancer.set_health("10.0.0.2:80", Health::Up, NOW);
        assert!(!balancer.snapshot().is_panic(), "{name}");
    }
}

#[test]
fn all_down_before_a_refresh_is_panic_too_or_nobody() {
    for (panic_threshold, somebody) in [(0.5, true), (0.0, false)] {
        let balancer =
            Balancer::new(upstreams(&[50; 3]), Settings { panic_threshold, ..settings("peakEwma") }, NOW);
        for member in balancer.snapshot().all() {
            member.state().set_health(Health::Down);
        }
        assert_eq!(balancer.choose(&PickContext::at(NOW)).is_some(), somebody);
    }
}
