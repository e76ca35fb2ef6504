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
    /// The index that nearly all choices need nothing but.
    buckets: Box<[Bucket]>,
    /// All of them, ascending by place; of two in one place the first counts.
    points: Box<[Point]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Point {
    /// The leading bits of a hash.
    place: u32,
    /// Index of a member.
    owner: u32,
}

/// The first points at or after where a bucket begins, whichever bucket they are in: one line of memory answers a choice. Which
/// bucket a place is in follows from its leading bits.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket {
    places: [u32; AHEAD],
    owners: [u32; AHEAD],
}

/// Points in a line. They are compared all at once: whether one more is needed cannot be foretold, and a wrong guess takes
/// longer than eight comparisons.
const AHEAD: usize = 8;

/// Points for which there is one bucket: with so few, those of a line do not suffice for one choice in a hundred.
const POINTS_OF_BUCKET: usize = 4;

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
        let mut owners = self.ring.owners_from(Ring::place(hash)).take(STEPS);
        owners.find(|&owner| accept(owner)).or_else(|| walk(members, hash, accept))
    }
}

impl Picker for RingPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let owner = self.ring.owner(Ring::place(context.hash64()))?;
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
        let point = |&(hash, owner): &(u64, u32)| Point { place: Self::place(hash), owner };
        Self::of(signature(members, points_of_heaviest), all.iter().map(point).collect())
    }

    /// - `points`: ascending by place.
    fn of(signature: u64, points: Box<[Point]>) -> Self {
        Self { signature, buckets: buckets(&points), points }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn place(hash: u64) -> u32 {
        (hash >> 32) as u32
    }

    /// The owner of the first point at or after a place.
    #[inline]
    fn owner(&self, place: u32) -> Option<usize> {
        match self.near(place) {
            [owner, ..] => Some(*owner as usize),
            [] => self.search(place).next(),
        }
    }

    /// The owners of all points, once around from the first at or after a place.
    fn owners_from(&self, place: u32) -> impl Iterator<Item = usize> {
        let near = self.near(place);
        let mut far = None;
        let far =
            std::iter::from_fn(move || far.get_or_insert_with(|| self.search(place).skip(near.len())).next());
        near.iter().take(self.points.len()).map(|&owner| owner as usize).chain(far)
    }

    /// The owners of those points from the first at or after a place on that are in its line; of none, if more are before it than
    /// fit there.
    #[inline]
    fn near(&self, place: u32) -> &[u32] {
        let Some(bucket) = self.buckets.get(number(place, self.buckets.len())) else { return &[] };
        let before = bucket.places.iter().filter(|&&point| point < place).count();
        bucket.owners.get(before..).unwrap_or_default()
    }

    /// As [`Ring::owners_from`], without the index.
    #[cold]
    fn search(&self, place: u32) -> impl Iterator<Item = usize> {
        let (before, after) = self.points.split_at(self.points.partition_point(|point| point.place < place));
        after.iter().chain(before).map(|point| point.owner as usize)
    }
}

/// The bucket that a place is in. Ascends with the place.
#[inline]
fn number(place: u32, buckets: usize) -> usize {
    usize::try_from((u64::from(place) * buckets as u64) >> u32::BITS).unwrap_or(0)
}

fn buckets(points: &[Point]) -> Box<[Bucket]> {
    let count = points.len().div_ceil(POINTS_OF_BUCKET);
    let mut first = 0;
    let bucket = |bucket| {
        first += points[first..].iter().take_while(|point| number(point.place, count) < bucket).count();
        let mut filled = Bucket::default();
        // Behind the last one the ring begins again: to a comparison that is in the last place.
        let again = points.iter().map(|point| Point { place: u32::MAX, ..*point }).cycle();
        let ahead = points[first..].iter().copied().chain(again);
        for (point, (place, owner)) in ahead.zip(filled.places.iter_mut().zip(&mut filled.owners)) {
            (*place, *owner) = (point.place, point.owner);
        }
        filled
    };
    (0..count).map(bucket).collect()
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Places all over the ring, beside each other, the same, and at both ends.
    fn places() -> impl Strategy<Value = Vec<u32>> {
        let place = prop_oneof![
            4 => any::<u32>(),
            3 => 3_000_000_000..3_000_000_040_u32,
            1 => prop_oneof![Just(0), Just(u32::MAX), u32::MAX - 3..=u32::MAX],
        ];
        prop::collection::vec(place, 0..120)
    }

    proptest! {
        #[test]
        fn the_index_finds_who_comes_after_a_place_and_then_all_others(mut at in places(), keys in places()) {
            at.sort_unstable();
            let points = (0..).zip(&at).map(|(owner, &place)| Point { place, owner }).collect();
            let ring = Ring::of(0, points);
            for &key in keys.iter().chain(&at) {
                let first = at.iter().take_while(|&&place| place < key).count();
                let expected: Vec<_> = (first..at.len()).chain(0..first).collect();
                prop_assert_eq!(ring.owners_from(key).collect::<Vec<_>>(), &expected[..], "{}", key);
                prop_assert_eq!(ring.owner(key), expected.first().copied(), "{}", key);
            }
        }
    }

    #[test]
    fn a_bucket_is_one_line() {
        assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (64, 64));
    }
}
