//! The table, and what was asked for of it.

use std::{hint::black_box, process::Command};

use crate::stopwatch::{Stopwatch, baseline};

/// Numbers of upstreams, one column each.
pub(crate) const SIZES: [usize; 3] = [10, 100, 10_000];

/// What was asked for.
pub(crate) struct Arguments {
    /// Rows whose name has this in it; all if nothing is asked for.
    only: Option<String>,
    /// This process measures one row, and prints plain numbers.
    row: Option<String>,
    size: Option<usize>,
    calls: Option<u32>,
}

const ROW: &str = "--row=";

impl Arguments {
    /// `None` if nothing is to be measured.
    pub(crate) fn read() -> Option<Self> {
        let all: Vec<String> = std::env::args().skip(1).collect();
        let value = |name: &str| all.iter().find_map(|arg| arg.strip_prefix(name));
        let only = all.iter().find(|arg| !arg.starts_with("--")).cloned();
        let row = value(ROW).map(str::to_owned);
        let size = value("--size=").and_then(|size| size.parse().ok());
        let calls = value("--calls=").and_then(|calls| calls.parse().ok());
        (!all.iter().any(|arg| arg == "--test")).then_some(Self { only, row, size, calls })
    }

    /// Whether the whole table was asked for.
    pub(crate) fn is_whole(&self) -> bool {
        self.only.is_none() && self.row.is_none() && self.size.is_none() && self.calls.is_none()
    }

    fn asks_for(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only))
            && self.row.as_ref().is_none_or(|row| row == name)
    }

    fn sizes(&self) -> impl Iterator<Item = usize> {
        SIZES.into_iter().filter(|&size| self.size.is_none_or(|only| only == size))
    }
}

/// One number of the table.
#[derive(Clone, Copy)]
struct Cell {
    size: usize,
    ns: f64,
    /// The same in baselines.
    ratio: f64,
}

struct Row {
    name: String,
    cells: Vec<Cell>,
}

/// The rows, each measured by a process of its own: freed lists of ten thousand upstreams leave holes all over the memory, and what is
/// then allocated there is nowhere near each other.
pub(crate) struct Table {
    arguments: Arguments,
    rows: Vec<Row>,
}

impl Table {
    pub(crate) fn new(arguments: Arguments) -> Self {
        if arguments.row.is_none() {
            heading("one choice, nanoseconds (baselines)");
        }
        Self { arguments, rows: Vec::new() }
    }

    /// A line of the table, if it was asked for.
    ///
    /// - `measure`: gives nanoseconds, for a number of upstreams.
    pub(crate) fn add(&mut self, name: &str, measure: impl Fn(Stopwatch, usize) -> Option<f64>) {
        if !self.arguments.asks_for(name) {
            return;
        }
        let stopwatch = Stopwatch { calls: self.arguments.calls };
        if stopwatch.calls.is_some() {
            self.arguments.sizes().for_each(|size| {
                black_box(measure(stopwatch, size));
            });
        } else if self.arguments.row.is_some() {
            for size in self.arguments.sizes() {
                // What else runs on the machine changes from minute to minute, so each number has a baseline of its own.
                let before = baseline(stopwatch, size);
                let Some(ns) = measure(stopwatch, size) else { continue };
                println!("{size} {ns} {}", ns / before.min(baseline(stopwatch, size)));
            }
        } else {
            print!("{name:<58}");
            let cells = self.measured(name);
            for cell in &cells {
                print!("{:>20}", format!("{:.0} ({:.1})", cell.ns, cell.ratio));
            }
            println!();
            self.rows.push(Row { name: name.to_owned(), cells });
        }
    }

    /// Has a row measured.
    fn measured(&self, name: &str) -> Vec<Cell> {
        let output = std::env::current_exe().and_then(|program| {
            let size = self.arguments.size.map(|size| format!("--size={size}"));
            Command::new(program).arg(format!("{ROW}{name}")).args(size).output()
        });
        let cell = |line: &str| {
            let mut words = line.split(' ');
            let (size, ns, ratio) = (words.next()?, words.next()?, words.next()?);
            Some(Cell { size: size.parse().ok()?, ns: ns.parse().ok()?, ratio: ratio.parse().ok()? })
        };
        match output {
            Ok(output) => String::from_utf8_lossy(&output.stdout).lines().filter_map(cell).collect(),
            Err(error) => panic!("measure `{name}` in a process of its own: {error}"),
        }
    }

    /// Measures some lines again and keeps, of each number, the quicker one with its own baseline.
    pub(crate) fn again(&mut self, names: &[&str]) {
        for at in 0..self.rows.len() {
            let name = self.rows[at].name.clone();
            let again = if names.contains(&&*name) { self.measured(&name) } else { continue };
            for cell in &mut self.rows[at].cells {
                if let Some(quicker) =
                    again.iter().find(|again| again.size == cell.size && again.ns < cell.ns)
                {
                    *cell = *quicker;
                }
            }
        }
    }

    /// The ratio to the baseline of one cell.
    pub(crate) fn ratio(&self, name: &str, size: usize) -> f64 {
        let row = self.rows.iter().find(|row| row.name == name);
        let cell = row.and_then(|row| row.cells.iter().find(|cell| cell.size == size));
        cell.map_or(f64::NAN, |cell| cell.ratio)
    }
}

/// Prints a line above columns.
pub(crate) fn heading(what: &str) {
    println!("{what:<58}{:>20}{:>20}{:>20}", SIZES[0], SIZES[1], SIZES[2]);
}
