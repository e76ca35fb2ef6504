//! Success rates: upstreams that fail far more often than the others are left out.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Ejects upstreams whose share of successes is far below that of the others: failures that never come five in a row.
///
/// # Source
/// Envoy's outlier detection by success rate, with its defaults; but it looks at a sliding window of ten buckets, ten times in a
/// window, where Envoy looks at each interval once at its end.
///
/// # Examples
/// ```
/// use soul_client::balance::{OutlierDetector, SuccessRate};
///
/// let detector = OutlierDetector { success_rate: Some(SuccessRate::default()), ..OutlierDetector::default() };
/// assert_eq!(detector.success_rate.map(|rate| rate.hosts), Some(5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuccessRate {
    /// How long a request counts. Default 10 s.
    pub window: Duration,
    /// Fewest upstreams with enough requests, for a mean that means something. Default 5.
    pub hosts: u32,
    /// Fewest requests in a window by which an upstream is judged. Default 100.
    pub requests: u32,
    /// How many standard deviations below the mean eject. Default 1.9.
    pub deviations: f64,
}

impl Default for SuccessRate {
    fn default() -> Self {
        Self { window: Duration::from_secs(10), hosts: 5, requests: 100, deviations: 1.9 }
    }
}

impl SuccessRate {
    /// Length of a bucket, milliseconds.
    pub(super) fn bucket_ms(&self) -> i64 {
        i64::try_from(self.window.as_millis() / BUCKETS as u128).unwrap_or(i64::MAX).max(1)
    }

    /// The share below which an upstream is ejected; `None` if too few can be judged.
    ///
    /// - `rates`: of those with enough requests.
    pub(super) fn threshold(&self, rates: &[f64]) -> Option<f64> {
        if rates.len() < self.hosts.max(1) as usize {
            return None;
        }
        #[allow(clippy::cast_precision_loss)]
        let count = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / count;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / count;
        Some(mean - self.deviations * variance.sqrt())
    }

    /// The share of successes of one upstream; `None` if it had too few requests.
    pub(super) fn rate(&self, window: &Window, now_ms: i64) -> Option<f64> {
        let (successes, failures) = window.sums(now_ms, self.bucket_ms());
        let all = successes + failures;
        #[allow(clippy::cast_precision_loss)]
        (all >= u64::from(self.requests.max(1))).then(|| successes as f64 / all as f64)
    }
}

const BUCKETS: usize = 10;

/// Enough for a million requests of either kind in one bucket.
const COUNT_BITS: u32 = 20;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

/// Successes and failures of one upstream in the last buckets of time.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// In each the number of its bucket, then failures, then successes.
    buckets: [AtomicU64; BUCKETS],
}

impl Window {
    pub(super) fn count(&self, failed: bool, now_ms: i64, bucket_ms: i64) {
        let number = number(now_ms, bucket_ms);
        let one = if failed { 1 << COUNT_BITS } else { 1 };
        let add = |before: u64| {
            if before >> (2 * COUNT_BITS) != number {
                return Some(number << (2 * COUNT_BITS) | one);
            }
            let full = before & COUNT == COUNT || before >> COUNT_BITS & COUNT == COUNT;
            (!full).then(|| before + one)
        };
        // A full bucket counts no further, so that its share stays what it is.
        let _ = self.bucket(number).fetch_update(Relaxed, Relaxed, add);
    }

    /// Successes and failures.
    fn sums(&self, now_ms: i64, bucket_ms: i64) -> (u64, u64) {
        let newest = number(now_ms, bucket_ms);
        let recent = |bucket: u64| newest.wrapping_sub(bucket >> (2 * COUNT_BITS)) < BUCKETS as u64;
        let recent = self.buckets.iter().map(|b| b.load(Relaxed)).filter(|&bucket| recent(bucket));
        recent.fold((0, 0), |(successes, failures), bucket| {
            (successes + (bucket & COUNT), failures + (bucket >> COUNT_BITS & COUNT))
        })
    }

    /// Begins anew, lest what ejected it ejects it again when it is back.
    pub(super) fn clear(&self) {
        for bucket in &self.buckets {
            bucket.store(0, Relaxed);
        }
    }

    fn bucket(&self, number: u64) -> &AtomicU64 {
        &self.buckets[usize::try_from(number % BUCKETS as u64).unwrap_or(0)]
    }
}

/// The number of the bucket of a moment, as far as it fits: it repeats after half a year of buckets of a second.
fn number(now_ms: i64, bucket_ms: i64) -> u64 {
    now_ms.div_euclid(bucket_ms.max(1)).cast_unsigned() & ((1 << (u64::BITS - 2 * COUNT_BITS)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_612_500_000_000;

    #[test]
    fn what_is_older_than_the_window_does_not_count() {
        let rule = SuccessRate { requests: 4, ..SuccessRate::default() };
        let window = Window::default();
        for (failed, at) in [(true, 0), (true, 500), (false, 1_000), (false, 9_999)] {
            window.count(failed, NOW + at, rule.bucket_ms());
        }
        assert_eq!(rule.rate(&window, NOW + 9_999), Some(0.5));
        assert_eq!(rule.rate(&window, NOW + 10_000), None, "two are left");
        window.count(false, NOW + 10_001, rule.bucket_ms());
        window.count(false, NOW + 10_002, rule.bucket_ms());
        assert_eq!(rule.rate(&window, NOW + 10_002), Some(1.0));
        window.clear();
        assert_eq!(rule.rate(&window, NOW + 10_002), None);
    }

    #[test]
    fn the_threshold_is_the_mean_less_deviations_of_enough_hosts() {
        let rule = SuccessRate::default();
        assert_eq!(rule.threshold(&[1.0, 1.0, 1.0, 0.0]), None);
        let threshold = rule.threshold(&[1.0, 1.0, 1.0, 1.0, 0.5]).unwrap();
        assert!((threshold - 0.52).abs() < 1e-9, "{threshold}");
        // All alike: nobody is below.
        assert_eq!(rule.threshold(&[0.3; 6]), Some(0.3));
    }

    #[test]
    fn a_full_bucket_keeps_its_share() {
        let window = Window::default();
        window.buckets[usize::try_from(number(NOW, 1_000) % 10).unwrap()]
            .store(number(NOW, 1_000) << (2 * COUNT_BITS) | COUNT << COUNT_BITS | 7, Relaxed);
        window.count(true, NOW, 1_000);
        window.count(false, NOW, 1_000);
        assert_eq!(window.sums(NOW, 1_000), (7, COUNT));
    }
}
