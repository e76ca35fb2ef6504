//! Entries in the order in which they are tried, and the way to the first that matches.

use std::sync::Arc;

use super::{
    super::{
        error::MatchError,
        index::{Filings, Index},
        view::RequestView,
    },
    entry::Gate,
    patch::{Limits, Patched, moved},
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

    /// Where in memory is what was made of it. Lists after this one have it at the same place for as long as the entry stays the same.
    fn address(&self) -> usize;
}

/// Entries in order, with an index if they are many.
#[derive(Debug)]
pub(super) struct Ordered<T> {
    entries: Box<[T]>,
    way: Way,
}

/// How the first entry is found that lets a request through.
#[derive(Clone, Debug)]
enum Way {
    Scan,
    Index(Arc<Index>),
    Patched(Arc<Patched>),
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self { entries: Box::default(), way: Way::Scan }
    }
}

impl<T: Gated> Ordered<T> {
    pub(super) fn new(entries: Vec<T>) -> Self {
        Self::indexed(entries, FEW)
    }

    /// With an index if there are more than `few`.
    pub(super) fn indexed(entries: Vec<T>, few: usize) -> Self {
        let way = if entries.len() > few {
            let filings = entries.iter().inspect(|_| slices::step()).map(|entry| entry.gate().filings());
            let filings: Vec<Filings> = filings.collect();
            Way::Index(Arc::new(Index::new(filings.iter())))
        } else {
            Way::Scan
        };
        Self { entries: entries.into(), way }
    }

    /// With the index of `previous` as far as it is right for these entries too: a change touches few of them.
    pub(super) fn after(previous: Option<&Self>, entries: Vec<T>) -> Self {
        Self::after_by(previous, entries, Limits::USUAL)
    }

    pub(super) fn after_by(previous: Option<&Self>, entries: Vec<T>, limits: Limits) -> Self {
        match previous.and_then(|previous| previous.way_for(&entries, limits)) {
            Some(way) => Self { entries: entries.into(), way },
            None => Self::new(entries),
        }
    }

    /// How to find these entries, which came after those of this list.
    fn way_for(&self, entries: &[T], limits: Limits) -> Option<Way> {
        if self.entries.len() == entries.len() {
            let mut gates = self.entries.iter().zip(entries).inspect(|_| slices::step());
            if gates.all(|(old, new)| new.has_gate_of(old)) {
                return Some(self.way.clone());
            }
        }
        if entries.len() < limits.many {
            return None;
        }
        let now = moved(&self.entries, entries);
        let patched = match &self.way {
            Way::Scan => None,
            Way::Index(index) => Patched::new(Arc::clone(index), now, entries, limits),
            Way::Patched(patched) => patched.after(&now, entries, limits),
        };
        patched.map(|patched| Way::Patched(Arc::new(patched)))
    }

    #[cfg(test)]
    pub(super) fn is_patched(&self) -> bool {
        matches!(self.way, Way::Patched(_))
    }

    /// The first entry that lets the request through.
    ///
    /// # Errors
    /// When an entry before it, or before the end, cannot be evaluated.
    pub(super) fn first(&self, view: &RequestView<'_>) -> Result<Option<&T>, &MatchError> {
        let mut outcome = Ok(None);
        let hit = |place: u32| {
            let Some(entry) = self.entries.get(place as usize) else { return false };
            match entry.gate().lets_through(view) {
                Ok(false) => return false,
                Ok(true) => outcome = Ok(Some(entry)),
                Err(reason) => outcome = Err(reason),
            }
            true
        };
        match &self.way {
            Way::Scan => return self.scan(view),
            Way::Index(index) => {
                index.first(view, hit);
            }
            Way::Patched(patched) => patched.first(view, hit),
        }
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
