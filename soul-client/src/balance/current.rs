//! The newest snapshot, read without a step that other threads feel.

use std::{
    cell::Cell,
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
    static SEEN: [Cell<Option<Seen>>; SLOTS] = const { [const { Cell::new(None) }; SLOTS] };
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
            return read(&self.newest.load());
        }
        SEEN.with(|slots| {
            #[allow(clippy::cast_possible_truncation)]
            let slot = &slots[self.id as usize % SLOTS];
            let version = self.version.load(Acquire);
            // It is taken out for as long as it is read, should the reader read another one.
            let seen = match slot.take() {
                Some(seen) if seen.id == self.id && seen.version == version => seen,
                _ => self.seen(version),
            };
            let result = read(&seen.snapshot);
            slot.set(Some(seen));
            result
        })
    }

    #[cold]
    fn seen(&self, version: u64) -> Seen {
        // At least as new as the version, which was read before.
        Seen { id: self.id, version, snapshot: self.newest.load_full() }
    }
}
