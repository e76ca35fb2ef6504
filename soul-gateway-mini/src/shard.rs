//! Counters that every lane writes and few read: each lane has a part of its own ([`parts`]).

use std::{
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use soul_client::balance::parts::{self, Parts};

/// How many parts there are: one a core. More threads than that share them, which is correct and a little slower.
pub(crate) fn count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// One `T` for each lane that asked for it. Takes memory only then.
pub(crate) struct Sharded<T> {
    parts: Parts<Part<T>>,
}

/// On cache lines of its own, and those that processors fetch along with them.
#[repr(align(128))]
#[derive(Default)]
struct Part<T>(T);

impl<T> Default for Sharded<T> {
    fn default() -> Self {
        Self { parts: Parts::default() }
    }
}

impl<T: Default> Sharded<T> {
    /// The part of this thread.
    pub(crate) fn mine(&self) -> &T {
        &self.parts.get_or_init(parts::own(), count(), Part::default).0
    }

    /// The same parts for somebody else: from now on both write and read them.
    pub(crate) fn share(&self) -> Self {
        Self { parts: self.parts.share(count()) }
    }

    /// The parts that were asked for.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.parts.all().map(|part| &part.0)
    }
}

impl<T> fmt::Debug for Sharded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharded").finish_non_exhaustive()
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(Sharded<AtomicU64>);

impl Counter {
    pub(crate) fn add_one(&self) {
        self.0.mine().fetch_add(1, Relaxed);
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.all().map(|part| part.load(Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_threads_count_is_summed() {
        let counter = Counter::default();
        assert_eq!(counter.sum(), 0);
        thread::scope(|scope| {
            for index in 0..5 {
                let counter = &counter;
                scope.spawn(move || {
                    parts::enter(index);
                    (0..1000).for_each(|_| counter.add_one());
                });
            }
        });
        assert_eq!(counter.sum(), 5000);
        assert!(counter.0.all().count() <= count(), "no more parts than cores");
        let other = Counter(counter.0.share());
        other.add_one();
        assert_eq!((counter.sum(), other.sum()), (5001, 5001), "both are one");
    }
}
