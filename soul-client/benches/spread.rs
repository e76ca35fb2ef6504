//! How evenly keys are spread, and how many move when somebody leaves or comes.
//!
//! `cargo bench -p soul-client --bench spread`; some seconds.
//!
//! Keys are random IPv4 addresses, lists are sets of pod-like addresses. *Fullest* is that of the fullest upstream to the
//! mean, averaged over the sets, the worst set in brackets. *Collateral* are keys that moved although their own
//! upstream stayed (leave), or that moved to an old one (come), as a share of all.

mod common;

use std::net::{Ipv4Addr, SocketAddr};

use common::{addresses, upstreams};
use soul_client::balance::{Balancer, Key, PickContext, Settings, Upstream, policy};

const KEYS: usize = 100_000;
const SETS: usize = 20;
/// Sets for which somebody leaves and comes.
const CHANGES: usize = 5;
const SIZES: [usize; 3] = [3, 10, 100];
const NOW: i64 = 1_612_500_000_000;

/// Builds what gives owners, for a list.
type Way = Box<dyn Fn(&[String]) -> Owners<'static>>;

/// Gives every key an owner, by position in the list.
type Owners<'k> = Box<dyn Fn(&str) -> usize + 'k>;

fn balancer(name: &str, list: &[String]) -> Balancer {
    let policy = policy::by_name(name).unwrap_or_else(|error| panic!("{error}"));
    Balancer::new(upstreams(list), Settings { policy, ..Settings::default() }, NOW)
}

fn by_policy(name: &'static str) -> impl Fn(&[String]) -> Owners<'static> {
    move |list| {
        let balancer = balancer(name, list);
        let list = list.to_vec();
        Box::new(move |key| {
            let pick = balancer.choose(&PickContext::at(NOW).key(Key::Text(key)));
            let address = pick.as_ref().map_or("", |pick| pick.upstream().address());
            list.iter().position(|a| a == address).unwrap_or(usize::MAX)
        })
    }
}

fn by_ketama(list: &[String]) -> Owners<'static> {
    let list: Vec<SocketAddr> = list.iter().filter_map(|a| a.parse().ok()).collect();
    let buckets: Vec<_> = list.iter().map(|&a| pingora_ketama::Bucket::new(a, 1)).collect();
    let ring = pingora_ketama::Continuum::new(&buckets);
    Box::new(move |key| {
        let node = ring.node(key.as_bytes());
        list.iter().position(|&a| Some(a) == node).unwrap_or(usize::MAX)
    })
}

fn by_modulo(list: &[String]) -> Owners<'static> {
    let count = list.len();
    Box::new(move |key| usize::try_from(xxhash_rust::xxh3::xxh3_64(key.as_bytes())).unwrap_or(0) % count)
}

struct Measured {
    fullest: f64,
    worst: f64,
    leave: f64,
    come: f64,
}

fn measure(keys: &[String], size: usize, owners: &dyn Fn(&[String]) -> Owners<'static>) -> Measured {
    let (mut sum, mut worst) = (0.0, 0.0_f64);
    let (mut leave, mut come) = (0, 0);
    for set in 0..SETS {
        let list = addresses(set, size + 1);
        let (newcomer, list) = list.split_last().unwrap_or_else(|| panic!("a list has somebody"));
        let owner = owners(list);
        let before: Vec<_> = keys.iter().map(|key| owner(key)).collect();
        let mut counts = vec![0; size];
        for &owner in &before {
            counts[owner] += 1;
        }
        let fullest = f64::from(counts.iter().copied().max().unwrap_or(0)) * size as f64 / KEYS as f64;
        sum += fullest;
        worst = worst.max(fullest);
        if set >= CHANGES {
            continue;
        }
        let gone = set % size;
        let rest: Vec<_> =
            list.iter().enumerate().filter(|&(i, _)| i != gone).map(|(_, a)| a.clone()).collect();
        let owner = owners(&rest);
        let moved = |(key, &before): (&String, &usize)| {
            let after = owner(key);
            before != gone && list[before] != rest[after]
        };
        leave += keys.iter().zip(&before).filter(|&(key, before)| moved((key, before))).count();
        let mut more = list.to_vec();
        more.push(newcomer.clone());
        let owner = owners(&more);
        let moved = |(key, &before): (&String, &usize)| {
            let after = owner(key);
            after != before && after != size
        };
        come += keys.iter().zip(&before).filter(|&(key, before)| moved((key, before))).count();
    }
    let share = |moved: usize| moved as f64 * 100.0 / (KEYS * CHANGES) as f64;
    Measured { fullest: sum / SETS as f64, worst, leave: share(leave), come: share(come) }
}

/// The fullest to the mean when no request ends, and how many keys were displaced.
fn bounded(keys: &[String], name: &str, plain: &str, size: usize) -> (f64, f64) {
    let list = addresses(0, size);
    let (bounded, free) = (balancer(name, &list), balancer(plain, &list));
    let mut displaced = 0;
    let held: Vec<_> = keys
        .iter()
        .filter_map(|key| {
            let context = PickContext::at(NOW).key(Key::Text(key));
            let pick = bounded.choose(&context)?;
            let owner = free.choose(&context)?;
            displaced += usize::from(owner.upstream() != pick.upstream());
            Some(pick)
        })
        .collect();
    let fullest = bounded.snapshot().all().iter().map(|m| m.state().in_flight()).max().unwrap_or(0);
    let ratio = f64::from(fullest) * size as f64 / held.len() as f64;
    (ratio, displaced as f64 * 100.0 / held.len() as f64)
}

fn shares() {
    println!("\n{:<28}{:>14}{:>14}{:>14}", "share error, 100,000 picks", "10", "100", "worst allowed");
    for (name, deterministic) in
        [("weightedRoundRobin", true), ("roundRobin", true), ("weightedRandom", false)]
    {
        print!("{name:<28}");
        let mut met = true;
        for size in [10, 100] {
            let list: Vec<_> = addresses(0, size)
                .into_iter()
                .zip([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].into_iter().cycle())
                .map(|(a, w)| Upstream::new(a).with_weight(w))
                .collect();
            let policy = policy::by_name(name).unwrap_or_else(|error| panic!("{error}"));
            let balancer = Balancer::new(list, Settings { policy, ..Settings::default() }, NOW);
            for _ in 0..KEYS {
                drop(balancer.choose(&PickContext::at(NOW)));
            }
            let snapshot = balancer.snapshot();
            let total: i32 = snapshot.all().iter().map(|m| m.upstream().weight()).sum();
            let worst = snapshot.all().iter().map(|m| {
                let expected = KEYS as f64 * f64::from(m.upstream().weight()) / f64::from(total);
                let error = (m.state().picks() as f64 - expected).abs();
                // Of chance in standard deviations, else in percent.
                if deterministic { error * 100.0 / expected } else { error / expected.sqrt() }
            });
            let worst = worst.fold(0.0, f64::max);
            met &= worst <= if deterministic { 0.5 } else { 3.9 };
            print!(
                "{:>14}",
                if deterministic { format!("{worst:.2} %") } else { format!("{worst:.1} sigma") }
            );
        }
        // Of a hundred at once, the worst lies beyond three deviations one time in four.
        let allowed = if deterministic { "0.5 %" } else { "3.9 sigma" };
        println!("{allowed:>14}  {}", if met { "met" } else { "MISSED" });
    }
}

fn main() {
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let mut rng = fastrand::Rng::with_seed(1);
    let keys: Vec<_> = (0..KEYS).map(|_| Ipv4Addr::from_bits(rng.u32(..)).to_string()).collect();
    println!(
        "{:<28}{:>16}{:>16}{:>16}   {:<20}{:<20}",
        "fullest to mean", 3, 10, 100, "collateral, leave %", "come %"
    );
    let ways: [(&str, Way, Option<[f64; 3]>, f64); 6] = [
        ("hash (Soul, 5 points)", Box::new(by_policy("hash")), None, 0.0),
        ("ringHash (160, xxh3)", Box::new(by_policy("ringHash")), Some([1.10, 1.18, 1.28]), 0.0),
        ("maglev", Box::new(by_policy("maglev")), Some([1.02, 1.03, 1.12]), 1.0),
        ("boundedRingHash, idle", Box::new(by_policy("boundedRingHash")), None, 0.0),
        ("pingora-ketama", Box::new(by_ketama), None, 0.0),
        ("modulo", Box::new(by_modulo), None, 100.0),
    ];
    let mut verdicts = Vec::new();
    for (name, owners, bounds, collateral) in ways {
        let all: Vec<_> = SIZES.iter().map(|&size| measure(&keys, size, &owners)).collect();
        let fullest: String =
            all.iter().map(|m| format!("{:>16}", format!("{:.2} ({:.2})", m.fullest, m.worst))).collect();
        let percent = |f: fn(&Measured) -> f64| {
            all.iter().map(|m| format!("{:.2}", f(m))).collect::<Vec<_>>().join(" / ")
        };
        println!("{name:<28}{fullest}   {:<20}{:<20}", percent(|m| m.leave), percent(|m| m.come));
        let even = bounds.is_none_or(|bounds| all.iter().zip(bounds).all(|(m, bound)| m.fullest <= bound));
        let still = all.iter().all(|m| m.leave.max(m.come) <= collateral);
        if bounds.is_some() {
            let word = |met: bool| if met { "met" } else { "MISSED" };
            verdicts.push(format!(
                "{name}: evenness {bounds:?} {}, collateral {collateral} % {}",
                word(even),
                word(still)
            ));
        }
    }
    println!("\n{:<28}{:>22}{:>22}{:>22}", "bounded load 1.25, all held", 3, 10, 100);
    for (name, plain) in
        [("boundedHash", "hash"), ("boundedRingHash", "ringHash"), ("boundedMaglev", "maglev")]
    {
        print!("{name:<28}");
        for size in SIZES {
            let (ratio, displaced) = bounded(&keys, name, plain, size);
            print!("{:>22}", format!("{ratio:.3}, {displaced:.1} % moved"));
            let met = ratio <= 1.25 + size as f64 / KEYS as f64;
            verdicts.push(format!("{name}, {size}: at most 1.25 {}", if met { "met" } else { "MISSED" }));
        }
        println!();
    }
    shares();
    println!("\ntargets\n{}", verdicts.join("\n"));
}
