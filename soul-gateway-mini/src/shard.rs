//! Counters that many threads write and few read: each thread has a part of its own, so that no cache line goes back and
//! forth between cores for the sake of counting.

use std::{
    cell::Cell,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(0) };
}

/// From now on this thread counts in the part with this number; threads that never say so share the first.
pub(crate) fn enter(index: usize) {
    INDEX.set(index);
}

/// How many parts there are: one a core. More threads than that share them, which is correct and a little slower.
fn parts() -> usize {
    static PARTS: OnceLock<usize> = OnceLock::new();
    *PARTS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// One `T` for each thread that asked for it. Takes memory only then.
pub(crate) struct Sharded<T> {
    parts: OnceLock<Arc<[Place<T>]>>,
}

/// Where the part of some thread is, once it asked for it.
type Place<T> = OnceLock<Box<Part<T>>>;

/// On cache lines of its own, and those that processors fetch along with them.
#[repr(align(128))]
#[derive(Default)]
struct Part<T>(T);

impl<T> Default for Sharded<T> {
    fn default() -> Self {
        Self { parts: OnceLock::new() }
    }
}

impl<T: Default> Sharded<T> {
    /// The part of this thread.
    pub(crate) fn mine(&self) -> &T {
        let parts = self.parts();
        &parts[INDEX.get() % parts.len()].get_or_init(Box::default).0
    }

    fn parts(&self) -> &Arc<[Place<T>]> {
        self.parts.get_or_init(|| (0..parts()).map(|_| OnceLock::new()).collect())
    }

    /// The same parts for somebody else: from now on both write and read them.
    pub(crate) fn share(&self) -> Self {
        Self { parts: OnceLock::from(Arc::clone(self.parts())) }
    }

    /// The parts that were asked for.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        let parts = self.parts.get().into_iter().flat_map(|parts| parts.iter());
        parts.filter_map(|part| part.get().map(|part| &part.0))
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
                    enter(index);
                    (0..1000).for_each(|_| counter.add_one());
                });
            }
        });
        assert_eq!(counter.sum(), 5000);
        assert!(counter.0.all().count() <= parts(), "no more parts than cores");
        let other = Counter(counter.0.share());
        other.add_one();
        assert_eq!((counter.sum(), other.sum()), (5001, 5001), "both are one");
    }
}
