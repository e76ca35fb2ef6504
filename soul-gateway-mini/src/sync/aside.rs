//! Work on a configuration: as much as its length at every change, and beside the lanes.

use std::{panic, thread};

use tokio::task::{self, JoinHandle};

/// How far such work stands back: a tenth of a core's time where somebody else wants it, and all of it otherwise.
#[cfg(target_os = "linux")]
const STEPS_BACK: i32 = 10;

/// Does `work` on a thread of its own that lets those that serve requests go first.
///
/// A thread of its own, since one that has stepped back may not step forward again. A panic of `work` is one of the
/// task that is given.
pub(super) fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    task::spawn_blocking(|| {
        let stepped_back = thread::spawn(|| {
            step_back();
            work()
        });
        stepped_back.join().unwrap_or_else(|reason| panic::resume_unwind(reason))
    })
}

/// Of this thread alone, as Linux has it; elsewhere it would be the whole process.
fn step_back() {
    #[cfg(target_os = "linux")]
    // It fails nowhere that we know, and the work gets done as well without.
    let _ = rustix::process::nice(STEPS_BACK);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_outcome_comes_back_and_a_panic_is_told() {
        assert_eq!(aside(|| 7).await.unwrap(), 7);
        assert!(aside(|| -> () { panic!("on purpose") }).await.unwrap_err().is_panic());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_the_thread_that_works_stands_back() {
        let of_thread = || rustix::process::nice(0).unwrap();
        let before = of_thread();
        let aside = aside(of_thread).await.unwrap();
        assert_eq!(aside, (before + STEPS_BACK).min(19));
        assert_eq!(of_thread(), before);
    }
}
