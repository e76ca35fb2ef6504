//! Nouns shared by admin, sync and gateway; no I/O.

pub(crate) mod escape;
pub mod matching;

mod event;
mod target;

pub use event::{ConfigData, ConfigImage, DataEvent, GroupData, GroupImage};
pub use target::{Target, TargetError};
