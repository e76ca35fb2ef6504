//! Connections that have asked nothing yet, at the end.

use std::{
    future::pending,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::time::sleep;

/// How long a head that is on its way may take to arrive after the server was told to stop.
pub(crate) const GRACE: Duration = Duration::from_millis(250);

/// How long one that has asked before may take to ask once more.
const ONCE_MORE: Duration = Duration::from_secs(1);

/// Whether a connection has brought a whole request so far.
///
/// hyper ends an idle connection at once when it is told to stop, but where half of the first head has come it waits
/// for the rest, as long as a head may take: one such caller would hold up the end of the process.
#[derive(Debug, Default)]
pub(crate) struct Asked(AtomicBool);

impl Asked {
    /// A request has come.
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a request has come.
    pub(crate) fn at_all(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// To be awaited from the stop on: returns when an idle connection is to be closed. Its next request, or its first, may be
    /// under way at this moment, and would be lost with a connection that closes at once.
    pub(crate) async fn once_more(&self) {
        sleep(if self.at_all() { ONCE_MORE } else { GRACE }).await;
    }

    /// To be awaited from the stop on: returns if nothing has been asked soon after, which is owed no answer.
    pub(crate) async fn nothing(&self) {
        sleep(GRACE).await;
        if self.at_all() {
            pending::<()>().await;
        }
    }
}
