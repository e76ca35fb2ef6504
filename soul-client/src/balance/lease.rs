//! A limit on the requests of one upstream that many threads keep without asking each other for every request.
//!
//! Each part has a lease: so many requests may be in flight there. All leases together are never more than the limit, so a part that has not
//! filled its own admits a request by looking at nothing but itself. When it has, it looks at all: under a lock it finds out what
//! every part has in flight, and what is free is shared out anew, the same to each. So far from the limit that happens hardly
//! ever, and near it for nearly every request. Refused is only what is really beyond the limit.

use std::sync::{Mutex, MutexGuard, PoisonError, atomic::Ordering::SeqCst};

use super::traffic::{Part, Whole};

/// The limit of a lease that is just being worked out, or that nobody may use. As a limit it is none, and never asked for.
const FROZEN: u32 = u32::MAX;

/// A lease and the limit that it is part of, as one number.
fn word(limit: u32, lease: u32) -> u64 {
    u64::from(limit) << u32::BITS | u64::from(lease)
}

#[allow(clippy::cast_possible_truncation)]
fn parts_of(word: u64) -> (u32, u32) {
    ((word >> u32::BITS) as u32, word as u32)
}

impl Part {
    /// Whether what is in flight here was leased. To be asked after a request was counted in.
    ///
    /// All of the accesses are in one order for all threads: if this sees a lease that is just being taken away, whoever takes it
    /// away sees the request.
    #[inline]
    fn is_leased(&self, limit: u32) -> bool {
        let (of, lease) = parts_of(self.lease.load(SeqCst));
        of == limit && self.traffic.in_flight() <= lease
    }

    /// From now on nothing is admitted here but under the lock. Gives what is in flight, and notes it as the lease.
    fn freeze(&self) -> u32 {
        self.lease.store(word(FROZEN, 0), SeqCst);
        let in_flight = self.traffic.in_flight();
        self.lease.store(word(FROZEN, in_flight), SeqCst);
        in_flight
    }

    /// What was in flight and so many more may be from now on.
    fn thaw(&self, limit: u32, more: u32) {
        let (_, lease) = parts_of(self.lease.load(SeqCst));
        self.lease.store(word(limit, lease.saturating_add(more)), SeqCst);
    }
}

impl Whole<'_> {
    /// Whether no more than so many requests are in flight, of which one was just counted in at `part`. Of requests that ask in one
    /// moment too many may be told no, but never too many yes.
    ///
    /// - `leases`: held while they are worked out.
    #[inline]
    pub(super) fn fits(self, part: &Part, limit: u32, leases: &Mutex<()>) -> bool {
        limit == u32::MAX || part.is_leased(limit) || self.fits_with_all(part, limit, leases)
    }

    #[cold]
    fn fits_with_all(self, part: &Part, limit: u32, leases: &Mutex<()>) -> bool {
        // Whoever is refused changes nothing and need not wait for anybody.
        if self.in_flight() > limit {
            return false;
        }
        let _leases: MutexGuard<'_, ()> = leases.lock().unwrap_or_else(PoisonError::into_inner);
        if part.is_leased(limit) {
            return true;
        }
        let (mut taken, mut count) = (self.shared.in_flight(), 0_u32);
        for part in self.parts.all() {
            taken = taken.saturating_add(part.freeze());
            count += 1;
        }
        // Those that are refused are counted as well: what they leave must not be a lease, so all stay frozen.
        let Some(free) = limit.checked_sub(taken) else { return false };
        let each = free / count.max(1);
        self.parts.all().take(count as usize).for_each(|part| part.thaw(limit, each));
        true
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Barrier,
            atomic::{AtomicU32, Ordering::Relaxed},
        },
        thread,
    };

    use super::*;
    use crate::balance::{parts::Parts, traffic::Traffic};

    #[derive(Default)]
    struct Upstream {
        shared: Traffic,
        parts: Parts<Part>,
        leases: Mutex<()>,
    }

    impl Upstream {
        fn part(&self, index: usize) -> &Part {
            self.parts.get_or_init(index, 4, Part::default)
        }

        /// Counts a request in if it fits.
        fn admits(&self, index: usize, limit: u32) -> bool {
            let part = self.part(index);
            part.traffic.count_in();
            let whole = Whole { shared: &self.shared, parts: &self.parts };
            let fits = whole.fits(part, limit, &self.leases);
            if !fits {
                part.traffic.count_out();
            }
            fits
        }
    }

    #[test]
    fn the_last_place_may_be_anybodys() {
        for limit in [1_u32, 2, 7, 100] {
            let upstream = Upstream::default();
            let admitted: Vec<_> = (0..limit).map(|i| i as usize * 7 % 3).collect();
            assert!(admitted.iter().all(|&index| upstream.admits(index, limit)), "{limit}");
            for index in 0..4 {
                assert!(!upstream.admits(index, limit) && !upstream.admits(index, limit), "{limit}");
            }
            // Another part gets each place that is left.
            for index in admitted {
                upstream.part(index).traffic.count_out();
                assert!(upstream.admits(3, limit), "{limit}");
                assert!(!upstream.admits(index, limit), "{limit}");
            }
        }
    }

    #[test]
    fn a_limit_that_changes_holds_from_the_next_request_on() {
        let upstream = Upstream::default();
        assert!((0..6).all(|i| upstream.admits(i % 3, 6)) && !upstream.admits(0, 6));
        assert!(!upstream.admits(1, 4) && upstream.admits(1, 7) && !upstream.admits(2, 6));
        assert!(upstream.admits(2, u32::MAX));
        assert!(!upstream.admits(0, 7) && !upstream.admits(0, 8) && upstream.admits(0, 9));
    }

    #[test]
    fn far_from_the_limit_a_part_looks_at_nothing_but_itself() {
        let upstream = Upstream::default();
        assert!((0..4).all(|index| upstream.admits(index, 1024)));
        let leases = || (0..4).map(|i| parts_of(upstream.part(i).lease.load(SeqCst))).collect::<Vec<_>>();
        // Once the last part is there all is shared out.
        let before = leases();
        assert!(before.iter().all(|&(limit, lease)| limit == 1024 && lease >= 250), "{before:?}");
        // Nobody could take the lock.
        let _held = upstream.leases.lock().unwrap();
        for index in (0..4).cycle().take(800) {
            assert!(upstream.admits(index, 1024));
        }
        assert_eq!(leases(), before);
    }

    #[test]
    fn never_are_more_in_flight_than_may_be_and_a_free_place_is_found() {
        for limit in [1, 2, 5] {
            let upstream = Upstream::default();
            let (admitted, most, start) = (AtomicU32::new(0), AtomicU32::new(0), Barrier::new(4));
            thread::scope(|scope| {
                for index in 0..4 {
                    let (upstream, admitted, most, start) = (&upstream, &admitted, &most, &start);
                    scope.spawn(move || {
                        start.wait();
                        for i in 0..20_000 {
                            if upstream.admits(index, limit) {
                                most.fetch_max(admitted.fetch_add(1, SeqCst) + 1, SeqCst);
                                if i % 8 == 0 {
                                    thread::yield_now();
                                }
                                admitted.fetch_sub(1, SeqCst);
                                upstream.part(index).traffic.count_out();
                            }
                        }
                    });
                }
            });
            let most = most.load(Relaxed);
            assert!((1..=limit).contains(&most), "{most} of {limit}");
            assert!((0..limit).all(|i| upstream.admits(i as usize % 4, limit)) && !upstream.admits(0, limit));
        }
    }
}
