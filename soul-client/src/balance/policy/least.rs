//! The best of all, by looking at each.

use std::time::Duration;

use super::{BuildContext, Picker, Policy, Tuning, share};
use crate::balance::{context::PickContext, members::Members, state::UpstreamState};

/// The one with the fewest requests in flight; of several alike any, whatever their weights.
///
/// Ribbon's takes the first of several alike, so that all callers prefer the same; and it counts an
/// upstream that fails fast as idle. Looks at all upstreams for each request;
/// [`LeastRequest`](super::LeastRequest) looks at two.
#[derive(Clone, Copy, Debug, Default)]
#[doc(alias = "BestAvailableRule")]
pub struct BestAvailable;

/// The one with the fewest requests in flight; of several alike each in proportion to its weight.
///
/// ShenYu's counts all requests since the start, so that a newcomer gets every request until it has caught up.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastActive;

/// The one with the lowest product of mean response time and requests in flight with this one; of several
/// alike each in proportion to its weight. One that was never measured counts as the quickest; one that just failed, as slow.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShortestResponse;

impl Policy for BestAvailable {
    fn build(&self, _: Members<'_>, _: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(LeastPicker { cost: in_flight, weighted: false })
    }
}

impl Policy for LeastActive {
    fn build(&self, _: Members<'_>, _: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(LeastPicker { cost: in_flight, weighted: true })
    }
}

impl Policy for ShortestResponse {
    fn build(&self, _: Members<'_>, _: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(LeastPicker { cost: expected_response, weighted: true })
    }

    fn tuning(&self) -> Tuning {
        Tuning { mean_tau: Duration::from_secs(10), ..Tuning::default() }
    }
}

fn in_flight(state: &UpstreamState) -> f64 {
    f64::from(state.in_flight())
}

/// By the mean, but by the peak, which has the penalty in it, while it is failing.
fn expected_response(state: &UpstreamState) -> f64 {
    let mean = state.mean_ns();
    let expected = if state.consecutive_failures() > 0 { mean.max(state.peak_ns()) } else { mean };
    expected * f64::from(state.in_flight() + 1)
}

struct LeastPicker {
    cost: fn(&UpstreamState) -> f64,
    weighted: bool,
}

impl Picker for LeastPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let (mut least, mut ties, mut chosen) = (f64::INFINITY, 0_u32, None);
        for (index, state) in members.up_states() {
            if !members.accepts(index, context) {
                continue;
            }
            let cost = (self.cost)(state);
            if cost > least {
                continue;
            }
            let weight = if self.weighted {
                members.get(index).map_or(0, |m| share(m.upstream().weight()))
            } else {
                1
            };
            ties = if cost < least { weight } else { ties.saturating_add(weight) };
            // The k-th of those alike replaces the one before with its part of the sum: each has its share.
            if cost < least || context.random.below(ties.max(1)) < weight {
                chosen = Some(index);
            }
            least = cost;
        }
        chosen.or_else(|| members.any(context))
    }
}
