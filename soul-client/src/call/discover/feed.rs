//! The way of a list from a source to the writer of a service.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};

use super::{BoxFuture, Discover, DiscoverError, Listed};
use crate::balance::Upstream;

/// What a source says of one service: a state and not a row of messages, so that nothing is lost however many changes come
/// between two looks.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Listing {
    /// The newest list; `None` before the first.
    pub upstreams: Option<Arc<[Upstream]>>,
    /// How many lists there were; a confirmed list is no new one.
    pub revision: u64,
    /// How often the source said or confirmed a list.
    pub answers: u64,
    /// When it did so last.
    pub confirmed: Option<Instant>,
    /// How often it failed since.
    pub failures: u64,
    /// Why it failed the last time.
    pub error: Option<Arc<DiscoverError>>,
}

impl Listing {
    /// Time since the source last said or confirmed the list.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        self.confirmed.map(|at| at.elapsed())
    }
}

/// A new way for the lists of one service: what a source gives from [`Discover::watch`], or, since a [`Feed`] is itself a source, what a
/// program pushes its own lists by.
///
/// # Examples
/// ```
/// use soul_client::balance::Upstream;
/// use soul_client::call::discover::{DiscoverError, feed};
///
/// let (publisher, feed) = feed();
/// publisher.publish(vec![Upstream::new("10.0.0.2:8188")]);
/// publisher.fail(DiscoverError::new("ask the registry"));
/// let listing = feed.now();
/// assert_eq!(listing.upstreams.map(|list| list.len()), Some(1));
/// assert_eq!(listing.failures, 1);
///
/// let orders = soul_client::call::Membership::builder("orders").source(feed);
/// # let _ = orders;
/// ```
#[must_use]
pub fn feed() -> (Publisher, Feed) {
    let (sender, receiver) = watch::channel(Listing::default());
    (Publisher(sender), Feed(receiver))
}

/// The source's end.
#[derive(Clone, Debug)]
pub struct Publisher(watch::Sender<Listing>);

impl Publisher {
    /// Says the list, new or not.
    pub fn publish(&self, upstreams: Vec<Upstream>) {
        self.0.send_modify(|listing| {
            if listing.upstreams.as_deref() != Some(&upstreams) {
                listing.upstreams = Some(upstreams.into());
                listing.revision += 1;
            }
            listing.confirm();
        });
    }

    /// Says that the list is still right; nothing, if there was none.
    pub fn confirm(&self) {
        self.0.send_modify(|listing| {
            if listing.upstreams.is_some() {
                listing.confirm();
            }
        });
    }

    /// Says that the list is not known at the moment; the last one is kept.
    pub fn fail(&self, error: DiscoverError) {
        self.0.send_modify(|listing| {
            listing.failures = listing.failures.saturating_add(1);
            listing.error = Some(Arc::new(error));
        });
    }

    /// Says what came of asking.
    pub fn report(&self, listed: Listed) {
        match listed {
            Ok(upstreams) => self.publish(upstreams),
            Err(error) => self.fail(error),
        }
    }

    /// Whether nobody listens any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Returns when nobody listens any more.
    pub async fn closed(&self) {
        self.0.closed().await;
    }

    /// What was said last.
    #[must_use]
    pub fn now(&self) -> Listing {
        self.0.borrow().clone()
    }

    /// Another listener.
    #[must_use]
    pub fn subscribe(&self) -> Feed {
        Feed(self.0.subscribe())
    }
}

impl Listing {
    fn confirm(&mut self) {
        self.answers += 1;
        self.confirmed = Some(Instant::now());
        self.failures = 0;
        self.error = None;
    }
}

/// The listener's end.
#[derive(Clone, Debug)]
pub struct Feed(watch::Receiver<Listing>);

impl Feed {
    /// What the source says now.
    #[must_use]
    pub fn now(&self) -> Listing {
        self.0.borrow().clone()
    }

    /// What the source says now, which is no news from then on.
    #[must_use]
    pub fn take(&mut self) -> Listing {
        self.0.borrow_and_update().clone()
    }

    /// Returns when the source said anything since the last [`take`](Self::take); `false` if it ended.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// The same lists for every service.
impl Discover for Feed {
    fn fetch<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
        let list = self.now().upstreams.map(|list| list.to_vec());
        let unknown =
            || DiscoverError::new(format!("look for `{service}`: the program has not pushed a list yet"));
        Box::pin(std::future::ready(list.ok_or_else(unknown)))
    }

    fn watch(&self, _: &str) -> Option<Feed> {
        Some(self.clone())
    }

    fn describe(&self) -> String {
        "what the program pushes".to_owned()
    }
}
