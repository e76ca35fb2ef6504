// Of several definitions of a link the first one counts: here come those for rustdoc, and the page ends with others, for
// readers elsewhere.
#![allow(rustdoc::redundant_explicit_links, reason = "definitions must come before those of the page")]
#![doc = "[`admin`]: crate::admin\n[`app`]: crate::app\n[`config`]: crate::config"]
#![doc = "[`gateway`]: crate::gateway\n[`model`]: crate::model\n[`sync`]: crate::sync\n\n"]
#![doc = include_str!("../README.md")]

pub mod admin;
pub mod app;
pub mod config;
pub mod gateway;
pub mod model;
pub mod sync;

mod causes;
mod clock;
mod dial;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod exposition;
mod listen;
mod shard;
mod slices;
mod tls;
