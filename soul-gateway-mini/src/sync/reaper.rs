//! Where what was replaced ends.
//!
//! A configuration of 100,000 rules takes some ten milliseconds to take apart, and whoever lets go of it last pays
//! for that: without this, a request that began before the change. So it is held here until nobody else does.

use std::{any::Any, mem, sync::Arc, time::Duration};

use tokio::{sync::mpsc, task, time};
use tokio_util::task::TaskTracker;

use crate::slices::sliced;

/// How often it is seen whether somebody still holds what was replaced.
const LOOK: Duration = Duration::from_millis(100);

/// Something that was replaced, whatever it is.
type Replaced = Arc<dyn Any + Send + Sync>;

/// Takes what was replaced, and takes it apart aside once nobody else holds it.
pub(super) struct Reaper(mpsc::UnboundedSender<Replaced>);

impl Reaper {
    /// Starts the task that does it; it ends with the reaper.
    pub(super) fn start(tasks: &TaskTracker) -> Self {
        // Without a bound: there is one entry a change, taking one apart is quicker than making its successor, and who replaces
        // a configuration must not wait for the requests that hold it.
        let (sender, receiver) = mpsc::unbounded_channel();
        tasks.spawn(reap(receiver));
        Self(sender)
    }

    pub(super) fn take(&self, replaced: Replaced) {
        // It fails only when the gateway stops.
        let _ = self.0.send(replaced);
    }
}

async fn reap(mut replaced: mpsc::UnboundedReceiver<Replaced>) {
    let mut held = Vec::new();
    loop {
        let next = if held.is_empty() {
            replaced.recv().await.map(Some)
        } else {
            time::timeout(LOOK, replaced.recv()).await.map_or(Some(None), |next| next.map(Some))
        };
        match next {
            Some(next) => held.extend(next),
            None => return,
        }
        let (free, still): (Vec<_>, Vec<_>) =
            mem::take(&mut held).into_iter().partition(|one: &Replaced| Arc::strong_count(one) == 1);
        held = still;
        if !free.is_empty() {
            // An error is a panic in a drop, and what panicked is gone as well.
            let _ = task::spawn_blocking(move || sliced(|| drop(free))).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_replaced_goes_when_nobody_holds_it() {
        let tasks = TaskTracker::new();
        let reaper = Reaper::start(&tasks);
        let one = Arc::new("a configuration");
        let request = Arc::clone(&one);
        let gone = Arc::downgrade(&one);
        reaper.take(one);
        time::sleep(10 * LOOK).await;
        assert!(gone.upgrade().is_some(), "a request holds it");
        drop(request);
        let last = async {
            while gone.strong_count() > 0 {
                time::sleep(LOOK).await;
            }
        };
        time::timeout(Duration::from_secs(60), last).await.expect("it is let go");
        drop(reaper);
        tasks.close();
        tasks.wait().await;
    }
}
