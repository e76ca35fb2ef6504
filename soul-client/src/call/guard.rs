//! Work of others that may panic: a source, a check or a listener of the user's own must not end the task that asks it.

use std::{
    any::Any,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
};

use tokio::task::{JoinError, JoinSet};

/// The work panicked, and with which words.
#[derive(Debug)]
pub(super) struct Panicked(String);

impl Panicked {
    fn new(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        Self(text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default())
    }
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it panicked: `{}`", self.0)
    }
}

impl std::error::Error for Panicked {}

/// Runs `work` as a task of its own, which ends with this future.
pub(super) async fn guarded<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Panicked> {
    let mut task = JoinSet::new();
    task.spawn(work);
    match task.join_next().await {
        Some(Ok(done)) => Ok(done),
        Some(Err(error)) => Err(panicked(error)),
        None => Err(Panicked("it was gone".to_owned())),
    }
}

/// Runs `work` on a thread for long computations.
pub(super) async fn guarded_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Panicked> {
    tokio::task::spawn_blocking(work).await.map_err(panicked)
}

/// Runs `work` here.
pub(super) fn guarded_call<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Panicked::new(&*payload))
}

fn panicked(error: JoinError) -> Panicked {
    match error.try_into_panic() {
        Ok(payload) => Panicked::new(&*payload),
        Err(error) => Panicked(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_with_its_words() {
        assert_eq!(guarded(async { 1 }).await.unwrap(), 1);
        let error = guarded(async { panic!("by {}", "design") }).await.map(|(): ()| ()).unwrap_err();
        assert_eq!(error.to_string(), "it panicked: `by design`");
        let error = guarded_call(|| panic!("by design")).map(|(): ()| ()).unwrap_err();
        assert_eq!(error.to_string(), "it panicked: `by design`");
        let error = guarded_blocking(|| panic!("there")).await.map(|(): ()| ()).unwrap_err();
        assert_eq!(error.to_string(), "it panicked: `there`");
    }
}
