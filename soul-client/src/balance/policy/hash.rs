//! Hash: one key, one upstream.

use std::sync::Arc;

use super::Picker;
use crate::balance::{context::PickContext, set::Members, soul::Ring};

/// The ring is built once for a list. An owner that is down or was tried is stepped over, so its keys go to the next
/// points and nobody else's move. What the strict choice never takes has no points; that is the same to all keys, and
/// a url listed twice, once switched off, keeps its points.
#[derive(Debug)]
pub(in crate::balance) struct HashPicker {
    ring: Arc<Ring>,
}

impl HashPicker {
    /// - `previous`: the picker of a set for which [`HashPicker::ringed`] gives the same.
    pub(in crate::balance) fn new(members: Members<'_>, previous: Option<&Self>) -> Self {
        let ring = match previous {
            Some(previous) => Arc::clone(&previous.ring),
            None => Arc::new(Ring::with_owners(Self::ringed(members))),
        };
        Self { ring }
    }

    /// The members that have points, with their index.
    pub(in crate::balance) fn ringed(members: Members<'_>) -> impl Iterator<Item = (usize, &str)> {
        let indexed = members.all().enumerate();
        indexed
            .filter(move |(_, upstream)| members.is_configured(upstream))
            .map(|(index, upstream)| (index, upstream.url()))
    }
}

impl Picker for HashPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        // Soul does not hash when there is nothing to choose from; the answer is the same, sooner.
        let mut candidates = members.candidates(context);
        let (first, _) = candidates.next()?;
        if candidates.next().is_none() {
            return Some(first);
        }
        let mut owners = self.ring.owners_from(context.soul_hash());
        // Without points is a candidate only whose url another one, of another protocol and down, has too.
        owners.find(|&owner| members.may_be_chosen(owner, context)).or(Some(first))
    }
}
