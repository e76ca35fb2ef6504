//! Soul's `hash`: one key, one upstream.

use std::sync::{Arc, OnceLock};

use super::{BuildContext, HashPolicy, Hashing, Picker, Policy};
use crate::balance::{context::PickContext, members::Members, soul::Ring};

/// Soul's `hash`: the same owner as Soul for every key. Five points for each upstream spread the keys unevenly:
/// the fullest of ten has 1.7 times the mean. [`RingHash`](super::RingHash) and [`Maglev`](super::Maglev) do better.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoulHash;

impl Policy for SoulHash {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(HashPicker::ready(members, context.previous()))
    }

    fn is_by_key(&self) -> bool {
        true
    }
}

impl HashPolicy for SoulHash {
    fn build_hashing(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Hashing> {
        Box::new(HashPicker::ready(members, context.previous()))
    }
}

/// The ring is built once for a list, when it is first asked for. An owner that is down or was tried is stepped over, so its keys
/// go to the next points and nobody else's move. What the strict choice never takes has no points; that is the same to all keys,
/// and a url listed twice, once switched off, keeps its points.
#[derive(Debug)]
pub(in crate::balance) struct HashPicker {
    ringed: OnceLock<Arc<Ringed>>,
}

/// A ring, and what it was made of.
#[derive(Debug)]
struct Ringed {
    ring: Ring,
    /// Who has points, to know whether the next ring would be the same.
    owners: Box<[(usize, Box<str>)]>,
}

impl HashPicker {
    /// Without a ring before somebody asks for it, unless there was one in `previous`: a ring takes as much memory as the
    /// upstreams that are on it, and most lists are never chosen from by key.
    ///
    /// - `previous`: shares its ring if this one would be the same.
    pub(in crate::balance) fn new(members: Members<'_>, previous: Option<&Self>) -> Self {
        let before = previous.and_then(|previous| previous.ringed.get());
        let ringed = before.map(|before| Ringed::after(before, members));
        Self { ringed: ringed.map_or_else(OnceLock::new, OnceLock::from) }
    }

    /// With a ring.
    fn ready(members: Members<'_>, previous: Option<&Self>) -> Self {
        let picker = Self::new(members, previous);
        picker.ringed(members);
        picker
    }

    fn ringed(&self, members: Members<'_>) -> &Ringed {
        self.ringed.get_or_init(|| Arc::new(Ringed::new(members)))
    }

    /// Builds the ring, so that no request has to wait for it.
    pub(in crate::balance) fn prepare(&self, members: Members<'_>) {
        self.ringed(members);
    }
}

impl Ringed {
    fn new(members: Members<'_>) -> Self {
        Self {
            ring: Ring::with_owners(on_ring(members)),
            owners: on_ring(members).map(|(index, url)| (index, url.into())).collect(),
        }
    }

    /// The same one, if nothing has changed.
    fn after(before: &Arc<Self>, members: Members<'_>) -> Arc<Self> {
        let owners = before.owners.iter().map(|(index, url)| (*index, &**url));
        if on_ring(members).eq(owners) { Arc::clone(before) } else { Arc::new(Self::new(members)) }
    }
}

/// Who has points.
fn on_ring(members: Members<'_>) -> impl Iterator<Item = (usize, &str)> {
    let configured = members.all().enumerate().filter(move |(_, upstream)| members.is_configured(upstream));
    configured.map(|(index, upstream)| (index, upstream.url()))
}

impl Hashing for HashPicker {
    fn find(
        &self,
        members: Members<'_>,
        context: &PickContext<'_>,
        accept: &mut dyn FnMut(usize) -> bool,
    ) -> Option<usize> {
        self.ringed(members).ring.owners_from(context.soul_hash()).find(|&owner| accept(owner))
    }
}

impl Picker for HashPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        // Soul does not hash when there is nothing to choose from; the answer is the same, sooner.
        if members.len() > 1 {
            let Ringed { ring, owners } = self.ringed(members);
            if owners.len() > 1 {
                let place = context.soul_hash();
                let owner = ring.owner(place)?;
                if members.is_eligible(owner, context) {
                    return Some(owner);
                }
                let mut others = ring.owners_from(place);
                if let Some(owner) = others.find(|&index| members.is_eligible(index, context)) {
                    return Some(owner);
                }
            }
        }
        // Without points is one whose url another one, of another protocol and down, has too.
        members.candidates(context).next().map(|(index, _)| index)
    }
}
