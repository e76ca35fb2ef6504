//! Weighted round robin by static strides.

use super::{BuildContext, Picker, Policy, alias::AliasTable, plain::Turns, share};
use crate::balance::{context::PickContext, members::Members};

/// In turn, in proportion to the weights, with one counter for all: no lock and no state for each upstream.
///
/// Where one weight is more than [`WeightedRoundRobin::MAX_RATIO`] times the mean, too many turns would be passed over, and the
/// choice is by chance in the same proportion.
///
/// # Source
/// The static stride scheduler of gRPC's weighted round robin (proposal A58).
#[derive(Clone, Copy, Debug, Default)]
pub struct WeightedRoundRobin;

impl WeightedRoundRobin {
    /// Largest ratio of a weight to the mean that is taken in turn.
    pub const MAX_RATIO: f64 = 10.0;
}

/// The largest weight is scaled to this.
const LARGEST: u64 = 65_535;

pub(super) struct StridePicker {
    turns: Turns,
    weights: Weights,
}

enum Weights {
    /// Scaled to [`LARGEST`].
    Strides(Box<[u16]>),
    Uneven(AliasTable),
}

impl Policy for WeightedRoundRobin {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        let turns = Turns::after(context.previous::<StridePicker>().map(|p| &p.turns), members);
        let weights = members.up_upstreams().map(|u| share(u.weight()));
        Box::new(StridePicker { turns, weights: Weights::new(weights) })
    }
}

impl Weights {
    fn new(weights: impl Iterator<Item = u32> + Clone) -> Self {
        let count = weights.clone().count();
        let total: f64 = weights.clone().map(f64::from).sum();
        let largest = weights.clone().max().unwrap_or(0).max(1);
        #[allow(clippy::cast_precision_loss)]
        if f64::from(largest) * count as f64 > WeightedRoundRobin::MAX_RATIO * total {
            return Self::Uneven(AliasTable::new(weights.map(f64::from)));
        }
        let scale = |weight: u32| {
            let scaled = (u64::from(weight) * LARGEST).div_ceil(u64::from(largest)).max(1);
            u16::try_from(scaled).unwrap_or(u16::MAX)
        };
        Self::Strides(weights.map(scale).collect())
    }
}

impl Picker for StridePicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        members.draw(context, || match &self.weights {
            Weights::Uneven(table) => table.draw(context),
            Weights::Strides(strides) => next(strides, || self.turns.take()),
        })
    }
}

/// The position whose turn it is: in each round over all, those take part whose weight has added up to the next
/// multiple of the largest one.
fn next(strides: &[u16], mut take: impl FnMut() -> usize) -> usize {
    let count = strides.len().max(1);
    // Some weight is the largest one and takes part in every round, so a bound is never needed; it stands
    // here because an endless loop on the path of a request must be impossible.
    for _ in 0..=count {
        let turn = take();
        let (round, position) = ((turn / count) as u64, turn % count);
        let Some(&stride) = strides.get(position) else { return 0 };
        let stride = u64::from(stride);
        // Positions begin at different points of the period, so that equal weights do not all skip one round.
        let offset = position as u64 * (LARGEST / 2);
        let phase = stride.wrapping_mul(round).wrapping_add(offset) % LARGEST;
        if phase >= LARGEST - stride {
            return position;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counts(weights: &[u32], picks: usize, start: usize) -> Vec<usize> {
        let Weights::Strides(strides) = Weights::new(weights.iter().copied()) else { panic!("too uneven") };
        let mut turn = start;
        let mut counts = vec![0; weights.len()];
        for _ in 0..picks {
            counts[next(&strides, || {
                turn = turn.wrapping_add(1);
                turn.wrapping_sub(1)
            })] += 1;
        }
        counts
    }

    #[test]
    fn shares_are_kept_to_half_a_percent() {
        let weights: Vec<u32> = (0..100).map(|i| 1 + i % 10).collect();
        for weights in [&weights[..10], &weights[..], &[50, 20, 30], &[1], &[7, 7, 7]] {
            let picks = 100_000;
            let total: u32 = weights.iter().sum();
            for (count, &weight) in counts(weights, picks, 0).into_iter().zip(weights) {
                let expected = picks as f64 * f64::from(weight) / f64::from(total);
                let error = (count as f64 - expected).abs();
                assert!(error <= (expected * 0.005).max(2.0), "{weight}: {count} of {expected}");
            }
        }
    }

    #[test]
    fn the_counter_may_wrap() {
        let counts = counts(&[50, 20, 30], 1_000, usize::MAX - 500);
        assert!((495..=505).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn very_uneven_weights_are_left_to_chance() {
        let mut weights = vec![1; 100];
        weights[7] = 100;
        assert!(matches!(Weights::new(weights.into_iter()), Weights::Uneven(_)));
    }

    proptest! {
        #[test]
        fn property_9_the_counter_may_wrap_at_any_moment(
            weights in prop::collection::vec(1_u32..10, 1..12), before in 0_usize..2_000,
        ) {
            let total: u32 = weights.iter().sum();
            let counts = counts(&weights, 2_000, usize::MAX - before);
            for (count, weight) in counts.iter().zip(&weights) {
                let expected = 2_000.0 * f64::from(*weight) / f64::from(total);
                // At the wrap a round is cut short and another one begins.
                prop_assert!((*count as f64 - expected).abs() <= 4.0 + expected * 0.02, "{:?} {:?}", counts, weights);
            }
        }
    }
}
