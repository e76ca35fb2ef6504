//! One service as its callers see it: its list, balancer, budget and settings, apart from those of every other service.

use std::{
    collections::BTreeSet,
    error::Error as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{
    CallError, CallErrorKind, Clock, Discover, DiscoverError, MemberListener, Membership, Situation,
    config::{Effective, ListSource, ServiceConfig},
    discover::StaticList,
    filter::{Subset, ZoneAffinity, filter_fn},
    guard::{Panicked, guarded_call},
    listen::Listeners,
    membership::Turns,
    options::CallOptions,
    over_reqwest::Clients,
    prime::Priming,
    probe::{Check, Probers},
};
use crate::balance::{Balancer, Health, RetryBudget, Upstream};
use arc_swap::ArcSwap;

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
    "zone",
    "zone_affinity",
    "zone_exclusivity",
    "subset",
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
    turns: Turns,
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
    budget: Option<Arc<RetryBudget>>,
}

impl Context {
    pub(super) fn new(name: &str, said: ServiceConfig, common: Arc<Common>) -> Result<Self, CallError> {
        let clock = Clock::start();
        let settings = Arc::new(said.effective());
        let first = guarded_call(|| Balancer::new(Vec::new(), settings.balance(), clock.now_ms()));
        let balancer = Arc::new(first.map_err(|panicked| unready(name, panicked))?);
        let turns = Turns::default();
        let membership = Arc::new(membership(name, &settings, &balancer, &turns, clock, &common)?);
        let budget = settings.budget.map(|budget| Arc::new(RetryBudget::new(budget)));
        let state = State { said, settings, membership, listed: AtomicBool::new(false), budget };
        let (name, state) = (name.into(), ArcSwap::from_pointee(state));
        Ok(Self { name, clock, balancer, turns, state, writer: Mutex::default(), common })
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
        let next = if touches(OF_THE_LIST) {
            let (balancer, turns) = (&self.balancer, &self.turns);
            Some(membership(&self.name, &settings, balancer, turns, self.clock, &self.common)?)
        } else {
            None
        };
        if touches(OF_THE_BALANCER) {
            let set = guarded_call(|| self.balancer.set_settings(settings.balance(), self.now_ms()));
            set.map_err(|panicked| unready(&self.name, panicked))?;
        }
        let membership = match next {
            Some(next) => {
                // Until the new source has spoken the list of the old one serves. Calls under way may hold the old one for long.
                now.membership.retire();
                if touches(&["probe"]) && matches!(settings.probe.check, Check::None) {
                    self.forget_health();
                }
                Arc::new(next)
            }
            None => Arc::clone(&now.membership),
        };
        let listed = now.listed.load(Relaxed);
        let budget = if touches(OF_THE_BUDGET) {
            settings.budget.map(|budget| Arc::new(RetryBudget::new(budget)))
        } else {
            now.budget.clone()
        };
        let listed = AtomicBool::new(listed);
        self.state.store(Arc::new(State { said, settings, membership, listed, budget }));
        Ok(changed)
    }

    /// What was found by checks that are not made any more would hold for ever.
    fn forget_health(&self) {
        let snapshot = self.balancer.snapshot();
        let unknown = snapshot.all().iter().map(|member| (member.upstream().address(), Health::Unknown));
        self.balancer.set_healths(unknown, self.now_ms());
    }
}

/// A policy of the user's own may panic when it is built.
fn unready(service: &str, panicked: Panicked) -> CallError {
    let detail = "the `policy` could not be made ready";
    CallError::new(CallErrorKind::Config, service).with_detail(detail).with_source(panicked)
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

    pub(super) fn budget(&self) -> Option<&RetryBudget> {
        self.budget.as_deref()
    }

    /// Returns when there is a list, at once from the second call on. The first is waited for as long as for an answer, or as
    /// priming may take; but not where the source has said that it does not know the service.
    pub(super) async fn first_list(&self, context: &Context, left: Duration) -> Result<(), CallError> {
        if self.listed.load(Relaxed) {
            return Ok(());
        }
        let mut within = self.settings.read_timeout;
        if self.settings.prime {
            within = within.max(self.settings.prime_time);
        }
        tokio::select! {
            biased;
            ready = self.ready(context, within.min(left)) => ready,
            // No wait, but the same error.
            () = self.membership.unknown() => self.ready(context, Duration::ZERO).await,
        }
    }

    /// Returns when there is a list.
    pub(super) async fn ready(&self, context: &Context, within: Duration) -> Result<(), CallError> {
        match self.membership.ready(within).await {
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
    turns: &Turns,
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
        .turns(turns.clone())
        .probing(settings.probe.clone())
        .probers(Arc::clone(&common.probers))
        .clock(clock);
    if settings.zone_affinity || settings.zone_exclusivity {
        let zone = settings.zone.clone().ok_or_else(|| {
            let detail = "`zone_affinity` and `zone_exclusivity` need to know the own zone: set `zone`";
            CallError::new(CallErrorKind::Config, name).with_detail(detail)
        })?;
        builder =
            builder.filter(ZoneAffinity { exclusive: settings.zone_exclusivity, ..ZoneAffinity::new(zone) });
    }
    if let Some(size) = settings.subset {
        builder = builder.filter(Subset::new(size));
    }
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
