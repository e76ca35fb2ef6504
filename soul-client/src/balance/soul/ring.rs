//! Soul's `hash`: a ring of five points for each upstream.

use std::fmt::Write as _;

use md5::{Digest, Md5};

use crate::balance::points::{Point, Points};

/// Points of each upstream; few, so shares are uneven, but that is Soul's ring.
const POINTS: u32 = 5;

/// Place of a text on the ring: the first four bytes of its MD5, little-endian.
///
/// # Examples
/// ```
/// assert_eq!(soul_client::balance::soul::hash("127.0.0.1"), 1_299_589_365);
/// ```
#[must_use]
#[inline]
pub fn hash(key: &str) -> u32 {
    one_block(key.as_bytes()).unwrap_or_else(|| {
        let digest = Md5::digest(key);
        u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]])
    })
}

/// The same for what fits into one block with its padding, as every address does: without the buffer that lets a digest
/// be fed piece by piece. RFC 1321, section 3.
#[inline]
fn one_block(key: &[u8]) -> Option<u32> {
    const LENGTH_AT: usize = 56;
    let mut block = [0; 64];
    if key.len() >= LENGTH_AT {
        return None;
    }
    block[..key.len()].copy_from_slice(key);
    block[key.len()] = 0x80;
    block[LENGTH_AT..].copy_from_slice(&(key.len() as u64 * 8).to_le_bytes());
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    md5::block_api::compress(&mut state, &[block]);
    Some(state[0])
}

/// The ring over a list of urls; built once for a list, where Soul builds it for each request.
///
/// Owners are positions in that list. Neither weights nor the order of the list matter, but for a url that occurs twice,
/// which belongs to its last occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// Each place once.
    points: Points,
}

impl Ring {
    /// Places every url on the ring.
    ///
    /// # Examples
    /// ```
    /// use soul_client::balance::soul::{Ring, hash};
    ///
    /// let ring = Ring::new(["10.0.0.2:8188", "10.0.0.2:8189"]);
    /// assert_eq!(ring.owner(hash("127.0.0.1")), Some(0));
    /// assert_eq!(ring.owner(hash("10.0.0.2")), Some(1));
    /// ```
    #[must_use]
    pub fn new<'u>(urls: impl IntoIterator<Item = &'u str>) -> Self {
        Self::with_owners(urls.into_iter().enumerate())
    }

    /// Places urls whose owners are numbered otherwise.
    pub(in crate::balance) fn with_owners<'u>(urls: impl IntoIterator<Item = (usize, &'u str)>) -> Self {
        let mut points = Vec::new();
        let mut name = String::new();
        for (owner, url) in urls {
            for i in 0..POINTS {
                name.clear();
                // Writing to a String cannot fail.
                let _ = write!(name, "SOUL-{url}-HASH-{i}");
                points.push((hash(&name), owner));
            }
        }
        // Stable, so of two owners of one place the later one stands behind; it is the one that stays.
        points.sort_by_key(|&(place, _)| place);
        points.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = later.1;
            }
            same
        });
        Self::of(points)
    }

    /// - `points`: ascending, each place once.
    fn of(points: Vec<(u32, usize)>) -> Self {
        let point = |(place, owner)| Point { place, owner: u32::try_from(owner).unwrap_or(u32::MAX) };
        Self { points: Points::new(points.into_iter().map(point).collect()) }
    }

    /// The owner of a place: that of the first point at or after it, else of the first point of all. `None` if
    /// the ring is empty.
    #[must_use]
    #[inline]
    pub fn owner(&self, place: u32) -> Option<usize> {
        self.points.owner(place)
    }

    /// The owners of all points, once around the ring from a place on; one owner comes several times.
    pub fn owners_from(&self, place: u32) -> impl Iterator<Item = usize> {
        self.points.owners_from(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_belongs_to_the_point_at_or_after_it() {
        let ring = Ring::of(vec![(10, 0), (20, 1), (30, 2)]);
        for (place, owner) in [(0, 0), (10, 0), (11, 1), (20, 1), (30, 2), (31, 0), (u32::MAX, 0)] {
            assert_eq!(ring.owner(place), Some(owner), "{place}");
        }
        assert_eq!(ring.owners_from(20).collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!(Ring::default().owner(5), None);
    }

    #[test]
    fn one_block_is_the_digest_of_what_fits_and_nothing_else() {
        let text = "SOUL-10.0.0.2:8188-HASH-".repeat(4);
        for length in 0..=text.len() {
            let digest = Md5::digest(&text[..length]);
            let expected = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
            assert_eq!(one_block(&text.as_bytes()[..length]).is_some(), length < 56, "{length}");
            assert_eq!(hash(&text[..length]), expected, "{length}");
        }
    }

    #[test]
    fn a_repeated_url_belongs_to_its_last_occurrence() {
        let ring = Ring::new(["a", "b", "a"]);
        let owners: Vec<_> = ring.owners_from(0).collect();
        assert_eq!(owners.len(), 10);
        assert!(!owners.contains(&0));
    }
}
