//! What happened between two looks at a service, as events.

use std::{collections::HashMap, sync::Arc};

use crate::{
    balance::{Health, Member, Snapshot},
    call::MemberEvent,
};

/// What was seen of a service at the last look.
pub(super) struct Observer {
    /// Keeps the states of its members in place.
    snapshot: Arc<Snapshot>,
    seen: HashMap<StateId, Seen>,
}

/// Where the state of a member stands in memory: it outlives refreshes, and a member that came back has another one.
type StateId = usize;

#[derive(Clone, Copy)]
struct Seen {
    health: Health,
    ejections: u32,
}

impl Observer {
    pub(super) fn new(snapshot: Arc<Snapshot>) -> Self {
        let seen = look(&snapshot);
        Self { snapshot, seen }
    }

    /// What happened since the last look; nothing, if neither the snapshot is another one nor health was set.
    pub(super) fn look(&mut self, now: Arc<Snapshot>, health_was_set: bool) -> Vec<MemberEvent> {
        if Arc::ptr_eq(&self.snapshot, &now) && !health_was_set {
            return Vec::new();
        }
        let seen = look(&now);
        let mut events = Vec::new();
        self.list(&now, &seen, &mut events);
        for member in now.all() {
            let Some(is) = seen.get(&id(member)) else { continue };
            let was = self.seen.get(&id(member));
            compare(member, was, *is, &mut events);
        }
        if self.snapshot.is_panic() != now.is_panic() {
            events.push(MemberEvent::Panic { on: now.is_panic() });
        }
        (self.snapshot, self.seen) = (now, seen);
        events
    }

    fn list(&self, now: &Arc<Snapshot>, seen: &HashMap<StateId, Seen>, events: &mut Vec<MemberEvent>) {
        if self.snapshot.all().iter().map(|m| m.upstream()).eq(now.all().iter().map(|m| m.upstream())) {
            return;
        }
        let absent_from = |from: &HashMap<StateId, Seen>, list: &Snapshot| -> Vec<String> {
            list.all().iter().filter(|m| !from.contains_key(&id(m))).map(name).collect()
        };
        events.push(MemberEvent::ListChanged {
            generation: now.generation(),
            added: absent_from(&self.seen, now),
            removed: absent_from(seen, &self.snapshot),
            total: now.all().len(),
        });
    }
}

fn look(snapshot: &Snapshot) -> HashMap<StateId, Seen> {
    let seen = |member: &Arc<Member>| {
        let state = member.state();
        (id(member), Seen { health: state.health(), ejections: state.ejections() })
    };
    snapshot.all().iter().map(seen).collect()
}

fn compare(member: &Arc<Member>, was: Option<&Seen>, is: Seen, events: &mut Vec<MemberEvent>) {
    let was = was.copied().unwrap_or(Seen { health: Health::Unknown, ejections: 0 });
    if was.health != is.health {
        events.push(MemberEvent::StatusChanged { upstream: name(member), health: is.health });
    }
    if is.ejections > was.ejections {
        let until_ms = member.state().ejected_until_ms().unwrap_or_default();
        events.push(MemberEvent::Ejected { upstream: name(member), until_ms });
    } else if is.ejections < was.ejections {
        events.push(MemberEvent::Restored { upstream: name(member) });
    }
}

fn id(member: &Arc<Member>) -> StateId {
    Arc::as_ptr(member.state()) as StateId
}

fn name(member: &Arc<Member>) -> String {
    member.upstream().base_url().to_owned()
}
