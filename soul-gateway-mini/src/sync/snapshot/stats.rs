//! Counters of selectors and rules. They are part of the snapshot, so that counting a request looks nothing up, and
//! are handed from one snapshot to the next.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use http::StatusCode;

use super::load::{Queue, Retries};
use crate::shard::Sharded;

/// Statuses that are counted one by one; all others are counted by their class.
const KNOWN: [u16; 28] = [
    200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409, 413, 422, 429,
    499, 500, 501, 502, 503, 504, 507,
];

/// The classes, as labels.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

struct StatusCounters([AtomicU64; KNOWN.len() + CLASSES.len()]);

impl Default for StatusCounters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; _])
    }
}

/// Requests by the status they were answered with. Takes memory only once it counted something.
#[derive(Debug, Default)]
pub(crate) struct StatusStats {
    counters: Sharded<StatusCounters>,
}

impl StatusStats {
    /// The same counters for what comes after, while requests still count in these.
    pub(super) fn share(&self) -> Self {
        Self { counters: self.counters.share() }
    }

    pub(crate) fn count(&self, status: StatusCode) {
        let code = status.as_u16();
        let place = KNOWN.binary_search(&code).unwrap_or_else(|_| {
            let class = usize::from(code / 100).clamp(1, CLASSES.len());
            KNOWN.len() + class - 1
        });
        self.counters.mine().0[place].fetch_add(1, Relaxed);
    }

    /// What was counted, by label.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (String, u64)> {
        let mut sums = [0; KNOWN.len() + CLASSES.len()];
        for StatusCounters(counters) in self.counters.all() {
            sums.iter_mut().zip(counters).for_each(|(sum, counter)| *sum += counter.load(Relaxed));
        }
        sums.into_iter().enumerate().filter_map(|(place, count)| {
            let label =
                KNOWN.get(place).map_or_else(|| CLASSES[place - KNOWN.len()].to_owned(), u16::to_string);
            (count > 0).then_some((label, count))
        })
    }
}

/// Upper bounds of the duration buckets, seconds.
pub(crate) const BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// How long requests took until their answer began. Takes memory only once it saw one.
#[derive(Debug, Default)]
pub(crate) struct DurationStats {
    buckets: Sharded<DurationBuckets>,
}

#[derive(Debug, Default)]
struct DurationBuckets {
    /// The last one is for all that took longer.
    counts: [AtomicU64; BUCKETS.len() + 1],
    sum_micros: AtomicU64,
}

impl DurationStats {
    pub(crate) fn observe(&self, took: Duration) {
        let buckets = self.buckets.mine();
        let seconds = took.as_secs_f64();
        let place = BUCKETS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS.len());
        buckets.counts[place].fetch_add(1, Relaxed);
        buckets.sum_micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// How many were seen.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.all().flat_map(|buckets| &buckets.counts).map(|count| count.load(Relaxed)).sum()
    }

    /// Sum of seconds, and the count of each bucket by its upper bound; `None` if nothing was seen.
    pub(crate) fn distribution(&self) -> Option<(f64, Vec<(f64, u64)>)> {
        let (mut sums, mut sum_micros, mut seen) = ([0; BUCKETS.len() + 1], 0, false);
        for buckets in self.buckets.all() {
            seen = true;
            sum_micros += buckets.sum_micros.load(Relaxed);
            sums.iter_mut().zip(&buckets.counts).for_each(|(sum, count)| *sum += count.load(Relaxed));
        }
        let bounds = BUCKETS.iter().copied().chain([f64::INFINITY]);
        seen.then(|| (sum_micros as f64 / 1e6, bounds.zip(sums).collect()))
    }
}

/// What is counted of a selector.
#[derive(Debug, Default)]
pub(crate) struct SelectorStats {
    /// Requests it took and none of its rules did.
    pub(crate) without_rule: StatusStats,
    /// All it took.
    pub(crate) durations: DurationStats,
    pub(crate) retries: Retries,
    pub(crate) queue: Queue,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_statuses_count_alone_and_the_rest_by_class() {
        assert!(KNOWN.is_sorted());
        let stats = StatusStats::default();
        assert_eq!(stats.counts().count(), 0);
        for code in [200, 200, 404, 218, 299, 599, 999] {
            stats.count(StatusCode::from_u16(code).unwrap());
        }
        let counts: Vec<_> = stats.counts().collect();
        let expected = [("200", 2), ("404", 1), ("2xx", 2), ("5xx", 2)];
        assert_eq!(counts, expected.map(|(label, count)| (label.to_owned(), count)));
    }

    #[test]
    fn durations_fall_into_their_buckets() {
        let stats = DurationStats::default();
        assert!(stats.distribution().is_none());
        for millis in [1, 2, 20_000] {
            stats.observe(Duration::from_millis(millis));
        }
        let (sum, counts) = stats.distribution().unwrap();
        assert!((sum - 20.003).abs() < 1e-9);
        let hit: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(hit, [(0.001, 1), (0.0025, 1), (f64::INFINITY, 1)]);
    }
}
