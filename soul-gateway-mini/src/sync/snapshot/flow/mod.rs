//! How an upstream bears its load, and how many requests it gets at once for that.

mod control;

use std::{
    sync::{
        Arc, Mutex, OnceLock, TryLockError,
        atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use self::control::{Control, Seen};
use crate::shard::Sharded;

/// From one look of a thread to the next, milliseconds.
const LOOK_MS: u64 = 10;

/// A limit that nobody has looked at for so long is none any more, as the next request will find.
const KNOWN_MS: u64 = 10_000;

/// One upstream of a selector. Every thread notes what it sees in a part of its own, and now and then one of them looks at all parts.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Requests at once; the largest number is no limit.
    limit: AtomicU32,
    /// Requests beyond the limit that are to wait, since it is only tried out.
    most_waiting: AtomicU32,
    /// Whether a request met the limit since the last look.
    met: AtomicBool,
    /// Requests that became a connection with a protocol of its own. They stay among those in flight.
    tunnels: AtomicU32,
    parts: Sharded<Part>,
    control: OnceLock<Box<Mutex<Control>>>,
    /// Requests given up since the last look.
    timeouts: AtomicU32,
    /// Whether a thread was strained since the last look.
    strained: AtomicBool,
    /// When a thread looked last. All read it, and one in each interval writes it: were each to look, what looking takes would grow
    /// with the square of the threads.
    looked_ms: AtomicI64,
}

struct Part {
    answers: AtomicU64,
    /// Since the last look.
    least_us: AtomicU32,
    /// When this thread wanted to look last.
    looked_ms: AtomicI64,
}

impl Default for Part {
    fn default() -> Self {
        Self { answers: AtomicU64::new(0), least_us: AtomicU32::new(u32::MAX), looked_ms: AtomicI64::new(0) }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            limit: AtomicU32::new(u32::MAX),
            most_waiting: AtomicU32::new(0),
            met: AtomicBool::new(false),
            tunnels: AtomicU32::new(0),
            parts: Sharded::default(),
            control: OnceLock::new(),
            timeouts: AtomicU32::new(0),
            strained: AtomicBool::new(false),
            looked_ms: AtomicI64::new(0),
        }
    }
}

/// A connection that changed its protocol.
#[derive(Debug)]
pub(crate) struct OpenTunnel(Arc<Flow>);

impl Drop for OpenTunnel {
    fn drop(&mut self) {
        self.0.tunnels.fetch_sub(1, Relaxed);
    }
}

impl Flow {
    /// Counts a connection that changed its protocol, as long as it is open.
    pub(crate) fn tunnel(self: &Arc<Self>) -> OpenTunnel {
        self.tunnels.fetch_add(1, Relaxed);
        OpenTunnel(Arc::clone(self))
    }

    /// How many of them are open.
    pub(crate) fn tunnels(&self) -> u32 {
        self.tunnels.load(Relaxed)
    }

    /// How many requests it is to get at once; the largest number is no limit.
    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Relaxed)
    }

    /// How many requests beyond the limit are to wait instead of being refused: it may be wrong.
    pub(crate) fn most_waiting(&self) -> u32 {
        self.most_waiting.load(Relaxed)
    }

    /// An answer began after this time.
    ///
    /// - `in_flight`, `most`: requests under way, without tunnels, and how many there may be anyway.
    /// - `strained`: whether this thread has so much to do itself that times say little.
    pub(crate) fn answered(
        &self,
        took: Duration,
        now_ms: i64,
        in_flight: impl FnOnce() -> u32,
        most: u32,
        strained: impl FnOnce() -> bool,
    ) {
        let part = self.parts.mine();
        part.answers.fetch_add(1, Relaxed);
        let took = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        if took < part.least_us.load(Relaxed) {
            part.least_us.store(took, Relaxed);
        }
        if is_due(&part.looked_ms, now_ms) {
            if strained() {
                self.strained.store(true, Relaxed);
            }
            if is_due(&self.looked_ms, now_ms) {
                self.look(now_ms, in_flight(), most);
            }
        }
    }

    /// A request was given up, for its time was over.
    pub(crate) fn timed_out(&self, now_ms: i64, in_flight: u32, most: u32) {
        self.timeouts.fetch_add(1, Relaxed);
        if is_due(&self.parts.mine().looked_ms, now_ms) && is_due(&self.looked_ms, now_ms) {
            self.look(now_ms, in_flight, most);
        }
    }

    /// A request met the limit.
    pub(crate) fn met(&self, now_ms: i64, in_flight: u32, most: u32) {
        self.met.store(true, Relaxed);
        if is_due(&self.parts.mine().looked_ms, now_ms) && is_due(&self.looked_ms, now_ms) {
            self.look(now_ms, in_flight, most);
        }
    }

    /// Answers seen so far.
    pub(crate) fn answers(&self) -> u64 {
        self.parts.all().fold(0, |sum, part| sum.wrapping_add(part.answers.load(Relaxed)))
    }

    /// The limit, if there is one and requests still come.
    pub(crate) fn known_limit(&self, now_ms: i64) -> Option<u32> {
        Some(self.limit()).filter(|limit| *limit < u32::MAX && passed_ms(&self.looked_ms, now_ms) < KNOWN_MS)
    }

    #[cold]
    fn look(&self, now_ms: i64, in_flight: u32, most: u32) {
        let control = self.control.get_or_init(|| Box::new(Mutex::new(Control::new(now_ms))));
        let mut control = match control.try_lock() {
            Ok(control) => control,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread looks in this moment.
            Err(TryLockError::WouldBlock) => return,
        };
        let met = self.met.swap(false, Relaxed);
        let strained = self.strained.swap(false, Relaxed);
        let least = self.parts.all().map(|part| part.least_us.swap(u32::MAX, Relaxed)).min();
        let least_us = least.unwrap_or(u32::MAX);
        let answers = self.answers();
        let timeouts = self.timeouts.swap(0, Relaxed);
        control.look(now_ms, Seen { answers, least_us, in_flight, most, timeouts, met, strained });
        self.most_waiting.store(control.most_waiting(), Relaxed);
        self.limit.store(control.limit().unwrap_or(u32::MAX), Relaxed);
    }
}

/// Whether nobody has looked for a while; notes that somebody does now.
fn is_due(looked_ms: &AtomicI64, now_ms: i64) -> bool {
    let due = passed_ms(looked_ms, now_ms) >= LOOK_MS;
    if due {
        looked_ms.store(now_ms, Relaxed);
    }
    due
}

/// Since somebody looked. A very long time if the clock was set back.
fn passed_ms(looked_ms: &AtomicI64, now_ms: i64) -> u64 {
    now_ms.wrapping_sub(looked_ms.load(Relaxed)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use soul_client::balance::parts;

    use super::*;
    use crate::shard;

    #[test]
    fn one_thread_looks_for_all_and_hears_of_the_strain_of_any() {
        let flow = Flow::default();
        let looks = AtomicU32::new(0);
        let answered = |lane, now_ms, strained| {
            let on_lane = || {
                parts::enter(lane);
                let in_flight = || looks.fetch_add(1, Relaxed);
                flow.answered(Duration::from_millis(1), now_ms, in_flight, 1024, || strained);
            };
            thread::scope(|scope| scope.spawn(on_lane).join().unwrap());
        };
        answered(0, 1_000, false);
        for lane in 1..4 {
            answered(lane, 1_005, true);
        }
        assert_eq!((looks.load(Relaxed), flow.answers()), (1, 4));
        // With one core there is one part for all, and so little to ask.
        assert_eq!(flow.strained.load(Relaxed), shard::count() > 1);
        answered(0, 1_010, false);
        assert_eq!(looks.load(Relaxed), 2);
        assert!(!flow.strained.load(Relaxed), "it was told");
    }
}
