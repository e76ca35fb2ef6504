//! Finding again what the table before this one made of the same rows.
//!
//! A change touches few rows of many. Rows are shared, so that most are known by their address alone, and whatever
//! is not the very same row is compared by content with the one that had its id.

use std::{collections::HashMap, sync::Arc};

use super::{Refused, entry::Made};
use crate::{
    model::{Row, left, places},
    slices,
};

/// What has an id.
pub(super) trait Named {
    fn id(&self) -> Option<&str>;
}

/// A row that was refused.
#[derive(Debug)]
pub(super) struct Known<D> {
    pub(super) row: Row<D>,
    pub(super) refused: Refused,
}

/// What was made of one row.
#[derive(Debug)]
pub(super) enum Fate<T> {
    Taken(Arc<Made<T>>),
    Refused(Refused),
    /// It can match nothing.
    LeftOut,
}

/// What there is of one row from before.
pub(super) enum Former<'b, T> {
    /// The row is the same.
    Same(Fate<T>),
    /// The row is another, perhaps of the same id.
    Other(Option<&'b T>),
}

/// The rows of the table before, with what was made of them.
pub(super) struct Before<'b, D, T> {
    taken: Vec<(&'b Row<D>, &'b Arc<Made<T>>)>,
    refused: &'b [Known<D>],
}

impl<'b, D, T> Before<'b, D, T>
where
    Row<D>: Named,
{
    pub(super) fn new(
        taken: impl Iterator<Item = (&'b Row<D>, &'b Arc<Made<T>>)>,
        refused: &'b [Known<D>],
    ) -> Self {
        Self { taken: taken.collect(), refused }
    }

    pub(super) fn none() -> Self {
        Self { taken: Vec::new(), refused: &[] }
    }

    /// Whether `rows` are all that was there, in order, so that everything stays.
    pub(super) fn is(&self, rows: &[&Row<D>]) -> bool {
        self.refused.is_empty()
            && self.taken.len() == rows.len()
            && self.taken.iter().zip(rows).all(|((old, _), new)| old.address() == new.address())
    }

    /// What there is of each of `rows`.
    pub(super) fn of(&self, rows: &[&Row<D>]) -> Vec<Former<'b, T>> {
        let address = |row: &Row<D>| {
            slices::step();
            row.address()
        };
        let before: Vec<_> = self.taken.iter().map(|(row, _)| address(row)).collect();
        let now: Vec<_> = rows.iter().map(|row| address(row)).collect();
        let places = places(&before, &now);
        let by_id: HashMap<_, _> = left(&before, &places)
            .filter_map(|place| self.taken.get(place))
            .map(|old| (old.0.id(), old))
            .collect();
        let refused: HashMap<_, _> = self.refused.iter().map(|known| (known.row.id(), known)).collect();
        let former = |(row, place): (&&Row<D>, Option<usize>)| {
            if let Some((_, made)) = place.and_then(|place| self.taken.get(place)) {
                return Former::Same(Fate::Taken(Arc::clone(made)));
            }
            if let Some(known) = refused.get(&row.id()).filter(|known| known.row == **row) {
                return Former::Same(Fate::Refused(known.refused.clone()));
            }
            match by_id.get(&row.id()) {
                Some((old, made)) if *old == *row => Former::Same(Fate::Taken(Arc::clone(made))),
                other => Former::Other(other.map(|(_, made)| &made.payload)),
            }
        };
        rows.iter().zip(places).map(former).collect()
    }
}
