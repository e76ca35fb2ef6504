//! By chance and in turn, without weights.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use super::{BuildContext, Picker, Policy};
use crate::balance::{
    context::PickContext,
    members::Members,
    parts::{self, Parts},
};

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
///
/// Where requests count in parts each has a position of its own, and begins elsewhere: each by itself is as even as one alone would
/// be, and together they do not all begin with the same.
#[derive(Debug, Default)]
pub(super) struct Turns(Arc<Positions>);

#[derive(Debug, Default)]
struct Positions {
    /// Of whoever has no part.
    shared: Position,
    parts: Parts<Position>,
    /// How many of them there are.
    count: u32,
}

/// Written by every choice, hence on a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Position(AtomicUsize);

/// How far apart parts begin: a prime, so that as many parts as there are members all begin with another one.
const APART: usize = 2_654_435_761;

impl Turns {
    pub(super) fn after(previous: Option<&Self>, members: Members<'_>) -> Self {
        Self::of_parts(previous, members.parts())
    }

    pub(super) fn of_parts(previous: Option<&Self>, count: u32) -> Self {
        match previous {
            Some(Self(positions)) if positions.count == count => Self(Arc::clone(positions)),
            _ => Self(Arc::new(Positions { count, ..Positions::default() })),
        }
    }

    /// A number that grows by one each time that this thread takes one.
    #[inline]
    pub(super) fn take(&self) -> usize {
        if self.0.count <= 1 { self.0.shared.0.fetch_add(1, Relaxed) } else { self.take_own() }
    }

    fn take_own(&self) -> usize {
        let (own, count) = (parts::own(), self.0.count as usize);
        let begin = || Position(AtomicUsize::new((own % count).wrapping_mul(APART)));
        self.0.parts.get_or_init(own, count, begin).0.fetch_add(1, Relaxed)
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
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        let previous = context.previous::<TurnPicker>().map(|p| &p.turns);
        Box::new(TurnPicker { turns: Turns::after(previous, members) })
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
            turns.0.shared.0.store(usize::MAX - before, Relaxed);
            let positions: Vec<_> = (0..200).map(|_| turns.next(length)).collect();
            prop_assert!(positions.iter().all(|&position| position < length));
            // One after the other, but for the one moment of the wrap.
            let breaks = positions.windows(2).filter(|two| (two[0] + 1) % length != two[1]).count();
            prop_assert!(breaks <= 1, "{:?}", positions);
        }
    }

    #[test]
    fn as_many_parts_as_members_all_begin_with_another_one() {
        for count in 2_usize..=64 {
            let turns = Turns::of_parts(None, u32::try_from(count).unwrap());
            let firsts = (0..count).map(|part| {
                parts::enter(part);
                [turns.next(count), turns.next(count)]
            });
            let mut firsts: Vec<_> = firsts.inspect(|two| assert_eq!((two[0] + 1) % count, two[1])).collect();
            firsts.sort_unstable();
            assert!(firsts.iter().map(|two| two[0]).eq(0..count), "{count}: {firsts:?}");
        }
    }

    #[test]
    fn the_position_wraps() {
        let turns = Turns::default();
        turns.0.shared.0.store(usize::MAX - 1, Relaxed);
        assert_eq!([turns.next(3), turns.next(3), turns.next(3), turns.next(3)], [2, 0, 0, 1]);
    }
}
