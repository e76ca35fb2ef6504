//! Calling only some of very many upstreams, so that not everyone holds connections to everyone.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
};

use super::{Filter, FilterContext, FilterRun};
use crate::balance::{Upstream, UpstreamState};

/// Keeps a few upstreams drawn by chance, and exchanges a tenth of them with each refresh of the list.
///
/// Those that leave are the ones that vanished or failed, else the worst. When only health changed nobody is exchanged.
///
/// # Source
/// Ribbon `ServerListSubsetFilter`, whose numbers are [`Subset::ribbon`]; differs: by default being busy is no reason to leave.
///
/// # Examples
/// ```
/// use soul_client::call::{Membership, filter::Subset};
///
/// let orders = Membership::builder("orders").filter(Subset::new(20));
/// # let _ = orders;
/// ```
#[doc(alias = "ServerListSubsetFilter")]
#[derive(Debug)]
pub struct Subset {
    size: usize,
    /// Share that is exchanged with each refresh.
    churn: f64,
    max_in_flight: u32,
    max_failures: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// By service.
    chosen: HashMap<String, BTreeSet<String>>,
    rng: fastrand::Rng,
}

impl Subset {
    /// Keeps so many.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self::from_rng(size, fastrand::Rng::new())
    }

    /// [`Subset::new`] with a source of chance.
    #[must_use]
    pub fn from_rng(size: usize, rng: fastrand::Rng) -> Self {
        let state = Mutex::new(State { chosen: HashMap::new(), rng });
        Self { size, churn: 0.1, max_in_flight: u32::MAX, max_failures: 0, state }
    }

    /// Keeps 20, and drops any that has a request in flight or failed its last one, as Ribbon does.
    #[must_use]
    pub fn ribbon() -> Self {
        Self { max_in_flight: 0, ..Self::new(20) }
    }

    /// Sets the share that is exchanged with each refresh. Default 0.1.
    #[doc(alias = "DEFAULT_FORCE_ELIMINATE_PERCENT")]
    #[must_use]
    pub fn churn(self, churn: f64) -> Self {
        Self { churn: churn.clamp(0.0, 1.0), ..self }
    }

    fn is_good(&self, state: &UpstreamState) -> bool {
        state.in_flight() <= self.max_in_flight && state.consecutive_failures() <= self.max_failures
    }

    /// How many go that are still listed and good.
    fn exchanged(&self, before: usize, left: usize, run: FilterRun) -> usize {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let wanted = match run {
            FilterRun::List => (self.size as f64 * self.churn) as usize,
            FilterRun::Health => 0,
        };
        wanted.saturating_sub(before - left).max(left.saturating_sub(self.size)).min(left)
    }
}

impl Filter for Subset {
    fn filter(&self, mut listed: Vec<Upstream>, context: &FilterContext<'_>) -> Vec<Upstream> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { chosen, rng } = &mut *state;
        if listed.len() <= self.size {
            chosen.remove(context.service);
            return listed;
        }
        let states = context.states();
        let known = |name: &str| states.get(name).copied();
        let before = chosen.remove(context.service).unwrap_or_default();
        let is_good =
            |name: &str| context.run == FilterRun::Health || known(name).is_none_or(|s| self.is_good(s));
        let still =
            listed.iter().map(Upstream::base_url).filter(|name| before.contains(*name) && is_good(name));
        let mut kept: Vec<String> = still.map(str::to_owned).collect();
        let exchanged = self.exchanged(before.len(), kept.len(), context.run);
        if exchanged > 0 {
            // The worst last; the others in an order of chance, so that it is not always the same who go.
            rng.shuffle(&mut kept);
            kept.sort_by_key(|name| {
                known(name).map_or((0, 0), |s| (s.consecutive_failures(), s.in_flight()))
            });
            kept.truncate(kept.len() - exchanged);
        }
        let mut others: Vec<&str> =
            listed.iter().map(Upstream::base_url).filter(|n| !before.contains(*n)).collect();
        rng.shuffle(&mut others);
        // Those that just left come back only if there is nobody else.
        let mut left: Vec<&str> =
            before.iter().map(String::as_str).filter(|n| !kept.iter().any(|k| k == n)).collect();
        left.retain(|name| listed.iter().any(|upstream| upstream.base_url() == *name));
        rng.shuffle(&mut left);
        let missing = self.size - kept.len();
        let mut now: BTreeSet<String> = kept.into_iter().collect();
        now.extend(others.into_iter().chain(left).take(missing).map(str::to_owned));
        listed.retain(|upstream| now.contains(upstream.base_url()));
        chosen.insert(context.service.to_owned(), now);
        listed
    }
}

/// Keeps a slice of the list that follows from the number of this caller, so that callers together call everyone alike.
///
/// The list, in an order that does not depend on the source's, is dealt out in rounds: callers of one round share it out among themselves.
/// Everyone gets as many calls if every number from 0 on has a caller.
///
/// # Source
/// The deterministic subsetting of Google's book on site reliability, as in Spring Cloud LoadBalancer `SubsetServiceInstanceListSupplier`,
/// whose size is 100.
///
/// # Examples
/// ```
/// use soul_client::call::{Membership, filter::DeterministicSubset};
///
/// // The ordinal of a stateful set, for example.
/// let orders = Membership::builder("orders").filter(DeterministicSubset::new(100, 7));
/// # let _ = orders;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeterministicSubset {
    size: usize,
    caller: u64,
}

impl DeterministicSubset {
    /// Keeps so many for the caller of this number.
    #[must_use]
    pub fn new(size: usize, caller: u64) -> Self {
        Self { size, caller }
    }
}

impl Filter for DeterministicSubset {
    fn filter(&self, mut listed: Vec<Upstream>, _: &FilterContext<'_>) -> Vec<Upstream> {
        if self.size == 0 || listed.len() <= self.size {
            return listed;
        }
        listed.sort_by(|a, b| a.base_url().cmp(b.base_url()));
        let slices = (listed.len() / self.size) as u64;
        let (round, slice) = (self.caller / slices, self.caller % slices);
        fastrand::Rng::with_seed(round).shuffle(&mut listed);
        // Less than the length of the list.
        #[allow(clippy::cast_possible_truncation)]
        let first = slice as usize * self.size;
        listed.drain(first..first + self.size).collect()
    }
}
