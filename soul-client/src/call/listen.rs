//! What happens to calls, told to whoever listens.

use std::{fmt, sync::Arc, time::Duration};

use super::{CallErrorKind, Failed, guard::guarded_call};

/// Something happened to one call.
///
/// A call is `Started`, then for each attempt `Sending` and, if that failed, `Failed` and perhaps `Retrying`; its end is `Succeeded` or
/// `Exhausted`. A call that is given up by its caller just ends. Attempts are counted from 1; upstreams are named by protocol and address.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallEvent<'a> {
    /// Somebody called. Nobody is chosen yet.
    #[doc(alias = "onExecutionStart")]
    Started,
    /// An upstream was chosen and gets the request now.
    #[doc(alias = "onStartWithServer")]
    Sending {
        /// Which one.
        upstream: &'a str,
        /// Number of the attempt.
        attempt: u64,
    },
    /// An attempt failed: without an answer, or with one that is to be repeated.
    #[doc(alias = "onExceptionWithServer")]
    Failed {
        /// Where.
        upstream: &'a str,
        /// Number of the attempt.
        attempt: u64,
        /// How it failed, if there was no answer.
        failed: Option<Failed>,
        /// The code of the answer, if there was one.
        status: Option<u16>,
        /// Time since it was sent.
        elapsed: Duration,
    },
    /// There will be another attempt.
    Retrying {
        /// Its number.
        attempt: u64,
        /// Whether it goes to the same upstream.
        same: bool,
        /// How long it is waited before.
        pause: Duration,
    },
    /// The call has an answer, which may be one of 503.
    #[doc(alias = "onExecutionSuccess")]
    Succeeded {
        /// Who answered.
        upstream: &'a str,
        /// How many attempts it took.
        attempts: u64,
        /// The code of the answer, if it has one.
        status: Option<u16>,
        /// Time since the call started.
        elapsed: Duration,
    },
    /// The call has none.
    #[doc(alias = "onExecutionFailed")]
    Exhausted {
        /// Why.
        kind: CallErrorKind,
        /// How many attempts were made.
        attempts: u64,
        /// Time since the call started.
        elapsed: Duration,
    },
}

/// Hears of what happens to calls. Closures are listeners too.
///
/// It is called on the path of the request, and so must be quick. What happens to lists and upstreams is told to a
/// [`MemberListener`](super::MemberListener).
///
/// # Examples
/// ```
/// use soul_client::call::{CallEvent, CallListener};
///
/// let listener = |service: &str, event: &CallEvent<'_>| {
///     if let CallEvent::Exhausted { kind, attempts, .. } = event {
///         eprintln!("{service}: {kind:?} after {attempts} attempts");
///     }
/// };
/// listener.on_call("orders", &CallEvent::Started);
/// ```
#[doc(alias = "ExecutionListener")]
pub trait CallListener: Send + Sync + 'static {
    /// Something happened to a call to `service`.
    fn on_call(&self, service: &str, event: &CallEvent<'_>);
}

impl<F: Fn(&str, &CallEvent<'_>) + Send + Sync + 'static> CallListener for F {
    fn on_call(&self, service: &str, event: &CallEvent<'_>) {
        self(service, event);
    }
}

/// All who listen.
#[derive(Clone, Default)]
pub(super) struct Listeners(pub(super) Vec<Arc<dyn CallListener>>);

impl Listeners {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn tell(&self, service: &str, event: &CallEvent<'_>) {
        for listener in &self.0 {
            if let Err(panicked) = guarded_call(|| listener.on_call(service, event)) {
                tracing::error!(service, %panicked, "a listener failed");
            }
        }
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listeners", self.0.len())
    }
}
