//! By chance, the quicker ones more often.

use std::time::Duration;

use super::{
    BuildContext, Picker, Policy,
    alias::{AliasPicker, AliasTable},
    plain::{TurnPicker, Turns},
};
use crate::balance::members::Members;

/// By chance in proportion to the speed of each upstream, by the decaying mean of its response time. The weights are
/// worked out every second.
///
/// One that was never measured counts as the mean of the others. As long as nobody was measured, all take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "WeightedResponseTimeRule")]
pub struct WeightedResponseTime {
    formula: Formula,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Formula {
    Speed,
    Ribbon,
}

impl WeightedResponseTime {
    /// Weight `1 / mean`: one that is ten times slower gets a tenth.
    #[must_use]
    pub const fn by_speed() -> Self {
        Self { formula: Formula::Speed }
    }

    /// Ribbon's weight, `sum of all means - mean`, worked out every 30 s: one of a hundred that is ten times slower gets
    /// 0.92 % in place of 1 %. Differs from Ribbon in that the means decay.
    #[must_use]
    pub const fn ribbon() -> Self {
        Self { formula: Formula::Ribbon }
    }
}

impl Default for WeightedResponseTime {
    fn default() -> Self {
        Self::by_speed()
    }
}

/// Means below this are alike; it keeps one from taking all.
const FLOOR_NS: f64 = 100_000.0;

impl Policy for WeightedResponseTime {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        let means = || members.up_states().map(|(_, state)| state.mean_ns(context.now_ms));
        let measured = || means().filter(|&mean| mean > 0.0);
        if measured().next().is_none() {
            return Box::new(TurnPicker {
                turns: Turns::after(context.previous::<TurnPicker>().map(|p| &p.turns), members),
            });
        }
        #[allow(clippy::cast_precision_loss)]
        let typical = measured().sum::<f64>() / measured().count() as f64;
        let means = || means().map(|mean| if mean > 0.0 { mean } else { typical });
        let table = match self.formula {
            Formula::Speed => AliasTable::new(means().map(|mean| 1.0 / mean.max(FLOOR_NS))),
            Formula::Ribbon => {
                let sum: f64 = means().sum();
                AliasTable::new(means().map(|mean| sum - mean))
            }
        };
        Box::new(AliasPicker { table })
    }

    fn refresh_every(&self) -> Option<Duration> {
        Some(match self.formula {
            Formula::Speed => Duration::from_secs(1),
            Formula::Ribbon => Duration::from_secs(30),
        })
    }
}
