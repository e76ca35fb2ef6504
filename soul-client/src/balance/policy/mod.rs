//! The ways to choose, one file each. A picker is built with its set and only reads it afterwards, but for
//! counters.

mod hash;
mod random;
mod round_robin;

pub(super) use hash::HashPicker;
pub(super) use random::RandomPicker;
pub(super) use round_robin::RoundRobinPicker;

use super::{context::PickContext, set::Members};

/// Chooses one of the members that may be chosen; gives its index.
///
/// On the path of a request: no waiting, no allocation, no clock.
pub(super) trait Picker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize>;
}
