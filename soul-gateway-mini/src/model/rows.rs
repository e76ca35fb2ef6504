//! Which rows of a list are the very rows of another list.
//!
//! Rows are shared from the admin's store to the gateway's tables, so a row that did not change is known by its
//! address, without a look at what is in it.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use crate::slices;

/// How far ahead the order of the other list is followed; rows that moved farther are looked up.
const AHEAD: usize = 8;

/// Where a row, or whatever is shared, is in memory. It is that one's alone for as long as somebody holds it.
pub(crate) fn address<D>(row: &Arc<D>) -> usize {
    Arc::as_ptr(row).addr()
}

/// For each row of `now` its place in `before`; both are addresses, or whatever else tells rows apart.
pub(crate) fn places<K: Copy + Eq + Hash>(before: &[K], now: &[K]) -> Vec<Option<usize>> {
    let mut at = 0;
    let mut place = |row: &K| {
        slices::step();
        let ahead = before.get(at..)?.iter().take(AHEAD);
        let found = at + ahead.into_iter().position(|other| other == row)?;
        at = found + 1;
        Some(found)
    };
    let mut places: Vec<_> = now.iter().map(&mut place).collect();
    if places.contains(&None) {
        let left: HashMap<_, _> = left(before, &places).map(|place| (before[place], place)).collect();
        for (place, row) in places.iter_mut().zip(now).filter(|(place, _)| place.is_none()) {
            *place = left.get(row).copied();
        }
    }
    places
}

/// The places in `before` that nothing has.
pub(crate) fn left<K>(before: &[K], places: &[Option<usize>]) -> impl Iterator<Item = usize> + use<K> {
    let mut left = vec![true; before.len()];
    for place in places.iter().flatten() {
        slices::step();
        left[*place] = false;
    }
    left.into_iter().enumerate().filter_map(|(place, left)| left.then_some(place))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_row_that_was_there_is_found(
            before in prop::collection::hash_set(0usize..60, 0..60),
            now in prop::collection::hash_set(0usize..60, 0..60),
            same in 0usize..60,
        ) {
            let before: Vec<_> = before.into_iter().collect();
            let mut now: Vec<_> = now.into_iter().collect();
            now.splice(.., before.iter().take(same).copied().chain(now.clone()).collect::<Vec<_>>());
            let places = places(&before, &now);
            for (row, place) in now.iter().zip(&places) {
                match place {
                    Some(place) => prop_assert_eq!(before[*place], *row),
                    // The second of two is told nothing: the first has the place.
                    None => prop_assert!(!before.contains(row) || now.iter().filter(|r| *r == row).count() > 1),
                }
            }
        }
    }
}
