//! Calls, over real sockets and by transports made up for a test.

mod factory;
mod hostile;
mod listening;
mod priming;
mod requests;
mod retries;
mod scripted;
#[cfg(feature = "rustls")]
mod tls;
#[cfg(feature = "tower")]
mod towers;

use std::time::Duration;

use super::{ClientFactory, LbClient, ServiceConfig, probe::Probing};
use crate::balance::{Upstream, policy::RoundRobin};

/// In turn, unprobed, without pauses: what a test says of the order of attempts then holds.
fn plain() -> ServiceConfig {
    ServiceConfig::default()
        .policy(RoundRobin)
        .probe(Probing::none())
        .backoff(Duration::ZERO, Duration::ZERO)
        .outliers(None)
        .panic_threshold(0.0)
}

/// A client of the service `orders` at these addresses.
fn orders(addresses: &[&str], config: impl FnOnce(ServiceConfig) -> ServiceConfig) -> LbClient {
    let servers: Vec<_> = addresses.iter().map(|&address| Upstream::new(address)).collect();
    let factory =
        ClientFactory::builder().service("orders", |_| config(plain().servers(servers))).build().unwrap();
    factory.client("orders").unwrap()
}

/// Waits for a condition, up to a deadline far beyond what it takes.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "not {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
