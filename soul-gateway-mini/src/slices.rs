//! Long work in slices, with a rest after each, so that requests never wait for a core as long as the work takes.
//!
//! A change among 100,000 rules is some ten milliseconds of work, and the system gives a thread that works on a core
//! two to four of them before another that woke up there gets its turn: with as many cores as lanes a request waits for just
//! that. Lower priority is no way out: on a machine under load such a thread gets nothing at all, and the change
//! comes too late. So the work stops by itself, often and briefly; a thread that wakes up after a rest is let in at once.
//!
//! Whoever does something again and again, above all with a row of the configuration, calls [`step`], which on any
//! other thread than one inside of [`sliced`] is a look at one number of this thread.

use std::{
    cell::Cell,
    thread,
    time::{Duration, Instant},
};

/// How long is worked between two rests.
const SLICE: Duration = Duration::from_micros(200);

/// How long is rested; the system adds about half of it.
const REST: Duration = Duration::from_micros(100);

/// From one look at the clock to the next, in steps.
const STEPS: u32 = 16;

/// How much longer rests may be than asked for, in all of one piece of work. They are when others had the core meanwhile: then it
/// is shared already, and more rests would only make the work late.
const LATENESS: Duration = Duration::from_millis(15);

thread_local! {
    /// Steps until the next look at the clock; 0 where work is not sliced.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    static WORK: Cell<Option<Work>> = const { Cell::new(None) };
}

/// A piece of work under way.
#[derive(Clone, Copy)]
struct Work {
    /// When the slice began.
    slice: Instant,
    late: Duration,
}

/// Does `work` in slices, on a thread that nobody else needs: it sleeps between them.
pub(crate) fn sliced<T>(work: impl FnOnce() -> T) -> T {
    let _end = Sliced::begin();
    work()
}

/// A place where work can be interrupted.
#[inline]
pub(crate) fn step() {
    match LEFT.get() {
        0 => {}
        1 => look(),
        more => LEFT.set(more - 1),
    }
}

/// Ends with the work, even if that panics: the thread has other work after this.
struct Sliced;

impl Sliced {
    fn begin() -> Self {
        WORK.set(Some(Work { slice: Instant::now(), late: Duration::ZERO }));
        LEFT.set(STEPS);
        Self
    }
}

impl Drop for Sliced {
    fn drop(&mut self) {
        WORK.set(None);
        LEFT.set(0);
    }
}

/// Rests if the slice is over.
#[cold]
fn look() {
    LEFT.set(STEPS);
    let Some(mut work) = WORK.get() else { return };
    let before = Instant::now();
    if before.saturating_duration_since(work.slice) < SLICE {
        return;
    }
    thread::sleep(REST);
    let after = Instant::now();
    work.late += after.saturating_duration_since(before).saturating_sub(2 * REST);
    work.slice = after;
    if work.late > LATENESS {
        LEFT.set(0);
    }
    WORK.set(Some(work));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often work of so many steps rested, each of which takes a tenth of a slice.
    fn rests(steps: u32) -> u32 {
        let mut rests = 0;
        for _ in 0..steps {
            let before = WORK.get().map(|work| work.slice);
            let until = Instant::now() + SLICE / 10;
            while Instant::now() < until {}
            step();
            rests += u32::from(before != WORK.get().map(|work| work.slice));
        }
        rests
    }

    #[test]
    fn long_work_rests_again_and_again_and_no_other() {
        assert_eq!(rests(10 * STEPS), 0, "outside");
        // On a machine under load rests are late, and soon there are no more.
        assert!(sliced(|| rests(10 * STEPS)) > 0);
        assert_eq!(sliced(|| rests(STEPS - 1)), 0, "short work");
        assert_eq!(rests(10 * STEPS), 0, "outside again");
    }

    #[test]
    fn a_panic_ends_it_too() {
        let panicked = std::panic::catch_unwind(|| sliced(|| panic!("on purpose")));
        assert!(panicked.is_err());
        assert_eq!(LEFT.get(), 0);
    }

    #[test]
    fn work_that_is_late_rests_no_more() {
        sliced(|| {
            WORK.set(WORK.get().map(|work| Work { late: 2 * LATENESS, ..work }));
            rests(10 * STEPS);
            assert_eq!(LEFT.get(), 0);
        });
    }
}
