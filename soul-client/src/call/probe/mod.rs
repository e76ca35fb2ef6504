//! Asking upstreams whether they live.
//!
//! A check is asked of each address at intervals of [`CheckSettings`]; so many misses in a row take an upstream out, so many
//! answers bring it back. Services that check an address alike share one probe, and all of a [`Probers`] together have at most so many
//! checks under way.

mod http;
mod registry;
mod tcp;

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

pub use http::HttpCheck;
pub use registry::Probers;
pub(super) use registry::{Findings, Subscription};
pub use tcp::TcpCheck;

use super::discover::BoxFuture;
use crate::balance::{CheckSettings, Upstream};

/// Why an upstream did not pass a check.
pub type CheckError = Box<dyn StdError + Send + Sync + 'static>;

/// What came of a check.
pub type Checked = Result<(), CheckError>;

/// Asks one upstream whether it can serve.
///
/// # Examples
/// ```
/// use soul_client::balance::Upstream;
/// use soul_client::call::{discover::BoxFuture, probe::{Checked, HealthCheck}};
///
/// /// Believes a word on each upstream.
/// struct Word;
///
/// impl HealthCheck for Word {
///     fn check<'a>(&'a self, upstream: &'a Upstream) -> BoxFuture<'a, Checked> {
///         let well = upstream.metadata().get("state").is_none_or(|state| state == "well");
///         Box::pin(async move { well.then_some(()).ok_or_else(|| "it says it is not well".into()) })
///     }
/// }
/// ```
#[doc(alias = "IPing")]
pub trait HealthCheck: Send + Sync + 'static {
    /// Asks once; given up after [`Probing::timeout`].
    ///
    /// # Errors
    /// When the upstream cannot serve; the error says why.
    fn check<'a>(&'a self, upstream: &'a Upstream) -> BoxFuture<'a, Checked>;

    /// A text that is equal for checks that ask the same, so that their services share the probes. `None`, the default: only clones
    /// of one `Arc` do.
    fn key(&self) -> Option<String> {
        None
    }
}

/// What is asked.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Check {
    /// Nothing: every upstream is taken to live until requests fail.
    #[doc(alias = "DummyPing")]
    None,
    /// Nothing, but what the source says of an upstream's status counts as its health.
    #[doc(alias = "NIWSDiscoveryPing")]
    RegistryStatus,
    /// A check, at intervals.
    Active(Arc<dyn HealthCheck>),
    /// Whether it takes a connection, at intervals: [`TcpCheck`].
    #[default]
    Tcp,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::RegistryStatus => f.write_str("RegistryStatus"),
            // What tells two of them apart.
            Self::Active(check) => match check.key() {
                Some(key) => write!(f, "Active({key})"),
                None => write!(f, "Active({:p})", Arc::as_ptr(check)),
            },
            Self::Tcp => f.write_str("Tcp"),
        }
    }
}

/// How the upstreams of a service are checked.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use soul_client::call::probe::Probing;
///
/// let probing = Probing { require_first_check: true, ..Probing::tcp() };
/// assert_eq!(probing.timeout, Duration::from_secs(1));
/// ```
#[derive(Clone, Debug)]
pub struct Probing {
    /// What is asked. Default [`Check::Tcp`].
    pub check: Check,
    /// When, and what the answers mean. Default every 5 s, fall 2, rise 2.
    pub settings: CheckSettings,
    /// Longest wait for an answer. Default 1 s.
    pub timeout: Duration,
    /// Whether a new upstream takes no traffic before it has passed its first check, which is then made at once. Default false.
    pub require_first_check: bool,
}

impl Default for Probing {
    fn default() -> Self {
        Self::of(Check::Tcp)
    }
}

impl Probing {
    /// Longest wait for an answer unless set.
    pub const TIMEOUT: Duration = Duration::from_secs(1);

    /// The defaults with a check.
    #[must_use]
    pub fn of(check: Check) -> Self {
        Self { check, settings: CheckSettings::default(), timeout: Self::TIMEOUT, require_first_check: false }
    }

    /// No active checks.
    #[must_use]
    pub fn none() -> Self {
        Self::of(Check::None)
    }

    /// The status that the source says.
    #[must_use]
    pub fn registry_status() -> Self {
        Self::of(Check::RegistryStatus)
    }

    /// Whether a connection is taken.
    #[must_use]
    pub fn tcp() -> Self {
        Self::of(Check::Tcp)
    }

    /// A check of one's own.
    #[must_use]
    pub fn custom(check: impl HealthCheck) -> Self {
        Self::of(Check::Active(Arc::new(check)))
    }

    /// As Ribbon without a word on it: no ping.
    #[must_use]
    pub fn ribbon() -> Self {
        Self::none()
    }

    /// The check that is asked at intervals, if there is one.
    pub(super) fn active(&self) -> Option<Arc<dyn HealthCheck>> {
        match &self.check {
            Check::None | Check::RegistryStatus => None,
            Check::Active(check) => Some(Arc::clone(check)),
            Check::Tcp => Some(Arc::new(TcpCheck)),
        }
    }
}

#[cfg(test)]
mod tests;
