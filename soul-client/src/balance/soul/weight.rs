//! The weight of an upstream at a moment.

use std::time::Duration;

/// Warm-up of an upstream that says none, milliseconds.
const DEFAULT_WARMUP_MS: i32 = 600_000;

/// The weight that counts at `now_ms`: 0 if `status` is false, less than `weight` during warm-up.
///
/// The difference of the times is cut to 32 bits, as in Soul: warm-up comes again for its length every 2^32 ms
/// (49.7 days). At the very start (difference 0) the weight is full. The lowest weight in warm-up is 1.
///
/// # Units
/// `now_ms` and `timestamp` are milliseconds since the epoch, 0 for no warm-up; `warmup` is
/// milliseconds, 0 or less for 600 000.
///
/// # Examples
/// ```
/// use soul_client::balance::soul::effective_weight;
///
/// let start = 1_612_443_157_000;
/// assert_eq!(effective_weight(start + 300_000, true, 50, start, 0), 25);
/// assert_eq!(effective_weight(start, true, 50, start, 0), 50);
/// assert_eq!(effective_weight(start, false, 50, start, 0), 0);
/// ```
#[must_use]
pub fn effective_weight(now_ms: i64, status: bool, weight: i32, timestamp: i64, warmup: i32) -> i32 {
    if !status {
        return 0;
    }
    if weight <= 0 || timestamp <= 0 {
        return weight;
    }
    let warmup = if warmup > 0 { warmup } else { DEFAULT_WARMUP_MS };
    #[allow(clippy::cast_possible_truncation)]
    let uptime = now_ms.wrapping_sub(timestamp) as i32;
    if uptime <= 0 || uptime >= warmup {
        return weight;
    }
    // In 32-bit floats and in this order: in doubles or integers some results differ by one from Soul's.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    let grown = (uptime as f32 / (warmup as f32 / weight as f32)) as i32;
    grown.clamp(1, weight)
}

/// The length of a warm-up.
pub(in crate::balance) fn warmup(warmup: i32) -> Duration {
    let ms = if warmup > 0 { warmup } else { DEFAULT_WARMUP_MS };
    Duration::from_millis(ms.unsigned_abs().into())
}

/// How long the weight stays what it is at `now_ms`, milliseconds from then; `None` while it may change at any
/// moment, by warm-up.
pub(in crate::balance) fn steady_for(
    now_ms: i64,
    status: bool,
    weight: i32,
    timestamp: i64,
    warmup: i32,
) -> Option<i64> {
    if !status || weight <= 0 || timestamp <= 0 {
        return Some(i64::MAX);
    }
    let warmup = i64::from(if warmup > 0 { warmup } else { DEFAULT_WARMUP_MS });
    let passed = now_ms.wrapping_sub(timestamp).rem_euclid(1 << 32);
    (passed >= warmup).then_some((1 << 32) - passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_is_full_at_the_very_end_of_the_warm_up() {
        // By the formula it would be 6 and 12: 1 / (1 / 7) is just under 7 in 32-bit floats.
        for weight in [7, 13] {
            assert_eq!(effective_weight(1001, true, weight, 1000, 1), weight);
        }
    }

    #[test]
    fn a_steady_weight_is_full_to_the_end_and_not_beyond() {
        let weight_at = |now: i64| effective_weight(now, true, 50, 1000, 10_000);
        for now in [1000, 1001, 5000, 10_999] {
            assert_eq!(steady_for(now, true, 50, 1000, 10_000), None, "{now}");
        }
        for now in [11_000, 1 << 31, 1000 - 5, (1 << 32) + 500] {
            let steady = steady_for(now, true, 50, 1000, 10_000).unwrap();
            for at in [now, now + steady / 2, now + steady] {
                assert_eq!(weight_at(at), 50, "{now} + {}", at - now);
            }
            assert_eq!(weight_at(now + steady + 1), 1);
        }
        assert_eq!(steady_for(5, true, 50, 0, 0), Some(i64::MAX));
        assert_eq!(steady_for(5, false, 50, 1, 0), Some(i64::MAX));
    }
}
