//! Shared by the tests: the golden vectors, the harness, and what the programs that make load have in common.

pub mod harness;
pub mod load;
pub mod vectors;
