//! Random: by chance, in proportion to the weights.

use super::Picker;
use crate::balance::{context::PickContext, set::Members, soul};

/// Nothing to prepare: weights change during warm-up, so they are asked for at each choice.
#[derive(Debug)]
pub(in crate::balance) struct RandomPicker;

impl Picker for RandomPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let mut candidates = members.candidates(context);
        let weights = candidates.clone().map(|(_, upstream)| upstream.weight_at(context.now_ms));
        let position = soul::random(weights, |bound| context.random.below(bound))?;
        // Health may have changed since the count: whoever stands there now, or the first, is as good.
        candidates.clone().nth(position).or_else(|| candidates.next()).map(|(index, _)| index)
    }
}
