//! When a source is asked again.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::{Discover, DiscoverError, Listed, Publisher};
use crate::call::guard::guarded;

/// How a list is kept new.
#[doc(alias = "ServerListUpdater")]
#[doc(alias = "PollingServerListUpdater")]
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refresh {
    /// The source is asked again and again, whether or not it could push.
    Polling {
        /// Pause after the first answer.
        initial: Duration,
        /// Pause after each further answer, counted from its end.
        every: Duration,
        /// Share by which a pause is shortened at most, so that callers do not all ask at once.
        jitter: f64,
    },
    /// The source pushes; one that does not is polled by [`Refresh::POLLING`].
    Watch,
}

impl Refresh {
    /// Ribbon's times: 1 s, then 30 s, here up to a tenth shorter.
    pub const POLLING: Self = Self::every(Duration::from_secs(30));

    /// [`Refresh::POLLING`] with another pause.
    #[must_use]
    pub const fn every(every: Duration) -> Self {
        Self::Polling { initial: Duration::from_secs(1), every, jitter: 0.1 }
    }
}

/// Pushed where the source pushes, else polled.
impl Default for Refresh {
    fn default() -> Self {
        Self::Watch
    }
}

/// No pause is shorter, whatever is set: a source must not be asked without end.
const SHORTEST: Duration = Duration::from_millis(10);

/// No pause is longer, which is a year.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// No source may take longer to answer.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The pauses of polling, with what [`Refresh::Watch`] falls back to.
#[derive(Clone, Copy, Debug)]
struct Pauses {
    initial: Duration,
    every: Duration,
    jitter: f64,
}

impl From<Refresh> for Pauses {
    fn from(refresh: Refresh) -> Self {
        match refresh {
            Refresh::Polling { initial, every, jitter } => Self { initial, every, jitter },
            Refresh::Watch => Refresh::POLLING.into(),
        }
    }
}

impl Pauses {
    /// The pause after the attempt of this number, counted from 0, while there is no list yet or one is there.
    ///
    /// While there is none it doubles from `initial` to `every`: nobody can be called before the first.
    fn after(self, attempts: u32, listed: bool) -> Duration {
        let pause = match (attempts, listed) {
            (0, _) => self.initial,
            (_, true) => self.every,
            (n, false) => self.initial.saturating_mul(1 << n.min(16)).min(self.every),
        };
        let jitter = if self.jitter > 0.0 { self.jitter.min(1.0) } else { 0.0 };
        pause.min(LONGEST).mul_f64(1.0 - jitter * fastrand::f64()).max(SHORTEST)
    }
}

/// Asks a source again and again, until it is dropped; at once when `wake` is notified.
pub(in crate::call) async fn poll(
    source: Arc<dyn Discover>,
    service: Arc<str>,
    refresh: Refresh,
    publisher: Publisher,
    wake: Arc<Notify>,
) {
    let pauses = Pauses::from(refresh);
    let mut attempts = 0_u32;
    loop {
        publisher.report(ask(&source, &service, attempts == 0).await);
        let listed = publisher.now().upstreams.is_some();
        tokio::select! {
            () = sleep(pauses.after(attempts, listed)) => {}
            () = wake.notified() => {}
        }
        attempts = attempts.saturating_add(1);
    }
}

async fn ask(source: &Arc<dyn Discover>, service: &Arc<str>, first: bool) -> Listed {
    let (asked, of) = (Arc::clone(source), Arc::clone(service));
    let fetch = guarded(async move { if first { asked.initial(&of).await } else { asked.fetch(&of).await } });
    let attempted = || format!("ask {} for `{service}`", source.describe());
    match timeout(FETCH_TIMEOUT, fetch).await {
        Ok(Ok(listed)) => listed,
        Ok(Err(panicked)) => Err(DiscoverError::new(attempted()).with_source(panicked)),
        Err(_) => Err(DiscoverError::new(attempted())
            .with_source(format!("no answer within {} s", FETCH_TIMEOUT.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_setting_asks_without_end_or_panics() {
        for every in [Duration::ZERO, Duration::MAX] {
            for jitter in [0.0, 1.0, -7.0, 7.0, f64::NAN, f64::INFINITY] {
                let pauses = Pauses { initial: every, every, jitter };
                for (attempts, listed) in [(0, false), (1, true), (u32::MAX, false), (9, true)] {
                    let pause = pauses.after(attempts, listed);
                    assert!((SHORTEST..=LONGEST).contains(&pause), "{pauses:?} {pause:?}");
                }
            }
        }
    }
}
