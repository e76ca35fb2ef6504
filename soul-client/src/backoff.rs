//! How long to wait after a failure: growing, capped, and never the same for two instances.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The bounds of the waiting time between two tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The first wait.
    pub(crate) min: Duration,
    /// No wait is longer.
    pub(crate) max: Duration,
}

/// Waits that double from the lower bound to the upper one and go on for ever.
///
/// Each is shortened by a random part of up to a half, so that instances which failed together do not come
/// back together, and none is longer than the upper bound.
#[derive(Debug)]
pub(crate) struct Delays {
    bounds: Bounds,
    steps: ExponentialBackoff,
    rng: fastrand::Rng,
}

impl Delays {
    pub(crate) fn from_rng(bounds: Bounds, rng: fastrand::Rng) -> Self {
        Self { bounds, steps: steps(bounds), rng }
    }

    /// Starts again from the lower bound, after a success.
    pub(crate) fn reset(&mut self) {
        self.steps = steps(self.bounds);
    }

    /// The next wait.
    pub(crate) fn next_delay(&mut self) -> Duration {
        // The steps never end; the cap stands in for the type's sake.
        let step = self.steps.next().unwrap_or(self.bounds.max);
        step.mul_f64(1.0 - 0.5 * self.rng.f64())
    }

    /// `period`, up to a tenth longer or shorter.
    pub(crate) fn around(&mut self, period: Duration) -> Duration {
        period.mul_f64(0.9 + 0.2 * self.rng.f64())
    }
}

/// Jitter is ours: that of the library adds to the cap.
fn steps(bounds: Bounds) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(bounds.min)
        .with_max_delay(bounds.max)
        .without_max_times()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { min: Duration::from_secs(1), max: Duration::from_secs(30) };

    #[test]
    fn delays_double_to_the_cap_and_stay_there() {
        let mut delays = Delays::from_rng(BOUNDS, fastrand::Rng::with_seed(7));
        for step in [1, 2, 4, 8, 16, 30, 30, 30] {
            let step = Duration::from_secs(step);
            let delay = delays.next_delay();
            assert!(delay > step / 2 && delay <= step, "{delay:?} for {step:?}");
        }
        for _ in 0..10_000 {
            assert!(delays.next_delay() <= BOUNDS.max);
        }
        delays.reset();
        assert!(delays.next_delay() <= BOUNDS.min);
    }

    #[test]
    fn two_instances_do_not_wait_alike() {
        let delays = |seed| Delays::from_rng(BOUNDS, fastrand::Rng::with_seed(seed)).next_delay();
        assert_ne!(delays(1), delays(2));
        assert_eq!(delays(1), delays(1));
    }

    #[test]
    fn refresh_stays_within_a_tenth() {
        let mut delays = Delays::from_rng(BOUNDS, fastrand::Rng::with_seed(7));
        let period = Duration::from_secs(30);
        for _ in 0..1000 {
            let delay = delays.around(period);
            assert!(delay >= Duration::from_secs(27) && delay <= Duration::from_secs(33), "{delay:?}");
        }
    }
}
