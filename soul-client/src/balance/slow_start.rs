//! Slow start: an upstream that came, or came back, takes less than its share for a while.

use std::time::Duration;

use super::{outlier::millis, state::UpstreamState};

/// How the share grows: `share · max(floor, (t/T)^(1/aggression))`.
///
/// It begins when an upstream joins a list that was not empty, when a probe finds it alive again, and when it has
/// proved itself after an ejection. Whoever is in the first list has no ramp: starting the caller is no reason to spare the
/// upstreams. Policies by hash heed no ramp, for it would send keys to and fro.
///
/// # Source
/// Envoy's slow start, with its defaults but for the length, which Envoy leaves off.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use soul_client::balance::SlowStart;
///
/// let slow_start = SlowStart::over(Duration::from_secs(30));
/// assert_eq!(slow_start.factor(0.05), 0.1);
/// assert_eq!(slow_start.factor(0.5), 0.5);
/// assert!(SlowStart { aggression: 2.0, ..slow_start }.factor(0.5) > 0.7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowStart {
    /// How long the ramp lasts.
    pub window: Duration,
    /// The least part of the share. Default 0.1, for a tiny one would never be chosen.
    pub floor: f64,
    /// 1 grows evenly; more grows faster at first. Default 1.
    pub aggression: f64,
}

impl SlowStart {
    /// A ramp of this length, with the defaults.
    #[must_use]
    pub const fn over(window: Duration) -> Self {
        Self { window, floor: 0.1, aggression: 1.0 }
    }

    /// The part of the share at `passed`, which is from 0 to 1.
    #[must_use]
    pub fn factor(&self, passed: f64) -> f64 {
        libm::pow(passed, 1.0 / self.aggression).max(self.floor).min(1.0)
    }

    pub(super) fn start(&self, state: &UpstreamState, now_ms: i64) {
        let length = millis(self.window);
        if length > 0 {
            state.start_ramp(now_ms.max(1), length);
        }
    }
}
