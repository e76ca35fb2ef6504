//! Where the store is kept: a folder on disk, or nowhere.
//!
//! One trait, one file a place. A commit is durable when it returns; what was not committed is not there after a
//! crash. A store that is damaged is reported with its path and what to do, and never emptied.

mod digest;
mod embedded;
mod memory;

use std::{io, path::PathBuf};

use thiserror::Error;

use super::store::{RowChange, Saved};

pub(crate) use embedded::Embedded;
pub(crate) use memory::Memory;

/// A place that keeps a store.
pub(crate) trait Persist: Send {
    /// What is kept; `None` if nothing was ever committed. Also heals the place after a failed commit, so far as it
    /// can: what it returns is then what is durable.
    fn load(&mut self) -> Result<Option<Saved>, PersistError>;

    /// Keeps the changes, all or none. After an error `load` says which.
    fn commit(&mut self, batch: &Batch) -> Result<(), PersistError>;
}

/// What is committed at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// The revision after it.
    pub(crate) revision: u64,
    /// The next free place after it.
    pub(crate) next_place: u64,
    /// The rows that are new, changed or gone.
    pub(crate) changes: Vec<RowChange>,
}

/// Why a store cannot be opened or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PersistError {
    /// The file is not what was written.
    #[error(
        "the store `{path}` is damaged ({why}); put back a copy of it, or move it away to start with an empty \
         store, which services then fill again by registering"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// A later version wrote the file.
    #[error(
        "the store `{path}` has format {found}, and this version knows formats up to {known}; run the newer version, or \
         use another data folder"
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest known one.
        known: u32,
    },
    /// Another process has it open.
    #[error(
        "another process uses the store in `{folder}`; stop it, or give this one a data folder of its own"
    )]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder or a file in it cannot be used.
    #[error(
        "cannot use `{path}` for the store (`--data-dir`), expected a folder in which this user may write, or `memory`"
    )]
    Unusable {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A change could not be written.
    #[error("cannot write the store `{path}`: {why}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}
