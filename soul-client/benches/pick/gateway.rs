//! What the gateway's rules choose, exactly as Soul; what Soul does for the same; and what the machine can do.

use std::{hint::black_box, time::Instant};

use arc_swap::ArcSwap;
use soul_client::balance::{Choice, Key, LoadBalance, PickContext, UpstreamSet, soul};

use crate::{
    common::{addresses, upstreams},
    keys::Keys,
    ours::NOW,
    table::Table,
};

pub(crate) fn add(table: &mut Table) {
    machine(table);
    for balance in LoadBalance::ALL {
        table.add(&format!("gateway {balance} (exactly Soul's)"), move |stopwatch, size| {
            let set = ArcSwap::new(UpstreamSet::build(upstreams(&addresses(0, size)), None, Choice::Soul));
            let mut keys = Keys::new();
            Some(stopwatch.time(|| {
                let context = PickContext::at(NOW).key(Key::Text(keys.next()));
                black_box(set.load().pick(balance, black_box(&context)));
            }))
        });
    }
    table.add("Soul hash, ring rebuilt for each request", |stopwatch, size| {
        let addresses = addresses(0, size);
        let mut keys = Keys::new();
        Some(stopwatch.time(|| {
            let ring = soul::Ring::new(addresses.iter().map(String::as_str));
            black_box(ring.owner(soul::hash(keys.next())));
        }))
    });
    table.add("Soul roundRobin, all counters for each request", |stopwatch, size| {
        let addresses = addresses(0, size);
        let mut balance = soul::RoundRobin::new();
        Some(stopwatch.time(|| {
            let turns = addresses.iter().map(|a| soul::Turn::new(a, 50));
            black_box(balance.select(&addresses[0], turns, NOW));
        }))
    });
}

fn machine(table: &mut Table) {
    table.add("a read of the clock", |stopwatch, _| {
        Some(stopwatch.time(|| {
            black_box(Instant::now());
        }))
    });
    table.add("MD5 of a key", |stopwatch, _| {
        let mut keys = Keys::new();
        Some(stopwatch.time(|| {
            black_box(soul::hash(keys.next()));
        }))
    });
}
