//! How soon an admin is asked again.
//!
//! Normally at once: the admin holds the request until something changes. An admin (or something in front of
//! it) that answers at once without having anything new would be asked in a circle; such answers are counted and
//! spaced.

use std::time::Duration;

use soul_client::wire::soul::ConfigGroup;
use tokio::time::{self, Instant};

/// An answer without news that comes sooner than this was not held.
const HELD: Duration = Duration::from_secs(1);

/// First pause, after the second pointless answer in a row; doubled from then on.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Longest pause. Short, because changes that come meanwhile are seen only after it.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Pointless answers in a row that are worth a line in the log.
const ALARM: u32 = 3;

/// Counts the answers in a row that were given at once and brought nothing.
#[derive(Debug, Default)]
pub(super) struct Pace {
    pointless: u32,
}

impl Pace {
    /// Waits as long as the pointless answers before deserve.
    pub(super) async fn wait(&self) {
        let pause = self.pause();
        if !pause.is_zero() {
            time::sleep(pause).await;
        }
    }

    pub(super) fn start(&self) -> Instant {
        Instant::now()
    }

    /// The admin answered that nothing changed.
    pub(super) fn unchanged(&mut self, asked: Instant, admin: &str) {
        if asked.elapsed() >= HELD {
            self.pointless = 0;
        } else {
            self.count(|| tracing::warn!(admin, "the admin answers polls at once instead of holding them"));
        }
    }

    /// The admin named groups as changed and then gave them with the checksum they had.
    pub(super) fn same_checksum(&mut self, groups: &[ConfigGroup], admin: &str) {
        self.count(|| {
            tracing::warn!(
                admin,
                ?groups,
                "the admin reports changes but gives the same checksums again and again"
            );
        });
    }

    /// Something new came.
    pub(super) fn changed(&mut self) {
        self.pointless = 0;
    }

    fn count(&mut self, alarm: impl FnOnce()) {
        self.pointless = self.pointless.saturating_add(1);
        if self.pointless == ALARM {
            alarm();
        }
    }

    fn pause(&self) -> Duration {
        match self.pointless {
            // One is normal: a Java admin answers every waiting gateway on any save, changed or not.
            0 | 1 => Duration::ZERO,
            n => (FIRST_PAUSE * 2u32.saturating_pow((n - 2).min(16))).min(LONGEST_PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_without_news_are_spaced_until_one_is_held() {
        let mut pace = Pace::default();
        let pauses: Vec<_> = (0..8)
            .map(|_| {
                pace.unchanged(pace.start(), "a");
                pace.pause().as_millis()
            })
            .collect();
        assert_eq!(pauses, [0, 250, 500, 1000, 2000, 4000, 5000, 5000]);

        let asked = pace.start();
        time::sleep(Duration::from_secs(60)).await;
        pace.unchanged(asked, "a");
        assert_eq!(pace.pause(), Duration::ZERO);
    }

    #[test]
    fn a_checksum_that_repeats_is_spaced_and_news_end_it() {
        let mut pace = Pace::default();
        for _ in 0..3 {
            pace.same_checksum(&[ConfigGroup::Rule], "a");
        }
        assert_eq!(pace.pause(), Duration::from_millis(500));
        pace.changed();
        assert_eq!(pace.pause(), Duration::ZERO);
    }
}
