//! Ribbon's rules of round robin with conditions.

use std::time::Duration;

use super::{
    BuildContext, Picker, Policy,
    plain::{TurnPicker, Turns},
};
use crate::balance::{context::PickContext, health::Health, list::Member, members::Members, outlier::millis};

/// In turn among those that are healthy and have less than a limit of requests in flight; if none has, among the healthy;
/// if none is, among all.
#[derive(Clone, Copy, Debug, Default)]
#[doc(alias = "AvailabilityFilteringRule")]
pub struct AvailabilityFiltering {
    /// Requests in flight from which on an upstream is passed over; `None`, the default, is no limit. Ribbon's
    /// `ActiveConnectionsLimit`.
    pub limit: Option<u32>,
}

struct AvailabilityPicker {
    turns: TurnPicker,
    limit: u32,
}

impl Policy for AvailabilityFiltering {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        let previous = context.previous::<AvailabilityPicker>().map(|p| &p.turns.turns);
        let turns = TurnPicker { turns: Turns::after(previous, members) };
        Box::new(AvailabilityPicker { turns, limit: self.limit.unwrap_or(u32::MAX) })
    }
}

impl Picker for AvailabilityPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let now_ms = context.now_ms;
        let has_room =
            |index: usize| members.state(index).is_some_and(|s| s.in_flight_at(now_ms) < self.limit);
        let up = members.up();
        if self.limit != u32::MAX && !up.is_empty() {
            let start = self.turns.turns.next(up.len());
            let (before, after) = up.split_at(start);
            let mut all = after.iter().chain(before).map(|&index| index as usize);
            if let Some(index) = all.find(|&index| members.accepts(index, context) && has_room(index)) {
                return Some(index);
            }
        }
        self.turns.pick(members, context).or_else(|| whatever(members, context, &self.turns.turns, |_| true))
    }
}

/// In turn; while nobody is healthy, one whose ejection ends within half a second.
///
/// Ribbon's asks its rule again and again for that long, on the thread of the request. This waits for nobody: it takes
/// at once what Ribbon would have waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "RetryRule")]
pub struct Retry {
    /// How soon an ejection must end. Default 500 ms.
    pub within: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { within: Duration::from_millis(500) }
    }
}

struct RetryPicker {
    turns: TurnPicker,
    within_ms: i64,
}

impl Policy for Retry {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        let previous = context.previous::<RetryPicker>().map(|p| &p.turns.turns);
        Box::new(RetryPicker {
            turns: TurnPicker { turns: Turns::after(previous, members) },
            within_ms: millis(self.within),
        })
    }
}

impl Picker for RetryPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let soon = context.now_ms.saturating_add(self.within_ms);
        let back_soon =
            |member: &Member| member.state().health() != Health::Down && member.state().ejection_ms() <= soon;
        self.turns.pick(members, context).or_else(|| whatever(members, context, &self.turns.turns, back_soon))
    }
}

/// In turn among all that the configuration lets take traffic and that were not tried, healthy or not.
pub(super) fn whatever(
    members: Members<'_>,
    context: &PickContext<'_>,
    turns: &Turns,
    accept: impl Fn(&Member) -> bool,
) -> Option<usize> {
    // Among some only, it is not the last resort yet.
    if members.is_narrowed() {
        return None;
    }
    let start = turns.next(members.len());
    let mut all = (start..members.len()).chain(0..start);
    all.find(|&index| {
        members.get(index).is_some_and(|member| {
            members.is_configured(member.upstream())
                && !context.tried.contains(member.state())
                && accept(member)
        })
    })
}
