//! The upstreams that an admin of Soul or ShenYu gives its gateways, learnt over its own long poll.
//!
//! | room | does |
//! |---|---|
//! | `follow` | the one task: everything at first contact, then what the poll says has changed; from admin to admin when one fails |
//! | `api` | the two requests at one admin, with a token where it wants one |
//! | `read` | what its answers mean: the selectors of `divide` and their upstreams |

mod api;
mod follow;
mod read;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::task::AbortHandle;

use api::AdminApi;
use read::Selectors;

use super::{BoxFuture, Discover, DiscoverError, Feed, Listed, Publisher, feed};
use crate::{config::ClientConfig, error::Error, transport::HttpTransport};

/// Learns upstreams from an admin of Soul (`soul.sync.http.enabled`) or Apache ShenYu (`shenyu.sync.http.enabled`), as their gateways do.
///
/// A service is known by the name of its `divide` selector, which a registration makes of its context path: `orders` and `/orders` are
/// the selector `/orders`. If no selector has the name, the first counts whose `uri` condition is that prefix. A selector that is
/// switched off has nobody to call. Without a selector the service is unknown, and a list that was known is kept.
///
/// One poll is held for all services. Of several admins one is followed; when it fails, the next one is asked, and when all do, the lists
/// are kept. With [`Refresh::Polling`](super::Refresh::Polling) each service is asked for by itself instead.
///
/// # Examples
/// ```no_run
/// use soul_client::{Secret, call::{Membership, discover::AdminDiscover}};
///
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let admins = AdminDiscover::new("http://10.0.0.5:9095,http://10.0.0.6:9095")?;
/// let orders = Membership::builder("orders").source(admins).spawn()?;
///
/// let shenyu = AdminDiscover::with_login("http://10.0.0.7:9095", "admin", Secret::new("123456"))?;
/// # let _ = (orders, shenyu);
/// # Ok(())
/// # }
/// ```
pub struct AdminDiscover {
    inner: Arc<Inner>,
}

/// What the task and the source share.
struct Inner {
    admins: Vec<AdminApi>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    publishers: HashMap<String, Publisher>,
    /// What the admin said last.
    latest: Option<Arc<Selectors>>,
    /// Why no admin is followed, while that is so.
    failing: Option<String>,
    task: Option<AbortHandle>,
}

impl AdminDiscover {
    /// Follows admins by their addresses, separated by commas, which want no login: those of Soul.
    ///
    /// # Errors
    /// When an address is none.
    pub fn new(admin_urls: &str) -> Result<Self, Error> {
        Self::of(&ClientConfig::builder().admin_url(admin_urls).context_path(NO_SERVICE).build()?)
    }

    /// Follows admins that want a login: those of ShenYu.
    ///
    /// # Errors
    /// As [`AdminDiscover::new`].
    pub fn with_login(
        admin_urls: &str,
        username: impl Into<String>,
        password: impl Into<crate::Secret>,
    ) -> Result<Self, Error> {
        let config = ClientConfig::builder().admin_url(admin_urls).context_path(NO_SERVICE);
        Self::of(&config.username(username).password(password).build()?)
    }

    /// Follows the admins that this program registers with: their addresses, login, first namespace, certificates and proxy.
    ///
    /// # Errors
    /// When the settings do not make an HTTP client, such as certificates that cannot be read.
    pub fn of(config: &ClientConfig) -> Result<Self, Error> {
        let transport = HttpTransport::new(config)?;
        let namespace = config.namespaces().first().map_or(crate::wire::shenyu::DEFAULT_NAMESPACE, |n| n);
        let admins = config.admin_urls().map(|url| AdminApi::new(url, &transport, namespace)).collect();
        Ok(Self { inner: Arc::new(Inner { admins, state: Mutex::default() }) })
    }
}

/// The settings of a client want a context path, and this one registers nothing.
const NO_SERVICE: &str = "/none";

impl Discover for AdminDiscover {
    /// Asks the admins in turn, without following any.
    fn fetch<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
        Box::pin(async move {
            let mut last = None;
            for admin in &self.inner.admins {
                match admin.selectors().await {
                    Ok(selectors) => return selectors.upstreams_of(service),
                    Err(error) => last = Some(error),
                }
            }
            let failed = DiscoverError::new(format!("ask {} for `{service}`", self.describe()));
            Err(last.into_iter().fold(failed, DiscoverError::with_source))
        })
    }

    fn watch(&self, service: &str) -> Option<Feed> {
        let mut state = self.inner.state();
        let publisher = state.publishers.get(service).filter(|publisher| !publisher.is_closed());
        if let Some(publisher) = publisher {
            return Some(publisher.subscribe());
        }
        let (publisher, feed) = feed();
        if let Some(selectors) = &state.latest {
            publisher.report(selectors.upstreams_of(service));
        }
        if let Some(failing) = &state.failing {
            publisher.fail(self.inner.failed(failing));
        }
        state.publishers.insert(service.to_owned(), publisher);
        if state.task.as_ref().is_none_or(AbortHandle::is_finished) {
            state.task = Some(tokio::spawn(follow::run(Arc::clone(&self.inner))).abort_handle());
        }
        Some(feed)
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self) -> String {
        let names: Vec<_> = self.admins.iter().map(|admin| format!("`{}`", admin.name())).collect();
        format!("the admin {}", names.join(" or "))
    }

    fn failed(&self, cause: &str) -> DiscoverError {
        DiscoverError::new(format!("follow {}", self.describe())).with_source(cause)
    }

    /// An admin said everything, or confirmed it; gives whether anyone listens still.
    fn publish(&self, selectors: &Arc<Selectors>) -> bool {
        let mut state = self.state();
        state.latest = Some(Arc::clone(selectors));
        state.failing = None;
        state.publishers.retain(|_, publisher| !publisher.is_closed());
        for (service, publisher) in &state.publishers {
            publisher.report(selectors.upstreams_of(service));
        }
        // The next to watch starts another task: decided under the lock.
        if state.publishers.is_empty() {
            state.task = None;
        }
        !state.publishers.is_empty()
    }

    /// No admin is there; gives whether anyone listens still.
    fn fail(&self, cause: String) -> bool {
        let mut state = self.state();
        state.publishers.retain(|_, publisher| !publisher.is_closed());
        for publisher in state.publishers.values() {
            publisher.fail(self.failed(&cause));
        }
        state.failing = Some(cause);
        if state.publishers.is_empty() {
            state.task = None;
        }
        !state.publishers.is_empty()
    }
}

impl Drop for AdminDiscover {
    fn drop(&mut self) {
        if let Some(task) = self.inner.state().task.take() {
            task.abort();
        }
    }
}

impl fmt::Debug for AdminDiscover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner.state();
        f.debug_struct("AdminDiscover")
            .field("admins", &self.inner.admins.iter().map(AdminApi::name).collect::<Vec<_>>())
            .field("services", &state.publishers.keys().collect::<Vec<_>>())
            .field("failing", &state.failing)
            .finish()
    }
}

#[cfg(test)]
mod tests;
