//! What the benchmarks have in common.

use soul_client::balance::Upstream;

/// Pod-like addresses of one set: all sets and numbers give different ones.
pub(crate) fn addresses(set: usize, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("10.{}.{}.{}:8080", 1 + set % 200, i / 250, 1 + i % 250)).collect()
}

pub(crate) fn upstreams(addresses: &[String]) -> Vec<Upstream> {
    addresses.iter().map(Upstream::new).collect()
}
