//! Entries in the order in which they are tried, and the way to the first that matches.

use std::sync::Arc;

use super::{
    super::{
        error::MatchError,
        index::{Filings, Index},
        view::RequestView,
    },
    entry::Gate,
};
use crate::slices;

/// Entries up to which trying all takes no longer than asking the index.
const FEW: usize = 4;

/// What can stand in such a list.
pub(super) trait Gated {
    /// When it is taken.
    fn gate(&self) -> &Gate;

    /// Whether this gate and another's are surely the same.
    fn has_gate_of(&self, other: &Self) -> bool;
}

/// Entries in order, with an index if they are many.
#[derive(Debug)]
pub(super) struct Ordered<T> {
    entries: Box<[T]>,
    index: Option<Arc<Index>>,
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self { entries: Box::default(), index: None }
    }
}

impl<T: Gated> Ordered<T> {
    pub(super) fn new(entries: Vec<T>) -> Self {
        Self::indexed(entries, FEW)
    }

    /// With an index if there are more than `few`.
    pub(super) fn indexed(entries: Vec<T>, few: usize) -> Self {
        let index = || {
            let filings = entries.iter().inspect(|_| slices::step()).map(|entry| entry.gate().filings());
            let filings: Vec<Filings> = filings.collect();
            Arc::new(Index::new(filings.iter()))
        };
        let index = (entries.len() > few).then(index);
        Self { entries: entries.into(), index }
    }

    /// With the index of `previous` if it is right for these entries too: most changes leave conditions alone.
    pub(super) fn after(previous: Option<&Self>, entries: Vec<T>) -> Self {
        let same = |previous: &&Self| {
            let gates = || previous.entries.iter().zip(&entries).inspect(|_| slices::step());
            previous.entries.len() == entries.len() && gates().all(|(old, new)| new.has_gate_of(old))
        };
        match previous.filter(same) {
            Some(previous) => Self { index: previous.index.clone(), entries: entries.into() },
            None => Self::new(entries),
        }
    }

    /// The first entry that lets the request through.
    ///
    /// # Errors
    /// When an entry before it, or before the end, cannot be evaluated.
    pub(super) fn first(&self, view: &RequestView<'_>) -> Result<Option<&T>, &MatchError> {
        let Some(index) = &self.index else { return self.scan(view) };
        let mut outcome = Ok(None);
        index.first(view, |rank| {
            let Some(entry) = self.entries.get(rank as usize) else { return false };
            match entry.gate().lets_through(view) {
                Ok(false) => return false,
                Ok(true) => outcome = Ok(Some(entry)),
                Err(reason) => outcome = Err(reason),
            }
            true
        });
        outcome
    }

    /// The same, entry by entry.
    pub(super) fn scan(&self, view: &RequestView<'_>) -> Result<Option<&T>, &MatchError> {
        for entry in &self.entries {
            if entry.gate().lets_through(view)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

impl<T> Ordered<T> {
    pub(super) fn entries(&self) -> &[T] {
        &self.entries
    }
}
