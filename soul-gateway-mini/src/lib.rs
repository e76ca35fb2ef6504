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
mod exposition;
mod listen;
mod shard;
