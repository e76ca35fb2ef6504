//! The time that requests and the writer of a service share.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// A time without end is taken for this one, thirty years: who adds [`Duration::MAX`] to a moment panics, and so do libraries.
pub(super) const ENDLESS: Duration = Duration::from_secs(30 * 365 * 86_400);

/// Milliseconds since the epoch as [`balance`](crate::balance) wants them: right at the start, never going back.
///
/// Counted from a start by the monotonic clock, so that a correction of the system's time neither ends nor lengthens an
/// ejection. It stands still while Tokio's clock is paused.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    start_ms: i64,
}

impl Clock {
    /// A clock that is right now.
    #[must_use]
    pub fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), start_ms: i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX) }
    }

    /// The time now.
    #[must_use]
    #[inline]
    pub fn now_ms(&self) -> i64 {
        let passed = i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.start_ms.saturating_add(passed)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::start()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn goes_with_the_clock_of_tokio() {
        let clock = Clock::start();
        let before = clock.now_ms();
        assert!(before > 1_600_000_000_000);
        assert_eq!(clock.now_ms(), before);
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(clock.now_ms(), before + 1500);
    }
}
