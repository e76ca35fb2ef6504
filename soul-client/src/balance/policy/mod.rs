//! The ways to choose, one file each.
//!
//! A [`Policy`] reacts to changes and builds a [`Picker`]; the picker answers requests and changes nothing but
//! relaxed counters. [`by_name`] finds a policy by the name that a configuration gives.
//!
//! # Which one
//! | name | chooses | cost |
//! |---|---|---|
//! | `peakEwma` | the one of two that answers sooner, by its times and its requests in flight; the default for calls | O(1) |
//! | `leastRequest` | the one of two with fewer requests in flight | O(1) |
//! | `plainRoundRobin`, `uniformRandom` | in turn, by chance; weights play no part | O(1) |
//! | `weightedRoundRobin`, `weightedRandom` | the same in proportion to the weights | O(1) |
//! | `ringHash`, `maglev`, and `bounded…` | by key | O(1) |
//! | `roundRobin`, `random`, `hash` | exactly as Soul | see [`UpstreamSet`](super::UpstreamSet) |
//! | `leastActive`, `p2c`, `shortestResponse` | under ShenYu's names, with what they promise | O(n), O(1), O(n) |
//! | `…Rule` | under Ribbon's names | O(1), but O(n) for `BestAvailableRule` |
//!
//! By power of two choices no upstream gets more than `2/n` of the requests, however fast it is: who wants a fast one
//! among slow ones to take most of them wants weights.

mod alias;
mod bounded;
mod hash;
mod least;
mod maglev;
mod names;
mod p2c;
mod plain;
mod random;
mod response_time;
mod ribbon;
mod ring;
mod round_robin;
mod stride;
mod zone;

use std::{any::Any, fmt, time::Duration};

pub use self::{
    alias::WeightedRandom,
    bounded::BoundedLoad,
    hash::SoulHash,
    least::{BestAvailable, LeastActive, ShortestResponse},
    maglev::Maglev,
    names::{KNOWN, UnknownPolicy, by_name},
    p2c::{Decay, LeastRequest, PeakEwma, ShenYuP2c},
    plain::{Random, RoundRobin},
    random::SoulRandom,
    response_time::WeightedResponseTime,
    ribbon::{AvailabilityFiltering, Retry},
    ring::RingHash,
    round_robin::SmoothWeightedRoundRobin,
    stride::WeightedRoundRobin,
    zone::ZoneAvoidance,
};
pub(super) use self::{hash::HashPicker, names::place, random::RandomPicker, round_robin::RoundRobinPicker};
use super::context::{PickContext, RandomSource};
pub use super::members::Members;

/// A way to choose. Builds a picker at every change of the list or of health, off the path of requests.
pub trait Policy: fmt::Debug + Send + Sync {
    /// Builds the picker for these members.
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker>;

    /// How often a picker should be built anew although nothing changed, for one that is made of numbers that
    /// requests change. Never by default.
    fn refresh_every(&self) -> Option<Duration> {
        None
    }

    /// How outcomes are to be recorded for this policy.
    fn tuning(&self) -> Tuning {
        Tuning::default()
    }

    /// Whether it works with Soul's weights of the moment, which grow in warm-up; else a warm-up is a ramp as of
    /// a slow start.
    fn heeds_warmup(&self) -> bool {
        false
    }

    /// Whether a key decides, so that a request must not be sent elsewhere without need.
    fn is_by_key(&self) -> bool {
        false
    }
}

/// What a picker is built from besides the members.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct BuildContext<'a> {
    /// The time, milliseconds since the epoch.
    pub now_ms: i64,
    /// Where chance comes from.
    pub random: &'a dyn RandomSource,
    /// The picker or table that this one replaces, if it may be of use: counters go on, large tables are shared.
    pub previous: Option<&'a dyn Any>,
}

impl<'a> BuildContext<'a> {
    /// Without a previous picker.
    #[must_use]
    pub fn new(now_ms: i64, random: &'a dyn RandomSource) -> Self {
        Self { now_ms, random, previous: None }
    }

    /// The previous one, if it is of a kind.
    #[must_use]
    pub fn previous<P: Any>(&self) -> Option<&'a P> {
        self.previous?.downcast_ref()
    }
}

impl fmt::Debug for BuildContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildContext").field("now_ms", &self.now_ms).finish_non_exhaustive()
    }
}

/// Chooses one of the members.
///
/// On the path of a request: no lock, no waiting, no allocation, no clock.
pub trait Picker: Any + Send + Sync {
    /// The index of the chosen one; `None` if none may be chosen.
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize>;
}

/// How outcomes are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tuning {
    /// Time in which the peak-sensitive average falls to 1/e. Default 10 s.
    pub peak_tau: Duration,
    /// The same for the mean. Default 10 s.
    pub mean_tau: Duration,
    /// What a failure counts as in the peak-sensitive average, lest a node that fails fast looks fast. Default 5 s; `None`
    /// records no failure.
    pub failure_penalty: Option<Duration>,
    /// Whether the requests in flight at all members are counted in one place.
    pub counts_all: bool,
    /// Whether it is noted when an upstream was last chosen.
    pub notes_picks: bool,
}

impl Tuning {
    /// What both ask for; of two times the longer one, which disturbs less.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            peak_tau: self.peak_tau.max(other.peak_tau),
            mean_tau: self.mean_tau.max(other.mean_tau),
            failure_penalty: self.failure_penalty.max(other.failure_penalty),
            counts_all: self.counts_all || other.counts_all,
            notes_picks: self.notes_picks || other.notes_picks,
        }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            peak_tau: Duration::from_secs(10),
            mean_tau: Duration::from_secs(10),
            failure_penalty: Some(Duration::from_secs(5)),
            counts_all: false,
            notes_picks: false,
        }
    }
}

/// A policy that chooses by key: it knows an order of members for each hash.
pub trait HashPolicy: fmt::Debug + Send + Sync {
    /// Builds the table for these members.
    fn build_hashing(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Hashing>;
}

/// A table that gives for each hash the owner, and who comes after it.
pub trait Hashing: Any + Send + Sync {
    /// The first member in the key's order that is accepted.
    fn find(
        &self,
        members: Members<'_>,
        context: &PickContext<'_>,
        accept: &mut dyn FnMut(usize) -> bool,
    ) -> Option<usize>;
}

/// Weight of a configuration as a share; 0 takes no traffic.
fn share(weight: i32) -> u32 {
    u32::try_from(weight).unwrap_or(0)
}
