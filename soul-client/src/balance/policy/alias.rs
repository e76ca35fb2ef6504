//! Weighted random by an alias table.

use super::{BuildContext, Picker, Policy, share};
use crate::balance::{context::PickContext, members::Members, upstream::Upstream};

/// By chance in proportion to the weights, whatever they are, in constant time.
///
/// # Source
/// Vose, A Linear Algorithm for Generating Random Numbers with a Given Distribution, 1991.
#[derive(Clone, Copy, Debug, Default)]
pub struct WeightedRandom;

impl Policy for WeightedRandom {
    fn build(&self, members: Members<'_>, _: &BuildContext<'_>) -> Box<dyn Picker> {
        let weights = members.up_upstreams().map(|u| f64::from(share(u.weight())));
        Box::new(AliasPicker { table: AliasTable::new(weights) })
    }
}

/// Chooses by a table over those that are up.
pub(super) struct AliasPicker {
    pub(super) table: AliasTable,
}

impl Picker for AliasPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        members.draw(context, || self.table.draw(context))
    }
}

/// Columns of equal width; each belongs to one position up to a threshold and to another one above.
#[derive(Debug, Default)]
pub(super) struct AliasTable {
    columns: Box<[Column]>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// Of 2^24.
    threshold: u32,
    other: u32,
}

const WHOLE: u32 = 1 << 24;

impl AliasTable {
    /// - `weights`: finite; those of 0 or less are never drawn unless all are.
    pub(super) fn new(weights: impl Iterator<Item = f64> + Clone) -> Self {
        let count = weights.clone().count();
        let total: f64 = weights.clone().map(|w| w.max(0.0)).sum();
        #[allow(clippy::cast_precision_loss)]
        let scale = if total > 0.0 { count as f64 / total } else { 0.0 };
        // With all weights 0 every column is full, so all are alike.
        let mut parts: Vec<f64> =
            weights.map(|w| if scale > 0.0 { w.max(0.0) * scale } else { 1.0 }).collect();
        #[allow(clippy::cast_possible_truncation)]
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..count as u32).partition(|&i| parts[i as usize] < 1.0);
        let mut columns = vec![Column { threshold: WHOLE, other: 0 }; count];
        while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
            small.pop();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let threshold = (parts[low as usize] * f64::from(WHOLE)).round() as u32;
            columns[low as usize] = Column { threshold, other: high };
            let rest = &mut parts[high as usize];
            *rest -= 1.0 - f64::from(threshold) / f64::from(WHOLE);
            if *rest < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        // What is left over differs from a whole column by rounding only.
        Self { columns: columns.into() }
    }

    /// The table of the weights of those that are up; `None` if they are all alike.
    pub(super) fn if_uneven<'s>(upstreams: impl Iterator<Item = &'s Upstream> + Clone) -> Option<Self> {
        let first = upstreams.clone().next()?.weight();
        if upstreams.clone().all(|u| u.weight() == first) {
            return None;
        }
        Some(Self::new(upstreams.map(|u| f64::from(share(u.weight())))))
    }

    /// A position; 0 if there is none.
    #[inline]
    pub(super) fn draw(&self, context: &PickContext<'_>) -> usize {
        let position = context.below(self.columns.len());
        match self.columns.get(position) {
            Some(column) if context.below(WHOLE as usize) >= column.threshold as usize => {
                column.other as usize
            }
            _ => position,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use proptest::prelude::*;

    use super::*;

    /// The exact share of each position, by reading the columns.
    fn shares(table: &AliasTable) -> Vec<f64> {
        let mut shares = vec![0.0; table.columns.len()];
        for (position, column) in table.columns.iter().enumerate() {
            let own = f64::from(column.threshold) / f64::from(WHOLE);
            shares[position] += own;
            shares[column.other as usize] += 1.0 - own;
        }
        shares
    }

    #[test]
    fn weights_of_zero_are_never_drawn() {
        let table = AliasTable::new([0.0, 3.0, 0.0, 1.0].into_iter());
        let rng = RefCell::new(fastrand::Rng::with_seed(3));
        let source = |bound| rng.borrow_mut().u32(..bound);
        let context = PickContext::at(0).random(&source);
        let mut counts = [0; 4];
        for _ in 0..10_000 {
            counts[table.draw(&context)] += 1;
        }
        assert_eq!((counts[0], counts[2]), (0, 0));
        assert!((7_200..7_800).contains(&counts[1]), "{counts:?}");
    }

    proptest! {
        #[test]
        fn every_position_has_its_share(weights in prop::collection::vec(0_u32..1_000_000, 1..200)) {
            let table = AliasTable::new(weights.iter().map(|&w| f64::from(w)));
            let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
            prop_assume!(total > 0.0);
            for (share, weight) in shares(&table).into_iter().zip(&weights) {
                let expected = f64::from(*weight) / total * weights.len() as f64;
                prop_assert!((share - expected).abs() < 1e-5 * weights.len() as f64, "{share} {expected}");
                prop_assert!(*weight != 0 || share == 0.0);
            }
        }
    }
}
