//! How many connections may be served at once.

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places for connections, for all listeners that share it.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<All>);

#[derive(Debug)]
struct All {
    free: Arc<Semaphore>,
    limit: AtomicUsize,
    /// Places that are taken and gone: who leaves one of them leaves it to nobody.
    gone: AtomicUsize,
}

impl Places {
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        let all = All {
            free: Arc::new(Semaphore::new(limit)),
            limit: AtomicUsize::new(limit),
            gone: AtomicUsize::new(0),
        };
        Self(Arc::new(all))
    }

    /// How many there are.
    pub(super) fn limit(&self) -> usize {
        self.0.limit.load(Relaxed)
    }

    /// Makes them as many as this. Connections that are open stay, also beyond it; new ones wait for their turn then. To be called by
    /// one at a time.
    pub(crate) fn resize(&self, limit: usize) {
        let All { free, limit: current, gone } = &*self.0;
        let limit = limit.min(Semaphore::MAX_PERMITS);
        let before = current.swap(limit, Relaxed);
        if let Some(fewer) = before.checked_sub(limit) {
            let taken = fewer - free.forget_permits(fewer);
            gone.fetch_add(taken, Relaxed);
        } else {
            let mut more = limit - before;
            while more > 0 && self.takes_one_off() {
                more -= 1;
            }
            free.add_permits(more);
        }
    }

    /// One of them, if one is free.
    pub(super) fn free(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            let place = Arc::clone(&self.0.free).try_acquire_owned().ok()?;
            if !self.takes_one_off() {
                return Some(place);
            }
            place.forget();
        }
    }

    /// One of them, once one is free.
    pub(super) async fn next(&self) -> OwnedSemaphorePermit {
        loop {
            match Arc::clone(&self.0.free).acquire_owned().await {
                Ok(place) if self.takes_one_off() => place.forget(),
                Ok(place) => return place,
                // Nobody closes the semaphore.
                Err(_) => future::pending().await,
            }
        }
    }

    /// Counts one that is gone off, if there are any.
    fn takes_one_off(&self) -> bool {
        self.0.gone.load(Relaxed) > 0
            && self.0.gone.fetch_update(Relaxed, Relaxed, |gone| gone.checked_sub(1)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_are_as_many_as_was_said_last() {
        let places = Places::new(3);
        let mut taken: Vec<_> = std::iter::from_fn(|| places.free()).collect();
        assert_eq!(taken.len(), 3);
        places.resize(1);
        taken.pop();
        taken.pop();
        assert!(places.free().is_none(), "one is open still");
        taken.pop();
        taken.extend(places.free());
        assert!(taken.len() == 1 && places.free().is_none());

        places.resize(4);
        taken.extend(std::iter::from_fn(|| places.free()));
        assert_eq!((taken.len(), places.limit()), (4, 4));
        places.resize(2);
        places.resize(3);
        taken.pop();
        assert!(places.free().is_none(), "three are open still");
        taken.pop();
        assert!(places.free().is_some());
    }

    #[tokio::test]
    async fn who_waits_gets_a_new_one() {
        let places = Places::new(1);
        let first = places.next().await;
        let waiting = tokio::spawn({
            let places = places.clone();
            async move { places.next().await }
        });
        tokio::task::yield_now().await;
        places.resize(2);
        let second = waiting.await.unwrap();
        places.resize(1);
        drop(first);
        assert!(places.free().is_none(), "the second has the last");
        drop(second);
        assert!(places.free().is_some());
    }
}
