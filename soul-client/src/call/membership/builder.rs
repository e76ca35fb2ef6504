//! What a membership is made of.

use std::{fmt, sync::Arc};

use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
};

use super::{
    Membership, Published, Shared, Turns, Wishes,
    writer::{Parts, Writer},
};
use crate::{
    balance::{Balancer, Settings},
    call::{
        Clock, Discover, Filter, MemberListener, Refresh,
        discover::{StaticList, feed, poll},
        probe::{Findings, Probers, Probing},
    },
    error::{Error, Kind},
};

/// Prepares a [`Membership`].
///
/// Unless set: the source is an empty list, the defaults of [`Refresh`], [`Settings`] and [`Probing`], no filter, no listener, and probes
/// shared with nobody.
#[must_use = "a builder does nothing until `spawn`"]
pub struct MembershipBuilder {
    service: Arc<str>,
    source: Arc<dyn Discover>,
    refresh: Refresh,
    filters: Vec<Arc<dyn Filter>>,
    balancer: Option<Arc<Balancer>>,
    turns: Turns,
    settings: Settings,
    probing: Probing,
    probers: Option<Arc<Probers>>,
    listeners: Vec<Arc<dyn MemberListener>>,
    clock: Option<Clock>,
}

impl MembershipBuilder {
    pub(super) fn new(service: Arc<str>) -> Self {
        Self {
            service,
            source: Arc::new(StaticList::new()),
            refresh: Refresh::default(),
            filters: Vec::new(),
            balancer: None,
            turns: Turns::default(),
            settings: Settings::default(),
            probing: Probing::default(),
            probers: None,
            listeners: Vec::new(),
            clock: None,
        }
    }

    /// Sets where the list comes from. An `Arc<dyn Discover>` is a source too.
    pub fn source(self, source: impl Discover) -> Self {
        Self { source: Arc::new(source), ..self }
    }

    /// Sets how the list is kept new.
    pub fn refresh(self, refresh: Refresh) -> Self {
        Self { refresh, ..self }
    }

    /// Adds a filter, which sees what those before it left.
    pub fn filter(self, filter: impl Filter) -> Self {
        self.shared_filter(Arc::new(filter))
    }

    /// Adds a filter that others may use as well.
    pub fn shared_filter(mut self, filter: Arc<dyn Filter>) -> Self {
        self.filters.push(filter);
        self
    }

    /// Sets how upstreams are chosen.
    pub fn settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// Publishes in this balancer, whose settings then count, instead of a new one.
    pub fn balancer(self, balancer: Arc<Balancer>) -> Self {
        Self { balancer: Some(balancer), ..self }
    }

    /// Writes the balancer after others that did so.
    pub(in crate::call) fn turns(self, turns: Turns) -> Self {
        Self { turns, ..self }
    }

    /// Sets how upstreams are checked.
    pub fn probing(self, probing: Probing) -> Self {
        Self { probing, ..self }
    }

    /// Shares probes with other services.
    pub fn probers(self, probers: Arc<Probers>) -> Self {
        Self { probers: Some(probers), ..self }
    }

    /// Adds a listener.
    pub fn listener(self, listener: impl MemberListener) -> Self {
        self.shared_listener(Arc::new(listener))
    }

    /// Adds a listener that hears of other services as well.
    pub fn shared_listener(mut self, listener: Arc<dyn MemberListener>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Shares a clock.
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Starts.
    ///
    /// # Errors
    /// Outside of a Tokio runtime.
    pub fn spawn(self) -> Result<Membership, Error> {
        let runtime = Handle::try_current().map_err(|error| {
            let subject = format!("find the upstreams of `{}` outside of a Tokio runtime", self.service);
            Error::new(Kind::Config, subject).with_source(error)
        })?;
        let clock = self.clock.unwrap_or_default();
        let settings = self.settings;
        let balancer =
            self.balancer.unwrap_or_else(|| Arc::new(Balancer::new(Vec::new(), settings, clock.now_ms())));
        let wake = Arc::new(Notify::new());
        let shared = Arc::new(Shared {
            source: self.source.describe(),
            clock,
            balancer,
            findings: Arc::new(Findings::new(Arc::clone(&wake))),
            wishes: std::sync::Mutex::new(Wishes::default()),
            wake,
            ask: Arc::new(Notify::new()),
            turn: self.turns.next(),
            service: Arc::clone(&self.service),
        });
        let mut tasks = Vec::new();
        let pushed = match self.refresh {
            Refresh::Watch => self.source.watch(&self.service),
            Refresh::Polling { .. } => None,
        };
        let feed = pushed.unwrap_or_else(|| {
            let (publisher, feed) = feed();
            let polling = poll(
                Arc::clone(&self.source),
                self.service,
                self.refresh,
                publisher,
                Arc::clone(&shared.ask),
            );
            tasks.push(runtime.spawn(polling).abort_handle());
            feed
        });
        let (publish, published) = watch::channel(Published::default());
        let writer = Writer::new(Parts {
            shared: Arc::clone(&shared),
            feed: feed.clone(),
            filters: self.filters,
            listeners: self.listeners,
            probing: self.probing,
            probers: self.probers.unwrap_or_default(),
            publish,
        });
        tasks.push(runtime.spawn(writer.run()).abort_handle());
        Ok(Membership { shared, feed, published, tasks, _source: self.source })
    }
}

impl fmt::Debug for MembershipBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MembershipBuilder")
            .field("service", &self.service)
            .field("source", &self.source.describe())
            .field("refresh", &self.refresh)
            .field("filters", &self.filters.len())
            .field("probing", &self.probing)
            .finish_non_exhaustive()
    }
}
