//! The upstreams of one selector, frozen, and the choice among them.

use std::{collections::HashMap, fmt, sync::Arc};

use super::{
    context::PickContext,
    load_balance::LoadBalance,
    policy::{HashPicker, Picker, RandomPicker, RoundRobinPicker},
    state::{Health, UpstreamState},
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

/// One upstream of a set: what is configured, and the state it shares with earlier and later sets.
#[derive(Debug)]
pub struct Member {
    upstream: Upstream,
    state: Arc<UpstreamState>,
}

impl Member {
    /// What is configured.
    #[must_use]
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// What is learnt at run time; the same for two members of one protocol and url.
    #[must_use]
    pub fn state(&self) -> &Arc<UpstreamState> {
        &self.state
    }
}

/// The upstreams of one selector, built once for each change and immutable afterwards.
pub struct UpstreamSet {
    choice: Choice,
    members: Box<[Arc<Member>]>,
    random: RandomPicker,
    round_robin: RoundRobinPicker,
    hash: HashPicker,
}

impl UpstreamSet {
    /// Builds the set of a list.
    ///
    /// From the previous set come the state of every upstream whose protocol and url are still listed (health, requests in
    /// flight), the counters of round robin, and the ring if it would be the same. An equal
    /// list gives the previous set itself.
    ///
    /// - `upstreams`: in the order of the store, which `roundRobin` heeds; may be empty.
    /// - `previous`: the set that this one replaces.
    #[must_use]
    pub fn build(upstreams: Vec<Upstream>, previous: Option<&Arc<Self>>, choice: Choice) -> Arc<Self> {
        if let Some(previous) = previous.filter(|p| p.choice == choice && p.lists(&upstreams)) {
            return Arc::clone(previous);
        }
        let previous = previous.map(Arc::as_ref);
        let members = with_states(upstreams, previous);
        let view = Members { members: &members, choice };
        let same_ring = |p: &&Self| HashPicker::ringed(view).eq(HashPicker::ringed(p.view()));
        let hash = HashPicker::new(view, previous.filter(same_ring).map(|p| &p.hash));
        let round_robin = RoundRobinPicker::new(previous.map(|p| &p.round_robin));
        Arc::new(Self { choice, members, random: RandomPicker, round_robin, hash })
    }

    /// Chooses the upstream that serves a request; `None` if none may.
    ///
    /// Allocates nothing but, in `roundRobin`, the counter of an upstream seen for the first time. Counting the
    /// request is the caller's: [`UpstreamState::begin`].
    #[must_use]
    pub fn pick(&self, balance: LoadBalance, context: &PickContext<'_>) -> Option<&Arc<Member>> {
        let index = match balance {
            LoadBalance::Hash => self.hash.pick(self.view(), context),
            LoadBalance::Random => self.random.pick(self.view(), context),
            LoadBalance::RoundRobin => self.round_robin.pick(self.view(), context),
        }?;
        self.members.get(index)
    }

    /// Every upstream, in the order of the list.
    #[must_use]
    pub fn members(&self) -> &[Arc<Member>] {
        &self.members
    }

    /// Which of them may be chosen.
    #[must_use]
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// How many may be chosen for a request that has tried none.
    #[must_use]
    pub fn available(&self) -> usize {
        self.view().candidates(&PickContext::at(0)).count()
    }

    fn view(&self) -> Members<'_> {
        Members { members: &self.members, choice: self.choice }
    }

    fn lists(&self, upstreams: &[Upstream]) -> bool {
        self.view().all().eq(upstreams)
    }
}

impl fmt::Debug for UpstreamSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamSet")
            .field("choice", &self.choice)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

/// Gives every upstream the state it had, or a new one.
fn with_states(upstreams: Vec<Upstream>, previous: Option<&UpstreamSet>) -> Box<[Arc<Member>]> {
    let mut states: HashMap<(String, String), Arc<UpstreamState>> = previous
        .iter()
        .flat_map(|previous| &previous.members)
        .map(|m| ((m.state.protocol().to_owned(), m.state.url().to_owned()), Arc::clone(&m.state)))
        .collect();
    let member = |upstream: Upstream| {
        let state = states
            .entry((upstream.protocol().to_owned(), upstream.url().to_owned()))
            .or_insert_with(|| UpstreamState::new(upstream.protocol(), upstream.url()));
        let state = Arc::clone(state);
        Arc::new(Member { upstream, state })
    };
    upstreams.into_iter().map(member).collect()
}

/// What a picker sees of a set.
#[derive(Clone, Copy)]
pub(super) struct Members<'s> {
    members: &'s [Arc<Member>],
    choice: Choice,
}

impl<'s> Members<'s> {
    pub(super) fn choice(self) -> Choice {
        self.choice
    }

    /// All of them, whether or not they may be chosen.
    pub(super) fn all(self) -> impl Iterator<Item = &'s Upstream> {
        self.members.iter().map(|m| &m.upstream)
    }

    /// Those that may be chosen, with their index.
    pub(super) fn candidates<'c>(
        self,
        context: &'c PickContext<'_>,
    ) -> impl Iterator<Item = (usize, &'s Upstream)> + Clone + use<'s, 'c> {
        let members = self.members.iter().enumerate();
        members.filter(move |(_, m)| self.allows(m, context)).map(|(index, m)| (index, &m.upstream))
    }

    pub(super) fn may_be_chosen(self, index: usize, context: &PickContext<'_>) -> bool {
        self.members.get(index).is_some_and(|m| self.allows(m, context))
    }

    /// Whether it may be chosen as far as the configuration goes.
    pub(super) fn is_configured(self, upstream: &Upstream) -> bool {
        match self.choice {
            Choice::Strict => upstream.takes_traffic(),
            Choice::Soul => true,
        }
    }

    fn allows(self, member: &Member, context: &PickContext<'_>) -> bool {
        self.is_configured(&member.upstream)
            && member.state.health() != Health::Down
            && !context.tried.contains(&member.state)
    }
}
