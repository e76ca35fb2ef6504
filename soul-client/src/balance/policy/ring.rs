//! Consistent hashing by a ring of many points.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{BuildContext, HashPolicy, Hashing, Picker, Policy, share};
use crate::balance::{context::PickContext, members::Members};

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
    /// Ascending: the leading [`PLACE_BITS`] bits of the place, then the owner. One read gives both. Behind the last one stands the
    /// owner of the first, [`AHEAD`] times and in the last place, so that a search need not look where the ring ends.
    points: Box<[u64]>,
    /// The first point of each bucket; a bucket is the leading bits of a place.
    buckets: Box<[u32]>,
    shift: u32,
}

/// Enough places for some millions of points, and owners for sixteen million upstreams.
const PLACE_BITS: u32 = 40;
const OWNER_BITS: u32 = u64::BITS - PLACE_BITS;

/// How many points are compared at once. Whether one more is needed cannot be foretold, and a wrong guess takes longer than
/// eight comparisons.
const AHEAD: usize = 8;

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
        let mut owners = self.ring.owners_from(hash).take(STEPS);
        owners.find(|&owner| accept(owner)).or_else(|| walk(members, hash, accept))
    }
}

impl Picker for RingPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let owner = self.ring.owner(context.hash64())?;
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
        // Two points in one place are as good as impossible, but then the order of the list must not matter.
        let base_url = |index: u32| members.get(index as usize).map(|m| m.upstream().base_url());
        all.sort_unstable_by(|a: &(u64, u32), b| {
            a.0.cmp(&b.0).then_with(|| base_url(a.1).cmp(&base_url(b.1)))
        });
        let point = |&(place, owner): &(u64, u32)| place >> OWNER_BITS << OWNER_BITS | u64::from(owner);
        let last = all.first().map(|&(_, owner)| point(&(u64::MAX, owner)));
        let count = all.len();
        let points: Box<[u64]> = all.iter().map(point).chain(last.into_iter().cycle().take(AHEAD)).collect();
        // Some three points in a bucket: seldom more than are compared at once, and a small index.
        let bits = (count / 4).next_power_of_two().ilog2().clamp(1, 28);
        let shift = u64::BITS - bits;
        let mut buckets = Vec::with_capacity(1 << bits);
        let mut first = 0;
        for bucket in 0..1_u64 << bits {
            while first < count && points.get(first).is_some_and(|&point| point >> shift < bucket) {
                first += 1;
            }
            buckets.push(u32::try_from(first).unwrap_or(u32::MAX));
        }
        Self { signature: signature(members, points_of_heaviest), points, buckets: buckets.into(), shift }
    }

    /// The owners of all points, once around from the first at or after a place.
    #[inline]
    fn owners_from(&self, place: u64) -> impl Iterator<Item = usize> {
        let points = &self.points[..self.points.len().saturating_sub(AHEAD)];
        let (before, after) = points.split_at(self.start(place).min(points.len()));
        after.iter().chain(before).map(|&point| owner(point))
    }

    /// The owner of the first point at or after a place.
    #[inline]
    fn owner(&self, place: u64) -> Option<usize> {
        self.points.get(self.start(place)).map(|&point| owner(point))
    }

    #[inline]
    fn start(&self, place: u64) -> usize {
        let bucket = usize::try_from(place >> self.shift).unwrap_or(0);
        let mut start = self.buckets.get(bucket).map_or(0, |&first| first as usize);
        let place = place >> OWNER_BITS;
        while let Some(ahead) = self.points.get(start..).and_then(|rest| rest.first_chunk::<AHEAD>()) {
            let before = ahead.iter().filter(|&&point| point >> OWNER_BITS < place).count();
            start += before;
            if before < AHEAD {
                break;
            }
        }
        start
    }
}

fn owner(point: u64) -> usize {
    usize::try_from(point & ((1 << OWNER_BITS) - 1)).unwrap_or(usize::MAX)
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
