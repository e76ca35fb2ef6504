//! An upstream in a list, and the list: what is configured together with the state that outlives it.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{
    group::Group,
    health::Health,
    outlier::OutlierDetector,
    parts::{self, Parts},
    pick::{Claim, Pick, Recorder},
    state::UpstreamState,
    upstream::Upstream,
};

/// One upstream of a set: what is configured, and the state it shares with earlier and later sets.
#[derive(Debug)]
#[repr(C)]
pub struct Member {
    // First, and so beside the count of the `Arc` that a choice raises: mostly one read of memory for all three.
    state: Arc<UpstreamState>,
    recorder: Arc<Recorder>,
    upstream: Upstream,
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

    /// Notes what a probe found, and gives what was known before. One found alive again is no longer ejected and begins with a slow
    /// start, if there is one.
    pub fn probed(&self, health: Health, now_ms: i64) -> Health {
        let before = self.state.set_health(health);
        if before == Health::Down && health != Health::Down {
            self.state.end_ejection();
            if let Some(slow_start) = &self.recorder.slow_start {
                slow_start.start(&self.state, now_ms);
            }
        }
        before
    }

    /// Begins a request at it, of which also the outcome is recorded. Counts in the part that it belongs to; one that a list shows
    /// belongs to none, and what it writes is shared by all threads.
    pub fn begin(self: &Arc<Self>, now_ms: i64) -> Pick {
        Pick::new(self, Claim::Free, now_ms)
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
    /// Those that had no state in the list before, if there was one.
    pub(super) newcomers: Vec<usize>,
    /// In how many parts requests count; 1 is in none of their own.
    pub(super) parts: u32,
    /// For each part the members that its requests hold: they are counted in and out as well.
    own: Parts<Box<[OnceLock<Arc<Member>>]>>,
    /// Indexes by address, ascending.
    by_address: Box<[u32]>,
}

impl MemberList {
    /// Gives every upstream the state it had, or a new one.
    ///
    /// - `parts`: in how many requests count.
    pub(super) fn build(
        upstreams: Vec<Upstream>,
        previous: Option<&Self>,
        recorder: &Arc<Recorder>,
        parts: usize,
    ) -> Self {
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
                if previous.is_some() {
                    newcomers.push(index);
                }
                UpstreamState::new(upstream.protocol(), upstream.url(), &group)
            });
            Arc::new(Member { state: Arc::clone(state), upstream, recorder: Arc::clone(recorder) })
        };
        let members: Box<[_]> = upstreams.into_iter().enumerate().map(member).collect();
        let states = members.iter().map(|m| Arc::clone(&m.state)).collect();
        let mut by_address: Box<[u32]> = (0..).zip(&members).map(|(index, _)| index).collect();
        by_address.sort_by_key(|&index| members.get(index as usize).map(|m| m.upstream.address()));
        let parts = u32::try_from(parts).unwrap_or(u32::MAX);
        let list = Self { members, states, group, newcomers, parts, own: Parts::default(), by_address };
        list.recount();
        list
    }

    /// A member as the requests of this thread hold it: the one of their part.
    #[inline]
    pub(super) fn own(&self, index: usize) -> Option<&Arc<Member>> {
        if self.parts <= 1 {
            return self.members.get(index);
        }
        let own = self.own.get(parts::own()).and_then(|own| own.get(index)).and_then(OnceLock::get);
        own.or_else(|| self.init_own(index))
    }

    #[cold]
    fn init_own(&self, index: usize) -> Option<&Arc<Member>> {
        let member = self.members.get(index)?;
        let (thread, count) = (parts::own(), self.parts as usize);
        let none = || self.members.iter().map(|_| OnceLock::new()).collect();
        let own = self.own.get_or_init(thread, count, none).get(index)?;
        Some(own.get_or_init(|| {
            let place = u32::try_from(thread % count).unwrap_or(0).saturating_add(1);
            let recorder = Arc::new(member.recorder.at(place));
            member.state.open(place, self.parts);
            if recorder.tuning.counts_all {
                self.group.open(place, self.parts);
            }
            Arc::new(Member { state: Arc::clone(&member.state), recorder, upstream: member.upstream.clone() })
        }))
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

    /// Looks at the success rates, when it is time to.
    pub(super) fn sweep(&self, outliers: Option<&OutlierDetector>, now_ms: i64) {
        if let Some(outliers) = outliers {
            let takes_traffic = self.members.iter().filter(|m| m.upstream.takes_traffic());
            outliers.sweep(&self.group, takes_traffic.map(|m| &*m.state), now_ms);
        }
    }

    /// The first at an address.
    pub(super) fn at_address(&self, address: &str) -> Option<usize> {
        self.all_at(address).next()
    }

    /// All at an address, of whatever protocol.
    pub(super) fn all_at<'s>(&'s self, address: &str) -> impl Iterator<Item = usize> + use<'s> {
        let address_of = |index: u32| self.members.get(index as usize).map(|m| m.upstream.address());
        let place = self.by_address.partition_point(|&index| address_of(index) < Some(address));
        let rest = self.by_address.get(place..).unwrap_or_default();
        let here = rest.partition_point(|&index| address_of(index) == Some(address));
        rest.iter().take(here).map(|&index| index as usize)
    }

    pub(super) fn lists(&self, upstreams: &[Upstream]) -> bool {
        self.members.iter().map(|m| &m.upstream).eq(upstreams)
    }
}
