//! What the admin counts, for Prometheus. Names begin with `soul_admin_` and end with the unit.

use prometheus_client::{
    encoding::prometheus_text,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Media type of [`Metrics::encode`]: the format that every Prometheus and `promtool` read, as of the gateway.
pub(crate) const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Upper bounds in seconds for what waits for a disk or for the network.
const SECONDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 3.0, 10.0];

/// How a registration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registered {
    /// Rows changed.
    Changed,
    /// All was known.
    Unchanged,
    /// The body was refused.
    Refused,
    /// The store could not keep it.
    Failed,
}

/// How a held poll ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    /// With groups that changed.
    Changed,
    /// Without, after the hold time or at shutdown.
    Unchanged,
    /// With an error.
    Refused,
    /// The client left.
    Gone,
}

/// A counter or gauge for each value of one label.
type ByLabel<M> = Family<[(&'static str, &'static str); 1], M>;

/// Every metric of one admin.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    registrations: ByLabel<Counter>,
    polls: ByLabel<Counter>,
    probes: ByLabel<Counter>,
    upstreams: ByLabel<Gauge>,
    /// Requests for whole groups.
    pub(crate) fetches: Counter,
    /// Polls that wait right now.
    pub(crate) polls_held: Gauge,
    /// Open connections.
    pub(crate) connections: Gauge,
    /// Number of the last change.
    pub(crate) revision: Gauge,
    /// Time to make a batch of changes durable.
    pub(crate) commit_seconds: Histogram,
    /// Batches that could not be made durable.
    pub(crate) commit_failures: Counter,
    /// Time of a round of probing.
    pub(crate) probe_round_seconds: Histogram,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("soul_admin"),
            registrations: Family::default(),
            polls: Family::default(),
            probes: Family::default(),
            upstreams: Family::default(),
            fetches: Counter::default(),
            polls_held: Gauge::default(),
            connections: Gauge::default(),
            revision: Gauge::default(),
            commit_seconds: Histogram::new(SECONDS),
            commit_failures: Counter::default(),
            probe_round_seconds: Histogram::new(SECONDS),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("registrations", "Registrations by how they ended", self.registrations.clone());
        registry.register("polls", "Held polls by how they ended", self.polls.clone());
        registry.register("polls_held", "Polls that wait for a change now", self.polls_held.clone());
        registry.register("fetches", "Requests for whole groups of configuration", self.fetches.clone());
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register("revision", "Number of the last change of the store", self.revision.clone());
        registry.register("upstreams", "Configured upstreams by what probing found", self.upstreams.clone());
        registry.register("probes", "Probes of upstreams by result", self.probes.clone());
        registry.register(
            "commit_failures",
            "Batches of changes that could not be made durable",
            self.commit_failures.clone(),
        );
        registry.register_with_unit(
            "commit",
            "Time to make a batch of changes durable",
            Unit::Seconds,
            self.commit_seconds.clone(),
        );
        registry.register_with_unit(
            "probe_round",
            "Time of a round of probing",
            Unit::Seconds,
            self.probe_round_seconds.clone(),
        );
    }

    pub(crate) fn registered(&self, outcome: Registered) {
        let outcome = match outcome {
            Registered::Changed => "changed",
            Registered::Unchanged => "unchanged",
            Registered::Refused => "refused",
            Registered::Failed => "failed",
        };
        self.registrations.get_or_create(&[("outcome", outcome)]).inc();
    }

    pub(crate) fn polled(&self, outcome: Polled) {
        let outcome = match outcome {
            Polled::Changed => "changed",
            Polled::Unchanged => "unchanged",
            Polled::Refused => "refused",
            Polled::Gone => "gone",
        };
        self.polls.get_or_create(&[("outcome", outcome)]).inc();
    }

    pub(crate) fn probed(&self, alive: bool) {
        self.probes.get_or_create(&[("result", state(alive))]).inc();
    }

    pub(crate) fn count_upstreams(&self, alive: usize, dead: usize) {
        for (is_alive, count) in [(true, alive), (false, dead)] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.upstreams.get_or_create(&[("state", state(is_alive))]).set(count);
        }
    }

    /// The text of the whole.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }
}

fn state(alive: bool) -> &'static str {
    if alive { "alive" } else { "dead" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{documented::check_metrics, exposition};

    #[test]
    fn the_page_lists_every_metric_of_an_admin() {
        let metrics = Metrics::new();
        metrics.registered(Registered::Changed);
        metrics.polled(Polled::Gone);
        metrics.probed(true);
        metrics.count_upstreams(1, 1);
        check_metrics("Metrics of an admin", &metrics.encode());
    }

    #[test]
    fn names_carry_part_and_unit() {
        let metrics = Metrics::new();
        metrics.registered(Registered::Changed);
        metrics.commit_seconds.observe(0.002);
        metrics.count_upstreams(2, 1);
        let text = metrics.encode();
        exposition::check(&text);
        for line in [
            "# HELP soul_admin_registrations_total Registrations by how they ended.",
            "soul_admin_registrations_total{outcome=\"changed\"} 1",
            "soul_admin_upstreams{state=\"dead\"} 1",
            "soul_admin_commit_seconds_count 1",
        ] {
            assert!(text.contains(line), "{line} not in\n{text}");
        }
    }
}
