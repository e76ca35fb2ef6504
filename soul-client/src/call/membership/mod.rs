//! The upstreams of one service, kept up to date by one task.

mod builder;
mod observe;
mod turns;
mod writer;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::timeout,
};

pub use builder::MembershipBuilder;
pub(super) use turns::Turns;

use super::{Clock, Discover, MembershipStatus, discover::Feed, probe::Findings};
use crate::{
    balance::{Balancer, Health},
    error::{Error, Kind},
};

/// The upstreams of one service: found, filtered, probed, and published in a [`Balancer`].
///
/// One task writes: it takes lists from the source, findings from the probes and wishes from here, and publishes the first change at once
/// and then at most every 100 ms. What it takes are states, so however changes fall together, the last one is published. A list is
/// kept while its source fails; health and statistics of an upstream are kept while it is listed, and one that leaves and comes back is
/// new. The task and its probes end when this is dropped.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use soul_client::balance::PickContext;
/// use soul_client::call::{Membership, discover::StaticList};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let orders = Membership::builder("orders")
///     .source(StaticList::new().with("orders", ["10.0.0.2:8188", "10.0.0.3:8188"]))
///     .spawn()?;
/// orders.ready(Duration::from_secs(5)).await?;
///
/// let now_ms = orders.clock().now_ms();
/// let pick = orders.balancer().choose(&PickContext::at(now_ms)).ok_or("no upstream")?;
/// println!("goes to {}", pick.upstream().base_url());
/// assert_eq!(orders.status().all, 2);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "DynamicServerListLoadBalancer")]
pub struct Membership {
    shared: Arc<Shared>,
    feed: Feed,
    published: watch::Receiver<Published>,
    tasks: Vec<AbortHandle>,
    /// One that pushes does so as long as it lives.
    _source: Arc<dyn Discover>,
}

/// What the writer and its owner share.
struct Shared {
    service: Arc<str>,
    source: String,
    clock: Clock,
    balancer: Arc<Balancer>,
    findings: Arc<Findings>,
    wishes: Mutex<Wishes>,
    /// Wakes the writer.
    wake: Arc<Notify>,
    /// Wakes the poller.
    ask: Arc<Notify>,
    /// Whether it is still this one who may write.
    turn: turns::Turn,
}

/// What the owner wants.
#[derive(Default)]
struct Wishes {
    /// Addresses that take no traffic.
    disabled: BTreeSet<String>,
    /// Whether `disabled` changed since the writer looked.
    changed: bool,
    /// Addresses whose health was set by hand.
    marked: BTreeSet<String>,
}

/// How far the writer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Published {
    /// Whether there is a list.
    listed: bool,
    /// Whether someone may be called; or nobody ever could with this list.
    usable: bool,
}

impl Membership {
    /// Prepares the upstreams of a service; nothing happens before [`MembershipBuilder::spawn`].
    pub fn builder(service: impl Into<Arc<str>>) -> MembershipBuilder {
        MembershipBuilder::new(service.into())
    }

    /// Name of the service.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.shared.service
    }

    /// What chooses among them.
    #[must_use]
    pub fn balancer(&self) -> &Arc<Balancer> {
        &self.shared.balancer
    }

    /// The clock that everyone who uses the balancer has to use.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// How they are doing now.
    #[must_use]
    pub fn status(&self) -> MembershipStatus {
        let listing = self.feed.now();
        let snapshot = self.shared.balancer.snapshot();
        let now_ms = self.shared.clock.now_ms();
        MembershipStatus {
            service: self.shared.service.to_string(),
            source: self.shared.source.clone(),
            all: snapshot.all().len(),
            up: snapshot.up().len(),
            ejected: snapshot.all().iter().filter(|m| m.state().ejected_until_ms() > Some(now_ms)).count(),
            panic: snapshot.is_panic(),
            generation: snapshot.generation(),
            age: listing.age(),
            missed_cycles: listing.failures,
            last_error: listing.error.map(|error| error.chain()),
        }
    }

    /// Returns once there is a list and, if a first check is required, somebody has passed it or the list is empty.
    ///
    /// # Errors
    /// When it takes longer than `within` ([`Error::is_timeout`]); the source's own error is the cause.
    pub async fn ready(&self, within: Duration) -> Result<(), Error> {
        let mut published = self.published.clone();
        let waited =
            timeout(within, published.wait_for(|published| published.listed && published.usable)).await;
        if matches!(waited, Ok(Ok(_))) {
            return Ok(());
        }
        let what = if self.published.borrow().listed { "a checked upstream" } else { "a list" };
        let subject = format!(
            "find the upstreams of `{}` by {}: there was not {what} within {} s",
            self.shared.service,
            self.shared.source,
            within.as_secs_f64()
        );
        let error = Error::new(Kind::Timeout, subject);
        Err(match self.feed.now().error {
            Some(cause) => error.with_source(cause),
            None => error,
        })
    }

    /// Returns once the source has said that it does not know the service, while there is no list.
    pub(super) async fn unknown(&self) {
        let mut feed = self.feed.clone();
        loop {
            let listing = feed.take();
            let is_unknown = listing.error.is_some_and(|error| error.is_unknown_service());
            if is_unknown && listing.upstreams.is_none() {
                return;
            }
            if !feed.changed().await {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Ends its tasks: another one has taken its place, and this may live on for as long as somebody holds it.
    pub(super) fn retire(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }

    /// Asks a polled source now. A source that pushes is not asked.
    pub fn refresh_now(&self) {
        self.shared.ask.notify_one();
    }

    /// Takes an upstream, `host:port`, to be down, until a check finds otherwise; gives whether that is news.
    #[doc(alias = "markServerDown")]
    pub fn mark_down(&self, address: &str) -> bool {
        self.mark(address, Health::Down)
    }

    /// Takes an upstream, `host:port`, to be up, until a check finds otherwise; gives whether that is news.
    pub fn mark_up(&self, address: &str) -> bool {
        self.mark(address, Health::Up)
    }

    fn mark(&self, address: &str, health: Health) -> bool {
        let news = self.shared.balancer.set_health(address, health, self.shared.clock.now_ms());
        self.shared.wishes().marked.insert(address.to_owned());
        self.shared.wake.notify_one();
        news
    }

    /// Gives an upstream, `host:port`, no traffic, whatever its checks and its source say, until it is [enabled](Self::enable). Requests
    /// under way are finished. Takes effect within 100 ms.
    pub fn disable(&self, address: impl Into<String>) {
        let mut wishes = self.shared.wishes();
        wishes.changed |= wishes.disabled.insert(address.into());
        drop(wishes);
        self.shared.wake.notify_one();
    }

    /// Undoes [`Membership::disable`].
    pub fn enable(&self, address: &str) {
        let mut wishes = self.shared.wishes();
        wishes.changed |= wishes.disabled.remove(address);
        drop(wishes);
        self.shared.wake.notify_one();
    }
}

impl Shared {
    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.retire();
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership").field("status", &self.status()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
