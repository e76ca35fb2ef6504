//! Keys: numbers that stand for what is compared, so that the index holds no text.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Stands for a text in its place. Two texts may share one: that costs a look at an entry in vain, no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(u64);

impl Key {
    /// Where paths that begin with a slash start.
    pub(super) const ABSOLUTE: Self = Self(1);
    /// Where all others start.
    pub(super) const RELATIVE: Self = Self(2);

    /// The key of a name that is no path, for example that of a header.
    pub(super) fn of(kind: u64, name: &str) -> Self {
        Self(xxh3_64_with_seed(name.as_bytes(), kind))
    }

    /// A segment or a value behind this.
    pub(super) fn then(self, text: &str) -> Self {
        Self(xxh3_64_with_seed(text.as_bytes(), self.0))
    }

    /// Any one segment behind this. No segment is a slash, so this is nobody else's.
    pub(super) fn any(self) -> Self {
        self.then("/")
    }

    /// The key of this for exactly that path, where the key itself is for all below.
    pub(super) fn exactly(self) -> Self {
        Self(!self.0)
    }
}

/// A map whose keys are hashes already.
pub(super) type KeyMap<T> = HashMap<Key, T, BuildHasherDefault<AsItIs>>;

/// Takes a key for its own hash.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Keys come by `write_u64`; this is here because a hasher must have it.
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}
