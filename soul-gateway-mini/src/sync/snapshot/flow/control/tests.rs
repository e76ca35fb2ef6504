//! Callers, gateway and upstream in a world whose clock is a number.

use std::collections::{BinaryHeap, VecDeque};

use super::*;

/// More than this are refused anyway.
const MOST: u32 = 1024;

/// What an upstream does with requests.
#[derive(Clone, Copy, Debug)]
enum Upstream {
    /// Works on so many at once, so long on each, microseconds; the others wait, first come, first served.
    Works { workers: usize, each_us: u64 },
    /// Takes so long for each, however many there are.
    Takes { each_us: u64 },
    /// Lets all wait for the next event, which come so often.
    Holds { every_us: u64 },
}

/// Something that happens. The earliest is the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Event(std::cmp::Reverse<u64>, What);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A request comes: of which upstream, and when another one follows.
    Comes { held: bool, again_us: Option<u64> },
    /// It is answered, or given up.
    Answered { sent_us: u64, held: bool, late: bool },
}

struct World {
    now_us: u64,
    events: BinaryHeap<Event>,
    upstream: Upstream,
    /// For requests that are held, beside the others.
    held: Option<Upstream>,
    /// When each worker is free.
    free_us: Vec<u64>,
    in_flight: u32,
    waiting: VecDeque<(u64, bool)>,
    control: Control,
    looked_us: u64,
    seen: Seen,
    /// Since it was asked last: times of those served, with their waiting here, and how many were refused.
    served_us: Vec<u64>,
    refused: usize,
    /// How long callers wait, microseconds.
    patience_us: u64,
    /// Callers that ask again as soon as they are answered.
    closed: bool,
    longest_wait_us: u64,
    /// Whether some requests take much longer than others.
    varies: bool,
    random: u64,
}

impl World {
    fn new(upstream: Upstream) -> Self {
        let workers = if let Upstream::Works { workers, .. } = upstream { workers } else { 0 };
        Self {
            now_us: 0,
            events: BinaryHeap::new(),
            upstream,
            held: None,
            free_us: vec![0; workers],
            in_flight: 0,
            waiting: VecDeque::new(),
            control: Control::new(0),
            looked_us: 0,
            seen: Seen {
                answers: 0,
                least_us: u32::MAX,
                in_flight: 0,
                most: MOST,
                timeouts: 0,
                met: false,
                strained: false,
            },
            served_us: Vec::new(),
            refused: 0,
            patience_us: 1 << 60,
            closed: false,
            longest_wait_us: 0,
            varies: false,
            random: 42,
        }
    }

    fn at(&mut self, us: u64, what: What) {
        self.events.push(Event(std::cmp::Reverse(us), what));
    }

    /// A number from 0.9 to 1.1 times this; or from next to nothing to many times this, with this as the mean.
    fn about(&mut self, us: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = ((self.random >> 33) % 1000) as f64 / 1000.0;
        let times = if self.varies { -(1.0 - share).ln() } else { 0.9 + share / 5.0 };
        (us as f64 * times) as u64 + 1
    }

    /// Lets requests come at a rate for a while, and forgets what was before.
    fn offer(&mut self, per_second: u64, seconds: f64) -> Outcome {
        self.take();
        let until = self.now_us + (seconds * 1e6) as u64;
        let step = 1_000_000 / per_second;
        let mut next = self.now_us;
        while next < until {
            self.at(next, What::Comes { held: false, again_us: None });
            next += step;
        }
        self.run(until);
        self.take()
    }

    /// Lets time pass.
    fn pass(&mut self, seconds: f64) -> Outcome {
        self.take();
        self.run(self.now_us + (seconds * 1e6) as u64);
        self.take()
    }

    fn take(&mut self) -> Outcome {
        let mut times = std::mem::take(&mut self.served_us);
        times.sort_unstable();
        let within =
            |share: f64| times.get((times.len() as f64 * share) as usize).map_or(0.0, |us| *us as f64 / 1e3);
        Outcome { served: times.len(), refused: std::mem::take(&mut self.refused), p99: within(0.99) }
    }

    fn run(&mut self, until_us: u64) {
        while let Some(Event(std::cmp::Reverse(us), what)) = self.events.pop() {
            if us > until_us {
                self.at(us, what);
                break;
            }
            self.now_us = us;
            match what {
                What::Comes { held, again_us } => {
                    if let Some(again) = again_us {
                        self.at(us + again, what);
                    }
                    self.comes(us, held);
                }
                What::Answered { sent_us, held, late } => self.answered(sent_us, held, late),
            }
            self.look();
        }
        self.now_us = until_us;
    }

    fn comes(&mut self, came_us: u64, held: bool) {
        if self.in_flight < self.control.limit().unwrap_or(MOST).min(MOST) && self.waiting.is_empty() {
            return self.send(came_us, held);
        }
        self.seen.met = true;
        if self.waiting.len() < self.control.most_waiting() as usize {
            self.waiting.push_back((came_us, held));
        } else {
            self.refuse(held);
        }
    }

    fn refuse(&mut self, held: bool) {
        self.refused += 1;
        if self.closed || held {
            self.at(self.now_us + 1_000, What::Comes { held, again_us: None });
        }
    }

    fn send(&mut self, came_us: u64, held: bool) {
        let now = self.now_us;
        self.longest_wait_us = self.longest_wait_us.max(now - came_us);
        self.in_flight += 1;
        let upstream = self.held.filter(|_| held).unwrap_or(self.upstream);
        let answered = match upstream {
            Upstream::Works { each_us, .. } => {
                let each_us = self.about(each_us);
                let worker = self.free_us.iter_mut().min().expect("a worker");
                *worker = now.max(*worker) + each_us;
                *worker
            }
            Upstream::Takes { each_us } => now + self.about(each_us),
            Upstream::Holds { every_us } => (now / every_us + 1) * every_us,
        };
        // What it took here counts for the caller.
        let over = came_us.saturating_add(self.patience_us);
        let late = answered > over;
        self.at(answered.min(over.max(now)), What::Answered { sent_us: now, held, late });
        if !late {
            self.served_us.push(answered - came_us);
        }
    }

    fn answered(&mut self, sent_us: u64, held: bool, late: bool) {
        self.in_flight -= 1;
        if late {
            self.seen.timeouts += 1;
        } else {
            self.seen.answers += 1;
            self.seen.least_us = self.seen.least_us.min((self.now_us - sent_us) as u32);
        }
        if self.closed || held {
            self.comes(self.now_us, held);
        }
        self.let_in();
    }

    fn let_in(&mut self) {
        while self.in_flight < self.control.limit().unwrap_or(MOST).min(MOST) {
            let Some((came, held)) = self.waiting.pop_front() else { break };
            self.send(came, held);
        }
        while self.waiting.len() > self.control.most_waiting() as usize {
            // Whoever is woken looks first, and has waited longest.
            let Some((_, held)) = self.waiting.pop_front() else { break };
            self.refuse(held);
        }
    }

    fn look(&mut self) {
        if self.now_us - self.looked_us >= 10_000 {
            self.looked_us = self.now_us;
            self.control.look((self.now_us / 1000) as i64, Seen { in_flight: self.in_flight, ..self.seen });
            (self.seen.least_us, self.seen.timeouts, self.seen.met) = (u32::MAX, 0, false);
            self.let_in();
        }
    }

    /// So many callers that ask again when they are answered.
    fn callers(&mut self, count: u64, held: bool) {
        for caller in 0..count {
            self.at(self.now_us + caller, What::Comes { held, again_us: None });
        }
    }
}

struct Outcome {
    served: usize,
    refused: usize,
    /// Milliseconds.
    p99: f64,
}

#[test]
fn what_was_borne_without_a_queue_is_never_the_limit() {
    // A hundred at once, ten milliseconds each; then the machine gets a tenth of its time only.
    let mut world = World::new(Upstream::Works { workers: 100, each_us: 10_000 });
    let calm = world.offer(8_000, 10.0);
    assert_eq!(calm.refused, 0);
    let borne = world.control.borne;
    assert!((60.0..=110.0).contains(&borne), "{borne}");
    world.free_us.truncate(10);
    world.offer(8_000, 5.0);
    let limit = world.control.limit().expect("there is a queue");
    assert!(f64::from(limit) >= borne * 0.8, "{limit} of {borne}");
}

/// Eight at once, five milliseconds each: 1,600 a second.
const WORKS: Upstream = Upstream::Works { workers: 8, each_us: 5_000 };

#[test]
fn twice_of_what_an_upstream_carries_is_refused_and_the_rest_is_served_soon() {
    let mut world = World::new(WORKS);
    let calm = world.offer(800, 4.0);
    assert_eq!(calm.refused, 0);
    let onset = world.offer(3_200, 1.0);
    let storm = world.offer(3_200, 20.0);
    assert!(onset.served > 1_500);
    assert!(storm.p99 < 4.0 * calm.p99, "{} after {}", storm.p99, calm.p99);
    assert!(storm.served > 20 * 1_550, "{} of 32,000 served", storm.served);
    assert!(storm.refused > 20 * 1_500);
    // When it is over, so is the limit.
    world.offer(800, 4.0);
    assert_eq!(world.control.limit(), None);
    assert_eq!(world.offer(1_400, 4.0).refused, 0);
}

#[test]
fn that_holds_for_few_workers_and_for_slow_ones_too() {
    for (workers, each_us) in [(1, 4_000), (2, 10_000), (32, 20_000), (16, 100_000), (8, 50_000)] {
        let mut world = World::new(Upstream::Works { workers, each_us });
        let carries = workers as u64 * 1_000_000 / each_us;
        let calm = world.offer(carries / 2, 10.0);
        assert_eq!(calm.refused, 0);
        // Two trials take some times as long as a request.
        world.offer(carries * 2, 2.0 + 40.0 * each_us as f64 / 1e6);
        let storm = world.offer(carries * 2, 20.0);
        let told = format!("{workers} of {each_us} us: {} after {}", storm.p99, calm.p99);
        assert!(storm.p99 < 4.0 * calm.p99, "{told}");
        assert!(storm.served as u64 > carries * 18, "{told}: {} served", storm.served);
    }
}

#[test]
fn an_upstream_that_answers_nobody_in_time_gets_less_until_it_does() {
    for (workers, each_us, times) in
        [(2, 50_000, 2), (2, 50_000, 4), (1, 50_000, 2), (8, 50_000, 4), (16, 100_000, 3), (16, 100_000, 8)]
    {
        let mut world = World::new(Upstream::Works { workers, each_us });
        world.patience_us = 3_000_000;
        let carries = workers as u64 * 1_000_000 / each_us;
        world.offer(carries / 2, 10.0);
        // What was given up is worked on all the same.
        world.offer(carries * times, 30.0);
        let storm = world.offer(carries * times, 20.0);
        let told = format!("{workers} of {each_us} us, {times} times");
        assert!(storm.served as u64 > carries * 15, "{told}: {} served", storm.served);
        assert!(storm.p99 < 1_500.0, "{told}: {}", storm.p99);
    }
}

#[test]
fn polls_that_end_by_their_own_time_all_at_once_are_let_come_again() {
    let mut world = World::new(WORKS);
    world.held = Some(Upstream::Takes { each_us: 20_000_000 });
    world.patience_us = 3_000_000;
    world.callers(50, true);
    assert_eq!(world.offer(10, 60.0).refused, 0);
}

#[test]
fn a_little_too_much_is_a_little_refused() {
    let mut world = World::new(WORKS);
    world.offer(800, 4.0);
    world.offer(1_760, 20.0);
    let storm = world.offer(1_760, 20.0);
    assert!(storm.p99 < 40.0 && storm.served > 20 * 1_500);
}

#[test]
fn callers_that_wait_for_their_answer_are_a_load_too() {
    let mut world = World::new(WORKS);
    world.offer(800, 4.0);
    world.closed = true;
    world.callers(200, false);
    world.pass(2.0);
    let storm = world.pass(20.0);
    assert!(storm.p99 < 40.0 && storm.served > 20 * 1_500, "{} {}", storm.p99, storm.served);
}

#[test]
fn held_polls_are_never_refused() {
    let event = [200_000, 1_000_000, 1_700_000, 30_000_000].map(|every_us| Upstream::Holds { every_us });
    let each = [200_000, 500_000, 1_000_000].map(|each_us| Upstream::Takes { each_us });
    for upstream in event.into_iter().chain(each) {
        let mut world = World::new(upstream);
        // First one that is answered at once, which is as fast as it can be; and there was a limit that is gone.
        world.control.unloaded_ms = Some(1.0);
        world.control.is_sure = true;
        world.callers(500, true);
        let polls = world.pass(90.0);
        assert_eq!(polls.refused, 0, "{upstream:?}");
        // Each trial holds some of them here for a moment.
        assert!(world.longest_wait_us <= 2_100_000, "{} us", world.longest_wait_us);
    }
}

#[test]
fn quick_requests_beside_held_polls_are_not_refused() {
    let mut world = World::new(WORKS);
    world.held = Some(Upstream::Holds { every_us: 10_000_000 });
    world.callers(300, true);
    assert_eq!(world.offer(1_200, 60.0).refused, 0);
    // And of too many quick ones as many are served as can be.
    world.offer(3_200, 1.0);
    let storm = world.offer(3_200, 9.0);
    assert!(storm.served > 9 * 1_400);
}

#[test]
fn a_service_that_becomes_ten_times_slower_is_left_alone() {
    for slow_ms in [50, 100, 400] {
        let mut world = World::new(Upstream::Takes { each_us: 5_000 });
        world.offer(2_000, 10.0);
        world.upstream = Upstream::Takes { each_us: slow_ms * 1_000 };
        let slower = world.offer(2_000, 60.0);
        assert_eq!(slower.refused, 0, "{slow_ms} ms");
        assert_eq!(world.control.limit(), None);
    }
}

#[test]
fn times_that_vary_are_no_overload_and_hide_none() {
    let mut world = World::new(Upstream::Takes { each_us: 5_000 });
    world.varies = true;
    world.offer(2_000, 10.0);
    world.upstream = Upstream::Takes { each_us: 200_000 };
    assert_eq!(world.offer(2_000, 60.0).refused, 0);

    for (workers, each_us) in [(8, 5_000), (16, 100_000), (200, 100_000)] {
        let mut world = World::new(Upstream::Works { workers, each_us });
        world.varies = true;
        let carries = workers as u64 * 1_000_000 / each_us;
        let calm = world.offer(carries / 2, 20.0);
        assert_eq!(calm.refused, 0);
        world.offer(carries * 2, 15.0);
        let storm = world.offer(carries * 2, 20.0);
        assert!(storm.p99 < 4.0 * calm.p99, "{} after {}", storm.p99, calm.p99);
        assert!(storm.served as u64 > carries * 18, "{} served", storm.served);
    }
}

#[test]
fn a_burst_is_served() {
    let mut world = World::new(WORKS);
    world.offer(800, 4.0);
    for _ in 0..20 {
        world.callers(100, false);
        assert_eq!(world.offer(800, 1.0).refused, 0);
    }
}

#[test]
fn an_upstream_that_becomes_slower_under_a_limit_keeps_as_many_as_it_carries() {
    let mut world = World::new(WORKS);
    world.offer(800, 4.0);
    world.offer(3_200, 5.0);
    assert!(world.control.limit().is_some());
    // Another one, that takes longer and carries as many.
    world.upstream = Upstream::Works { workers: 80, each_us: 50_000 };
    world.free_us.resize(80, 0);
    world.offer(3_200, 10.0);
    let later = world.offer(3_200, 10.0);
    assert!(later.served > 10 * 1_450, "{}", later.served);
    // And one that does not answer any more gets a bit of everything.
    world.upstream = Upstream::Takes { each_us: 10_000_000 };
    world.offer(100, 60.0);
    assert_eq!(world.offer(50, 5.0).refused, 0);
}
