//! What is known about the synchronisation itself.

use std::{fmt, time::Duration};

use tokio::time::Instant;

/// Where the configuration that serves came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An admin, by its address, or the one in this process.
    Admin(String),
    /// The copy on disk, because no admin answered yet.
    Kept,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admin(name) => f.write_str(name),
            Self::Kept => f.write_str("kept on disk"),
        }
    }
}

/// How the synchronisation is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SyncStatus {
    /// The admin that is followed, or asked next.
    pub source: String,
    /// Where the serving configuration came from; `None` before the first.
    pub origin: Option<Origin>,
    /// Whether the last exchange with the source went well.
    pub connected: bool,
    /// When the source was last heard of, with or without news.
    pub last_contact: Option<Instant>,
    /// Attempts that failed since then.
    pub consecutive_failures: u32,
    /// Why the last attempt failed; kept after a recovery, for the curious.
    pub last_error: Option<String>,
    /// Revision of the serving snapshot; 0 before the first.
    pub revision: u64,
}

impl SyncStatus {
    pub(super) fn new(source: String) -> Self {
        Self {
            source,
            origin: None,
            connected: false,
            last_contact: None,
            consecutive_failures: 0,
            last_error: None,
            revision: 0,
        }
    }

    /// How long ago the source was last heard of; `None` if never.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        self.last_contact.map(|at| at.elapsed())
    }

    /// Whether the source was not heard of for longer than `limit`, or never.
    #[must_use]
    pub fn is_stale(&self, limit: Duration) -> bool {
        self.age().is_none_or(|age| age > limit)
    }
}
