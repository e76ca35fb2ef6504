//! Keys: numbers that stand for what is compared, so that the index holds no text.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    num::NonZeroU32,
};

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

use crate::slices;

/// Stands for a text in its place. Two texts may share one: that costs a look at an entry in vain, no more. So 32 bits are
/// enough: of 100,000 rules a few dozen share one, and all of them take a quarter less memory than with twice as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(NonZeroU32);

impl Key {
    /// Where paths that begin with a slash start.
    pub(super) const ABSOLUTE: Self = Self(NonZeroU32::MIN);
    /// Where all others start.
    pub(super) const RELATIVE: Self = Self(NonZeroU32::MIN.saturating_add(1));

    fn new(hash: u64) -> Self {
        // The upper half: all bits of a hash are as good.
        Self(NonZeroU32::new((hash >> u32::BITS) as u32).unwrap_or(NonZeroU32::MAX))
    }

    /// The key of a name that is no path, for example that of a header.
    pub(super) fn of(kind: u64, name: &str) -> Self {
        Self::new(xxh3_64_with_seed(name.as_bytes(), kind))
    }

    /// A segment or a value behind this.
    pub(super) fn then(self, text: impl AsRef<[u8]>) -> Self {
        Self::new(xxh3_64_with_seed(text.as_ref(), self.0.get().into()))
    }

    /// Any one segment behind this. No segment is a slash, so this is nobody else's.
    pub(super) fn any(self) -> Self {
        self.then("/")
    }

    /// The key of this for exactly that path, where the key itself is for all below.
    pub(super) fn exactly(self) -> Self {
        Self(NonZeroU32::new(!self.0.get()).unwrap_or(NonZeroU32::MAX))
    }
}

/// A number for a text, which others may share.
pub(crate) fn short(text: &str) -> u32 {
    Key::of(0, text).0.get()
}

/// A number for a text that no other has, as far as chance goes.
pub(crate) fn long(text: &str) -> u128 {
    xxh3_128(text.as_bytes())
}

/// A map whose keys are hashes already.
pub(super) type KeyMap<T> = HashMap<Key, T, BuildHasherDefault<AsItIs>>;

/// Takes a key for its own hash, but spreads it: of one a table looks at the highest bits and at the lowest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Keys come by `write_u32`; this is here because a hasher must have it.
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u32(&mut self, key: u32) {
        self.0 = u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A map that does not change any more, with no more memory than it needs, and mostly one look into it a question.
///
/// Keys lie in their own order but for those that fall together, and a search goes on from where a key should be to
/// the first gap.
#[derive(Debug)]
pub(super) struct KeyTable<T> {
    slots: Box<[Option<(Key, T)>]>,
}

impl<T> Default for KeyTable<T> {
    fn default() -> Self {
        Self { slots: Box::default() }
    }
}

impl<T: Copy> KeyTable<T> {
    /// One of four places stays free.
    pub(super) fn new(entries: impl ExactSizeIterator<Item = (Key, T)>) -> Self {
        let length = entries.len();
        if length == 0 {
            return Self::default();
        }
        let mut slots: Box<[_]> = (0..length + length / 3 + 1).map(|_| None).collect();
        for (key, value) in entries {
            slices::step();
            let mut at = place(key, slots.len());
            while slots[at].is_some() {
                at = next(at, slots.len());
            }
            slots[at] = Some((key, value));
        }
        Self { slots }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn get(&self, key: Key) -> Option<T> {
        let mut at = place(key, self.slots.len());
        // There is always a gap, so this ends.
        while let Some((other, value)) = self.slots.get(at)? {
            if *other == key {
                return Some(*value);
            }
            at = next(at, self.slots.len());
        }
        None
    }
}

/// Where a key should be.
fn place(key: Key, slots: usize) -> usize {
    // A table has fewer places than there are keys, so the product fits.
    ((u64::from(key.0.get()) * slots as u64) >> u32::BITS) as usize
}

fn next(at: usize, slots: usize) -> usize {
    if at + 1 == slots { 0 } else { at + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_what_it_was_made_of_and_nothing_else() {
        for length in [0, 1, 2, 3, 100, 1_000] {
            let key = |n: u32| Key::of(0, &n.to_string());
            let mut entries: Vec<_> = (0..length).map(|n| (key(n), n)).collect();
            // These fall together.
            entries.extend([(Key::ABSOLUTE, length), (Key::RELATIVE, length + 1)]);
            let table = KeyTable::new(entries.iter().copied());
            assert!(entries.iter().all(|(key, n)| table.get(*key) == Some(*n)), "{length}");
            assert!((length..2 * length).all(|n| table.get(key(n)).is_none()), "{length}");
        }
        assert!(KeyTable::<u32>::new([].into_iter()).get(Key::ABSOLUTE).is_none());
    }
}
