//! Points on a ring, and who owns the next one.

/// The points of a ring with an index that nearly all choices need nothing but.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Points {
    buckets: Box<[Bucket]>,
    /// All of them, ascending by place; of two in one place the first counts.
    points: Box<[Point]>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) place: u32,
    /// Index of a member.
    pub(super) owner: u32,
}

/// The first points at or after where a bucket begins, whichever bucket they are in: one line of memory answers a choice. Which
/// bucket a place is in follows from its leading bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

impl Points {
    /// - `points`: ascending by place.
    pub(super) fn new(points: Box<[Point]>) -> Self {
        Self { buckets: buckets(&points), points }
    }

    /// The owner of the first point at or after a place, or of the first of all; `None` if there are none.
    #[inline]
    pub(super) fn owner(&self, place: u32) -> Option<usize> {
        match self.near(place) {
            [owner, ..] => Some(*owner as usize),
            [] => self.search(place).next(),
        }
    }

    /// The owners of all points, once around from the first at or after a place.
    pub(super) fn owners_from(&self, place: u32) -> impl Iterator<Item = usize> {
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

    /// As [`Points::owners_from`], without the index.
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
            let ring = Points::new(points);
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
