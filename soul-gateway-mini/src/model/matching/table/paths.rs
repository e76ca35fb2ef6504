//! A list of path patterns in order, each with what it stands for.

use super::super::{
    ant::PathPatterns,
    index::{Filings, Index},
    view::RequestView,
};

/// Patterns of which the first that matches counts.
#[derive(Debug, Default)]
pub(crate) struct PathTable<T> {
    entries: Box<[(PathPatterns, T)]>,
    index: Index,
}

impl<T> PathTable<T> {
    pub(crate) fn new(entries: Vec<(PathPatterns, T)>) -> Self {
        let filings: Vec<Filings> = entries.iter().map(|(patterns, _)| filings(patterns)).collect();
        Self { entries: entries.into(), index: Index::new(filings.iter()) }
    }

    /// What the first pattern stands for that matches the request's path. One that cannot be evaluated does not.
    pub(crate) fn first(&self, view: &RequestView<'_>) -> Option<&T> {
        let matches = |rank: u32| {
            let entry = self.entries.get(rank as usize);
            entry.is_some_and(|(patterns, _)| patterns.matches(view.path()) == Ok(true))
        };
        let rank = self.index.first(view, matches)?;
        self.entries.get(rank as usize).map(|(_, value)| value)
    }
}

fn filings(patterns: &PathPatterns) -> Filings {
    if patterns.problems().next().is_some() { Filings::default() } else { Filings::new(patterns.filings()) }
}
