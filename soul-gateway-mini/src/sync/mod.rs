//! Learning the configuration: a `Source` is asked for the next update again and again, updates are gathered
//! in one `Held`, and every change becomes a new immutable `Snapshot` that
//! is swapped in whole.
//!
//! Invariant: the snapshot only ever moves from one complete configuration to the next. An unreachable source,
//! a damaged answer or an entry that cannot be used leaves the rest serving.

pub mod config;

mod error;
mod held;
mod kept;
mod local;
mod long_poll;
mod reaper;
mod snapshot;
mod status;
mod task;

use std::future::Future;

use soul_client::wire::soul::ConfigGroup;

pub use config::SyncConfig;
pub use error::{AnswerError, Attempt, SyncError};
pub use status::{Origin, SyncStatus};

pub(crate) use held::{Held, HeldGroup};
pub(crate) use kept::Kept;
pub(crate) use local::Local;
pub(crate) use long_poll::LongPoll;
pub use long_poll::RequestError;
pub(crate) use snapshot::{
    Destination, DivideRule, DivideSelector, End, Flow, OpenTunnel, Protocol, Room, SelectorStats, Snapshot,
    SnapshotOptions, StatusStats,
};
pub(crate) use task::{CachedSnapshot, ConfigSync};

/// What a source has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// All five groups from the start; what is not in them is gone.
    Refresh(Vec<Learned>),
    /// Groups that replace what was known of them.
    Groups(Vec<Learned>),
    /// The source was reached and nothing changed.
    Unchanged,
}

/// One group as a source gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Learned {
    /// The entries that could be read.
    pub(crate) data: HeldGroup,
    /// The others.
    pub(crate) refused: Vec<Refused>,
}

/// An entry of the configuration that cannot be used; the rest of it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Refused {
    /// The group it is in.
    pub group: ConfigGroup,
    /// Its name, else its id, else its place in the list.
    pub entry: String,
    /// Why it is of no use.
    pub reason: String,
}

/// Where configuration comes from.
pub(crate) trait Source: Send + 'static {
    /// What this source is, for status and logs.
    fn describe(&self) -> String;

    /// Waits for the next update.
    ///
    /// The first update of a source, and the first one after it lost the thread, is a [`Update::Refresh`].
    ///
    /// # Errors
    /// When nothing can be learned at present. Asking again is right, after a pause.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change: the next call sees it.
    fn next(&mut self) -> impl Future<Output = Result<Update, SyncError>> + Send;
}
