//! The cost of one choice, as ratios to a round robin through `ArcSwap`, beside others and against the targets.
//!
//! `cargo bench -p soul-client --bench pick`; about half a minute. With a word after `--`, only rows that have it in their name.
//!
//! Each number is the quickest of many short batches, which fit between what else runs on the machine. Nanoseconds differ from
//! machine to machine; the ratios to the baseline of the same minute are what counts (see [`stopwatch::baseline`]).
//!
//! At the end stand the targets. The run fails if one that was met here is now missed by more than [`targets::TOLERANCE`], and
//! still so when its rows are measured again; those that never were stand there with the reason.
//!
//! `--calls=100000` makes so many calls of each cell and measures nothing, `--size=100` leaves the other columns out: the
//! difference between two such runs under callgrind is a count of instructions, which no neighbour on the machine can change.

#[path = "../common/mod.rs"]
mod common;
mod gateway;
mod keys;
mod others;
mod ours;
mod rebuild;
mod stopwatch;
mod table;
mod targets;

use std::process::ExitCode;

use stopwatch::baseline;
use table::{Arguments, Table};

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it runs.
    let Some(arguments) = Arguments::read() else { return ExitCode::SUCCESS };
    let whole = arguments.is_whole();
    let mut table = Table::new(arguments);
    table.add("baseline B: round robin through ArcSwap", |stopwatch, size| Some(baseline(stopwatch, size)));
    ours::add(&mut table);
    gateway::add(&mut table);
    others::add(&mut table);
    if !whole {
        return ExitCode::SUCCESS;
    }
    rebuild::print();
    if targets::print(&mut table) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
