//! What happens to the upstreams of a service, told to whoever listens.

use crate::balance::Health;

/// Something happened to the upstreams of a service.
///
/// Upstreams are named by protocol and address, `http://10.0.0.2:8188`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberEvent {
    /// The list is another one.
    ListChanged {
        /// Generation of the snapshot with the new list.
        generation: u64,
        /// Those that are new.
        added: Vec<String>,
        /// Those that are gone.
        removed: Vec<String>,
        /// How many there are now.
        total: usize,
    },
    /// A probe, or whoever marked it, found an upstream to be otherwise than before.
    StatusChanged {
        /// Which one.
        upstream: String,
        /// What it is now.
        health: Health,
    },
    /// An upstream failed requests and is left out for a while.
    Ejected {
        /// Which one.
        upstream: String,
        /// Until when, milliseconds since the epoch.
        until_ms: i64,
    },
    /// An ejected upstream has proved itself.
    Restored {
        /// Which one.
        upstream: String,
    },
    /// So few are healthy that health is not heeded any more; or enough are again.
    Panic {
        /// Whether it began.
        on: bool,
    },
    /// The source of the list does not answer; the last list is kept. Told once, until it answers again.
    SourceFailed {
        /// The error and its causes in one line.
        error: String,
    },
    /// The source answers again.
    SourceRecovered {
        /// How often it had failed in a row.
        failures: u64,
    },
}

/// Hears of what happens to the upstreams of services.
///
/// Called by the writer task of a service, one event after the other: so it must be quick, and what takes time belongs into a
/// task of its own. Events of two services may come at the same time. Closures are listeners too.
///
/// # Examples
/// ```
/// use soul_client::call::{MemberEvent, MemberListener};
///
/// let listener = |service: &str, event: &MemberEvent| println!("{service}: {event:?}");
/// listener.on_event("orders", &MemberEvent::Panic { on: true });
/// ```
#[doc(alias = "ServerListChangeListener")]
#[doc(alias = "ServerStatusChangeListener")]
pub trait MemberListener: Send + Sync + 'static {
    /// Something happened to the upstreams of `service`.
    fn on_event(&self, service: &str, event: &MemberEvent);
}

impl<F: Fn(&str, &MemberEvent) + Send + Sync + 'static> MemberListener for F {
    fn on_event(&self, service: &str, event: &MemberEvent) {
        self(service, event);
    }
}
