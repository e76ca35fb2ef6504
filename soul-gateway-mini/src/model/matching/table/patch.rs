//! An index that goes on after few of many entries changed.
//!
//! To make an index of 100,000 entries takes longer than a change may. So the one that there is stays, with where its
//! entries are by now, and a small one has those that it does not know. What changed or went is nowhere any more by its
//! former rank, and is named by it in vain.

use std::{iter, sync::Arc};

use super::{
    super::{
        index::{Filings, Index},
        view::RequestView,
    },
    ordered::Gated,
};
use crate::{model::places, slices};

/// Where an entry is that is not there any more.
const GONE: u32 = u32::MAX;

/// Of so many entries that were made anew it is found out whether they ask for the same as before.
const LOOKED_AT: usize = 2_000;

/// When an index is made anew.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// With fewer entries always: that takes little time.
    pub(super) many: usize,
    /// If it does not know one of so many.
    pub(super) share: usize,
}

impl Limits {
    /// The small index is made at every change, so that it has to be small: of 100,000 entries it has 6,250, which take some
    /// ten milliseconds.
    pub(super) const USUAL: Self = Self { many: 2_000, share: 16 };
}

/// An index of former entries, and one of those that came since.
#[derive(Debug)]
pub(super) struct Patched {
    former: Arc<Index>,
    /// Where the entries are now that `former` knows, by their rank there. Ascending, but for those that are [`GONE`].
    places: Box<[u32]>,
    since: Index,
    /// Where those are that `since` knows, ascending.
    added: Box<[u32]>,
}

impl Patched {
    /// - `former`: an index, and where the entries are now that it knows.
    /// - returns `None` if one index of all entries is better.
    pub(super) fn new<T: Gated>(
        former: Arc<Index>,
        places: Box<[u32]>,
        entries: &[T],
        limits: Limits,
    ) -> Option<Self> {
        if entries.len() < limits.many || places.len() > 2 * entries.len() {
            return None;
        }
        let mut is_known = vec![false; entries.len()];
        for place in &places {
            slices::step();
            if let Some(is_known) = is_known.get_mut(*place as usize) {
                *is_known = true;
            }
        }
        let added = (0..).zip(&is_known).filter(|(_, is_known)| !**is_known);
        let added: Box<[u32]> = added.map(|(place, _)| place).collect();
        if added.len() * limits.share > entries.len() {
            return None;
        }
        let entry = |place: &u32| entries.get(*place as usize);
        let filings: Vec<Filings> =
            added.iter().filter_map(entry).map(|entry| entry.gate().filings()).collect();
        Some(Self { former, places, since: Index::new(filings.iter()), added })
    }

    /// The same after another change.
    ///
    /// - `now`: where the entries are now, by where they were before it.
    pub(super) fn after<T: Gated>(&self, now: &[u32], entries: &[T], limits: Limits) -> Option<Self> {
        let place = |before: &u32| {
            slices::step();
            now.get(*before as usize).copied().unwrap_or(GONE)
        };
        Self::new(Arc::clone(&self.former), self.places.iter().map(place).collect(), entries, limits)
    }

    /// Asks `hit` as [`Index::first`] does, but with the entry's place.
    pub(super) fn first(&self, view: &RequestView<'_>, mut hit: impl FnMut(u32) -> bool) {
        let place = |rank: u32| self.added.get(rank as usize).copied();
        let added = self.since.first(view, |rank| place(rank).is_some_and(&mut hit));
        let best = added.and_then(place).unwrap_or(GONE);
        self.former.first(view, |rank| {
            let place = self.places.get(rank as usize).copied();
            place.filter(|place| *place < best).is_some_and(&mut hit)
        });
    }
}

/// For each entry of `before` where it is in `now` with the same gate, or [`GONE`]; in the order of both.
pub(super) fn moved<T: Gated>(before: &[T], now: &[T]) -> Box<[u32]> {
    let keys = |entries: &[T]| -> Vec<_> {
        entries.iter().inspect(|_| slices::step()).map(Gated::address).collect()
    };
    let mut places = places(&keys(before), &keys(now));
    let strange = places.iter().filter(|place| place.is_none()).count();
    let mut next = 0;
    for (place, entry) in places.iter_mut().zip(now) {
        slices::step();
        // Most changes leave the conditions alone, and the entry where it was. To look at those of many takes too long.
        let stays = || before.get(next).is_some_and(|old| entry.has_gate_of(old));
        if place.is_none() && strange <= LOOKED_AT && stays() {
            *place = Some(next);
        }
        next = place.map_or(next, |place| place + 1);
    }
    let mut moved = vec![GONE; before.len()];
    for (place, at) in ascending(&places) {
        moved[place] = at;
    }
    moved.into()
}

/// As many places as can be kept in ascending order, each with where it was in the list.
fn ascending(places: &[Option<usize>]) -> Vec<(usize, u32)> {
    /// An end of a row, and the one before it there.
    struct Step {
        place: usize,
        at: u32,
        before: Option<usize>,
    }
    let mut steps: Vec<Step> = Vec::with_capacity(places.len());
    // By length, the row of that length that ends lowest: its last step.
    let mut ends: Vec<usize> = Vec::with_capacity(places.len());
    for (place, at) in places.iter().zip(0..).filter_map(|(place, at)| Some(((*place)?, at))) {
        slices::step();
        let is_below = |end: &usize| steps[*end].place < place;
        let length = match ends.last() {
            Some(last) if is_below(last) => ends.len(),
            _ => ends.partition_point(is_below),
        };
        let before = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = steps.len(),
            None => ends.push(steps.len()),
        }
        steps.push(Step { place, at, before });
    }
    let row = iter::successors(ends.last().copied(), |at| steps[*at].before);
    row.inspect(|_| slices::step()).map(|at| (steps[at].place, steps[at].at)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn as_many_places_are_kept_as_can_be(
            places in prop::collection::vec(prop::option::of(0usize..8), 0..10),
        ) {
            let kept = ascending(&places);
            for pair in kept.windows(2) {
                prop_assert!(pair[0].0 > pair[1].0 && pair[0].1 > pair[1].1, "{:?}", kept);
            }
            for (place, at) in &kept {
                prop_assert_eq!(places[*at as usize], Some(*place));
            }
            let longest = (0_u32..1 << places.len()).filter_map(|choice| {
                let chosen = (0..places.len()).filter(|at| choice & (1 << at) > 0);
                let chosen: Option<Vec<_>> = chosen.map(|at| places[at]).collect();
                chosen.filter(|chosen| chosen.is_sorted_by(|one, next| one < next))
            });
            prop_assert_eq!(Some(kept.len()), longest.map(|chosen| chosen.len()).max());
        }
    }
}
