//! Soul's `random`: by chance, in proportion to the weights of the moment.

use super::{BuildContext, Picker, Policy};
use crate::balance::{context::PickContext, members::Members, soul};

/// Soul's `random`: in proportion to the weights, heeding Soul's warm-up at each choice. Looks at all members for each
/// request; [`WeightedRandom`](super::WeightedRandom) does not.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoulRandom;

impl Policy for SoulRandom {
    fn build(&self, _: Members<'_>, _: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(RandomPicker)
    }

    fn heeds_warmup(&self) -> bool {
        true
    }
}

/// Nothing to prepare: weights change during warm-up, so they are asked for at each choice.
#[derive(Debug)]
pub(in crate::balance) struct RandomPicker;

impl Picker for RandomPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let mut candidates = members.candidates(context);
        let weights = candidates.clone().map(|(_, upstream)| upstream.weight_at(context.now_ms));
        let position = soul::random(weights, |bound| context.draw(bound))?;
        // Health may have changed since the count: whoever stands there now, or the first, is as good.
        candidates.clone().nth(position).or_else(|| candidates.next()).map(|(index, _)| index)
    }
}
