//! End-to-end stories: every part for real, on ports of their own, waiting for conditions and never for a time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod balance;
mod change;
mod discovery;
mod docs;
mod documented;
mod errors;
mod example;
mod leave;
mod paths;
mod probe;
mod process;
mod registration;
mod reload;
mod rooms;
mod settings;
mod sync;
mod takeover;

use soul_tests::harness::Program;

/// The program under test, as a process.
fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_gateway-under-test"))
}
