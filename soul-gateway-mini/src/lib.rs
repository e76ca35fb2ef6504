//! A small admin and gateway that speak Soul's protocols, as a library.

pub mod admin;
pub mod app;
pub mod config;
pub mod gateway;
pub mod model;
pub mod sync;
