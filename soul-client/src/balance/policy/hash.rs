//! Hash: one key, one upstream.

use std::sync::Arc;

use super::Picker;
use crate::balance::{context::PickContext, set::Members, soul::Ring};

/// The ring holds every member, also those that may not be chosen now: an owner that is out is stepped over, so its keys
/// go to the next points and nobody else's move.
#[derive(Debug)]
pub(in crate::balance) struct HashPicker {
    ring: Arc<Ring>,
}

impl HashPicker {
    /// - `previous`: a picker over the same urls in the same order, if there was one.
    pub(in crate::balance) fn new(members: Members<'_>, previous: Option<&Self>) -> Self {
        let ring = match previous {
            Some(previous) => Arc::clone(&previous.ring),
            None => Arc::new(Ring::new(members.all().map(|upstream| upstream.url()))),
        };
        Self { ring }
    }
}

impl Picker for HashPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        // Soul does not hash when there is nothing to choose from; the answer is the same, sooner.
        let mut candidates = members.candidates(context);
        let (only, _) = candidates.next()?;
        if candidates.next().is_none() {
            return Some(only);
        }
        self.ring.owners_from(context.soul_hash()).find(|&owner| members.may_be_chosen(owner, context))
    }
}
