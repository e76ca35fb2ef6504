#![doc = include_str!("../README.md")]

pub mod balance;
pub mod wire;
