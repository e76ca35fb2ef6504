//! Connections to upstreams that wait for their next request. Every lane has its own, so that taking one and giving it
//! back is a matter between one thread and its memory; the lock is never waited for but by a look from outside.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{answer::Lines, link::Link};

/// Idle connections by address, the one used last on top.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Idles>);

#[derive(Debug, Default)]
struct Idles {
    idle: ByAddress,
    limits: Limits,
}

/// How many connections wait, and for how long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// For one upstream; 0 keeps none.
    pub(super) max_idle: usize,
    /// Zero keeps none.
    pub(super) idle_timeout: Duration,
}

/// By where the text of an address is in memory, which the entry keeps there: quicker than by the text, and the same
/// unless an upstream was taken off and came back.
type ByAddress = HashMap<usize, Waiting, BuildHasherDefault<Place>>;

#[derive(Debug)]
struct Waiting {
    _address: Arc<str>,
    links: Vec<Idle>,
    /// What those that wait and those in use have in common.
    lines: Arc<Lines>,
}

impl Waiting {
    /// Those of an upstream, none so far if it was not known.
    fn at<'i>(idle: &'i mut ByAddress, address: &Arc<str>) -> &'i mut Self {
        idle.entry(place(address)).or_insert_with(|| Self {
            _address: Arc::clone(address),
            links: Vec::new(),
            lines: Arc::default(),
        })
    }
}

#[derive(Debug)]
struct Idle {
    link: Box<Link>,
    since: Instant,
}

impl Pool {
    /// From now on; what waits already is gone through at the next sweep.
    pub(super) fn keep_to(&self, limits: Limits) {
        self.lock().limits = limits;
    }

    /// How long a connection waits.
    pub(super) fn idle_timeout(&self) -> Duration {
        self.lock().limits.idle_timeout
    }

    /// What connections to an upstream have in common.
    pub(super) fn lines(&self, address: &Arc<str>) -> Arc<Lines> {
        Arc::clone(&Waiting::at(&mut self.lock().idle, address).lines)
    }

    /// A connection that is open and not too old now.
    pub(super) fn take(&self, address: &Arc<str>, now: Instant) -> Option<Box<Link>> {
        let mut idles = self.lock();
        let Idles { idle, limits } = &mut *idles;
        let links = &mut idle.get_mut(&place(address))?.links;
        while let Some(Idle { mut link, since }) = links.pop() {
            if now.saturating_duration_since(since) >= limits.idle_timeout {
                // The ones below were put away earlier still.
                links.clear();
            } else if link.is_quiet() {
                return Some(link);
            }
        }
        None
    }

    /// Puts a connection away whose exchange has ended now. Whether it is open still is seen when it is taken.
    pub(super) fn put(&self, mut link: Box<Link>, now: Instant) {
        let mut idles = self.lock();
        let Idles { idle, limits } = &mut *idles;
        if limits.max_idle == 0 || limits.idle_timeout.is_zero() || !link.input.is_empty() {
            return;
        }
        link.rest();
        let waiting = Waiting::at(idle, link.address());
        if waiting.links.len() < limits.max_idle {
            waiting.links.push(Idle { link, since: now });
        }
    }

    /// Closes what has been idle for too long, or was closed by the other side.
    pub(super) fn sweep(&self) {
        let mut idles = self.lock();
        let Idles { idle, limits } = &mut *idles;
        idle.retain(|_, waiting| {
            waiting
                .links
                .retain_mut(|idle| idle.since.elapsed() < limits.idle_timeout && idle.link.is_quiet());
            waiting.links.truncate(limits.max_idle);
            // Connections in use hold on to the lines too, and those to come are to have the same.
            !waiting.links.is_empty() || Arc::strong_count(&waiting.lines) > 1
        });
    }

    /// Closes everything.
    pub(super) fn clear(&self) {
        self.lock().idle.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Idles> {
        // Nothing panics while it is held, and a list of connections is whole at any moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
