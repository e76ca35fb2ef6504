//! What many threads write and few read: each thread has a part of its own, so that no cache line goes from core to core for the
//! sake of counting.
//!
//! A thread says once which parts are its own, with [`enter`]. [`Settings::parts`](super::Settings::parts) and
//! [`SetSettings::parts`](super::SetSettings::parts) say how many there are; a server has one for each of the threads that it serves
//! requests with.
//!
//! # Examples
//! ```
//! use soul_client::balance::{Balancer, PickContext, Settings, Upstream, parts};
//!
//! let settings = Settings { parts: 2, ..Settings::default() };
//! let balancer = Balancer::new(vec![Upstream::new("10.0.0.2:8188")], settings, 0);
//! std::thread::scope(|scope| {
//!     for index in 0..2 {
//!         let balancer = &balancer;
//!         scope.spawn(move || {
//!             parts::enter(index);
//!             drop(balancer.choose(&PickContext::at(0)));
//!         });
//!     }
//! });
//! assert_eq!(balancer.snapshot().all()[0].state().picks(), 2);
//! ```

use std::{
    cell::Cell,
    fmt,
    sync::{Arc, OnceLock},
};

thread_local! {
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// From now on this thread writes to the parts with this number, beginning at 0; threads that never say so share the first.
pub fn enter(index: usize) {
    OWN.set(index);
}

/// The number of this thread's parts.
#[must_use]
#[inline]
pub fn own() -> usize {
    OWN.get()
}

/// One `T` for each thread that asked for it. Takes memory only then.
///
/// Each lies in memory by itself; that no other is on its cache line is a matter of the alignment of `T`.
pub struct Parts<T> {
    // By one word: a large configuration has very many that never count.
    places: OnceLock<Arc<Box<[Place<T>]>>>,
}

/// Where a part is, once it was asked for.
type Place<T> = OnceLock<Box<T>>;

impl<T> Parts<T> {
    /// The part with a number, if it was asked for. Numbers beyond the last one begin again at the first: threads may be
    /// more than parts, which is correct and slower.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        let places = self.places.get()?;
        // Hardly ever more than there are, and a division takes long.
        let place = match places.get(index) {
            Some(place) => place,
            None => places.get(index % places.len().max(1))?,
        };
        place.get().map(|part| &**part)
    }

    /// The part with a number, made now if need be.
    ///
    /// - `count`: how many there are. What is said first counts.
    #[inline]
    pub fn get_or_init(&self, index: usize, count: usize, init: impl FnOnce() -> T) -> &T {
        match self.get(index) {
            Some(part) => part,
            None => self.init(index, count, init),
        }
    }

    #[cold]
    fn init(&self, index: usize, count: usize, init: impl FnOnce() -> T) -> &T {
        let places = self.places(count);
        places[index % places.len()].get_or_init(|| Box::new(init()))
    }

    fn places(&self, count: usize) -> &Arc<Box<[Place<T>]>> {
        self.places.get_or_init(|| Arc::new((0..count.max(1)).map(|_| OnceLock::new()).collect()))
    }

    /// The parts that were asked for.
    #[inline]
    pub fn all(&self) -> impl Iterator<Item = &T> {
        let places = self.places.get().into_iter().flat_map(|places| places.iter());
        places.filter_map(|place| place.get().map(|part| &**part))
    }

    /// The same parts for somebody else: from now on both write and read them.
    ///
    /// - `count`: as for [`Parts::get_or_init`].
    #[must_use]
    pub fn share(&self, count: usize) -> Self {
        Self { places: OnceLock::from(Arc::clone(self.places(count))) }
    }
}

impl<T> Default for Parts<T> {
    fn default() -> Self {
        Self { places: OnceLock::new() }
    }
}

impl<T> fmt::Debug for Parts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU64, Ordering::Relaxed},
        thread,
    };

    use super::*;

    #[test]
    fn each_thread_has_a_part_of_its_own_and_beyond_the_last_they_share() {
        let parts = Parts::<AtomicU64>::default();
        assert!(parts.get(0).is_none() && parts.all().next().is_none());
        thread::scope(|scope| {
            for index in 0..5 {
                let parts = &parts;
                scope.spawn(move || {
                    enter(index);
                    parts.get_or_init(own(), 3, AtomicU64::default).fetch_add(1, Relaxed);
                });
            }
        });
        let counts =
            |parts: &Parts<AtomicU64>| parts.all().map(|part| part.load(Relaxed)).collect::<Vec<_>>();
        assert_eq!(counts(&parts), [2, 2, 1]);
        let others = parts.share(9);
        others.get_or_init(4, 9, AtomicU64::default).fetch_add(5, Relaxed);
        assert_eq!(counts(&parts), [2, 7, 1]);
        assert!(std::ptr::eq(parts.get(4).unwrap(), others.get(1).unwrap()));
    }
}
