//! The clock of the admin, given to the parts that need it so that a test can give another.

use std::{fmt, sync::Arc};

use crate::clock;

/// A source of the time in milliseconds since the epoch.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// The system's clock; 0 before the epoch.
    pub(crate) fn system() -> Self {
        Self(Arc::new(clock::now_ms))
    }

    /// A clock made of a function.
    #[cfg(test)]
    pub(crate) fn of(now_ms: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now_ms))
    }

    /// Milliseconds since the epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
