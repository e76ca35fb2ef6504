//! Nouns shared by admin, sync and gateway; no I/O.

pub(crate) mod escape;
pub mod matching;

mod event;
mod plugin;
mod row;
mod rows;
mod target;

pub use event::{ConfigImage, DataEvent, GroupData, GroupImage};
pub(crate) use plugin::{CONTEXT_PATH, DIVIDE};
pub use row::Row;
pub(crate) use rows::{address, left, places};
pub use target::{Target, TargetError};
