//! Soul's `hash`: one key, one upstream.

use std::sync::Arc;

use super::{BuildContext, HashPolicy, Hashing, Picker, Policy};
use crate::balance::{context::PickContext, members::Members, soul::Ring};

/// Soul's `hash`: the same owner as Soul for every key. Five points for each upstream spread the keys unevenly:
/// the fullest of ten has 1.7 times the mean. [`RingHash`](super::RingHash) and [`Maglev`](super::Maglev) do better.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoulHash;

impl Policy for SoulHash {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(HashPicker::new(members, context.previous()))
    }

    fn is_by_key(&self) -> bool {
        true
    }
}

impl HashPolicy for SoulHash {
    fn build_hashing(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Hashing> {
        Box::new(HashPicker::new(members, context.previous()))
    }
}

/// The ring is built once for a list. An owner that is down or was tried is stepped over, so its keys go to the next
/// points and nobody else's move. What the strict choice never takes has no points; that is the same to all keys, and
/// a url listed twice, once switched off, keeps its points.
#[derive(Debug)]
pub(in crate::balance) struct HashPicker {
    ring: Arc<Ring>,
    /// Who has points, to know whether the next ring would be the same.
    ringed: Arc<[(usize, Box<str>)]>,
}

impl HashPicker {
    /// - `previous`: shares its ring if the next one would be the same.
    pub(in crate::balance) fn new(members: Members<'_>, previous: Option<&Self>) -> Self {
        let ringed = || {
            let indexed = members.all().enumerate();
            indexed
                .filter(move |(_, upstream)| members.is_configured(upstream))
                .map(|(index, upstream)| (index, upstream.url()))
        };
        let same = |previous: &Self| {
            let mut both = ringed().zip(&*previous.ringed);
            ringed().count() == previous.ringed.len() && both.all(|((i, u), (j, v))| i == *j && *u == **v)
        };
        match previous {
            Some(previous) if same(previous) => {
                Self { ring: Arc::clone(&previous.ring), ringed: Arc::clone(&previous.ringed) }
            }
            _ => Self {
                ring: Arc::new(Ring::with_owners(ringed())),
                ringed: ringed().map(|(index, url)| (index, url.into())).collect(),
            },
        }
    }
}

impl Hashing for HashPicker {
    fn find(
        &self,
        _: Members<'_>,
        context: &PickContext<'_>,
        accept: &mut dyn FnMut(usize) -> bool,
    ) -> Option<usize> {
        self.ring.owners_from(context.soul_hash()).find(|&owner| accept(owner))
    }
}

impl Picker for HashPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        // Soul does not hash when there is nothing to choose from; the answer is the same, sooner.
        if self.ringed.len() > 1 {
            let place = context.soul_hash();
            let owner = self.ring.owner(place)?;
            if members.is_eligible(owner, context) {
                return Some(owner);
            }
            let mut others = self.ring.owners_from(place);
            if let Some(owner) = others.find(|&index| members.is_eligible(index, context)) {
                return Some(owner);
            }
        }
        // Without points is one whose url another one, of another protocol and down, has too.
        members.candidates(context).next().map(|(index, _)| index)
    }
}
