//! Members, who of them is up, and the picker: one unit, frozen.

use std::{fmt, sync::Arc};

use super::{
    choose::{choose, choose_from},
    context::{PickContext, RandomSource, Tried},
    list::{Member, MemberList},
    members::{Heed, Members, Up},
    outlier::{OutlierDetector, millis},
    pick::{Pick, Recorder, claim},
    policy::{BuildContext, PeakEwma, Picker, Policy},
    prefer::{Prefer, Tier, choose_preferred},
    set::Choice,
    slow_start::SlowStart,
    upstream::Upstream,
};

/// How the upstreams of one service are chosen.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use soul_client::balance::{Settings, SlowStart, policy};
///
/// let settings = Settings {
///     policy: policy::by_name("leastRequest")?,
///     slow_start: Some(SlowStart::over(Duration::from_secs(30))),
///     ..Settings::default()
/// };
/// assert_eq!(settings.panic_threshold, 0.5);
/// # Ok::<(), policy::UnknownPolicy>(())
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who is chosen. Default [`PeakEwma`].
    pub policy: Arc<dyn Policy>,
    /// Share of healthy upstreams below which health is not heeded at all: then it is more likely that the probe or the network is
    /// wrong than that nearly all are dead. 0 is never. Default 0.5.
    pub panic_threshold: f64,
    /// Leaves out upstreams that fail requests; `None` is off. Default [`OutlierDetector::default`].
    pub outliers: Option<OutlierDetector>,
    /// Spares upstreams that come or come back; `None`, the default, is off.
    pub slow_start: Option<SlowStart>,
    /// Whether a tried upstream may be chosen again when there is no other. Default true.
    pub tried_again: bool,
    /// Who is preferred to the others. Default nobody.
    pub prefer: Prefer,
    /// In how many [parts](super::parts) requests count: one for each thread that chooses, if those say which they are, and then no two of them write
    /// the same memory. What several parts cost is a line of memory for each upstream that one sends to, and that a choice by load knows
    /// what other threads do up to a millisecond late. Default 1.
    pub parts: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Arc::new(PeakEwma::default()),
            panic_threshold: 0.5,
            outliers: Some(OutlierDetector::default()),
            slow_start: None,
            tried_again: true,
            prefer: Prefer::default(),
            parts: 1,
        }
    }
}

impl Settings {
    /// As Ribbon in Spring Cloud: zone avoidance, its circuit breaker, no panic threshold. Like Ribbon's own rules it goes to
    /// somebody even when nobody is healthy.
    #[must_use]
    pub fn ribbon() -> Self {
        Self {
            policy: Arc::new(super::policy::ZoneAvoidance::default()),
            panic_threshold: 0.0,
            outliers: Some(OutlierDetector::ribbon()),
            ..Self::default()
        }
    }

    /// The defaults, with another policy.
    #[must_use]
    pub fn with_policy(policy: impl Policy + 'static) -> Self {
        Self { policy: Arc::new(policy), ..Self::default() }
    }

    fn recorder(&self) -> Recorder {
        Recorder::new(self.policy.tuning(), self.outliers.clone(), self.slow_start)
    }
}

/// What requests choose from at one moment. Members, who is up and the picker are published together, so that they can never
/// disagree.
pub struct Snapshot {
    generation: u64,
    settings: Arc<Settings>,
    by_key: bool,
    list: Arc<MemberList>,
    /// Indexes of those that the configuration lets take traffic.
    configured: Up,
    /// Those of them that are neither down nor ejected.
    up: Up,
    panic: bool,
    picker: Box<dyn Picker>,
    /// Those who are preferred, if anybody is.
    tiers: Box<[Tier]>,
    /// State of the group that this was built from.
    changes: u64,
    /// When it is to be built anew although nothing changed.
    due_ms: i64,
}

impl Snapshot {
    /// The first snapshot of a list.
    #[must_use]
    pub fn new(
        upstreams: Vec<Upstream>,
        settings: Settings,
        now_ms: i64,
        random: &dyn RandomSource,
    ) -> Arc<Self> {
        let list = MemberList::build(upstreams, None, &Arc::new(settings.recorder()), settings.parts);
        start_ramps(&list, &settings, now_ms);
        Arc::new(Self::build(Arc::new(list), Arc::new(settings), None, now_ms, random))
    }

    /// A snapshot of a list that others choose from too; `previous` is the one that this replaces.
    pub(super) fn of_list(
        list: &Arc<MemberList>,
        settings: Settings,
        previous: Option<&Self>,
        now_ms: i64,
        random: &dyn RandomSource,
    ) -> Arc<Self> {
        start_ramps(list, &settings, now_ms);
        Arc::new(Self::build(Arc::clone(list), Arc::new(settings), previous, now_ms, random))
    }

    /// The snapshot of another list. The states of all that are still listed go on; an equal list gives the same
    /// snapshot, refreshed if that is due.
    #[must_use]
    pub fn with_upstreams(
        self: &Arc<Self>,
        upstreams: Vec<Upstream>,
        now_ms: i64,
        random: &dyn RandomSource,
    ) -> Arc<Self> {
        if self.list.lists(&upstreams) {
            return self.refreshed(now_ms, random);
        }
        let settings = Arc::clone(&self.settings);
        let recorder = Arc::new(settings.recorder());
        let list = MemberList::build(upstreams, Some(&self.list), &recorder, settings.parts);
        start_ramps(&list, &settings, now_ms);
        // Starting the caller, or a whole new service, is no reason to spare anyone.
        if let Some(slow_start) = settings.slow_start
            && !self.list.members.is_empty()
            && list.newcomers.len() < list.members.len()
        {
            for member in list.newcomers.iter().filter_map(|&index| list.members.get(index)) {
                slow_start.start(member.state(), now_ms);
            }
        }
        Arc::new(Self::build(Arc::new(list), settings, Some(self), now_ms, random))
    }

    /// The snapshot of the same list under other settings.
    #[must_use]
    pub fn with_settings(
        self: &Arc<Self>,
        settings: Settings,
        now_ms: i64,
        random: &dyn RandomSource,
    ) -> Arc<Self> {
        let upstreams = self.list.members.iter().map(|m| m.upstream().clone()).collect();
        let recorder = Arc::new(settings.recorder());
        let list = MemberList::build(upstreams, Some(&self.list), &recorder, settings.parts);
        Arc::new(Self::build(Arc::new(list), Arc::new(settings), Some(self), now_ms, random))
    }

    /// This snapshot if nothing has changed, else one of the same list with health as it is now.
    #[must_use]
    pub fn refreshed(self: &Arc<Self>, now_ms: i64, random: &dyn RandomSource) -> Arc<Self> {
        if !self.is_due(now_ms) {
            return Arc::clone(self);
        }
        self.list.recount();
        let (list, settings) = (Arc::clone(&self.list), Arc::clone(&self.settings));
        Arc::new(Self::build(list, settings, Some(self), now_ms, random))
    }

    /// Ejects by success rates, when it is time to.
    pub(super) fn sweep(&self, now_ms: i64) {
        self.list.sweep(self.settings.outliers.as_ref(), now_ms);
    }

    /// Whether health changed, an ejection ended or the policy wants new numbers.
    #[must_use]
    pub fn is_due(&self, now_ms: i64) -> bool {
        self.changes != self.list.group.changes() || self.due_ms <= now_ms
    }

    fn build(
        list: Arc<MemberList>,
        settings: Arc<Settings>,
        previous: Option<&Self>,
        now_ms: i64,
        random: &dyn RandomSource,
    ) -> Self {
        let changes = list.group.changes();
        let indexed = || (0..).zip(&list.members);
        let configured: Box<[u32]> =
            indexed().filter(|(_, m)| m.upstream().takes_traffic()).map(|(index, _)| index).collect();
        let is_up = |&&index: &&u32| list.states.get(index as usize).is_some_and(|s| s.is_available(now_ms));
        let up: Box<[u32]> = configured.iter().filter(is_up).copied().collect();
        #[allow(clippy::cast_precision_loss)]
        let panic = (up.len() as f64) < configured.len() as f64 * settings.panic_threshold;
        let configured = Up::new(configured, list.members.len(), Choice::Strict, Heed::Nothing);
        let up = Up::new(up, list.members.len(), Choice::Strict, Heed::Health);
        let members = Members::new(&list, if panic { &configured } else { &up });
        let previous_picker = previous.map(|p| &*p.picker as &dyn std::any::Any);
        let context = BuildContext { previous: previous_picker, ..BuildContext::new(now_ms, random) };
        let picker = settings.policy.build(members, &context);
        let former = previous.map_or(&[][..], |p| &p.tiers);
        let (of, policy) = (if panic { &configured } else { &up }, &*settings.policy);
        let tiers = settings.prefer.tiers(&list, of, policy, former, &context);
        let ends = list.states.iter().map(|s| s.ejection_ms()).filter(|&end| end > now_ms).min();
        let every = settings.policy.refresh_every().map(|every| now_ms.saturating_add(millis(every).max(1)));
        Self {
            generation: previous.map_or(1, |p| p.generation + 1),
            by_key: settings.policy.is_by_key(),
            due_ms: ends.unwrap_or(i64::MAX).min(every.unwrap_or(i64::MAX)),
            settings,
            configured,
            up,
            panic,
            picker,
            tiers,
            changes,
            list,
        }
    }

    /// Chooses an upstream for a request and counts the request in.
    ///
    /// Takes no lock, allocates nothing and waits for nobody. `None` if the list has nobody who may take traffic, or if
    /// all are unhealthy or tried and the settings allow neither panic nor a second try.
    ///
    /// An ejected upstream whose time is over gets one request to prove itself, whatever the policy; but by key only a request
    /// of its own keys.
    #[must_use]
    #[inline]
    pub fn choose(&self, context: &PickContext<'_>) -> Option<Pick> {
        let members = self.members();
        if !self.tiers.is_empty() || context.sticky.is_some() {
            let hint_only = self.settings.prefer.refuses(context);
            let (list, tiers, configured) = (&self.list, &self.tiers, &self.configured);
            let preferred =
                choose_preferred(list, members, tiers, self.by_key, configured, hint_only, context);
            if preferred.is_some() || hint_only {
                return preferred;
            }
        }
        if let Some(pick) = choose(&*self.picker, self.by_key, members, &self.configured, context) {
            return Some(pick);
        }
        self.choose_nonetheless(members, context)
    }

    /// When there is nobody else.
    #[cold]
    fn choose_nonetheless(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<Pick> {
        if self.settings.tried_again && !context.tried.is_empty() {
            let nothing_tried = Tried::new();
            if let Some(pick) = choose_from(&*self.picker, members, &context.tried(&nothing_tried)) {
                return Some(pick);
            }
        }
        if self.settings.panic_threshold <= 0.0 || self.panic {
            return None;
        }
        // All became unhealthy since this was built.
        let index = members.with_up(&self.configured).any(context)?;
        let member = members.own(index)?;
        Some(Pick::new(member, claim(member, context.now_ms), context.now_ms))
    }

    /// Chooses among some only, and by the same policy: for what a single request prefers. `None` if none of them may serve; then
    /// [`choose`](Self::choose) chooses among all.
    ///
    /// Looks at every member once, so it is for the few requests that prefer anybody; what all of them prefer belongs into
    /// [`Settings::prefer`].
    #[must_use]
    pub fn choose_among(&self, belongs: impl Fn(&Member) -> bool, context: &PickContext<'_>) -> Option<Pick> {
        let is_left = |member: &&Arc<Member>| belongs(member) && !context.tried.contains(member.state());
        let (left, others): (Vec<_>, Vec<_>) = self.list.members.iter().partition(is_left);
        let tried = Tried::all_but(left.iter().map(|m| &**m.state()), others.first().map(|m| &**m.state()))?;
        choose(&*self.picker, self.by_key, self.members(), &self.configured, &context.tried(&tried))
    }

    /// The first member at an address, `host:port`.
    #[must_use]
    pub fn at_address(&self, address: &str) -> Option<&Arc<Member>> {
        self.all_at(address).next()
    }

    /// Every member at an address, of whatever protocol.
    pub fn all_at<'s>(&'s self, address: &str) -> impl Iterator<Item = &'s Arc<Member>> + use<'s> {
        self.list.all_at(address).filter_map(|index| self.list.members.get(index))
    }

    /// Who would be chosen, without counting a request in: for a look, or where the caller counts by itself. Heeds
    /// neither panic after this was built nor that an upstream on trial takes one request only.
    #[must_use]
    #[inline]
    pub fn pick(&self, context: &PickContext<'_>) -> Option<&Arc<Member>> {
        let members = self.members();
        members.get(self.picker.pick(members, context)?)
    }

    /// Grows by one with each snapshot of a service.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Every upstream, in the order of the list.
    #[must_use]
    pub fn all(&self) -> &[Arc<Member>] {
        &self.list.members
    }

    /// Those that were healthy when this was built.
    pub fn up(&self) -> impl ExactSizeIterator<Item = &Arc<Member>> {
        self.up.indexes.iter().map(|&index| &self.list.members[index as usize])
    }

    /// Whether health is not heeded, since too few are healthy.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        self.panic
    }

    /// How they are chosen.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What a picker sees; for policies that are made of others.
    #[must_use]
    #[inline]
    pub fn members(&self) -> Members<'_> {
        Members::new(&self.list, if self.panic { &self.configured } else { &self.up })
    }
}

/// Soul's warm-up is a ramp for all policies that do not work with Soul's weights.
fn start_ramps(list: &MemberList, settings: &Settings, now_ms: i64) {
    if settings.policy.heeds_warmup() {
        return;
    }
    for member in &list.members {
        if let Some(length) = member.upstream().warmup_at(now_ms) {
            member.state().start_ramp(member.upstream().timestamp(), millis(length));
        }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("generation", &self.generation)
            .field("settings", &self.settings)
            .field("members", &self.list.members)
            .field("up", &self.up)
            .field("panic", &self.panic)
            .finish_non_exhaustive()
    }
}
