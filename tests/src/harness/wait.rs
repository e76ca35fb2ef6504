//! Waiting for a condition with a deadline, never for a time.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Longest a story waits for one condition. Far above what is needed, so that a busy machine fails no test.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks until `look` finds something, and gives what it found.
///
/// # Panics
/// When [`DEADLINE`] passes first; the message says what was waited for.
pub async fn eventually<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(DEADLINE, what, look).await
}

/// [`eventually`] with a deadline of its own, for stories whose point is the time.
///
/// # Panics
/// When `deadline` passes first.
pub async fn eventually_within<T>(
    deadline: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let until = Instant::now() + deadline;
    loop {
        match timeout_at(until, look()).await {
            Ok(Some(found)) => return found,
            Ok(None) if Instant::now() < until => sleep(LOOK_EVERY).await,
            _ => panic!("within {deadline:?} there was no: {what}"),
        }
    }
}
