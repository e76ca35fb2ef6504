use std::thread;

use super::*;

const PER_TAU: f64 = Fading::USUAL.per_tau;

fn parted(count: usize) -> (Traffic, Parts<Part>) {
    let parts = Parts::default();
    for index in 0..count {
        parts.get_or_init(index, count, Part::default);
    }
    (Traffic::default(), parts)
}

#[test]
fn the_parts_are_summed_and_the_peak_is_the_highest() {
    let (shared, parts) = parted(3);
    let whole = Whole { shared: &shared, parts: &parts };
    shared.set_peak(9e6, 1_000);
    assert_eq!(whole.seen(1_000, Fading::USUAL), Seen { in_flight: 0, peak_ns: 9e6, mean_ns: 0.0 });
    let [a, b] = [0, 2].map(|index| &parts.get(index).unwrap().traffic);
    a.count_in();
    a.count_in();
    b.count_in();
    shared.count_in();
    a.count_out();
    a.observe(2e6, 1_000, PER_TAU, PER_TAU, true);
    b.observe(4e6, 1_000, PER_TAU, PER_TAU, true);
    // What was an estimate is none any more.
    assert_eq!(whole.seen(1_000, Fading::USUAL), Seen { in_flight: 3, peak_ns: 4e6, mean_ns: 3e6 });
    assert_eq!((whole.in_flight(), whole.picks()), (3, 4));
    // Who was silent for long counts little.
    a.observe(2e6, 61_000, PER_TAU, PER_TAU, true);
    let seen = whole.seen(61_000, Fading::USUAL);
    assert!(seen.mean_ns < 2.1e6 && seen.peak_ns < 2.1e6, "{seen:?}");
    assert!(whole.latest().peak_ns < 2.1e6);
    whole.set_peak(1e6, 61_000);
    assert_eq!(whole.seen(61_000, Fading::USUAL).peak_ns, 1e6);
}

#[test]
fn a_thread_knows_its_own_at_once_and_the_others_a_millisecond_later() {
    let (shared, parts) = parted(2);
    let whole = Whole { shared: &shared, parts: &parts };
    let [mine, other] = [0, 1].map(|index| &parts.get(index).unwrap().traffic);
    assert_eq!(whole.known(0, Fading::USUAL).in_flight, 0);
    mine.count_in();
    other.count_in();
    other.observe(5e6, 0, PER_TAU, PER_TAU, true);
    assert_eq!(whole.known(0, Fading::USUAL), Seen { in_flight: 1, peak_ns: 0.0, mean_ns: 0.0 });
    let known = whole.known(1, Fading::USUAL);
    assert_eq!((known.in_flight, known.mean_ns), (2, 5e6));
    mine.observe(50e6, 1, PER_TAU, PER_TAU, true);
    assert_eq!(whole.known(1, Fading::USUAL).peak_ns, 50e6);
    mine.count_out();
    assert_eq!(whole.known(1, Fading::USUAL).in_flight, 1);
}

#[test]
fn threads_that_share_a_part_never_know_of_more_than_there_are() {
    let (shared, parts) = parted(2);
    let whole = Whole { shared: &shared, parts: &parts };
    let mine = &parts.get(0).unwrap().traffic;
    thread::scope(|scope| {
        let counting = scope.spawn(|| {
            for _ in 0..500_000 {
                mine.count_in();
                mine.count_out();
            }
        });
        let mut now_ms = 0;
        while !counting.is_finished() {
            now_ms += 1;
            for _ in 0..4 {
                let known = whole.known(now_ms, Fading::USUAL).in_flight;
                assert!(known <= 1, "{known}");
            }
        }
    });
    assert_eq!(whole.known(-1, Fading::USUAL).in_flight, 0);
}

#[test]
fn what_a_thread_writes_is_one_line_of_its_own() {
    assert_eq!((size_of::<Part>(), align_of::<Part>()), (64, 64));
}
