//! Where the upstreams of a service are learnt from.
//!
//! | source | learns | by |
//! |---|---|---|
//! | [`StaticList`] | what it was given | – |
//! | [`FileDiscover`] | a file | reading it again when it changed |
//! | [`DnsDiscover`] | all addresses of a host name | asking the system's resolver |
//! | [`AdminDiscover`] | the selectors of an admin of Soul or ShenYu | its long poll |
//! | [`Feed`] | what the program pushes by a [`Publisher`] | – |
//!
//! A source of one's own is an implementation of [`Discover`], or a closure in [`discover_fn`].

mod admin;
mod dns;
mod error;
mod feed;
mod file;
mod fixed;
mod function;
mod refresh;

use std::{future::Future, pin::Pin, sync::Arc};

pub use admin::AdminDiscover;
pub use dns::{DnsDiscover, Family};
pub use error::DiscoverError;
pub use feed::{Feed, Listing, Publisher, feed};
pub use file::FileDiscover;
pub use fixed::StaticList;
pub use function::{DiscoverFn, discover_fn};
pub use refresh::Refresh;
pub(super) use refresh::poll;

use crate::balance::Upstream;

/// A boxed future, as object-safe traits return them.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a source answers.
pub type Listed = Result<Vec<Upstream>, DiscoverError>;

/// Knows the upstreams of services.
///
/// It may be asked for a list, or push lists, or both. A list is whole: who is not in it is gone. An error means that nothing is
/// known, and the last list is kept; an empty list means that there is nobody.
///
/// # Examples
/// ```
/// use soul_client::balance::Upstream;
/// use soul_client::call::discover::{BoxFuture, Discover, Listed};
///
/// /// Instances that stand in a table of the program.
/// struct Table;
///
/// impl Discover for Table {
///     fn fetch<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
///         Box::pin(async move { Ok(vec![Upstream::new(format!("{service}.internal:8080"))]) })
///     }
/// }
/// ```
#[doc(alias = "ServerList")]
pub trait Discover: Send + Sync + 'static {
    /// The list of a service now.
    ///
    /// Asked again and again by [`Refresh::Polling`]; given up after ten seconds.
    ///
    /// # Errors
    /// When the list is not known: nobody answers, or the service is unknown.
    #[doc(alias = "getUpdatedListOfServers")]
    fn fetch<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed>;

    /// The list of a service when it is asked for the first time; the same as [`fetch`](Self::fetch) unless a source has a quicker
    /// way.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    #[doc(alias = "getInitialListOfServers")]
    fn initial<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
        self.fetch(service)
    }

    /// The lists of a service as they change, if this source pushes; called within a Tokio runtime.
    fn watch(&self, service: &str) -> Option<Feed> {
        let _ = service;
        None
    }

    /// What it is, for logs and status.
    fn describe(&self) -> String {
        "a source of the program".to_owned()
    }
}

impl<D: Discover + ?Sized> Discover for Arc<D> {
    fn fetch<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
        (**self).fetch(service)
    }

    fn initial<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
        (**self).initial(service)
    }

    fn watch(&self, service: &str) -> Option<Feed> {
        (**self).watch(service)
    }

    fn describe(&self) -> String {
        (**self).describe()
    }
}
