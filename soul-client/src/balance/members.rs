//! What a picker sees: the members, which of them are up, and whether one may serve a request.

use std::sync::Arc;

use super::{
    choose::begin,
    context::PickContext,
    group::Group,
    health::Health,
    list::{Member, MemberList},
    pick::Pick,
    set::Choice,
    state::UpstreamState,
    upstream::Upstream,
};

/// The members that a choice is made of. Indexes are valid within one snapshot only.
///
/// Two words, which go from call to call in registers.
#[derive(Clone, Copy)]
pub struct Members<'s> {
    list: &'s MemberList,
    up: &'s Up,
}

/// Who is up, and what that means.
#[derive(Debug)]
pub(super) struct Up {
    /// Indexes of members; shared by those that differ in what is heeded.
    pub(super) indexes: Arc<[u32]>,
    /// Whether these are all members: then an index is its own position, and the list need not be read.
    all: bool,
    /// Whether each member belongs here at all; everybody does where there is no preference.
    pub(super) only: Option<Box<[bool]>>,
    pub(super) choice: Choice,
    /// What is heeded of what stands against one.
    pub(super) heed: Heed,
}

impl Up {
    /// - `members`: how many there are in all.
    pub(super) fn new(indexes: impl Into<Arc<[u32]>>, members: usize, choice: Choice, heed: Heed) -> Self {
        let indexes = indexes.into();
        // Indexes ascend, each once.
        let all = indexes.len() == members;
        Self { indexes, all, only: None, choice, heed }
    }

    /// Of some members only.
    ///
    /// - `only`: for each member whether it belongs to them.
    pub(super) fn only(indexes: Arc<[u32]>, only: Box<[bool]>, choice: Choice, heed: Heed) -> Self {
        Self { indexes, all: false, only: Some(only), choice, heed }
    }

    /// The same members, of whom something else is heeded.
    pub(super) fn heeding(&self, heed: Heed) -> Self {
        let Self { indexes, all, only, choice, .. } = self;
        Self { indexes: Arc::clone(indexes), all: *all, only: only.clone(), choice: *choice, heed }
    }

    #[inline]
    fn has(&self, index: usize) -> bool {
        self.only.as_ref().is_none_or(|only| only.get(index) == Some(&true))
    }
}

/// What is heeded of what stands against an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heed {
    /// Probes and ejections.
    Health,
    /// Probes only: an ejection is a suspicion, and an upstream under suspicion is better than none.
    Probes,
    /// Nothing: panic.
    Nothing,
}

impl Heed {
    #[inline]
    fn lets_through(self, state: &UpstreamState, now_ms: i64) -> bool {
        match self {
            Self::Health => state.is_available(now_ms),
            Self::Probes => state.health() != Health::Down,
            Self::Nothing => true,
        }
    }
}

/// How often a draw is repeated before all are looked at.
const DRAWS: usize = 4;

impl<'s> Members<'s> {
    #[inline]
    pub(super) fn new(list: &'s MemberList, up: &'s Up) -> Self {
        Self { list, up }
    }

    /// The same, but others are up.
    pub(super) fn with_up(self, up: &'s Up) -> Self {
        Self { up, ..self }
    }

    /// How many there are, whether or not they may be chosen.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        self.list.members.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.list.members.is_empty()
    }

    /// One of them.
    #[must_use]
    #[inline]
    pub fn get(self, index: usize) -> Option<&'s Arc<Member>> {
        self.list.members.get(index)
    }

    /// The same as requests of this thread hold it.
    #[inline]
    pub(super) fn own(self, index: usize) -> Option<&'s Arc<Member>> {
        self.list.own(index)
    }

    /// In how many parts requests count.
    pub(super) fn parts(self) -> u32 {
        self.list.parts
    }

    /// All of them, in the order of the list.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'s Arc<Member>> {
        self.list.members.iter()
    }

    /// Indexes of those that the configuration lets take traffic and that were healthy when this was built; of all that the
    /// configuration allows, in panic.
    #[must_use]
    #[inline]
    pub fn up(self) -> &'s [u32] {
        &self.up.indexes
    }

    /// Whether health is not heeded, since too few are healthy.
    #[must_use]
    pub fn is_panic(self) -> bool {
        self.up.heed == Heed::Nothing
    }

    /// Whether one may serve this request: it takes traffic, is neither down nor ejected (but in panic) and
    /// was not tried.
    #[must_use]
    pub fn may_be_chosen(self, index: usize, context: &PickContext<'_>) -> bool {
        self.up.has(index) && self.get(index).is_some_and(|m| self.allows(m, context))
    }

    /// Begins a request at one, if it may serve it.
    pub(super) fn begin_at(self, index: usize, context: &PickContext<'_>) -> Option<Pick> {
        let member = self.own(index).filter(|_| self.may_be_chosen(index, context))?;
        begin(member, context.now_ms)
    }

    /// The first that [accepts](Self::accepts) of a few drawn from those that are up, else any that may be chosen.
    ///
    /// - `draw`: a position in [`Members::up`].
    #[inline]
    pub fn draw(self, context: &PickContext<'_>, mut draw: impl FnMut() -> usize) -> Option<usize> {
        if self.up.indexes.is_empty() {
            return None;
        }
        for _ in 0..DRAWS {
            let index = self.index_at(draw())?;
            if self.accepts(index, context) {
                return Some(index);
            }
        }
        self.any(context)
    }

    /// The index at a position of [`Members::up`].
    #[inline]
    pub(super) fn index_at(self, position: usize) -> Option<usize> {
        if self.up.all { Some(position) } else { self.up.indexes.get(position).map(|&index| index as usize) }
    }

    /// Any of those up that may be chosen, beginning at a place of chance. Looks at all of them in the worst case.
    #[must_use]
    pub fn any(self, context: &PickContext<'_>) -> Option<usize> {
        let (before, after) = self.up.indexes.split_at(context.below(self.up.indexes.len()));
        let mut all = after.iter().chain(before).map(|&index| index as usize);
        all.find(|&index| self.is_eligible(index, context))
    }

    /// Whether one that is up may serve this request and, should it be on its ramp, is lucky.
    #[must_use]
    #[inline]
    pub fn accepts(self, index: usize, context: &PickContext<'_>) -> bool {
        self.is_calm(context)
            || self.state(index).is_some_and(|state| self.accepts_state(index, state, context))
    }

    fn accepts_state(self, index: usize, state: &UpstreamState, context: &PickContext<'_>) -> bool {
        if !self.up.has(index) {
            return false;
        }
        if state.is_calm() {
            return context.tried.is_empty() || !context.tried.contains(state);
        }
        self.up.heed.lets_through(state, context.now_ms)
            && !context.tried.contains(state)
            && state.ramp(context.now_ms).is_none_or(|passed| {
                let slow_start = self.get(index).and_then(|m| m.recorder().slow_start);
                context.chance(slow_start.map_or(passed.max(0.02), |s| s.factor(passed)))
            })
    }

    /// Whether one that is up may serve this request.
    #[inline]
    pub(super) fn is_eligible(self, index: usize, context: &PickContext<'_>) -> bool {
        self.is_calm(context) || self.is_eligible_state(index, context)
    }

    fn is_eligible_state(self, index: usize, context: &PickContext<'_>) -> bool {
        self.up.has(index)
            && self.state(index).is_some_and(|state| {
                self.up.heed.lets_through(state, context.now_ms) && !context.tried.contains(state)
            })
    }

    /// Whether nothing stands against anyone, so that nobody's state need be read.
    #[inline]
    pub(super) fn is_calm(self, context: &PickContext<'_>) -> bool {
        self.list.group.is_calm() && context.tried.is_empty() && self.up.only.is_none()
    }

    #[inline]
    pub(super) fn state(self, index: usize) -> Option<&'s Arc<UpstreamState>> {
        self.list.states.get(index)
    }

    /// The states of those that are up, with their indexes.
    pub(super) fn up_states(self) -> impl Iterator<Item = (usize, &'s Arc<UpstreamState>)> + Clone {
        let index = |&index: &u32| (index as usize, self.list.states.get(index as usize));
        self.up.indexes.iter().map(index).filter_map(|(index, state)| Some((index, state?)))
    }

    /// When the first ejection that is under way ends; far away if there is none.
    pub(super) fn first_return_ms(self, now_ms: i64) -> i64 {
        let ends = self.list.states.iter().map(|state| state.ejection_ms()).filter(|&end| end > now_ms);
        ends.min().unwrap_or(i64::MAX)
    }

    /// The configuration of those that are up.
    pub(super) fn up_upstreams(self) -> impl Iterator<Item = &'s Upstream> + Clone {
        self.up.indexes.iter().filter_map(move |&index| self.get(index as usize)).map(|m| m.upstream())
    }

    #[inline]
    pub(super) fn group(self) -> &'s Group {
        &self.list.group
    }

    /// Whether only some members belong here, and others come after them.
    pub(super) fn is_narrowed(self) -> bool {
        self.up.only.is_some()
    }

    /// The same kind of choice among fewer.
    pub(super) fn narrowed(self, indexes: Arc<[u32]>) -> Up {
        let Up { only, choice, heed, .. } = self.up;
        match only {
            Some(only) => Up::only(indexes, only.clone(), *choice, *heed),
            None => Up::new(indexes, self.len(), *choice, *heed),
        }
    }

    pub(super) fn choice(self) -> Choice {
        self.up.choice
    }

    /// All of them, whether or not they may be chosen.
    pub(super) fn all(self) -> impl Iterator<Item = &'s Upstream> {
        self.list.members.iter().map(|m| m.upstream())
    }

    /// Those that may be chosen, with their index.
    pub(super) fn candidates<'c>(
        self,
        context: &'c PickContext<'_>,
    ) -> impl Iterator<Item = (usize, &'s Upstream)> + Clone + use<'s, 'c> {
        let members = self.list.members.iter().enumerate();
        members
            .filter(move |&(index, m)| self.up.has(index) && self.allows(m, context))
            .map(|(index, m)| (index, m.upstream()))
    }

    /// Whether it may be chosen as far as the configuration goes.
    pub(super) fn is_configured(self, upstream: &Upstream) -> bool {
        match self.up.choice {
            Choice::Strict => upstream.takes_traffic(),
            Choice::Soul => true,
        }
    }

    fn allows(self, member: &Member, context: &PickContext<'_>) -> bool {
        self.is_configured(member.upstream())
            && self.up.heed.lets_through(member.state(), context.now_ms)
            && !context.tried.contains(member.state())
    }
}
