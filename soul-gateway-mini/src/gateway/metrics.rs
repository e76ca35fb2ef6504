//! Metrics, written from the serving snapshot when they are asked for: a selector that is gone leaves no series behind,
//! and labels are names out of the configuration, never anything a caller sent.

use std::{collections::BTreeMap, fmt, sync::Arc, time::UNIX_EPOCH};

use prometheus_client::{
    collector::Collector,
    encoding::{
        DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, NoLabelSet, prometheus_text,
    },
    metrics::MetricType,
    registry::Registry,
};
use soul_client::balance::Health;

use super::{plugin::divide::Selector, status::Watched};
use crate::{
    clock::now_ms,
    sync::{Destination, Snapshot},
};

/// The type of the text, as scrapers want it named.
pub(super) const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Sum of seconds, and the count of each bucket by its upper bound.
type Distribution = (f64, Vec<(f64, u64)>);

/// All metrics of a gateway.
pub(super) struct Metrics(Registry);

impl Metrics {
    pub(super) fn new(watched: Watched) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Gathered(watched)));
        Self(registry)
    }

    /// The metrics as text.
    ///
    /// # Errors
    /// Never: a `String` takes everything.
    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_text::encode(&mut text, &self.0)?;
        Ok(text)
    }
}

struct Gathered(Watched);

impl fmt::Debug for Gathered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gathered").finish_non_exhaustive()
    }
}

impl Collector for Gathered {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let snapshot = self.0.sync.snapshot();
        let selectors: Vec<&Selector> =
            snapshot.iter().filter_map(|s| s.divide()).flat_map(|table| table.selectors()).collect();
        let mut writer = Writer { encoder };
        self.requests(&mut writer, &selectors)?;
        durations(&mut writer, &selectors)?;
        upstreams(&mut writer, &selectors)?;
        attempts(&mut writer, &selectors)?;
        self.synchronisation(&mut writer, snapshot.as_deref())?;
        let help = "Open connections of callers";
        writer.plain("soul_gateway_connections", help, &self.0.callers.len())?;
        let help = "Open connections to upstreams, idle ones included";
        writer.plain("soul_gateway_upstream_connections", help, &self.0.upstream_connections())?;
        let build = [("version", env!("CARGO_PKG_VERSION"))];
        writer.gauge("soul_gateway_build_info", "Which build this is; always 1", [(build, 1u64)])
    }
}

impl Gathered {
    fn requests(&self, writer: &mut Writer<'_>, selectors: &[&Selector]) -> fmt::Result {
        // Names may repeat in a configuration, series may not.
        let mut sums: BTreeMap<[String; 3], u64> = BTreeMap::new();
        let mut add = |selector: &str, rule: &str, status: String, count: u64| {
            *sums.entry([selector.to_owned(), rule.to_owned(), status]).or_default() += count;
        };
        for (status, count) in self.0.unmatched.counts() {
            add("", "", status, count);
        }
        for selector in selectors {
            for (status, count) in selector.payload().stats().without_rule.counts() {
                add(selector.name(), "", status, count);
            }
            for rule in selector.rules() {
                for (status, count) in rule.payload().stats.counts() {
                    add(selector.name(), rule.name(), status, count);
                }
            }
        }
        let series = sums.into_iter().map(|([selector, rule, status], count)| {
            ([("selector", selector), ("rule", rule), ("status", status)], count)
        });
        writer.counter(
            "soul_gateway_requests",
            "Requests by selector and rule, both empty where none matched, and status",
            series,
        )
    }

    fn synchronisation(&self, writer: &mut Writer<'_>, snapshot: Option<&Snapshot>) -> fmt::Result {
        let status = self.0.sync.status();
        let status = status.borrow();
        if let Some(age) = status.age() {
            let help = "Seconds since the source of the configuration was last heard of";
            writer.plain("soul_gateway_sync_age_seconds", help, &age.as_secs_f64())?;
        }
        let help = "Whether the last exchange with the source of the configuration went well";
        writer.plain("soul_gateway_sync_connected", help, &u64::from(status.connected))?;
        let help = "Whether the source of the configuration was not heard of for too long";
        writer.plain(
            "soul_gateway_sync_stale",
            help,
            &u64::from(status.is_stale(self.0.config.borrow().sync.stale_after)),
        )?;
        let help = "Attempts to learn the configuration that failed in a row";
        writer.plain("soul_gateway_sync_failures", help, &status.consecutive_failures)?;
        let help = "Number of the serving configuration, counted from the start of this process";
        writer.plain("soul_gateway_config_revision", help, &status.revision)?;
        let Some(snapshot) = snapshot else { return Ok(()) };
        let made = snapshot.made().duration_since(UNIX_EPOCH).unwrap_or_default();
        let help = "When the serving configuration was made, seconds since the epoch";
        writer.plain("soul_gateway_config_timestamp_seconds", help, &made.as_secs_f64())?;
        let help = "Entries of the configuration that cannot be used";
        writer.plain("soul_gateway_config_refused_entries", help, &snapshot.refused().len())
    }
}

fn durations(writer: &mut Writer<'_>, selectors: &[&Selector]) -> fmt::Result {
    let mut sums: BTreeMap<&str, Distribution> = BTreeMap::new();
    for selector in selectors {
        let Some((sum, counts)) = selector.payload().stats().durations.distribution() else { continue };
        match sums.get_mut(selector.name()) {
            Some((total, buckets)) => {
                *total += sum;
                buckets.iter_mut().zip(counts).for_each(|((_, all), (_, count))| *all += count);
            }
            None => drop(sums.insert(selector.name(), (sum, counts))),
        }
    }
    let help = "Seconds from a request's head to the head of its answer, by selector";
    writer.histogram("soul_gateway_request_duration_seconds", help, sums)
}

/// What the requests of a selector share: attempts after the first, and the queue.
fn attempts(writer: &mut Writer<'_>, selectors: &[&Selector]) -> fmt::Result {
    // Names may repeat in a configuration, series may not.
    let mut sums: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for selector in selectors {
        let (stats, sum) = (selector.payload().stats(), sums.entry(selector.name()).or_default());
        sum.0 += stats.retries.spent();
        sum.1 += stats.retries.denied();
        sum.2 += stats.queue.waiting() as u64;
    }
    let label = |selector: &str| [("selector", selector.to_owned())];
    let help = "Attempts after the first";
    writer.counter("soul_gateway_retries", help, sums.iter().map(|(name, sum)| (label(name), sum.0)))?;
    let help = "Attempts after the first that the budget did not allow";
    writer.counter(
        "soul_gateway_retries_denied",
        help,
        sums.iter().map(|(name, sum)| (label(name), sum.1)),
    )?;
    let help = "Requests that wait for an upstream with room";
    writer.gauge("soul_gateway_requests_waiting", help, sums.iter().map(|(name, sum)| (label(name), sum.2)))
}

/// One upstream of a selector, once however often it is listed.
fn upstreams(writer: &mut Writer<'_>, selectors: &[&Selector]) -> fmt::Result {
    let mut gauges: BTreeMap<[&str; 2], (u64, u64)> = BTreeMap::new();
    let mut limits: BTreeMap<[&str; 2], u64> = BTreeMap::new();
    let mut addresses: BTreeMap<&str, &Arc<Destination>> = BTreeMap::new();
    for selector in selectors {
        for member in selector.payload().upstreams().members() {
            let Some(end) = selector.payload().end(member) else { continue };
            let destination = &end.destination;
            let up = u64::from(member.state().health() != Health::Down && member.upstream().status());
            let in_flight = u64::from(member.state().in_flight());
            let key = [selector.name(), destination.address()];
            gauges.insert(key, (up, in_flight));
            let limit = end.known_flow().and_then(|flow| flow.known_limit(now_ms()));
            limits.extend(limit.map(|limit| (key, limit.into())));
            addresses.insert(destination.address(), destination);
        }
    }
    let labels = |[selector, upstream]: [&str; 2]| {
        [("selector", selector.to_owned()), ("upstream", upstream.to_owned())]
    };
    let help = "Whether an upstream may be chosen: switched on and not found down";
    writer.gauge(
        "soul_gateway_upstream_up",
        help,
        gauges.iter().map(|(key, (up, _))| (labels(*key), *up)),
    )?;
    let help = "Requests an upstream is serving for a selector";
    let in_flight = gauges.iter().map(|(key, (_, in_flight))| (labels(*key), *in_flight));
    writer.gauge("soul_gateway_upstream_requests_in_flight", help, in_flight)?;
    let help = "Most requests an upstream gets at once from a selector while more would only wait there; absent otherwise";
    let limits = limits.iter().map(|(key, limit)| (labels(*key), *limit));
    writer.gauge("soul_gateway_upstream_requests_limit", help, limits)?;
    let label = |address: &str| [("upstream", address.to_owned())];
    let help = "Requests sent to an upstream, repetitions included";
    let attempts = addresses.iter().map(|(address, d)| (label(address), d.attempts()));
    writer.counter("soul_gateway_upstream_attempts", help, attempts)?;
    let help = "Requests that an upstream did not answer";
    let failures = addresses.iter().map(|(address, d)| (label(address), d.failures()));
    writer.counter("soul_gateway_upstream_failures", help, failures)
}

/// Writes families of metrics.
struct Writer<'e> {
    encoder: DescriptorEncoder<'e>,
}

impl Writer<'_> {
    fn counter<L: EncodeLabelSet, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in series {
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }

    fn gauge<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in series {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// One value without labels.
    fn plain(&mut self, name: &str, help: &str, value: &impl EncodeGaugeValue) -> fmt::Result {
        self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(value)
    }

    fn histogram(&mut self, name: &str, help: &str, series: BTreeMap<&str, Distribution>) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (selector, (sum, buckets)) in series {
            let count = buckets.iter().map(|(_, count)| count).sum();
            let labels = [("selector", selector)];
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}
