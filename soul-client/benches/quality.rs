//! How well the policies choose under load, by simulation.
//!
//! `cargo bench -p soul-client --bench quality`; about half a minute.
//!
//! Ten servers of four slots each with exponential service times of 50 ms and a queue; Poisson arrivals; each client has a balancer of its own and
//! knows only what it has seen. Simulated time, seeded chance: each run gives the same numbers.

mod common;

use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    time::Duration,
};

use common::{addresses, upstreams};
use soul_client::balance::{Balancer, Outcome, OutlierDetector, Pick, PickContext, Settings, policy};

const EPOCH: i64 = 1_612_500_000_000;
const SERVERS: usize = 10;
const SLOTS: usize = 4;
const SERVICE_US: f64 = 50_000.0;
const FAILS_AFTER_US: u64 = 1_000;
const REFRESH_US: u64 = 100_000;
const SECOND_US: u64 = 1_000_000;
const POLICIES: [&str; 9] = [
    "uniformRandom",
    "plainRoundRobin",
    "WeightedResponseTimeRule",
    "BestAvailableRule",
    "leastRequest",
    "peakEwma",
    "p2c",
    "shortestResponse",
    "leastActive",
];

#[derive(Clone, Copy)]
struct Scenario {
    clients: usize,
    /// Of the capacity of ten equal servers.
    load: f64,
    seconds: u64,
    /// Requests before this are not counted.
    settle: u64,
    /// Server 3 takes so many times as long.
    slower: f64,
    /// Server 3 answers 502 after a millisecond.
    fails: bool,
    /// An eleventh server comes then.
    joins: Option<u64>,
    outliers: bool,
    seed: u64,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            clients: 1,
            load: 0.6,
            seconds: 90,
            settle: 20,
            slower: 1.0,
            fails: false,
            joins: None,
            outliers: true,
            seed: 1,
        }
    }
}

enum Event {
    Arrival,
    Done { server: usize },
    Refresh,
    Join,
}

struct Request {
    pick: Pick,
    arrived_us: u64,
    failed: bool,
}

#[derive(Default)]
struct Server {
    running: VecDeque<(u64, Request)>,
    queue: VecDeque<Request>,
}

/// What came of it.
#[derive(Default)]
struct Report {
    latencies_ms: Vec<f64>,
    failed: usize,
    total: usize,
    /// Of the second after somebody joined: all requests, and those to the newcomer.
    joined: (usize, usize),
}

impl Report {
    fn percentile(&mut self, share: f64) -> f64 {
        self.latencies_ms.sort_unstable_by(f64::total_cmp);
        let last = self.latencies_ms.len().saturating_sub(1);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let at = (last as f64 * share).round() as usize;
        self.latencies_ms.get(at).copied().unwrap_or(f64::NAN)
    }

    fn failed_percent(&self) -> f64 {
        self.failed as f64 * 100.0 / self.total as f64
    }
}

struct Simulation<'p> {
    scenario: Scenario,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    kinds: Vec<Option<Event>>,
    servers: Vec<Server>,
    balancers: Vec<Balancer>,
    rng: &'p RefCell<fastrand::Rng>,
    list: Vec<String>,
    report: Report,
}

fn simulate(name: &str, scenario: Scenario) -> Report {
    let list = addresses(0, SERVERS + 1);
    let rng = RefCell::new(fastrand::Rng::with_seed(scenario.seed));
    let balancer = |_| {
        let policy = policy::by_name(name).unwrap_or_else(|error| panic!("{error}"));
        let outliers = scenario.outliers.then(OutlierDetector::default);
        // Without ejection there is no penalty either, to show what it is good for.
        Balancer::new(
            upstreams(&list[..SERVERS]),
            Settings { policy, outliers, ..Settings::default() },
            EPOCH,
        )
    };
    let mut simulation = Simulation {
        scenario,
        events: BinaryHeap::new(),
        kinds: Vec::new(),
        servers: (0..=SERVERS).map(|_| Server::default()).collect(),
        balancers: (0..scenario.clients).map(balancer).collect(),
        rng: &rng,
        list: list.clone(),
        report: Report::default(),
    };
    simulation.run();
    simulation.report
}

impl Simulation<'_> {
    fn exponential(&self, mean: f64) -> u64 {
        let unit = self.rng.borrow_mut().f64();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let drawn = (-(1.0 - unit).ln() * mean) as u64;
        drawn.max(1)
    }

    fn at(&mut self, time_us: u64, event: Event) {
        let number = self.kinds.len();
        self.kinds.push(Some(event));
        self.events.push(Reverse((time_us, number as u64, number)));
    }

    fn run(&mut self) {
        let end = self.scenario.seconds * SECOND_US;
        self.at(1, Event::Arrival);
        self.at(REFRESH_US, Event::Refresh);
        if let Some(second) = self.scenario.joins {
            self.at(second * SECOND_US, Event::Join);
        }
        while let Some(Reverse((now, _, number))) = self.events.pop() {
            if now > end {
                return;
            }
            match self.kinds[number].take() {
                Some(Event::Arrival) => self.arrive(now),
                Some(Event::Done { server }) => self.finish(server, now),
                Some(Event::Refresh) => {
                    self.balancers.iter().for_each(|b| drop(b.refresh(wall(now))));
                    self.at(now + REFRESH_US, Event::Refresh);
                }
                Some(Event::Join) => {
                    let list = upstreams(&self.list);
                    self.balancers.iter().for_each(|b| drop(b.update(list.clone(), wall(now))));
                }
                None => {}
            }
        }
    }

    fn arrive(&mut self, now: u64) {
        let mean = SERVICE_US / (SERVERS * SLOTS) as f64 / self.scenario.load;
        let next = now + self.exponential(mean);
        self.at(next, Event::Arrival);
        let client = self.rng.borrow_mut().usize(..self.balancers.len());
        let random = |bound| self.rng.borrow_mut().u32(..bound);
        let Some(pick) = self.balancers[client].choose(&PickContext::at(wall(now)).random(&random)) else {
            panic!("nobody was chosen")
        };
        let address = pick.upstream().address();
        let server = self.list.iter().position(|a| a == address).unwrap_or(0);
        if let Some(second) = self.scenario.joins
            && (second * SECOND_US..(second + 1) * SECOND_US).contains(&now)
        {
            self.report.joined.0 += 1;
            self.report.joined.1 += usize::from(server == SERVERS);
        }
        let failed = self.scenario.fails && server == 3;
        self.servers[server].queue.push_back(Request { pick, arrived_us: now, failed });
        self.start(server, now);
    }

    fn start(&mut self, server: usize, now: u64) {
        while self.servers[server].running.len() < SLOTS {
            let Some(request) = self.servers[server].queue.pop_front() else { return };
            let slower = if server == 3 { self.scenario.slower } else { 1.0 };
            let takes = if request.failed { FAILS_AFTER_US } else { self.exponential(SERVICE_US * slower) };
            self.servers[server].running.push_back((now + takes, request));
            self.at(now + takes, Event::Done { server });
        }
    }

    fn finish(&mut self, server: usize, now: u64) {
        let running = &mut self.servers[server].running;
        let Some(place) = running.iter().position(|(until, _)| *until == now) else { return };
        let Some((_, request)) = running.remove(place) else { return };
        let took = now - request.arrived_us;
        let outcome = if request.failed { Outcome::BadGateway } else { Outcome::Success };
        request.pick.complete(outcome, Duration::from_micros(took), wall(now));
        if now >= self.scenario.settle * SECOND_US {
            self.report.total += 1;
            if request.failed {
                self.report.failed += 1;
            } else {
                self.report.latencies_ms.push(took as f64 / 1e3);
            }
        }
        self.start(server, now);
    }
}

fn wall(now_us: u64) -> i64 {
    EPOCH + i64::try_from(now_us / 1_000).unwrap_or(0)
}

fn times(name: &str, scenario: Scenario) -> (String, f64) {
    let mut report = simulate(name, scenario);
    let p99 = report.percentile(0.99);
    (format!("{:.0} / {p99:.0}", report.percentile(0.5)), p99)
}

fn main() {
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    println!("p50 / p99, milliseconds; share of a node that fails at once, percent\n");
    let heads = ["75 %, 1 client", "same, 20", "one 4x slower, 60 %", "same, 20", "failing", "with ejection"];
    println!("{:<26}{}", "", heads.map(|head| format!("{head:>21}")).concat());
    let mut failing_most: f64 = 0.0;
    let mut slow = f64::NAN;
    for name in POLICIES {
        let equal = |clients| times(name, Scenario { clients, load: 0.75, ..Scenario::default() });
        let slower = |clients| times(name, Scenario { clients, slower: 4.0, ..Scenario::default() });
        let failing = |outliers| {
            let scenario = Scenario { clients: 4, fails: true, outliers, ..Scenario::default() };
            simulate(name, scenario).failed_percent()
        };
        let (one, many) = (slower(1), slower(20));
        let with_ejection = failing(true);
        let cells = [
            equal(1).0,
            equal(20).0,
            one.0,
            many.0,
            format!("{:.2}", failing(false)),
            format!("{with_ejection:.2}"),
        ];
        println!("{name:<26}{}", cells.map(|cell| format!("{cell:>21}")).concat());
        if name == "peakEwma" {
            slow = one.1;
        }
        failing_most = failing_most.max(with_ejection);
    }

    println!(
        "\n{:<26}{:>21}{:>21}{:>21}",
        "an eleventh comes, 60 %", "p99 before", "p99 after", "share in 1st second"
    );
    let mut joins_well = (f64::NAN, f64::NAN, f64::NAN);
    for name in POLICIES {
        let scenario = Scenario { clients: 20, ..Scenario::default() };
        let before = times(name, scenario).1;
        let after = simulate(name, Scenario { joins: Some(20), ..scenario }).percentile(0.99);
        // One second is few requests, so of several runs.
        let runs = (0..20)
            .map(|seed| simulate(name, Scenario { joins: Some(20), seconds: 21, seed, ..scenario }).joined);
        let joined = runs.fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
        let share = joined.1 as f64 * 100.0 / joined.0 as f64;
        println!("{name:<26}{before:>21.0}{after:>21.0}{:>21}", format!("{share:.1} %"));
        if name == "peakEwma" {
            joins_well = (before, after, share);
        }
    }

    let even = times("peakEwma", Scenario::default()).1;
    let fair = 100.0 / (SERVERS + 1) as f64;
    let (before, after, share) = joins_well;
    println!("\ntargets");
    for (what, measured, bound) in [
        ("peak EWMA, one 4x slower: p99 to that without it", slow / even, 1.2),
        ("one failing at once, any policy, with ejection, percent", failing_most, 0.2),
        ("peak EWMA, one comes: p99 after to before", after / before, 1.1),
        ("peak EWMA, one comes: share in the first second, percent", share, fair),
    ] {
        let verdict = if measured <= bound { "met" } else { "MISSED" };
        println!("{what:<58} at most {bound:>5.2}, measured {measured:>5.2}  {verdict}");
    }
}
