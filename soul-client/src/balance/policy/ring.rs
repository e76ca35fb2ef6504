//! Consistent hashing by a ring of many points.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{BuildContext, HashPolicy, Hashing, Picker, Policy, share};
use crate::balance::{
    context::PickContext,
    members::Members,
    points::{Point, Points},
};

/// A ring with 160 points for each upstream: one key, one upstream, and who leaves moves only its own keys.
///
/// The heaviest upstream has all points, another one in proportion to its weight. So keys of others move when the
/// largest weight changes, and only then.
///
/// # Source
/// Karger and others, Consistent Hashing and Random Trees, 1997; the number of points is nginx's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingHash {
    /// Points of the heaviest upstream. Default 160.
    pub points: u32,
}

impl Default for RingHash {
    fn default() -> Self {
        Self { points: 160 }
    }
}

/// Points that are looked at before any other upstream is taken.
const STEPS: usize = 2_048;

#[derive(Debug)]
struct Ring {
    /// Who has points and how many, to know whether the next ring would be the same.
    signature: u64,
    points: Points,
}

#[derive(Debug)]
struct RingPicker {
    ring: Arc<Ring>,
}

impl RingHash {
    fn picker(self, members: Members<'_>, context: &BuildContext<'_>) -> RingPicker {
        let signature = signature(members, self.points);
        let previous = context.previous::<RingPicker>().filter(|p| p.ring.signature == signature);
        let ring =
            previous.map_or_else(|| Arc::new(Ring::new(members, self.points)), |p| Arc::clone(&p.ring));
        RingPicker { ring }
    }
}

impl Policy for RingHash {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(self.picker(members, context))
    }

    fn is_by_key(&self) -> bool {
        true
    }
}

impl HashPolicy for RingHash {
    fn build_hashing(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Hashing> {
        Box::new(self.picker(members, context))
    }
}

impl Hashing for RingPicker {
    fn find(
        &self,
        members: Members<'_>,
        context: &PickContext<'_>,
        accept: &mut dyn FnMut(usize) -> bool,
    ) -> Option<usize> {
        let hash = context.hash64();
        let mut owners = self.ring.points.owners_from(place(hash)).take(STEPS);
        owners.find(|&owner| accept(owner)).or_else(|| walk(members, hash, accept))
    }
}

impl Picker for RingPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let owner = self.ring.points.owner(place(context.hash64()))?;
        if members.is_eligible(owner, context) {
            return Some(owner);
        }
        self.find(members, context, &mut |index| members.is_eligible(index, context))
    }
}

impl Ring {
    fn new(members: Members<'_>, points_of_heaviest: u32) -> Self {
        let largest = members.iter().map(|m| configured_share(members, m.upstream())).max().unwrap_or(0);
        let mut all = Vec::new();
        for (index, member) in (0..).zip(members.iter()) {
            let weight = u64::from(configured_share(members, member.upstream()));
            if weight == 0 {
                continue;
            }
            let own = (u64::from(points_of_heaviest) * weight).div_ceil(u64::from(largest));
            let url = member.upstream().base_url().as_bytes();
            all.extend((0..own).map(|point| (xxh3_64_with_seed(url, point), index)));
        }
        // By the whole hash: of two in one place, of which a million points have some, always the same one is first. Should even the
        // hash be the same, the url decides, for the order of the list must not matter.
        let base_url = |index: u32| members.get(index as usize).map(|m| m.upstream().base_url());
        all.sort_unstable_by(|a: &(u64, u32), b| {
            a.0.cmp(&b.0).then_with(|| base_url(a.1).cmp(&base_url(b.1)))
        });
        let points = all.iter().map(|&(hash, owner)| Point { place: place(hash), owner }).collect();
        Self { signature: signature(members, points_of_heaviest), points: Points::new(points) }
    }
}

/// The leading bits of a hash.
#[allow(clippy::cast_possible_truncation)]
fn place(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The weight as far as the configuration lets it take traffic; health changes no ring.
pub(super) fn configured_share(members: Members<'_>, upstream: &crate::balance::upstream::Upstream) -> u32 {
    if members.is_configured(upstream) { share(upstream.weight()) } else { 0 }
}

/// Equal for members that give the same table.
pub(super) fn signature(members: Members<'_>, seed: u32) -> u64 {
    members.iter().fold(u64::from(seed), |signature, member| {
        let upstream = member.upstream();
        let weight = configured_share(members, upstream);
        let signature = xxh3_64_with_seed(upstream.base_url().as_bytes(), signature);
        xxh3_64_with_seed(&weight.to_le_bytes(), signature)
    })
}

/// Any of those up that is accepted, beginning at a place that the key decides.
pub(super) fn walk(members: Members<'_>, hash: u64, accept: &mut dyn FnMut(usize) -> bool) -> Option<usize> {
    let up = members.up();
    let start = usize::try_from(hash % (up.len().max(1) as u64)).unwrap_or(0);
    let (before, after) = up.split_at(start.min(up.len()));
    after.iter().chain(before).map(|&index| index as usize).find(|&index| accept(index))
}
