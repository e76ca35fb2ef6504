//! The wall clock of the system, and telling moments cheaply.

use std::{
    sync::atomic::{AtomicI64, Ordering::Relaxed},
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

/// Milliseconds since the epoch; 0 before it.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// By the one that only goes on.
    pub(crate) at: Instant,
    /// By the one on the wall, milliseconds since the epoch.
    pub(crate) ms: i64,
}

/// Tells moments by reading one clock: how far the other one is off is looked at now and then.
#[derive(Debug)]
pub(crate) struct Clock {
    origin: Instant,
    /// What the clock on the wall said at the origin, by what it says now.
    origin_ms: AtomicI64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { origin: Instant::now(), origin_ms: AtomicI64::new(now_ms()) }
    }

    pub(crate) fn now(&self) -> Moment {
        let at = Instant::now();
        Moment { at, ms: self.origin_ms.load(Relaxed).saturating_add(self.passed_ms(at)) }
    }

    /// Looks at the clock on the wall, which somebody may have set.
    pub(crate) fn adjust(&self) {
        let origin_ms = now_ms().saturating_sub(self.passed_ms(Instant::now()));
        // One more or less comes of rounding, and moments should not go back for that.
        if origin_ms.abs_diff(self.origin_ms.load(Relaxed)) > 1 {
            self.origin_ms.store(origin_ms, Relaxed);
        }
    }

    fn passed_ms(&self, at: Instant) -> i64 {
        let passed = at.saturating_duration_since(self.origin);
        i64::try_from(passed.as_millis()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn moments_follow_both_clocks() {
        let clock = Clock::new();
        let first = clock.now();
        tokio::time::advance(Duration::from_secs(2)).await;
        let second = clock.now();
        assert_eq!((second.at - first.at, second.ms - first.ms), (Duration::from_secs(2), 2000));
        // Two seconds have passed that the clock on the wall knows nothing of.
        clock.adjust();
        let third = clock.now();
        assert!((third.ms - second.ms + 2000).abs() < 1000, "{first:?} {third:?}");
    }
}
