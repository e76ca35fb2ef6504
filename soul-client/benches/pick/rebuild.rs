//! What a change of the list costs.

use std::{hint::black_box, time::Instant};

use soul_client::balance::{Balancer, Settings, Upstream, policy};

use crate::{
    common::{addresses, upstreams},
    ours::NOW,
    table::{SIZES, heading},
};

/// Prints a table.
pub(crate) fn print() {
    println!();
    heading("rebuild after a change, milliseconds");
    for name in ["peakEwma", "weightedRandom", "ringHash", "maglev", "hash"] {
        let mut cells = String::new();
        for size in SIZES {
            let Ok(policy) = policy::by_name(name) else { continue };
            let mut list = upstreams(&addresses(0, size));
            let settings = Settings { policy, ..Settings::default() };
            let balancer = Balancer::new(list.clone(), settings, NOW);
            let mut best = f64::INFINITY;
            for i in 0..5 {
                // Another address in place of the first.
                list[0] = Upstream::new(format!("10.250.0.{i}:80"));
                let next = list.clone();
                let start = Instant::now();
                black_box(balancer.update(next, NOW));
                best = best.min(start.elapsed().as_secs_f64() * 1e3);
            }
            cells += &format!("{best:>20.3}");
        }
        println!("{name:<58}{cells}");
    }
}
