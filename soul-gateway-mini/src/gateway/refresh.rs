//! Keeps what the policies have worked out in step with health, and the budgets of retries with the requests that were made,
//! away from the path of requests.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::{clock::now_ms, sync::ConfigSync};

/// Health counts at once even without this; it makes choices even again. Where nothing changed, a round is a few reads for
/// each selector that has policies.
const EVERY: Duration = Duration::from_millis(100);

/// The budgets of retries go by seconds, and need no more.
const COUNT_EVERY: u32 = 10;

/// Refreshes the upstream sets of the serving configuration, for ever.
pub(super) async fn rounds(sync: ConfigSync) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0_u32.. {
        ticks.tick().await;
        let now = now_ms();
        let counts = round % COUNT_EVERY == 0;
        let Some(snapshot) = sync.snapshot() else { continue };
        for selector in snapshot.divide().into_iter().flat_map(|table| table.selectors()) {
            selector.payload().upstreams().refresh(now);
            if counts {
                let stats = selector.payload().stats();
                stats.retries.requests(stats.durations.count(), now);
            }
        }
    }
}
