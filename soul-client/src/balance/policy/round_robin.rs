//! Soul's `roundRobin`: smooth weighted round robin, in turn, spread evenly, in proportion to the weights.
//!
//! The rule needs all counters at once, so that choices would exclude each other. But as long as nobody comes, goes or warms up, the
//! order repeats: it is worked out once, as a plan, and a choice then is one step of an atomic position. The
//! counters are brought up to date when the plan ends, so that Soul's order goes on where it was.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwapOption;

use super::{BuildContext, Picker, Policy, plain::Turns};
use crate::balance::{
    context::PickContext,
    members::Members,
    set::Choice,
    soul::{RoundRobin, Turn},
    upstream::Upstream,
};

/// How many first upstreams are remembered. Soul remembers all for ever, which grows without end where instances
/// come and go.
const LISTS: usize = 16;

/// Most steps that a plan may take to work out; about a millisecond, once for a change.
const PLAN_STEPS: u64 = 1 << 20;

/// Steps of the plan that a request with tried upstreams takes before it looks for any other.
const DRAWS: usize = 4;

/// Soul's `roundRobin`, which is nginx's smooth weighted round robin.
///
/// Takes no lock but after a change, while a weight changes by Soul's warm-up, and where the order is too long
/// to be worked out at once (some thousand upstreams of different weights). There
/// [`WeightedRoundRobin`](super::WeightedRoundRobin) is better.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmoothWeightedRoundRobin;

impl Policy for SmoothWeightedRoundRobin {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(RoundRobinPicker::new(context.previous(), members.parts()))
    }

    fn heeds_warmup(&self) -> bool {
        true
    }
}

/// The counters outlive the set: the next one takes them over.
#[derive(Debug)]
pub(in crate::balance) struct RoundRobinPicker {
    /// There once somebody was chosen.
    counters: OnceLock<Arc<Mutex<RoundRobin>>>,
    plan: ArcSwapOption<Plan>,
    /// In how many requests count.
    parts: u32,
    /// Where they count in several: each goes through the order of the plan by itself, from wherever it is. There once somebody was
    /// chosen.
    turns: OnceLock<Turns>,
}

impl RoundRobinPicker {
    /// - `parts`: in how many requests count.
    pub(in crate::balance) fn new(previous: Option<&Self>, parts: u32) -> Self {
        let counters = OnceLock::new();
        if let Some((previous, former)) = previous.and_then(|p| Some((p, p.counters.get()?))) {
            let mut all = locked(former);
            if let Some(plan) = previous.plan.swap(None) {
                plan.settle(&mut all);
            }
            all.keep_lists(LISTS);
            counters.get_or_init(|| Arc::clone(former));
        }
        let before = previous.and_then(|previous| previous.turns.get()).filter(|_| parts > 1);
        let turns = before.map(|before| Turns::of_parts(Some(before), parts));
        let turns = turns.map_or_else(OnceLock::new, OnceLock::from);
        Self { counters, plan: ArcSwapOption::empty(), parts, turns }
    }

    /// One choice after the other, by the counters; makes the next plan if it can.
    #[cold]
    fn pick_by_counters(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let mut counters = locked(self.counters.get_or_init(Arc::default));
        if self.parts > 1 {
            self.turns.get_or_init(|| Turns::of_parts(None, self.parts));
        }
        if let Some(plan) = self.plan.load_full() {
            // Another request may have made it while this one waited.
            if let Some(chosen) = plan.pick(members, context, self.turns.get()) {
                return chosen;
            }
            self.plan.store(None);
            plan.settle(&mut counters);
        }
        if let Some(plan) = Plan::new(&counters, members, context.now_ms, self.parts > 1) {
            let plan = Arc::new(plan);
            self.plan.store(Some(Arc::clone(&plan)));
            if let Some(chosen) = plan.pick(members, context, self.turns.get()) {
                return chosen;
            }
        }
        let mut candidates = members.candidates(context);
        let turns = candidates.clone().map(|(_, upstream)| turn(upstream, members.choice(), context.now_ms));
        let list = list_name(members, context)?;
        let position = counters.select(list, turns, context.now_ms)?;
        // Health may have changed since the count: whoever stands there now, or the first, is as good.
        candidates.clone().nth(position).or_else(|| candidates.next()).map(|(index, _)| index)
    }
}

impl Picker for RoundRobinPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let plan = self.plan.load();
        let chosen = plan.as_ref().and_then(|plan| plan.pick(members, context, self.turns.get()));
        chosen.unwrap_or_else(|| self.pick_by_counters(members, context))
    }
}

fn locked(counters: &Mutex<RoundRobin>) -> MutexGuard<'_, RoundRobin> {
    // A panic while counting leaves at worst an uneven round.
    counters.lock().unwrap_or_else(PoisonError::into_inner)
}

fn turn(upstream: &Upstream, choice: Choice, now_ms: i64) -> Turn<'_> {
    let weight = upstream.weight_at(now_ms);
    let basis = match choice {
        Choice::Soul => weight,
        // Soul starts a counter again at every step of a warm-up. Counters then forget that they were just
        // served, and of several newcomers the first gets the share of all.
        Choice::Strict => upstream.weight(),
    };
    Turn { url: upstream.url(), weight, basis }
}

/// Soul's list is the one without the upstreams that are down; with all of them up the names are equal.
fn list_name<'s>(members: Members<'s>, context: &PickContext<'_>) -> Option<&'s str> {
    match members.choice() {
        Choice::Soul => members.candidates(context).next().map(|(_, upstream)| upstream.url()),
        Choice::Strict => members.all().next().map(Upstream::url),
    }
}

/// The choices to come, as long as nothing changes.
#[derive(Debug)]
struct Plan {
    /// State of the group that it holds for.
    changes: u64,
    /// First and last moment that it holds for.
    from_ms: i64,
    until_ms: i64,
    list: Box<str>,
    candidates: Box<[Candidate]>,
    total: i64,
    /// Positions in `candidates`, in the order of the choices.
    order: Box<[u32]>,
    /// Whether the order begins again after its end.
    repeats: bool,
    /// Whether each part goes through it by itself, so that the counters cannot go on where they were.
    parted: bool,
    position: Position,
}

#[derive(Debug)]
struct Candidate {
    member: usize,
    url: Box<str>,
    weight: i32,
    basis: i32,
    /// The counter when the plan begins.
    start: i64,
}

/// Written by every choice, hence on a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Position {
    taken: AtomicUsize,
    last_ms: AtomicI64,
}

impl Plan {
    /// `None` if a weight is about to change, the sum does not fit, a url occurs twice or it would take too long.
    fn new(counters: &RoundRobin, members: Members<'_>, now_ms: i64, parted: bool) -> Option<Self> {
        let changes = members.group().changes();
        if members.is_panic() {
            return None;
        }
        let context = PickContext::at(now_ms);
        let list: Box<str> = list_name(members, &context)?.into();
        let steady = members.candidates(&context).map(|(_, u)| u.steady_for(now_ms)).min().flatten()?;
        let turns = || members.candidates(&context).map(|(_, u)| turn(u, members.choice(), now_ms));
        let mut seen = HashSet::new();
        if !turns().all(|turn| turn.weight > 0 && seen.insert(turn.url)) {
            return None;
        }
        let total = turns().map(|turn| i64::from(turn.weight)).sum();
        i32::try_from(total).ok()?;
        // An order that begins at 0 repeats itself, from wherever a part goes through it.
        let starts = if parted { turns().map(|_| 0).collect() } else { counters.currents(&list, turns()) };
        let candidate = |(((member, _), turn), start): (((usize, &Upstream), Turn<'_>), i64)| Candidate {
            member,
            url: turn.url.into(),
            weight: turn.weight,
            basis: turn.basis,
            start,
        };
        let candidates: Box<[_]> =
            members.candidates(&context).zip(turns()).zip(starts).map(candidate).collect();
        let (order, repeats) = order(&candidates, total)?;
        Some(Self {
            changes,
            from_ms: now_ms,
            until_ms: now_ms.saturating_add(steady).min(members.first_return_ms(now_ms) - 1),
            list,
            candidates,
            total,
            order,
            repeats,
            parted,
            position: Position { taken: AtomicUsize::new(0), last_ms: AtomicI64::new(now_ms) },
        })
    }

    /// The next choice; `None` if the plan no longer holds, `Some(None)` if all were tried.
    ///
    /// - `turns`: where requests count in parts.
    fn pick(
        &self,
        members: Members<'_>,
        context: &PickContext<'_>,
        turns: Option<&Turns>,
    ) -> Option<Option<usize>> {
        let holds = self.changes == members.group().changes()
            && self.from_ms <= context.now_ms
            && context.now_ms <= self.until_ms;
        if !holds {
            return None;
        }
        if turns.is_none() && self.position.last_ms.load(Relaxed) != context.now_ms {
            self.position.last_ms.store(context.now_ms, Relaxed);
        }
        let mut place = 0;
        for _ in 0..DRAWS {
            let taken = turns.map_or_else(|| self.position.taken.fetch_add(1, Relaxed), Turns::take);
            place = if self.repeats { taken % self.order.len() } else { taken };
            let member = self.member(*self.order.get(place)?)?;
            if members.is_eligible(member, context) {
                return Some(Some(member));
            }
        }
        // Most were tried or are on trial: whoever comes next, without a turn being lost.
        let (before, after) = self.order.split_at(place);
        let mut rest = after.iter().chain(before).filter_map(|&position| self.member(position));
        Some(rest.find(|&member| members.may_be_chosen(member, context)))
    }

    fn member(&self, position: u32) -> Option<usize> {
        self.candidates.get(position as usize).map(|candidate| candidate.member)
    }

    /// Brings the counters to where the choices made by this plan would have brought them.
    fn settle(&self, counters: &mut RoundRobin) {
        // One candidate is chosen without counting.
        if self.candidates.len() < 2 || self.parted {
            return;
        }
        let taken = self.position.taken.load(Relaxed);
        let taken = if self.repeats { taken % self.order.len() } else { taken.min(self.order.len()) };
        let mut chosen = vec![0_i64; self.candidates.len()];
        for &position in &self.order[..taken] {
            chosen[position as usize] += 1;
        }
        let current = |(candidate, chosen): (&Candidate, i64)| {
            let turns = i64::try_from(taken).unwrap_or(i64::MAX);
            candidate
                .start
                .wrapping_add(turns.wrapping_mul(i64::from(candidate.weight)))
                .wrapping_sub(chosen.wrapping_mul(self.total))
        };
        let currents: Vec<_> = self
            .candidates
            .iter()
            .zip(chosen)
            .map(|(c, chosen)| (Turn { url: &c.url, weight: c.weight, basis: c.basis }, current((c, chosen))))
            .collect();
        counters.set_currents(&self.list, currents.into_iter(), self.position.last_ms.load(Relaxed));
    }
}

/// The order of a round and whether it repeats itself; `None` if it is too long.
fn order(candidates: &[Candidate], total: i64) -> Option<(Box<[u32]>, bool)> {
    let first = candidates.first()?;
    if candidates.iter().all(|c| c.weight == first.weight)
        && let Some(order) = order_of_equals(candidates, total)
    {
        return Some((order, true));
    }
    let divisor = candidates.iter().fold(0, |divisor, c| gcd(divisor, i64::from(c.weight)));
    let length = u64::try_from(total / divisor).ok()?;
    let steps = length.checked_mul(candidates.len() as u64)?;
    if steps > PLAN_STEPS {
        return None;
    }
    let mut currents: Vec<i64> = candidates.iter().map(|c| c.start).collect();
    let order = (0..length).map(|_| {
        let mut best = 0;
        let mut highest = i64::MIN;
        for (position, (current, candidate)) in (0..).zip(currents.iter_mut().zip(candidates)) {
            *current = current.wrapping_add(i64::from(candidate.weight));
            if *current > highest {
                highest = *current;
                best = position;
            }
        }
        currents[best as usize] = currents[best as usize].wrapping_sub(total);
        best
    });
    let order = order.collect();
    let repeats = currents.iter().zip(candidates).all(|(&current, c)| current == c.start);
    Some((order, repeats))
}

/// Of equal weights the highest counter comes first and then falls below all others, so the order is that of the
/// counters; of two alike that of the list.
fn order_of_equals(candidates: &[Candidate], total: i64) -> Option<Box<[u32]>> {
    let starts = || candidates.iter().map(|c| c.start);
    let range = starts().max()?.checked_sub(starts().min()?)?;
    if range >= total {
        return None;
    }
    let mut order: Vec<u32> = (0..u32::try_from(candidates.len()).ok()?).collect();
    order.sort_by_key(|&position| std::cmp::Reverse(candidates[position as usize].start));
    Some(order.into())
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
