//! Keeps what the policies have worked out in step with health, away from the path of requests.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::{clock::now_ms, sync::ConfigSync};

/// Health counts at once even without this; it makes choices even again. Where nothing changed, a round is a few reads for
/// each selector that has policies.
const EVERY: Duration = Duration::from_millis(100);

/// Refreshes the upstream sets of the serving configuration, for ever.
pub(super) async fn rounds(sync: ConfigSync) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(snapshot) = sync.snapshot() else { continue };
        for selector in snapshot.divide().into_iter().flat_map(|table| table.selectors()) {
            selector.payload().upstreams().refresh(now_ms());
        }
    }
}
