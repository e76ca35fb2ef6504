//! The weight of an upstream at a moment.

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
}
