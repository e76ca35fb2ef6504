//! By chance and in turn, without weights.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use super::{BuildContext, Picker, Policy};
use crate::balance::{context::PickContext, members::Members};

/// Each upstream equally likely; weights play no part but that 0 takes no traffic.
#[derive(Clone, Copy, Debug, Default)]
#[doc(alias = "RandomRule")]
pub struct Random;

struct RandomPicker;

impl Policy for Random {
    fn build(&self, _: Members<'_>, _: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(RandomPicker)
    }
}

impl Picker for RandomPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        members.draw(context, || context.below(members.up().len()))
    }
}

/// One after the other; weights play no part but that 0 takes no traffic.
#[derive(Clone, Copy, Debug, Default)]
#[doc(alias = "RoundRobinRule")]
pub struct RoundRobin;

/// The position goes on when the next picker is built. It wraps, which at worst repeats or skips a few.
#[derive(Debug, Default)]
pub(super) struct Turns(Arc<Position>);

/// Written by every choice, hence on a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Position(AtomicUsize);

impl Turns {
    pub(super) fn after(previous: Option<&Self>) -> Self {
        previous.map(|p| Self(Arc::clone(&p.0))).unwrap_or_default()
    }

    /// A number that grows by one each time.
    #[inline]
    pub(super) fn take(&self) -> usize {
        self.0.0.fetch_add(1, Relaxed)
    }

    /// The next position in a list.
    #[inline]
    pub(super) fn next(&self, length: usize) -> usize {
        self.take() % length.max(1)
    }
}

#[derive(Debug)]
pub(super) struct TurnPicker {
    pub(super) turns: Turns,
}

impl Policy for RoundRobin {
    fn build(&self, _: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(TurnPicker { turns: Turns::after(context.previous::<TurnPicker>().map(|p| &p.turns)) })
    }
}

impl Picker for TurnPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        members.draw(context, || self.turns.next(members.up().len()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn property_9_the_position_may_wrap_at_any_moment(length in 1_usize..20, before in 0_usize..100) {
            let turns = Turns::default();
            turns.0.0.store(usize::MAX - before, Relaxed);
            let positions: Vec<_> = (0..200).map(|_| turns.next(length)).collect();
            prop_assert!(positions.iter().all(|&position| position < length));
            // One after the other, but for the one moment of the wrap.
            let breaks = positions.windows(2).filter(|two| (two[0] + 1) % length != two[1]).count();
            prop_assert!(breaks <= 1, "{:?}", positions);
        }
    }

    #[test]
    fn the_position_wraps() {
        let turns = Turns::default();
        turns.0.0.store(usize::MAX - 1, Relaxed);
        assert_eq!([turns.next(3), turns.next(3), turns.next(3), turns.next(3)], [2, 0, 0, 1]);
    }
}
