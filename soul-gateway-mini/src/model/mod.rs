//! Nouns shared by admin, sync and gateway; no I/O.

pub mod matching;

mod event;

pub use event::{ConfigData, ConfigImage, DataEvent, GroupData, GroupImage};
