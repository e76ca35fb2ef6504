//! How the threads of lanes are scheduled.
//!
//! A lane that is woken by one request goes before whoever runs, by the usual rules, and sleeps again a few microseconds later:
//! with callers and upstreams on the same cores each request costs two changes of threads. As a "batch" thread it waits for
//! whoever runs to end its turn, which is some milliseconds at most, finds several requests then, and has them share the
//! changes, the waking and the asking for events. Its share of the processor stays the same, and it sleeps as little
//! where nobody else wants the core. Where others always do, that turn is time that a request waits: the setting is for those who
//! share a machine and would rather pay the changes.

use super::LaneScheduling;

#[cfg(target_os = "linux")]
use thread_priority::{
    NormalThreadSchedulePolicy::Batch,
    ThreadPriority,
    ThreadSchedulePolicy::{self, Normal},
    set_thread_priority_and_policy, thread_native_id,
};

/// Has this thread scheduled so from now on. Where the system does not let it, all stays as it was.
#[cfg(target_os = "linux")]
pub(super) fn schedule(scheduling: LaneScheduling) {
    match scheduling {
        LaneScheduling::Batch => become_patient(),
        LaneScheduling::Normal => {}
    }
}

/// Elsewhere threads are scheduled as any others.
#[cfg(not(target_os = "linux"))]
pub(super) fn schedule(_: LaneScheduling) {}

/// From now on this thread interrupts nobody.
#[cfg(target_os = "linux")]
fn become_patient() {
    let policy: ThreadSchedulePolicy = Normal(Batch);
    // The crate sets the niceness as well, in steps of its own: the one that leaves it as it is.
    let Ok(nice) = rustix::process::getpriority_process(None) else { return };
    let same = |priority: &ThreadPriority| matches!(priority.to_posix(policy), Ok(n) if n == nice);
    let priority = (0_u8..100).filter_map(|step| ThreadPriority::try_from(step).ok()).find(same);
    if let Some(priority) = priority
        && let Err(error) = set_thread_priority_and_policy(thread_native_id(), priority, policy)
    {
        tracing::debug!(?error, "the threads of the gateway are scheduled as any others");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use thread_priority::thread_schedule_policy;

    use super::*;

    #[test]
    fn the_thread_is_as_patient_as_is_asked_and_as_nice_as_before() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = (thread_schedule_policy().unwrap(), nice());
        let after = |scheduling| {
            let thread = thread::spawn(move || {
                schedule(scheduling);
                (thread_schedule_policy().unwrap(), nice())
            });
            thread.join().unwrap()
        };
        assert_eq!(after(LaneScheduling::Normal), before);
        assert_eq!(after(LaneScheduling::Batch), (Normal(Batch), before.1));
    }
}
