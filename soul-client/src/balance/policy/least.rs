//! The best of all, by looking at each.

use std::time::Duration;

use super::{BuildContext, Picker, Policy, share};
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
/// alike each in proportion to its weight. One that was never measured gets a request at once, and while that is under way
/// counts as the mean of the others; one that just failed counts as slow.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShortestResponse;

impl Policy for BestAvailable {
    fn build(&self, _: Members<'_>, _: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(LeastPicker { cost: Cost::InFlight, weighted: false })
    }
}

impl Policy for LeastActive {
    fn build(&self, _: Members<'_>, _: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(LeastPicker { cost: Cost::InFlight, weighted: true })
    }
}

impl Policy for ShortestResponse {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        let means = || members.up_states().map(|(_, state)| state.mean_ns(context.now_ms));
        let measured = || means().filter(|&mean| mean > 0.0);
        #[allow(clippy::cast_precision_loss)]
        let typical_ns = measured().sum::<f64>() / measured().count().max(1) as f64;
        Box::new(LeastPicker { cost: Cost::Response { typical_ns: typical_ns.max(1.0) }, weighted: true })
    }

    fn refresh_every(&self) -> Option<Duration> {
        Some(Duration::from_secs(10))
    }
}

#[derive(Clone, Copy)]
enum Cost {
    InFlight,
    /// What one that was never measured counts as.
    Response {
        typical_ns: f64,
    },
}

impl Cost {
    fn of(self, state: &UpstreamState, now_ms: i64) -> f64 {
        let in_flight = state.in_flight_at(now_ms);
        let Self::Response { typical_ns } = self else { return f64::from(in_flight) };
        let mean = state.mean_ns(now_ms);
        // Until it is measured it gets one request at a time, and at once.
        if mean == 0.0 && in_flight == 0 && state.consecutive_failures() == 0 {
            return 0.0;
        }
        let mean = if mean > 0.0 { mean } else { typical_ns };
        // While it is failing by the peak, which has the penalty in it.
        let expected = if state.consecutive_failures() > 0 { mean.max(state.latest_peak_ns()) } else { mean };
        expected * (f64::from(in_flight) + 1.0)
    }
}

struct LeastPicker {
    cost: Cost,
    weighted: bool,
}

impl Picker for LeastPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let (mut least, mut ties, mut chosen) = (f64::INFINITY, 0_u32, None);
        for (index, state) in members.up_states() {
            if !members.accepts(index, context) {
                continue;
            }
            let cost = self.cost.of(state, context.now_ms);
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
            if cost < least || context.draw(ties) < weight {
                chosen = Some(index);
            }
            least = cost;
        }
        chosen.or_else(|| members.any(context))
    }
}
