use std::time::Duration;

use proptest::prelude::*;

use super::{super::policy::Decay, *};

proptest! {
    #[test]
    fn property_9_the_counters_of_requests_may_wrap_at_any_moment(before in 0_u64..50, held in 0_usize..50) {
        let state = state();
        state.hot.traffic.set_picks(u64::MAX - before);
        let requests: Vec<_> = (0..held).map(|_| state.begin()).collect();
        prop_assert_eq!(state.in_flight() as usize, held);
        drop(requests);
        prop_assert_eq!(state.in_flight(), 0);
        let all = ((1_u64 << 40) - 1).wrapping_sub(before).wrapping_add(held as u64);
        prop_assert_eq!(state.picks(), all % (1 << 40));
    }
}

fn state() -> Arc<UpstreamState> {
    UpstreamState::new("http://", "a", &Arc::default())
}

#[test]
fn a_request_is_counted_in_and_out() {
    let state = state();
    let first = state.begin();
    let second = state.begin();
    assert_eq!((state.in_flight(), state.picks()), (2, 2));
    drop(first);
    assert_eq!((second.state().in_flight(), state.picks()), (1, 2));
    drop(second);
    assert_eq!(state.in_flight(), 0);
}

#[test]
fn a_change_of_health_is_told() {
    let state = state();
    assert_eq!(state.health(), Health::Unknown);
    let before = state.group().changes();
    assert_eq!(state.set_health(Health::Down), Health::Unknown);
    assert_eq!(state.set_health(Health::Up), Health::Down);
    assert_eq!(state.set_health(Health::Up), Health::Up);
    assert_eq!(state.group().changes(), before + 2);
}

#[test]
fn the_peak_rises_at_once_and_falls_slowly() {
    let state = state();
    assert_eq!(state.peak_response_time(), None);
    state.observe(0, 1e6, 1_000, 1e-4, 1e-4);
    assert_eq!(state.peak_response_time(), Some(Duration::from_millis(1)));
    state.observe(0, 100e6, 1_001, 1e-4, 1e-4);
    assert_eq!(state.peak_response_time(), Some(Duration::from_millis(100)));
    assert!(state.mean_response_time().unwrap() < Duration::from_millis(2));
    // After one decay constant a third of the peak is left.
    let decayed = state.decayed_peak_ns(11_001, Fading { per_tau: 1e-4, decay: Decay::Exact });
    assert!((decayed / 100e6 - (-1_f64).exp()).abs() < 1e-12);
    state.observe(0, 1e6, 11_001, 1e-4, 1e-4);
    assert!((state.latest_peak_ns() / 1e6 - (99.0 * Decay::Rational.factor(1e4, 1e-4) + 1.0)).abs() < 1e-6);
}

#[test]
fn the_group_is_calm_when_nothing_stands_against_anyone() {
    let group = Arc::default();
    let [a, b] = ["a", "b"].map(|url| UpstreamState::new("http://", url, &group));
    assert!(group.is_calm());
    a.set_health(Health::Down);
    assert!(a.move_ejection(0, 5) && !group.is_calm());
    b.start_ramp(10, 10);
    a.set_health(Health::Up);
    assert!(a.end_ejection() && a.is_calm() && !group.is_calm());
    assert_eq!((b.ramp(15), b.ramp(20), b.ramp(15)), (Some(0.5), None, None));
    assert!(group.is_calm());
    a.set_health(Health::Down);
    drop(a);
    assert!(group.is_calm());
}

#[test]
fn counters_of_requests_wrap() {
    let state = state();
    state.hot.traffic.set_picks(u64::MAX);
    let (first, second) = (state.begin(), state.begin());
    assert_eq!((state.in_flight(), state.picks()), (2, 1));
    drop((first, second));
    assert_eq!((state.in_flight(), state.picks()), (0, 1));
}

#[test]
fn what_a_request_needs_is_in_one_line_that_no_other_upstream_has() {
    assert_eq!((size_of::<Hot>(), align_of::<Hot>()), (64, 64));
    assert_eq!(std::mem::offset_of!(UpstreamState, hot), 0);
    assert_eq!(size_of::<UpstreamState>(), 3 * size_of::<Hot>());
}
