//! From a picker's answer to a request under way: what sets and snapshots do alike.

use std::sync::Arc;

use super::{
    context::PickContext,
    list::Member,
    members::{Members, Up},
    pick::{Claim, Pick, claim},
    policy::Picker,
};

/// How often a picker is asked before anyone else is taken.
const ATTEMPTS: usize = 3;

/// When to look again for an ejected upstream that could not be taken now.
const LATER_MS: i64 = 100;

/// Asks a picker, and counts the request in at whoever that chooses.
///
/// An ejected upstream whose time is over comes first: it gets one request to prove itself, whatever the picker, but by key only
/// a request of its own keys.
///
/// - `members`: with those up that the picker was built for.
/// - `configured`: everybody whom the configuration lets take traffic.
#[inline]
pub(super) fn choose(
    picker: &(impl Picker + ?Sized),
    by_key: bool,
    members: Members<'_>,
    configured: &Up,
    context: &PickContext<'_>,
) -> Option<Pick> {
    if !by_key
        && !members.group().is_calm()
        && members.group().take_probe(context.now_ms)
        && let Some(pick) = choose_ejected(members, configured, context)
    {
        return Some(pick);
    }
    choose_from(picker, members, context)
}

#[inline]
pub(super) fn choose_from(
    picker: &(impl Picker + ?Sized),
    members: Members<'_>,
    context: &PickContext<'_>,
) -> Option<Pick> {
    for _ in 0..ATTEMPTS {
        let member = members.own(picker.pick(members, context)?)?;
        if let Some(pick) = begin(member, context.now_ms) {
            return Some(pick);
        }
    }
    // It stands before upstreams that other requests are just proving: anyone else.
    let others = members.up().iter().map(|&index| index as usize);
    let mut others = others.filter(|&index| members.is_eligible(index, context));
    others.find_map(|index| begin(members.own(index)?, context.now_ms))
}

/// One request for an ejected upstream whose time is over.
#[cold]
fn choose_ejected(members: Members<'_>, configured: &Up, context: &PickContext<'_>) -> Option<Pick> {
    let now_ms = context.now_ms;
    let mut pick = None;
    for &index in configured.indexes.iter() {
        let Some(member) = members.get(index as usize) else { continue };
        let end = member.state().ejection_ms();
        if end == 0 {
            continue;
        }
        if end > now_ms {
            members.group().probe_at(end);
        } else if pick.is_none() && members.may_be_chosen(index as usize, context) {
            pick = members.own(index as usize).and_then(|member| begin(member, now_ms));
        } else {
            // Another request's; or this one tried it before, or it is down.
            members.group().probe_at(now_ms.saturating_add(LATER_MS));
        }
    }
    pick
}

/// When there is nobody else: one that is ejected but that no probe found down. If it answers, it is back.
///
/// - `suspects`: everybody whom the configuration lets take traffic, heeding [`Heed::Probes`](super::members::Heed).
#[cold]
pub(super) fn choose_suspect(members: Members<'_>, suspects: &Up, context: &PickContext<'_>) -> Option<Pick> {
    if members.group().is_calm() {
        return None;
    }
    let member = members.with_up(suspects).any(context).and_then(|index| members.own(index))?;
    Some(Pick::new(member, claim(member, context.now_ms), context.now_ms))
}

#[inline]
pub(super) fn begin(member: &Arc<Member>, now_ms: i64) -> Option<Pick> {
    match claim(member, now_ms) {
        Claim::Taken => None,
        claim => Some(Pick::new(member, claim, now_ms)),
    }
}
