#![doc = include_str!("../README.md")]

pub mod balance;
pub mod route;
pub mod wire;
