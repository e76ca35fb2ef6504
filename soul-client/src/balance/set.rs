//! The upstreams of one selector, frozen, and the choice among them.

use std::{fmt, sync::Arc};

use super::{
    balancer::Balancer,
    choose::{choose, choose_suspect},
    context::{FastRandom, PickContext},
    list::{Member, MemberList},
    load_balance::{LoadBalance, PolicyName, Way},
    members::{Heed, Members, Up},
    outlier::OutlierDetector,
    pick::{Pick, Recorder},
    policy::{HashPicker, Picker, Policy, RandomPicker, RoundRobinPicker, Tuning},
    prefer::Prefer,
    slow_start::SlowStart,
    snapshot::{Settings, Snapshot},
    upstream::Upstream,
};

/// Which upstreams may be chosen. The table in the [module](super) lists the differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Choice {
    /// Never one that is switched off, has no weight, was found down or was tried; if none is left, none.
    #[default]
    Strict,
    /// Exactly as Soul: weight and status only shift the shares, and a list of one is always chosen. Those
    /// found down or tried are not in Soul's list.
    Soul,
}

/// How the upstreams of one selector are chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetSettings {
    /// Which may be chosen by Soul's three ways; by the policies always [`Choice::Strict`].
    pub choice: Choice,
    /// The ways that are chosen by, besides Soul's three, which always are there. In any order.
    pub ways: Vec<Way>,
    /// Leaves out upstreams that fail requests; `None`, the default, is off.
    pub outliers: Option<OutlierDetector>,
    /// Share of healthy upstreams below which health is not heeded. Default 0, which is never.
    pub panic_threshold: f64,
    /// Spares upstreams that come or come back, by the policies; Soul's ways have a warm-up of their own. `None`, the default, is
    /// off.
    pub slow_start: Option<SlowStart>,
    /// In how many parts requests count, as [`Settings::parts`] has it; 0, the default, is as 1. In several, `roundRobin` is Soul's in
    /// each, and each begins elsewhere in the order.
    pub parts: usize,
}

impl From<Choice> for SetSettings {
    fn from(choice: Choice) -> Self {
        Self { choice, ..Self::default() }
    }
}

/// Settings that many sets may share: the gateway has one set for each of its selectors, and they take more memory than the rest
/// of it.
#[derive(Clone, Debug)]
pub struct SharedSettings(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: SetSettings,
    recorder: Arc<Recorder>,
}

impl From<SetSettings> for SharedSettings {
    fn from(settings: SetSettings) -> Self {
        let recorder = Arc::new(settings.recorder());
        Self(Arc::new(Shared { settings, recorder }))
    }
}

impl SharedSettings {
    /// The settings.
    #[must_use]
    pub fn get(&self) -> &SetSettings {
        &self.0.settings
    }
}

impl SetSettings {
    fn policies(&self) -> impl Iterator<Item = (PolicyName, Arc<dyn Policy>)> {
        let mut ways = self.ways.clone();
        ways.sort_unstable();
        ways.dedup();
        ways.into_iter().filter_map(|way| match way {
            Way::Soul(_) => None,
            Way::Policy(name) => Some((name, name.policy()?)),
        })
    }

    /// Records what any of the policies wants to know.
    fn recorder(&self) -> Recorder {
        let tuning = self.policies().map(|(_, policy)| policy.tuning()).reduce(Tuning::and);
        Recorder::new(tuning.unwrap_or_default(), self.outliers.clone(), self.slow_start)
    }
}

/// The upstreams of one selector, built once for each change and immutable afterwards, but for what the policies work out
/// anew when health changes.
pub struct UpstreamSet {
    settings: SharedSettings,
    list: Arc<MemberList>,
    /// Those that the configuration lets take traffic, heeding health.
    up: Up,
    /// The same, heeding less.
    suspects: Up,
    panicking: Up,
    random: RandomPicker,
    round_robin: RoundRobinPicker,
    hash: HashPicker,
    /// Ascending by name.
    policies: Box<[(PolicyName, Balancer)]>,
}

impl UpstreamSet {
    /// Builds the set of a list, for Soul's three ways.
    ///
    /// From the previous set come the state of every upstream whose protocol and url are still listed (health, requests in
    /// flight), the counters of round robin, and the ring if it would be the same. An equal
    /// list gives the previous set itself.
    ///
    /// - `upstreams`: in the order of the store, which `roundRobin` heeds; may be empty.
    /// - `previous`: the set that this one replaces.
    #[must_use]
    pub fn build(upstreams: Vec<Upstream>, previous: Option<&Arc<Self>>, choice: Choice) -> Arc<Self> {
        Self::build_with(upstreams, previous, SetSettings::from(choice), 0)
    }

    /// Builds the set of a list, for all the ways that the settings name.
    ///
    /// Tables of policies for keys are built here, so not on the path of a request; Soul's ring when it is first asked for, or by
    /// [`UpstreamSet::prepare`].
    ///
    /// - `now_ms`: milliseconds since the epoch.
    #[must_use]
    pub fn build_with(
        upstreams: Vec<Upstream>,
        previous: Option<&Arc<Self>>,
        settings: impl Into<SharedSettings>,
        now_ms: i64,
    ) -> Arc<Self> {
        let shared: SharedSettings = settings.into();
        let settings = shared.get();
        if let Some(previous) = previous.filter(|p| p.settings() == settings && p.list.lists(&upstreams)) {
            return Arc::clone(previous);
        }
        let previous = previous.map(Arc::as_ref);
        let recorder = &shared.0.recorder;
        let list = MemberList::build(upstreams, previous.map(|p| &*p.list), recorder, settings.parts);
        let list = Arc::new(list);
        let choice = settings.choice;
        let may = |m: &Member| choice == Choice::Soul || m.upstream().takes_traffic();
        let configured = (0..).zip(&list.members).filter(|(_, m)| may(m)).map(|(i, _)| i);
        let up = Up::new(configured.collect::<Arc<[u32]>>(), list.members.len(), choice, Heed::Health);
        let (suspects, panicking) = (up.heeding(Heed::Probes), up.heeding(Heed::Nothing));
        let hash = HashPicker::new(Members::new(&list, &up), previous.map(|p| &p.hash));
        let round_robin = RoundRobinPicker::new(previous.map(|p| &p.round_robin), list.parts);
        let policies = settings.policies().map(|(name, policy)| {
            let before = previous.and_then(|p| p.by_policy(name)).map(Balancer::snapshot);
            let settings = Settings {
                policy,
                panic_threshold: settings.panic_threshold,
                outliers: settings.outliers.clone(),
                slow_start: settings.slow_start,
                tried_again: false,
                prefer: Prefer::default(),
                parts: settings.parts,
            };
            let first = Snapshot::of_list(&list, settings, before.as_deref(), now_ms, &FastRandom);
            (name, Balancer::beginning_with(first))
        });
        let policies = policies.collect();
        Arc::new(Self {
            up,
            suspects,
            panicking,
            list,
            random: RandomPicker,
            round_robin,
            hash,
            policies,
            settings: shared,
        })
    }

    /// Who would serve a request by one of Soul's ways; `None` if none may.
    ///
    /// Takes no lock and allocates nothing, but for `roundRobin` in the moment after a change and while a weight
    /// changes by warm-up: Soul's counters are then worked out one choice after the other. Counting the request is
    /// the caller's: [`UpstreamState::begin`](super::UpstreamState::begin), or use [`UpstreamSet::choose`].
    #[must_use]
    pub fn pick(&self, balance: LoadBalance, context: &PickContext<'_>) -> Option<&Arc<Member>> {
        let view = self.view();
        let index = match balance {
            LoadBalance::Hash => self.hash.pick(view, context),
            LoadBalance::Random => self.random.pick(view, context),
            LoadBalance::RoundRobin => self.round_robin.pick(view, context),
        }?;
        self.list.members.get(index)
    }

    /// Chooses the upstream that serves a request and counts the request in; `None` if none may, or if the set was not built for
    /// that way.
    ///
    /// Locks and allocates no more than [`UpstreamSet::pick`]. An ejected upstream whose time is over gets one request to prove
    /// itself. One that is ejected is chosen nonetheless when nobody else is left, unless a probe found it down; should it
    /// answer, it is back.
    #[must_use]
    pub fn choose(&self, way: Way, context: &PickContext<'_>) -> Option<Pick> {
        let chosen = match way {
            Way::Policy(name) => self.by_policy(name)?.choose(context),
            Way::Soul(LoadBalance::Hash) => choose(&self.hash, true, self.view(), &self.up, context),
            Way::Soul(LoadBalance::Random) => choose(&self.random, false, self.view(), &self.up, context),
            Way::Soul(LoadBalance::RoundRobin) => {
                choose(&self.round_robin, false, self.view(), &self.up, context)
            }
        };
        chosen.or_else(|| choose_suspect(self.view(), &self.suspects, context))
    }

    /// Brings the policies up to date with health, ejections and the numbers that they want; does nothing while nothing has
    /// changed. Not on the path of a request: every 100 ms is plenty.
    pub fn refresh(&self, now_ms: i64) {
        self.list.sweep(self.settings().outliers.as_ref(), now_ms);
        for (_, balancer) in &self.policies {
            balancer.refresh(now_ms);
        }
    }

    /// Every upstream, in the order of the list.
    #[must_use]
    pub fn members(&self) -> &[Arc<Member>] {
        &self.list.members
    }

    /// Which of them may be chosen by Soul's ways.
    #[must_use]
    pub fn choice(&self) -> Choice {
        self.settings().choice
    }

    /// How they are chosen.
    #[must_use]
    pub fn settings(&self) -> &SetSettings {
        self.settings.get()
    }

    /// Whether it was built for a way.
    #[must_use]
    pub fn has(&self, way: Way) -> bool {
        match way {
            Way::Soul(_) => true,
            Way::Policy(name) => self.by_policy(name).is_some(),
        }
    }

    /// Builds what a way needs besides, so that no request has to wait for it. Does nothing if it is there.
    pub fn prepare(&self, way: Way) {
        if way == Way::Soul(LoadBalance::Hash) {
            self.hash.prepare(self.view());
        }
    }

    /// How many may be chosen for a request that has tried none.
    #[must_use]
    pub fn available(&self) -> usize {
        self.view().candidates(&PickContext::at(0)).count()
    }

    fn by_policy(&self, name: PolicyName) -> Option<&Balancer> {
        let at = self.policies.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        self.policies.get(at).map(|(_, balancer)| balancer)
    }

    fn view(&self) -> Members<'_> {
        let panic = self.list.group.is_panic(self.settings().panic_threshold);
        Members::new(&self.list, if panic { &self.panicking } else { &self.up })
    }
}

impl fmt::Debug for UpstreamSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamSet")
            .field("settings", self.settings())
            .field("members", &self.list.members)
            .finish_non_exhaustive()
    }
}
