//! The snapshots of one service, one after the other.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    context::{FastRandom, PickContext},
    current::Current,
    health::Health,
    pick::Pick,
    snapshot::{Settings, Snapshot},
    upstream::Upstream,
};

/// Chooses upstreams of one service, while its list, its health and its settings change.
///
/// Requests read the newest [`Snapshot`] without a lock. Whoever owns this tells it of new lists, of what probes find, and
/// calls [`Balancer::refresh`] now and then: every 100 ms is plenty, and it does nothing while nothing has changed. Health counts at
/// once, even before a refresh; a refresh makes choices even and quick again.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use soul_client::balance::{Balancer, Outcome, PickContext, Settings, Upstream};
///
/// let now_ms = 1_612_500_000_000;
/// let list = vec![Upstream::new("10.0.0.2:8188"), Upstream::new("10.0.0.3:8188")];
/// let balancer = Balancer::new(list, Settings::default(), now_ms);
///
/// let pick = balancer.choose(&PickContext::at(now_ms)).ok_or("no upstream")?;
/// // … the request goes to `pick.upstream().base_url()` …
/// pick.complete(Outcome::Success, Duration::from_millis(7), now_ms + 7);
/// # Ok::<(), &str>(())
/// ```
#[doc(alias = "ILoadBalancer")]
#[derive(Debug)]
pub struct Balancer {
    current: Current,
    /// Held while the next snapshot is built, so that none is built from one that is no longer the newest.
    writer: Mutex<()>,
}

impl Balancer {
    /// Begins with a list, which may be empty.
    #[must_use]
    pub fn new(upstreams: Vec<Upstream>, settings: Settings, now_ms: i64) -> Self {
        Self::beginning_with(Snapshot::new(upstreams, settings, now_ms, &FastRandom))
    }

    pub(super) fn beginning_with(first: Arc<Snapshot>) -> Self {
        Self { current: Current::new(first), writer: Mutex::new(()) }
    }

    /// Chooses an upstream for a request and counts the request in. Says `None` where [`Snapshot::choose`] does.
    #[must_use]
    #[inline]
    pub fn choose(&self, context: &PickContext<'_>) -> Option<Pick> {
        self.current.with(|snapshot| snapshot.choose(context))
    }

    /// Looks at the newest snapshot: the quickest way. A thread keeps what it saw until it looks again or ends.
    #[inline]
    pub fn with<R>(&self, look: impl FnOnce(&Arc<Snapshot>) -> R) -> R {
        self.current.with(look)
    }

    /// The newest snapshot, borrowed: quicker than [`Balancer::snapshot`], and not to be kept for long.
    #[must_use]
    #[inline]
    pub fn current(&self) -> impl Deref<Target = Arc<Snapshot>> {
        self.current.load()
    }

    /// The newest snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Replaces the list. Nothing changes if it is equal.
    ///
    /// Tables for keys are built here: some 100 ms for ten thousand upstreams, so not on the path of a request.
    pub fn update(&self, upstreams: Vec<Upstream>, now_ms: i64) -> Arc<Snapshot> {
        self.publish(|current| current.with_upstreams(upstreams, now_ms, &FastRandom))
    }

    /// Replaces the settings.
    pub fn set_settings(&self, settings: Settings, now_ms: i64) -> Arc<Snapshot> {
        self.publish(|current| current.with_settings(settings, now_ms, &FastRandom))
    }

    /// Brings the snapshot up to date with health, ejections and the numbers that the policy wants.
    pub fn refresh(&self, now_ms: i64) -> Arc<Snapshot> {
        let current = self.current.load();
        current.sweep(now_ms);
        if current.is_due(now_ms) {
            drop(current);
            return self.publish(|current| current.refreshed(now_ms, &FastRandom));
        }
        Arc::clone(&current)
    }

    /// Notes what a probe found of all upstreams at an address, `host:port`. One found alive again is no longer ejected and
    /// begins with a slow start, if there is one. Gives whether anything changed.
    #[doc(alias = "markServerDown")]
    pub fn set_health(&self, address: &str, health: Health, now_ms: i64) -> bool {
        self.set_healths([(address, health)], now_ms) > 0
    }

    /// The same for many addresses, and one refresh for all of them: when a thousand go down at once, the snapshot is built anew
    /// once. Gives how many upstreams changed.
    pub fn set_healths<A: AsRef<str>>(
        &self,
        found: impl IntoIterator<Item = (A, Health)>,
        now_ms: i64,
    ) -> usize {
        let snapshot = self.snapshot();
        let mut changed = 0;
        for (address, health) in found {
            for member in snapshot.all_at(address.as_ref()) {
                changed += usize::from(member.probed(health, now_ms) != health);
            }
        }
        if changed > 0 {
            self.refresh(now_ms);
        }
        changed
    }

    fn publish(&self, next: impl FnOnce(&Arc<Snapshot>) -> Arc<Snapshot>) -> Arc<Snapshot> {
        let _writer: MutexGuard<'_, ()> = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load_full();
        let next = next(&current);
        if !Arc::ptr_eq(&current, &next) {
            self.current.store(Arc::clone(&next));
        }
        next
    }
}
