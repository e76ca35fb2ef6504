//! The newest snapshot, read without a step that other threads feel.

use std::{
    cell::{Ref, RefCell},
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

use arc_swap::{ArcSwap, Guard};

use super::snapshot::Snapshot;

/// A snapshot that is replaced now and then and read all the time.
///
/// Every thread keeps what it last read and looks at one number to know whether that is still the newest: a read that writes to no
/// shared memory, where `ArcSwap::load` takes two locked steps, about half of a round robin. The price is that a thread
/// keeps the last snapshot of up to [`SLOTS`] services until it chooses again or ends; threads of one service share it.
#[derive(Debug)]
pub(super) struct Current {
    newest: ArcSwap<Snapshot>,
    /// Grows after each change of `newest`.
    version: AtomicU64,
    /// Differs from that of every other one of the process.
    id: u64,
}

/// What one thread has read last.
struct Seen {
    id: u64,
    version: u64,
    snapshot: Arc<Snapshot>,
}

/// How many a thread keeps. Two of one slot put each other out, which costs what a read of `newest` costs.
const SLOTS: usize = 32;

thread_local! {
    static SEEN: [RefCell<Option<Seen>>; SLOTS] = const { [const { RefCell::new(None) }; SLOTS] };
}

impl Current {
    pub(super) fn new(first: Arc<Snapshot>) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Self { newest: ArcSwap::new(first), version: AtomicU64::new(0), id: NEXT_ID.fetch_add(1, Relaxed) }
    }

    /// Replaces it. Reads that begin after this see the new one.
    pub(super) fn store(&self, next: Arc<Snapshot>) {
        self.newest.store(next);
        self.version.fetch_add(1, Release);
    }

    pub(super) fn load(&self) -> Guard<Arc<Snapshot>> {
        self.newest.load()
    }

    pub(super) fn load_full(&self) -> Arc<Snapshot> {
        self.newest.load_full()
    }

    /// Reads the newest.
    #[inline]
    pub(super) fn with<R>(&self, read: impl FnOnce(&Arc<Snapshot>) -> R) -> R {
        // Once the thread ends its slots may be gone before its last request.
        if SEEN.try_with(|_| ()).is_err() {
            return self.with_newest(read);
        }
        SEEN.with(|slots| {
            #[allow(clippy::cast_possible_truncation)]
            let slot = &slots[self.id as usize % SLOTS];
            match self.seen(slot) {
                Some(seen) => read(&seen.snapshot),
                None => self.with_newest(read),
            }
        })
    }

    #[cold]
    #[inline(never)]
    fn with_newest<R>(&self, read: impl FnOnce(&Arc<Snapshot>) -> R) -> R {
        read(&self.newest.load())
    }

    /// The newest, in this thread's slot; `None` while another one is being read there, from within whose reader this is called.
    #[inline]
    fn seen<'s>(&self, slot: &'s RefCell<Option<Seen>>) -> Option<Ref<'s, Seen>> {
        let version = self.version.load(Acquire);
        if let Ok(seen) = Ref::filter_map(slot.try_borrow().ok()?, Option::as_ref)
            && seen.id == self.id
            && seen.version == version
        {
            return Some(seen);
        }
        self.see(slot, version)
    }

    #[cold]
    fn see<'s>(&self, slot: &'s RefCell<Option<Seen>>, version: u64) -> Option<Ref<'s, Seen>> {
        // At least as new as the version, which was read before.
        let seen = Seen { id: self.id, version, snapshot: self.newest.load_full() };
        // What was there may be the last of its service: it goes when the slot is free again.
        let before = slot.try_borrow_mut().ok()?.replace(seen);
        drop(before);
        Ref::filter_map(slot.try_borrow().ok()?, Option::as_ref).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::{FastRandom, Settings};

    fn snapshot() -> Arc<Snapshot> {
        Snapshot::new(Vec::new(), Settings::default(), 0, &FastRandom)
    }

    #[test]
    fn a_reader_sees_what_was_stored_even_within_another_one() {
        let current = Current::new(snapshot());
        let is = |expected: &Arc<Snapshot>| current.with(|seen| Arc::ptr_eq(seen, expected));
        let (first, second) = (current.load_full(), snapshot());
        assert!(is(&first));
        current.with(|seen| {
            assert!(is(&first));
            current.store(Arc::clone(&second));
            assert!(is(&second) && Arc::ptr_eq(seen, &first));
        });
        assert!(is(&second));
    }

    #[test]
    fn services_of_one_slot_put_each_other_out_and_may_read_each_other() {
        let all: Vec<_> = (0..=SLOTS).map(|_| Current::new(snapshot())).collect();
        // Ids are given in turn to all tests at once, so that which two share a slot differs.
        for current in &all {
            let own = current.load_full();
            assert!(current.with(|seen| Arc::ptr_eq(seen, &own)));
            for other in &all {
                let others = other.load_full();
                assert!(current.with(|_| other.with(|seen| Arc::ptr_eq(seen, &others))));
            }
        }
        // Nothing is kept but what the slots hold: the last one read of each.
        let kept = all.iter().map(|current| Arc::strong_count(&current.load_full()) - 2);
        assert!(kept.sum::<usize>() <= SLOTS);
    }

    #[test]
    fn a_reader_that_panics_leaves_the_slot_free() {
        let current = Current::new(snapshot());
        let panics = || current.with(|_| panic!("on purpose"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        let next = snapshot();
        current.store(Arc::clone(&next));
        current.with(|seen| assert!(Arc::ptr_eq(seen, &next)));
        // From the slot, and not around it: `next`, `newest` and the slot.
        assert_eq!(Arc::strong_count(&next), 3);
    }
}
