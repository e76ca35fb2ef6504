//! Files that are renewed by others while they are used.

use std::{sync::Arc, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use super::TlsError;
use crate::causes::chain;

/// How often they are looked at: whoever renews certificates leaves hours between the new one and the end of the old.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(30);

/// What goes by files.
pub(super) trait Look: Send + Sync + 'static {
    /// Takes up what the files hold, if that is something else than when they were last looked at. Blocks while it reads.
    ///
    /// # Errors
    /// When it cannot be used; then all stays as it was, and this is not looked at again.
    fn look(&self) -> Result<(), TlsError>;
}

/// Looks at the files now and then, for ever.
///
/// - `whose`: for the log.
pub(super) async fn watch(files: Arc<impl Look>, whose: &'static str) {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut missing = false;
    loop {
        ticks.tick().await;
        let files = Arc::clone(&files);
        let looked = tokio::task::spawn_blocking(move || files.look()).await;
        let error = looked.ok().and_then(Result::err);
        // What cannot be used is seen once, what cannot be read every time.
        let unreadable = matches!(error, Some(TlsError::Unreadable { .. }));
        if let Some(error) = error.filter(|_| !(missing && unreadable)) {
            tracing::error!(
                whose,
                error = chain(&error),
                "the new certificates cannot be used, the old ones stay"
            );
        }
        missing = unreadable;
    }
}
