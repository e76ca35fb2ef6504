//! The one task that writes the balancer of a service.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::{Published, Shared, observe::Observer};
use crate::{
    balance::{Health, Upstream},
    call::{
        Filter, MemberEvent, MemberListener,
        discover::{Feed, Listing},
        filter::{FilterContext, FilterRun},
        guard::{guarded_blocking, guarded_call},
        probe::{Check, HealthCheck, Probers, Probing, Subscription},
    },
};

/// Changes that come sooner than this after the last publication wait and are published together.
const COALESCE: Duration = Duration::from_millis(100);

/// How often ejections and the like are looked at, which nobody announces.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Lists from this length on are built on a thread for long computations.
const LONG: usize = 1_000;

/// What the task is given.
pub(super) struct Parts {
    pub(super) shared: Arc<Shared>,
    pub(super) feed: Feed,
    pub(super) filters: Vec<Arc<dyn Filter>>,
    pub(super) listeners: Vec<Arc<dyn MemberListener>>,
    pub(super) probing: Probing,
    pub(super) probers: Arc<Probers>,
    pub(super) publish: watch::Sender<Published>,
}

/// The state of the task.
pub(super) struct Writer {
    parts: Parts,
    /// What is asked of the listed, if anything.
    check: Option<Arc<dyn HealthCheck>>,
    /// What the source said when it was last looked at.
    listing: Listing,
    /// Why the filters are to be run.
    due: Option<FilterRun>,
    /// What the filters left, in canonical order.
    listed: Vec<Upstream>,
    /// By address.
    subscriptions: HashMap<Arc<str>, Subscription>,
    /// What is known of each listed address.
    found: HashMap<Arc<str>, Health>,
    /// Addresses that have passed a check since they were listed.
    passed: HashSet<Arc<str>>,
    disabled: BTreeSet<String>,
    observer: Observer,
    /// How often in a row a policy panicked.
    unready: u64,
}

/// What the owner wanted.
struct Wished {
    /// The list is another one by it.
    is_other: bool,
    /// Somebody's health was set.
    is_marked: bool,
}

impl Writer {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            observer: Observer::new(parts.shared.balancer.snapshot()),
            check: parts.probing.active(),
            parts,
            listing: Listing::default(),
            due: None,
            listed: Vec::new(),
            subscriptions: HashMap::new(),
            found: HashMap::new(),
            passed: HashSet::new(),
            disabled: BTreeSet::new(),
            unready: 0,
        }
    }

    /// Writes until it is dropped.
    pub(super) async fn run(mut self) {
        let wake = Arc::clone(&self.parts.shared.wake);
        let mut source_lives = true;
        loop {
            let published = self.turn().await;
            let not_before = Instant::now() + COALESCE;
            tokio::select! {
                heard = self.parts.feed.changed(), if source_lives => source_lives = heard,
                () = wake.notified() => {}
                () = sleep(LOOK_EVERY) => {}
            }
            if published {
                sleep_until(not_before).await;
            }
        }
    }

    /// Takes everything as it is now and publishes it; gives whether there was anything to publish.
    async fn turn(&mut self) -> bool {
        let mut events = self.take_listing();
        let Wished { mut is_other, is_marked } = self.take_wishes();
        if let Some(run) = self.due.take() {
            self.filter(run);
            is_other = true;
        }
        let turned = self.take_findings();
        is_other |= self.first_check_counts() && !turned.is_empty();
        // Before there is a list, nothing is known of it, not even that it is empty.
        is_other &= self.listing.upstreams.is_some();
        let is_news = is_other || !turned.is_empty();
        let list = is_other.then(|| self.list());
        // A first answer changes no choice, and therefore no snapshot.
        let health_was_set = is_marked || !turned.is_empty();
        self.write(list, turned).await;

        let seen = self.observer.look(self.parts.shared.balancer.snapshot(), health_was_set);
        if seen.iter().any(|event| !matches!(event, MemberEvent::ListChanged { .. })) {
            self.health_changed();
        }
        events.extend(seen);
        let is_news = is_news || !events.is_empty();
        self.tell(&events);
        self.tell_progress();
        is_news
    }

    /// What the source says now, and what that means for those who listen.
    fn take_listing(&mut self) -> Vec<MemberEvent> {
        let before = std::mem::replace(&mut self.listing, self.parts.feed.take());
        let now = &self.listing;
        if now.answers != before.answers {
            self.due = Some(FilterRun::List);
        }
        let (service, source) = (&*self.parts.shared.service, &*self.parts.shared.source);
        let mut events = Vec::new();
        let was_failing = before.failures > 0;
        // It may have recovered and failed again since the last look.
        if was_failing && now.answers != before.answers {
            tracing::info!(service, source, failures = before.failures, "the upstreams are known again");
            events.push(MemberEvent::SourceRecovered { failures: before.failures });
        }
        if let Some(error) = now.error.as_ref().filter(|_| !was_failing || !events.is_empty()) {
            let error = error.chain();
            let kept = now.upstreams.is_some();
            tracing::warn!(service, source, error, kept, "the upstreams are not known at the moment");
            events.push(MemberEvent::SourceFailed { error });
        }
        events
    }

    /// Takes what the owner wants.
    fn take_wishes(&mut self) -> Wished {
        let mut wishes = self.parts.shared.wishes();
        let marked = std::mem::take(&mut wishes.marked);
        let changed = std::mem::take(&mut wishes.changed);
        if changed {
            self.disabled.clone_from(&wishes.disabled);
        }
        drop(wishes);
        for address in &marked {
            if let Some(subscription) = self.subscriptions.get(&**address) {
                subscription.tell_again();
            }
        }
        Wished { is_other: changed, is_marked: !marked.is_empty() }
    }

    /// Runs the filters, and has probed who is left.
    fn filter(&mut self, run: FilterRun) {
        let shared = &self.parts.shared;
        let Some(listed) = &self.listing.upstreams else { return };
        let snapshot = shared.balancer.snapshot();
        let context = FilterContext {
            service: &shared.service,
            snapshot: &snapshot,
            now_ms: shared.clock.now_ms(),
            run,
        };
        let mut list = listed.to_vec();
        for filter in &self.parts.filters {
            let before = list.clone();
            list = guarded_call(|| filter.filter(list, &context)).unwrap_or_else(|panicked| {
                tracing::error!(service = &*shared.service, %panicked, "a filter failed and is passed over");
                before
            });
        }
        self.listed = canonical(list);
        self.subscribe();
    }

    /// Sees to it that exactly the listed addresses are probed.
    fn subscribe(&mut self) {
        let listed: HashMap<Arc<str>, &Upstream> =
            self.listed.iter().map(|upstream| (Arc::from(upstream.address()), upstream)).collect();
        self.subscriptions.retain(|address, _| listed.contains_key(address));
        self.found.retain(|address, _| listed.contains_key(address));
        self.passed.retain(|address| listed.contains_key(address));
        let Some(check) = &self.check else { return };
        for (address, upstream) in listed {
            let Parts { probers, probing, shared, .. } = &self.parts;
            let probed = || probers.subscribe(upstream, check, probing, &shared.findings);
            self.subscriptions.entry(address).or_insert_with(probed);
        }
    }

    /// What probes, or the source in their place, found since the last look.
    fn take_findings(&mut self) -> Vec<(Arc<str>, Health)> {
        let mut findings = self.parts.shared.findings.take();
        if matches!(self.parts.probing.check, Check::RegistryStatus) {
            let health = |upstream: &Upstream| if upstream.status() { Health::Up } else { Health::Down };
            findings = self.listed.iter().map(|u| (Arc::from(u.address()), health(u))).collect();
            findings.retain(|address, health| self.found.get(address) != Some(health));
        } else {
            // What was found of an address that is no longer listed.
            findings.retain(|address, _| self.subscriptions.contains_key(address));
        }
        for (address, health) in &findings {
            self.found.insert(Arc::clone(address), *health);
            if *health == Health::Up {
                self.passed.insert(Arc::clone(address));
            }
        }
        findings.into_iter().collect()
    }

    /// The list to publish: who takes no traffic for now is switched off in it.
    fn list(&self) -> Vec<Upstream> {
        let is_off = |upstream: &Upstream| {
            self.disabled.contains(upstream.address())
                || (self.first_check_counts() && !self.passed.contains(upstream.address()))
        };
        let list = self.listed.iter().cloned();
        list.map(|upstream| if is_off(&upstream) { upstream.with_status(false) } else { upstream }).collect()
    }

    fn first_check_counts(&self) -> bool {
        self.parts.probing.require_first_check && self.check.is_some()
    }

    /// Publishes a list, what was found, and what changed by itself.
    async fn write(&mut self, list: Option<Vec<Upstream>>, turned: Vec<(Arc<str>, Health)>) {
        let shared = &self.parts.shared;
        let (balancer, clock) = (Arc::clone(&shared.balancer), shared.clock);
        let writes = Arc::clone(shared);
        let is_quiet = list.is_none() && turned.is_empty() && !balancer.current().is_due(clock.now_ms());
        let is_long = self.listed.len().max(balancer.current().all().len()) >= LONG;
        let work = move || {
            writes.turn.write(list.is_some(), || {
                if let Some(list) = list {
                    balancer.update(list, clock.now_ms());
                }
                balancer.set_healths(turned, clock.now_ms());
                balancer.refresh(clock.now_ms());
            });
        };
        let done = if is_long && !is_quiet { guarded_blocking(work).await } else { guarded_call(work) };
        let service = &*shared.service;
        match done {
            Ok(()) if self.unready > 0 => {
                tracing::info!(service, failures = self.unready, "lists can be made ready again");
                self.unready = 0;
            }
            Ok(()) => {}
            Err(panicked) => {
                if self.unready == 0 {
                    tracing::error!(service, %panicked, "a list could not be made ready, the last one serves");
                }
                self.unready += 1;
            }
        }
    }

    fn health_changed(&mut self) {
        if self.parts.filters.iter().any(|filter| filter.heeds_health()) {
            self.due = Some(FilterRun::Health);
            self.parts.shared.wake.notify_one();
        }
    }

    fn tell(&self, events: &[MemberEvent]) {
        let service = &*self.parts.shared.service;
        for (event, listener) in events.iter().flat_map(|e| self.parts.listeners.iter().map(move |l| (e, l)))
        {
            if let Err(panicked) = guarded_call(|| listener.on_event(service, event)) {
                tracing::error!(service, %panicked, "a listener failed");
            }
        }
    }

    fn tell_progress(&self) {
        let listed = self.listing.upstreams.is_some();
        let usable = !self.first_check_counts() || self.listed.is_empty() || !self.passed.is_empty();
        let progress = Published { listed, usable };
        self.parts.publish.send_if_modified(|published| {
            let is_other = *published != progress;
            *published = progress;
            is_other
        });
    }
}

/// In an order that does not depend on the source's, and nobody twice: who answers in another order has said nothing new.
fn canonical(mut list: Vec<Upstream>) -> Vec<Upstream> {
    list.sort_by(|a, b| a.base_url().cmp(b.base_url()));
    list.dedup_by(|a, b| a.base_url() == b.base_url());
    list
}
