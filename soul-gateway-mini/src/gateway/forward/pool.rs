//! Connections to upstreams that wait for their next request. Every lane has its own, so that taking one and giving it
//! back is a matter between one thread and its memory; the lock is never waited for but by a look from outside.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::link::Link;

/// Idle connections by address, the one used last on top.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<ByAddress>,
    max_idle: usize,
    idle_timeout: Duration,
}

/// By where the text of an address is in memory, which the entry keeps there: quicker than by the text, and the same
/// unless an upstream was taken off and came back.
type ByAddress = HashMap<usize, Waiting, BuildHasherDefault<Place>>;

#[derive(Debug)]
struct Waiting {
    _address: Arc<str>,
    links: Vec<Idle>,
}

#[derive(Debug)]
struct Idle {
    link: Link,
    since: Instant,
}

impl Pool {
    pub(super) fn new(max_idle: usize, idle_timeout: Duration) -> Self {
        Self { idle: Mutex::default(), max_idle, idle_timeout }
    }

    /// A connection that is open and not too old.
    pub(super) fn take(&self, address: &Arc<str>) -> Option<Link> {
        let mut idle = self.lock();
        let links = &mut idle.get_mut(&place(address))?.links;
        while let Some(Idle { link, since }) = links.pop() {
            if since.elapsed() >= self.idle_timeout {
                // The ones below were put away earlier still.
                links.clear();
            } else if link.is_quiet() {
                return Some(link);
            }
        }
        None
    }

    /// Puts a connection away whose exchange has ended.
    pub(super) fn put(&self, mut link: Link) {
        if self.max_idle == 0 || self.idle_timeout.is_zero() || !link.is_quiet() {
            return;
        }
        link.rest();
        let mut idle = self.lock();
        let waiting = idle
            .entry(place(link.address()))
            .or_insert_with(|| Waiting { _address: Arc::clone(link.address()), links: Vec::new() });
        if waiting.links.len() < self.max_idle {
            waiting.links.push(Idle { link, since: Instant::now() });
        }
    }

    /// Closes what has been idle for too long, or was closed by the other side.
    pub(super) fn sweep(&self) {
        self.lock().retain(|_, waiting| {
            waiting.links.retain(|idle| idle.since.elapsed() < self.idle_timeout && idle.link.is_quiet());
            !waiting.links.is_empty()
        });
    }

    /// Closes everything.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, ByAddress> {
        // Nothing panics while it is held, and a list of connections is whole at any moment.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(address: &Arc<str>) -> usize {
    address.as_ptr().addr()
}

/// Spreads places in memory, which end in zeros, over a table.
#[derive(Default)]
struct Place(u64);

impl Hasher for Place {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
