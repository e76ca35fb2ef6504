//! One service as its callers see it: its list, balancer, budget and settings, apart from those of every other service.

use std::{
    collections::BTreeSet,
    error::Error as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use super::{
    CallError, CallErrorKind, Clock, Discover, DiscoverError, MemberListener, Membership, Situation,
    budget::Budget,
    config::{Effective, ListSource, ServiceConfig},
    discover::StaticList,
    execute::CallOptions,
    filter::filter_fn,
    listen::Listeners,
    over_reqwest::Clients,
    prime::Priming,
    probe::Probers,
};
use crate::balance::{Balancer, Upstream};

/// What all services of a factory share.
pub(super) struct Common {
    pub(super) registry: Option<Arc<dyn Discover>>,
    pub(super) clients: Clients,
    pub(super) probers: Arc<Probers>,
    pub(super) listeners: Listeners,
    pub(super) member_listeners: Vec<Arc<dyn MemberListener>>,
}

/// Settings that the list of a service is made by: another value makes another membership.
const OF_THE_LIST: &[&str] = &[
    "discover",
    "servers",
    "list_source",
    "refresh",
    "filters",
    "secure",
    "probe",
    "prime",
    "prime_uri",
    "prime_attempts",
    "prime_time",
    "prime_ratio",
];

/// Settings that the balancer has: another value makes another picker, over the same upstreams with all that is known of them.
const OF_THE_BALANCER: &[&str] = &["policy", "panic_threshold", "outliers", "slow_start", "tried_again"];

/// What all calls share: another value makes another budget.
const OF_THE_BUDGET: &[&str] = &["budget"];

/// One service. Nothing in it is shared with another, but for what shares nothing of their state: connections, by address, and
/// probes, by address.
pub(super) struct Context {
    name: Arc<str>,
    clock: Clock,
    /// Outlives every change of settings, and so does what is known of the upstreams.
    balancer: Arc<Balancer>,
    state: ArcSwap<State>,
    /// Held while settings are changed.
    writer: Mutex<()>,
    common: Arc<Common>,
}

/// What changes with the settings, as one.
pub(super) struct State {
    said: ServiceConfig,
    settings: Arc<Effective>,
    membership: Arc<Membership>,
    /// Whether the first list was there; then nobody asks again.
    listed: AtomicBool,
    budget: Option<Arc<Budget>>,
}

impl Context {
    pub(super) fn new(name: &str, said: ServiceConfig, common: Arc<Common>) -> Result<Self, CallError> {
        let clock = Clock::start();
        let settings = Arc::new(said.effective());
        let balancer = Arc::new(Balancer::new(Vec::new(), settings.balance(), clock.now_ms()));
        let membership = Arc::new(membership(name, &settings, &balancer, clock, &common)?);
        let budget = settings.budget.map(|budget| Arc::new(Budget::new(budget)));
        let state = State { said, settings, membership, listed: AtomicBool::new(false), budget };
        let (name, state) = (name.into(), ArcSwap::from_pointee(state));
        Ok(Self { name, clock, balancer, state, writer: Mutex::default(), common })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    pub(super) fn balancer(&self) -> &Arc<Balancer> {
        &self.balancer
    }

    pub(super) fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    pub(super) fn listeners(&self) -> &Listeners {
        &self.common.listeners
    }

    pub(super) fn clients(&self) -> &Clients {
        &self.common.clients
    }

    /// Replaces the settings; only what they change is made anew. Gives the names of those that are different.
    pub(super) fn replace(&self, said: ServiceConfig) -> Result<Vec<&'static str>, CallError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.state();
        let settings = Arc::new(said.effective());
        let changed = now.settings.differences(&settings);
        let touches = |names: &[&str]| changed.iter().any(|name| names.contains(name));
        let (membership, listed) = if touches(OF_THE_LIST) {
            let membership = membership(&self.name, &settings, &self.balancer, self.clock, &self.common)?;
            // Until the new source has spoken the list of the old one serves.
            (Arc::new(membership), now.listed.load(Relaxed))
        } else {
            (Arc::clone(&now.membership), now.listed.load(Relaxed))
        };
        if touches(OF_THE_BALANCER) {
            self.balancer.set_settings(settings.balance(), self.now_ms());
        }
        let budget = if touches(OF_THE_BUDGET) {
            settings.budget.map(|budget| Arc::new(Budget::new(budget)))
        } else {
            now.budget.clone()
        };
        let listed = AtomicBool::new(listed);
        self.state.store(Arc::new(State { said, settings, membership, listed, budget }));
        Ok(changed)
    }
}

impl State {
    /// The settings of one call.
    pub(super) fn settings(&self, service: &str, options: &CallOptions) -> Result<Arc<Effective>, CallError> {
        let said = options.overrides.said();
        if said.is_empty() {
            return Ok(Arc::clone(&self.settings));
        }
        let shared: BTreeSet<_> =
            [OF_THE_LIST, OF_THE_BALANCER, OF_THE_BUDGET].into_iter().flatten().copied().collect();
        if let Some(name) = said.iter().find(|name| shared.contains(*name)) {
            let detail = format!("`{name}` holds for a whole service and cannot be said for one call");
            return Err(CallError::new(CallErrorKind::Config, service).with_detail(detail));
        }
        Ok(Arc::new(options.overrides.over(&self.said).effective()))
    }

    pub(super) fn effective(&self) -> &Arc<Effective> {
        &self.settings
    }

    pub(super) fn membership(&self) -> &Arc<Membership> {
        &self.membership
    }

    pub(super) fn budget(&self) -> Option<&Budget> {
        self.budget.as_deref()
    }

    /// Returns when there is a list, at once from the second call on. The first is waited for as long as for an answer, or as
    /// priming may take.
    pub(super) async fn ready(&self, context: &Context, deadline: Instant) -> Result<(), CallError> {
        if self.listed.load(Relaxed) {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let mut within = self.settings.read_timeout;
        if self.settings.prime {
            within = within.max(self.settings.prime_time);
        }
        match self.membership.ready(within.min(left)).await {
            Ok(()) => {
                self.listed.store(true, Relaxed);
                Ok(())
            }
            Err(error) => {
                let source = error.source().and_then(|source| source.downcast_ref::<Arc<DiscoverError>>());
                let kind = match source {
                    Some(source) if source.is_unknown_service() => CallErrorKind::UnknownService,
                    _ => CallErrorKind::NoInstance,
                };
                let situation = self.situation(context.balancer());
                Err(CallError::new(kind, context.name()).with_situation(situation).with_source(error))
            }
        }
    }

    pub(super) fn situation(&self, balancer: &Balancer) -> Situation {
        let snapshot = balancer.snapshot();
        Situation {
            known: snapshot.all().len(),
            up: snapshot.up().len(),
            generation: snapshot.generation(),
            age: self.membership.status().age,
            ..Situation::default()
        }
    }
}

/// Where the list comes from: what is set for the service, else the registry, else the list of the configuration; or that before the
/// registry, if it is said to be meant.
fn source(
    name: &str,
    settings: &Effective,
    registry: Option<&Arc<dyn Discover>>,
) -> Result<Arc<dyn Discover>, CallError> {
    if let Some(source) = &settings.discover.0 {
        return Ok(Arc::clone(source));
    }
    let given = || {
        let servers = settings.servers.as_ref()?.iter().cloned();
        Some(Arc::new(StaticList::new().with_upstreams(name, servers)) as Arc<dyn Discover>)
    };
    let source = match settings.list_source {
        ListSource::Static => given(),
        ListSource::Registry => registry.map(Arc::clone).or_else(given),
    };
    source.ok_or_else(|| {
        let detail = match settings.list_source {
            ListSource::Static => "its list is to be the configured one, and there is none: set `servers`",
            ListSource::Registry => {
                "nothing knows its upstreams: give the factory a registry with `discover`, or the service `servers`"
            }
        };
        CallError::new(CallErrorKind::UnknownService, name).with_detail(detail)
    })
}

/// Every upstream is called over TLS, whatever the list says.
fn secured(upstreams: Vec<Upstream>) -> Vec<Upstream> {
    upstreams.into_iter().map(|upstream| upstream.with_protocol("https://")).collect()
}

fn membership(
    name: &str,
    settings: &Effective,
    balancer: &Arc<Balancer>,
    clock: Clock,
    common: &Arc<Common>,
) -> Result<Membership, CallError> {
    let mut source = source(name, settings, common.registry.as_ref())?;
    let mut refresh = settings.refresh;
    if settings.prime {
        source = Arc::new(Priming::new(source, settings, common));
        // It asks its source as it was told to, and pushes what came of it.
        refresh = super::Refresh::Watch;
    }
    let mut builder = Membership::builder(name)
        .source(source)
        .refresh(refresh)
        .balancer(Arc::clone(balancer))
        .probing(settings.probe.clone())
        .probers(Arc::clone(&common.probers))
        .clock(clock);
    for filter in &settings.filters.0 {
        builder = builder.shared_filter(Arc::clone(filter));
    }
    if settings.secure {
        builder = builder.filter(filter_fn(|upstreams, _| secured(upstreams)));
    }
    for listener in &common.member_listeners {
        builder = builder.shared_listener(Arc::clone(listener));
    }
    builder.spawn().map_err(|error| CallError::new(CallErrorKind::Config, name).with_source(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_settings_are_real() {
        for name in [OF_THE_LIST, OF_THE_BALANCER, OF_THE_BUDGET].into_iter().flatten() {
            assert!(ServiceConfig::SETTINGS.contains(name), "{name}");
        }
    }
}
