//! Shared by the tests: the golden vectors and the harness.

pub mod harness;
pub mod vectors;
