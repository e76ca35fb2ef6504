//! The better one of two drawn by chance.

use std::time::Duration;

use super::{BuildContext, Picker, Policy, Tuning, alias::AliasTable, share};
use crate::balance::{
    context::PickContext,
    members::Members,
    pick::{nanos, per_ms},
    state::UpstreamState,
    traffic::Fading,
};

/// Up to as many all are looked at; two of three or four would too often miss the idle one.
const FEW: usize = 4;

/// What a newcomer is taken to cost, of the mean of the others: more, for it begins with nothing in flight; idle, it is
/// asked for the first time after a third of the decay constant.
const NEWCOMER: f64 = 1.4;

/// How often a draw is repeated before all are looked at.
const DRAWS: usize = 3;

/// The one of two with fewer requests in flight for its weight; of four or fewer the one with the fewest, of several
/// alike any.
///
/// # Source
/// Mitzenmacher, The Power of Two Choices in Randomized Load Balancing, 1996.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastRequest;

/// The one of two that would answer sooner: by its decayed peak response time and its requests in flight.
///
/// A newcomer counts as a little more than the mean of the others. Where nobody was measured, each gets a request at once, and while that is
/// under way counts as [`PeakEwma::seed`]. Failures count as slow (see [`Tuning::failure_penalty`]): one that fails fast must not look fast.
///
/// # Source
/// Finagle's `PeakEwma`; linkerd's seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakEwma {
    /// Time in which a peak falls to 1/e. Default 10 s.
    pub tau: Duration,
    /// Response time of one that was never measured, if nobody was. Default 30 ms.
    pub seed: Duration,
    /// What a failure counts as at least; `None` records no failure. Default 5 s.
    pub failure_penalty: Option<Duration>,
    /// How the decay is worked out where one is chosen. Default [`Decay::Rational`], which response times are always averaged by.
    pub decay: Decay,
}

impl Default for PeakEwma {
    fn default() -> Self {
        Self {
            tau: Duration::from_secs(10),
            seed: Duration::from_millis(30),
            failure_penalty: Some(Duration::from_secs(5)),
            decay: Decay::Rational,
        }
    }
}

/// How a response time decays with its age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decay {
    /// `exp(-x)`.
    Exact,
    /// `1 / (1 + x + x²/2 + x³/6)`: exact to a percent up to the decay constant, slower after several of them, and some times
    /// faster to compute.
    #[default]
    Rational,
}

impl Decay {
    #[inline]
    pub(in crate::balance) fn factor(self, age_ms: f64, per_tau: f64) -> f64 {
        1.0 / self.divisor(age_ms * per_tau)
    }

    /// What a response time of this age, in decay constants, is divided by.
    #[inline]
    fn divisor(self, x: f64) -> f64 {
        match self {
            Self::Exact => libm::exp(x),
            Self::Rational => 1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0))),
        }
    }
}

/// ShenYu's `p2c`: `⌊√(lag + 1)⌋ · (in flight + 1)`, the lag in milliseconds; one that was not chosen for three seconds is
/// chosen nonetheless.
///
/// Unlike ShenYu's, the lag is measured from the start of its own request, and the counters outlive a refresh.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShenYuP2c;

/// After this time without a request one is due.
const FORCED_AFTER_MS: i64 = 3_000;

/// The load of one upstream; the lower one of two is chosen.
trait Load: Send + Sync + 'static {
    /// As numerator and divisor, for a division takes longer than all the rest.
    fn load(&self, state: &UpstreamState, context: &PickContext<'_>) -> (f64, f64);

    /// Whether it is due, whatever its load.
    fn is_due(&self, _: &UpstreamState, _: &PickContext<'_>) -> bool {
        false
    }
}

struct InFlightLoad;

struct PeakLoad {
    fading: Fading,
    seed_ns: f64,
}

struct ShenYuLoad;

impl Load for InFlightLoad {
    #[inline]
    fn load(&self, state: &UpstreamState, context: &PickContext<'_>) -> (f64, f64) {
        (f64::from(state.in_flight_at(context.now_ms)), 1.0)
    }
}

impl Load for PeakLoad {
    #[inline]
    fn load(&self, state: &UpstreamState, context: &PickContext<'_>) -> (f64, f64) {
        let (peak, age) = state.peak_and_age(context.now_ms, self.fading);
        let in_flight = state.in_flight_at(context.now_ms);
        if peak > 0.0 {
            return (
                peak * (f64::from(in_flight) + 1.0),
                self.fading.decay.divisor(age * self.fading.per_tau),
            );
        }
        // Until it is measured it gets one request at a time, and at once.
        let load = if in_flight == 0 { 0.0 } else { self.seed_ns * (f64::from(in_flight) + 1.0) };
        (load, 1.0)
    }
}

impl Load for ShenYuLoad {
    fn load(&self, state: &UpstreamState, context: &PickContext<'_>) -> (f64, f64) {
        let (mean_ns, in_flight) = (state.mean_ns(context.now_ms), state.in_flight_at(context.now_ms));
        ((mean_ns / 1e6 + 1.0).sqrt().floor() * (f64::from(in_flight) + 1.0), 1.0)
    }

    fn is_due(&self, state: &UpstreamState, context: &PickContext<'_>) -> bool {
        state.picked_at_ms() != 0 && context.now_ms.wrapping_sub(state.picked_at_ms()) > FORCED_AFTER_MS
    }
}

impl Policy for LeastRequest {
    fn build(&self, members: Members<'_>, _: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(TwoChoices::new(members, InFlightLoad, FEW))
    }
}

impl Policy for PeakEwma {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        let fading = Fading { per_tau: per_ms(self.tau), decay: self.decay };
        let (mut sum, mut count) = (0.0, 0.0);
        for (_, state) in members.up_states() {
            let cost = state.decayed_peak_ns(context.now_ms, fading);
            if cost > 0.0 {
                sum += cost;
                count += 1.0;
            }
        }
        if count > 0.0 {
            // A newcomer begins near the mean of the others, until its first answer. Were it asked at once, every caller would
            // do so at the same time.
            for (_, state) in members.up_states().filter(|(_, state)| state.latest_peak_ns() == 0.0) {
                state.set_peak(NEWCOMER * sum / count, context.now_ms, false);
            }
        }
        let load = PeakLoad { fading, seed_ns: nanos(self.seed) };
        Box::new(TwoChoices::new(members, load, 2))
    }

    fn refresh_every(&self) -> Option<Duration> {
        // Whoever was not measured so far becomes the mean of the others.
        Some(Duration::from_secs(10))
    }

    fn tuning(&self) -> Tuning {
        Tuning { peak_tau: self.tau, failure_penalty: self.failure_penalty, ..Tuning::default() }
    }
}

impl Policy for ShenYuP2c {
    fn build(&self, members: Members<'_>, _: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(TwoChoices::new(members, ShenYuLoad, 2))
    }

    fn tuning(&self) -> Tuning {
        Tuning { mean_tau: Duration::from_millis(600), notes_picks: true, ..Tuning::default() }
    }
}

struct TwoChoices<L> {
    load: L,
    /// Where the weights differ.
    uneven: Option<Uneven>,
    /// Up to as many, all are looked at.
    few: usize,
}

/// One of all, then one of the others, each equally likely.
#[inline]
fn draw_two(count: usize, context: &PickContext<'_>) -> (usize, usize) {
    let (first, second) = context.below_both(count, count - 1);
    (first, if second >= first { second + 1 } else { second })
}

struct Uneven {
    table: AliasTable,
    /// By position in those that are up.
    weights: Box<[f64]>,
}

impl Uneven {
    fn draw(&self, count: usize, context: &PickContext<'_>) -> (usize, usize) {
        let first = self.table.draw(context);
        for _ in 0..DRAWS {
            let second = self.table.draw(context);
            if second != first {
                return (first, second);
            }
        }
        let second = context.below(count - 1);
        (first, if second >= first { second + 1 } else { second })
    }
}

impl<L: Load> TwoChoices<L> {
    fn new(members: Members<'_>, load: L, few: usize) -> Self {
        let weights = || members.up_upstreams().map(|u| f64::from(share(u.weight())));
        let uneven = AliasTable::if_uneven(members.up_upstreams())
            .map(|table| Uneven { table, weights: weights().collect() });
        Self { load, uneven, few }
    }

    /// Two different positions, of two or more.
    #[inline]
    fn draw(&self, members: Members<'_>, context: &PickContext<'_>) -> (usize, usize) {
        let count = members.up().len();
        self.uneven.as_ref().map_or_else(|| draw_two(count, context), |uneven| uneven.draw(count, context))
    }

    /// By requests in flight alone an idle upstream of weight 1 and one of weight 9 are alike, hence the draw by
    /// weight; once busy, each should have its share in flight.
    #[inline]
    fn weight_at(&self, position: usize) -> f64 {
        let weights = self.uneven.as_ref().map(|uneven| &uneven.weights);
        weights.and_then(|weights| weights.get(position)).copied().unwrap_or(1.0)
    }

    /// Whether the first of two is to be taken, each with its weight.
    #[inline]
    fn is_first_better(
        &self,
        (x, weight_x): (&UpstreamState, f64),
        (y, weight_y): (&UpstreamState, f64),
        context: &PickContext<'_>,
    ) -> bool {
        if self.load.is_due(x, context) {
            return true;
        }
        if self.load.is_due(y, context) {
            return false;
        }
        let ((load_x, by_x), (load_y, by_y)) = (self.load.load(x, context), self.load.load(y, context));
        load_x * (by_y * weight_y) <= load_y * (by_x * weight_x)
    }

    /// The better one of two, each with its position.
    fn better(
        &self,
        members: Members<'_>,
        context: &PickContext<'_>,
        (first, a): (usize, usize),
        (second, b): (usize, usize),
    ) -> Option<usize> {
        let (x, y) = (members.state(a)?, members.state(b)?);
        let (x, y) = ((&**x, self.weight_at(first)), (&**y, self.weight_at(second)));
        Some(if self.is_first_better(x, y, context) { a } else { b })
    }

    /// The least of all, of several alike any.
    fn least(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let (mut least, mut ties, mut chosen) = (f64::INFINITY, 0, None);
        for (position, (index, state)) in members.up_states().enumerate() {
            if !members.accepts(index, context) {
                continue;
            }
            let (load, divisor) = self.load.load(state, context);
            let load = load / (divisor * self.weight_at(position));
            if load < least {
                (least, ties, chosen) = (load, 1, Some(index));
            } else if load <= least {
                ties += 1;
                if context.below(ties) == 0 {
                    chosen = Some(index);
                }
            }
        }
        chosen.or_else(|| members.any(context))
    }
}

impl<L: Load> Picker for TwoChoices<L> {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let count = members.up().len();
        if count <= self.few || self.uneven.is_some() || !members.is_calm(context) {
            return self.pick_heeding_all(members, context);
        }
        let (first, second) = draw_two(count, context);
        let (a, b) = (members.index_at(first)?, members.index_at(second)?);
        let (x, y) = (members.state(a)?, members.state(b)?);
        Some(if self.is_first_better((x, 1.0), (y, 1.0), context) { a } else { b })
    }
}

impl<L: Load> TwoChoices<L> {
    /// Where there are few, weights differ or something stands against somebody. Apart, since what the others need fits in
    /// registers.
    #[inline(never)]
    fn pick_heeding_all(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let up = members.up();
        if up.len() <= self.few {
            return self.least(members, context);
        }
        let calm = members.is_calm(context);
        for _ in 0..DRAWS {
            let (first, second) = self.draw(members, context);
            let (a, b) = (members.index_at(first)?, members.index_at(second)?);
            let accepts = |index| calm || members.accepts(index, context);
            match (accepts(a), accepts(b)) {
                (true, true) => return self.better(members, context, (first, a), (second, b)),
                (true, false) => return Some(a),
                (false, true) => return Some(b),
                (false, false) => {}
            }
        }
        members.any(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rational_decay_is_exact_to_a_percent_up_to_the_constant_and_never_faster() {
        for age in [0.0, 1.0, 10.0, 100.0, 1_000.0, 5_000.0, 10_000.0] {
            let (exact, rational) = (Decay::Exact.factor(age, 1e-4), Decay::Rational.factor(age, 1e-4));
            assert!(rational >= exact && rational / exact < 1.02, "{age}: {exact} {rational}");
        }
        assert!(Decay::Rational.factor(60_000.0, 1e-4) < 0.02);
    }
}
