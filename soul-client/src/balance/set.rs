//! The upstreams of one selector, frozen, and the choice among them.

use std::{collections::HashMap, fmt, sync::Arc};

use super::{
    context::PickContext,
    group::Group,
    load_balance::LoadBalance,
    members::{Members, Up},
    pick::{Pick, Recorder},
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
    recorder: Arc<Recorder>,
}

impl Member {
    /// What is configured.
    #[must_use]
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// What is learnt at run time; the same for two members of one protocol and url.
    #[must_use]
    #[inline]
    pub fn state(&self) -> &Arc<UpstreamState> {
        &self.state
    }

    /// Begins a request at it, of which also the outcome is recorded.
    pub fn begin(self: &Arc<Self>, now_ms: i64) -> Pick {
        Pick::new(self, None, now_ms)
    }

    #[inline]
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }
}

/// Members with the states that outlive them; what sets and snapshots have in common.
pub(super) struct MemberList {
    pub(super) members: Box<[Arc<Member>]>,
    /// The members' states again, which saves a choice one step through memory.
    pub(super) states: Box<[Arc<UpstreamState>]>,
    pub(super) group: Arc<Group>,
    /// Those that had no state before.
    pub(super) newcomers: Vec<usize>,
}

impl MemberList {
    /// Gives every upstream the state it had, or a new one.
    pub(super) fn build(upstreams: Vec<Upstream>, previous: Option<&Self>, recorder: &Arc<Recorder>) -> Self {
        let group = previous.map_or_else(Arc::default, |p| Arc::clone(&p.group));
        let mut states: HashMap<(String, String), Arc<UpstreamState>> = previous
            .iter()
            .flat_map(|previous| &previous.states)
            .map(|s| ((s.protocol().to_owned(), s.url().to_owned()), Arc::clone(s)))
            .collect();
        let mut newcomers = Vec::new();
        let member = |(index, upstream): (usize, Upstream)| {
            let key = (upstream.protocol().to_owned(), upstream.url().to_owned());
            let state = states.entry(key).or_insert_with(|| {
                newcomers.push(index);
                UpstreamState::new(upstream.protocol(), upstream.url(), &group)
            });
            Arc::new(Member { state: Arc::clone(state), upstream, recorder: Arc::clone(recorder) })
        };
        let members: Box<[_]> = upstreams.into_iter().enumerate().map(member).collect();
        let states = members.iter().map(|m| Arc::clone(&m.state)).collect();
        let list = Self { members, states, group, newcomers };
        list.recount();
        list
    }

    /// Tells the group how many there are of what.
    pub(super) fn recount(&self) {
        let (mut size, mut down, mut ejected) = (0, 0, 0);
        for member in self.members.iter().filter(|m| m.upstream.takes_traffic()) {
            size += 1;
            down += u32::from(member.state.health() == Health::Down);
            ejected += u32::from(member.state.ejection_ms() != 0);
        }
        self.group.recount(size, down, ejected);
    }

    pub(super) fn lists(&self, upstreams: &[Upstream]) -> bool {
        self.members.iter().map(|m| &m.upstream).eq(upstreams)
    }
}

/// The upstreams of one selector, built once for each change and immutable afterwards.
pub struct UpstreamSet {
    /// Of whom only the choice is used: Soul's ways look at everyone.
    up: Up,
    list: MemberList,
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
        if let Some(previous) = previous.filter(|p| p.up.choice == choice && p.list.lists(&upstreams)) {
            return Arc::clone(previous);
        }
        let previous = previous.map(Arc::as_ref);
        let list = MemberList::build(upstreams, previous.map(|p| &p.list), &Arc::default());
        let up = Up { indexes: Box::default(), choice, panic: false };
        let view = Members::new(&list, &up);
        let hash = HashPicker::new(view, previous.map(|p| &p.hash));
        let round_robin = RoundRobinPicker::new(previous.map(|p| &p.round_robin));
        Arc::new(Self { up, list, random: RandomPicker, round_robin, hash })
    }

    /// Chooses the upstream that serves a request; `None` if none may.
    ///
    /// Takes no lock and allocates nothing, but for `roundRobin` in the moment after a change and while a weight
    /// changes by warm-up: Soul's counters are then worked out one choice after the other. Counting the request is
    /// the caller's: [`UpstreamState::begin`].
    #[must_use]
    pub fn pick(&self, balance: LoadBalance, context: &PickContext<'_>) -> Option<&Arc<Member>> {
        let index = match balance {
            LoadBalance::Hash => self.hash.pick(self.view(), context),
            LoadBalance::Random => self.random.pick(self.view(), context),
            LoadBalance::RoundRobin => self.round_robin.pick(self.view(), context),
        }?;
        self.list.members.get(index)
    }

    /// Every upstream, in the order of the list.
    #[must_use]
    pub fn members(&self) -> &[Arc<Member>] {
        &self.list.members
    }

    /// Which of them may be chosen.
    #[must_use]
    pub fn choice(&self) -> Choice {
        self.up.choice
    }

    /// How many may be chosen for a request that has tried none.
    #[must_use]
    pub fn available(&self) -> usize {
        self.view().candidates(&PickContext::at(0)).count()
    }

    fn view(&self) -> Members<'_> {
        Members::new(&self.list, &self.up)
    }
}

impl fmt::Debug for UpstreamSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamSet")
            .field("choice", &self.up.choice)
            .field("members", &self.list.members)
            .finish_non_exhaustive()
    }
}
