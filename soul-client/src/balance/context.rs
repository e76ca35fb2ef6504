//! What one choice depends on besides the upstreams: time, key, what was tried, chance.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use super::{soul, state::UpstreamState};

/// What a choice depends on.
///
/// # Examples
/// ```
/// use soul_client::balance::{Key, PickContext};
///
/// let context = PickContext::at(1_612_500_000_000).key(Key::Text("10.0.0.7"));
/// assert_eq!(context.now_ms, 1_612_500_000_000);
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PickContext<'a> {
    /// The time, milliseconds since the epoch; decides on warm-up, ejections and how old a response time is. A coarse
    /// clock is enough, one that goes back is not.
    pub now_ms: i64,
    /// What `hash` hashes: the caller's address.
    pub key: Option<Key<'a>>,
    /// Upstreams that already failed this request.
    pub tried: &'a Tried,
    /// Address of the upstream that is preferred to all others.
    pub sticky: Option<&'a str>,
    /// What the upstream should be like.
    pub hint: Option<&'a str>,
    /// Where chance comes from; the thread's generator if nowhere else, which is then asked directly.
    random: Option<&'a dyn RandomSource>,
}

impl<'a> PickContext<'a> {
    /// A choice at a moment: nothing tried, no key, chance from [`FastRandom`].
    #[must_use]
    pub fn at(now_ms: i64) -> Self {
        static NOTHING_TRIED: Tried = Tried::new();
        Self { now_ms, key: None, tried: &NOTHING_TRIED, sticky: None, hint: None, random: None }
    }

    /// Sets what `hash` hashes. Without it the key is that of Soul for an unknown address, the text `null`.
    #[must_use]
    pub fn key(self, key: Key<'a>) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Leaves upstreams out that already failed this request.
    #[must_use]
    pub fn tried(self, tried: &'a Tried) -> Self {
        Self { tried, ..self }
    }

    /// Prefers the upstream at an address, `host:port`, as long as it may serve: that of a session, or the one that served the
    /// last request. Heeded by [`Snapshot::choose`](super::Snapshot::choose) and [`Balancer::choose`](super::Balancer::choose).
    #[must_use]
    pub fn sticky(self, address: &'a str) -> Self {
        Self { sticky: Some(address), ..self }
    }

    /// Prefers upstreams whose metadata say so, by the word that [`Prefer::hint`](super::Prefer::hint) names. Heeded
    /// where [`PickContext::sticky`] is.
    #[must_use]
    pub fn hint(self, hint: &'a str) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// Takes chance from elsewhere, for example from a seeded generator.
    #[must_use]
    pub fn random(self, random: &'a dyn RandomSource) -> Self {
        Self { random: Some(random), ..self }
    }

    /// The key's place on Soul's ring.
    pub(super) fn soul_hash(&self) -> u32 {
        match self.key {
            Some(Key::Text(text)) => soul::hash(text),
            Some(Key::SoulHash(hash)) => hash,
            #[allow(clippy::cast_possible_truncation)]
            Some(Key::Hash(hash)) => hash as u32,
            None => soul::hash("null"),
        }
    }

    /// The key as 64 bits, by XXH3; by chance if there is none, so that requests without a key spread over all.
    pub(super) fn hash64(&self) -> u64 {
        match self.key {
            Some(Key::Text(text)) => xxh3_64(text.as_bytes()),
            Some(Key::SoulHash(hash)) => xxh3_64(&hash.to_le_bytes()),
            Some(Key::Hash(hash)) => hash,
            None if self.random.is_none() => fastrand::u64(..),
            None => {
                let half = || u64::from(self.draw(u32::MAX));
                xxh3_64(&(half() << 32 | half()).to_le_bytes())
            }
        }
    }

    /// A number from 0 up to but not including `bound`, each equally likely; 0 if that is 0.
    #[must_use]
    #[inline]
    pub fn draw(&self, bound: u32) -> u32 {
        match self.random {
            _ if bound == 0 => 0,
            None => fastrand::u32(..bound),
            Some(random) => random.below(bound),
        }
    }

    /// The same for positions.
    #[inline]
    pub(super) fn below(&self, bound: usize) -> usize {
        self.draw(u32::try_from(bound).unwrap_or(u32::MAX)) as usize
    }

    /// Two such numbers, for the price of one where chance comes from the thread's generator: one step of that gives 64 bits.
    /// There the likelihoods differ by less than one part in 2^32 divided by the bound.
    #[inline]
    pub(super) fn below_both(&self, first: usize, second: usize) -> (usize, usize) {
        if self.random.is_some() {
            return (self.below(first), self.below(second));
        }
        let bits = fastrand::u64(..);
        let of = |half: u64, bound: usize| {
            usize::try_from((half * u64::from(u32::try_from(bound).unwrap_or(u32::MAX))) >> 32).unwrap_or(0)
        };
        (of(bits >> 32, first), of(bits & u64::from(u32::MAX), second))
    }

    /// True with a probability.
    pub(super) fn chance(&self, probability: f64) -> bool {
        f64::from(self.draw(1 << 24)) < probability * f64::from(1 << 24)
    }
}

impl fmt::Debug for PickContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PickContext")
            .field("now_ms", &self.now_ms)
            .field("key", &self.key)
            .field("tried", self.tried)
            .finish_non_exhaustive()
    }
}

/// What tells one caller from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key<'a> {
    /// Hashed when the chosen way needs it. Soul's is the peer's address, by
    /// [`java_ip_text`](super::java_ip_text).
    Text(&'a str),
    /// Already hashed by [`soul::hash`].
    SoulHash(u32),
    /// Already hashed by whatever the caller likes; all 64 bits should be well mixed.
    Hash(u64),
}

/// Where chance comes from. Closures are sources too.
///
/// # Examples
/// ```
/// use std::cell::RefCell;
/// use soul_client::balance::PickContext;
///
/// let seeded = RefCell::new(fastrand::Rng::with_seed(7));
/// let source = |bound| seeded.borrow_mut().u32(..bound);
/// let context = PickContext::at(0).random(&source);
/// assert!(context.draw(10) < 10);
/// ```
pub trait RandomSource {
    /// A number from 0 up to but not including `bound`, each equally likely. `bound` is never 0.
    fn below(&self, bound: u32) -> u32;
}

impl<F: Fn(u32) -> u32> RandomSource for F {
    fn below(&self, bound: u32) -> u32 {
        self(bound)
    }
}

/// The generator of the current thread; fast, not for secrets.
#[derive(Clone, Copy, Debug, Default)]
pub struct FastRandom;

impl RandomSource for FastRandom {
    fn below(&self, bound: u32) -> u32 {
        fastrand::u32(..bound)
    }
}

/// How many tried upstreams fit without allocating.
const INLINE: usize = 8;

/// The upstreams that one request has tried. The first eight take no allocation.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// Ids of states; the first `len` count.
    inline: [u64; INLINE],
    len: usize,
    /// The ninth and later.
    more: Vec<u64>,
    /// Ascending; if there are any, whoever is not among them counts as tried.
    left: Vec<u64>,
}

impl Tried {
    /// None so far.
    #[must_use]
    pub const fn new() -> Self {
        Self { inline: [0; INLINE], len: 0, more: Vec::new(), left: Vec::new() }
    }

    /// As if everybody else had been tried; `None` if nobody is left.
    ///
    /// - `another`: one of the others, if there is any.
    pub(super) fn all_but<'s>(
        left: impl Iterator<Item = &'s UpstreamState>,
        another: Option<&UpstreamState>,
    ) -> Option<Self> {
        let mut left: Vec<_> = left.map(UpstreamState::id).collect();
        if left.is_empty() {
            return None;
        }
        let mut tried = Self::new();
        // Without it nobody was tried, which is asked for on every choice.
        if let Some(another) = another {
            tried.insert(another);
            left.sort_unstable();
            tried.left = left;
        }
        Some(tried)
    }

    /// Adds one, if it is not there yet.
    pub fn insert(&mut self, state: &UpstreamState) {
        if self.contains(state) {
            return;
        }
        match self.inline.get_mut(self.len) {
            Some(place) => {
                *place = state.id();
                self.len += 1;
            }
            None => self.more.push(state.id()),
        }
    }

    /// Whether it was tried.
    #[must_use]
    pub fn contains(&self, state: &UpstreamState) -> bool {
        let id = state.id();
        self.inline[..self.len].contains(&id)
            || self.more.contains(&id)
            || (!self.left.is_empty() && self.left.binary_search(&id).is_err())
    }

    /// How many were tried.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len + self.more.len()
    }

    /// Whether none was tried.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn more_than_eight_are_remembered() {
        let states: Vec<_> =
            (0..20).map(|i| UpstreamState::new("http://", &i.to_string(), &Arc::default())).collect();
        let mut tried = Tried::new();
        assert!(tried.is_empty());
        for (i, state) in states.iter().enumerate() {
            assert!(!tried.contains(state));
            tried.insert(state);
            tried.insert(state);
            assert_eq!(tried.len(), i + 1);
        }
        assert!(states.iter().all(|s| tried.contains(s)));
    }

    #[test]
    fn all_but_some_are_tried() {
        let states: Vec<_> =
            (0..20).map(|i| UpstreamState::new("http://", &i.to_string(), &Arc::default())).collect();
        let left = || [7, 3, 19].into_iter().map(|i| &*states[i]);
        let mut tried = Tried::all_but(left(), Some(&states[0])).unwrap();
        let still = |tried: &Tried| (0..20).filter(|i| !tried.contains(&states[*i])).collect::<Vec<_>>();
        assert!(!tried.is_empty());
        assert_eq!(still(&tried), [3, 7, 19]);
        tried.insert(&states[7]);
        assert_eq!(still(&tried), [3, 19]);
        assert!(Tried::all_but(left(), None).unwrap().is_empty());
        assert!(Tried::all_but(left().take(0), Some(&states[0])).is_none());
    }

    #[test]
    fn without_a_key_the_hash_is_that_of_null() {
        let context = PickContext::at(0);
        assert_eq!(context.soul_hash(), soul::hash("null"));
        assert_eq!(context.key(Key::Text("a")).soul_hash(), soul::hash("a"));
        assert_eq!(context.key(Key::SoulHash(7)).soul_hash(), 7);
    }
}
