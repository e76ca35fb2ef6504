//! Narrowing a list before anyone is chosen from it: to the own zone, to a subset, or by a filter of one's own.

mod subset;
mod zone;

use std::{collections::HashMap, fmt};

pub use subset::{DeterministicSubset, Subset};
pub use zone::ZoneAffinity;

use crate::balance::{Health, Snapshot, Upstream, UpstreamState};

/// Narrows a list.
///
/// Runs where the list is written, never on the path of a request. Who is filtered out is gone: neither probed nor
/// chosen, and new when it comes back. A filter may also say more of an upstream than its source did, such as a zone. Filters of a service run
/// one after the other; see [`filter_fn`] for closures.
///
/// # Examples
/// ```
/// use soul_client::{balance::Upstream, call::filter::{Filter, FilterContext}};
///
/// /// Only upstreams of one version.
/// struct Version(&'static str);
///
/// impl Filter for Version {
///     fn filter(&self, mut listed: Vec<Upstream>, _: &FilterContext<'_>) -> Vec<Upstream> {
///         listed.retain(|upstream| upstream.metadata().get("version").is_some_and(|v| v == self.0));
///         listed
///     }
/// }
/// ```
#[doc(alias = "ServerListFilter")]
pub trait Filter: Send + Sync + 'static {
    /// Those of the list that calls may go to, in any order.
    fn filter(&self, listed: Vec<Upstream>, context: &FilterContext<'_>) -> Vec<Upstream>;

    /// Whether the answer depends on health or load, so that the filter is also run when health changes.
    fn heeds_health(&self) -> bool {
        false
    }
}

/// What a filter may look at besides the list.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FilterContext<'a> {
    /// Name of the service.
    pub service: &'a str,
    /// What serves now, with the state of its members.
    pub snapshot: &'a Snapshot,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// Why the filter is run.
    pub run: FilterRun,
}

impl FilterContext<'_> {
    /// What is known of the upstreams that are listed now, by protocol and address.
    fn states(&self) -> HashMap<&str, &UpstreamState> {
        self.snapshot.all().iter().map(|m| (m.upstream().base_url(), &**m.state())).collect()
    }

    /// Whether a probe or an ejection stands against an upstream.
    fn is_tripped(&self, state: &UpstreamState) -> bool {
        state.health() == Health::Down || state.ejected_until_ms().is_some_and(|until| until > self.now_ms)
    }
}

/// Why a filter is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterRun {
    /// The source said or confirmed a list.
    List,
    /// Health changed, the list did not.
    Health,
}

/// A filter made of a closure; see [`filter_fn`].
pub struct FilterFn<F>(F);

/// Makes a filter of a closure.
///
/// # Examples
/// ```
/// use soul_client::call::filter::filter_fn;
///
/// let green = filter_fn(|mut listed, _| {
///     listed.retain(|upstream| upstream.metadata().get("colour").is_none_or(|colour| colour == "green"));
///     listed
/// });
/// # let _ = soul_client::call::Membership::builder("orders").filter(green);
/// ```
pub fn filter_fn<F>(filter: F) -> FilterFn<F>
where
    F: Fn(Vec<Upstream>, &FilterContext<'_>) -> Vec<Upstream> + Send + Sync + 'static,
{
    FilterFn(filter)
}

impl<F> Filter for FilterFn<F>
where
    F: Fn(Vec<Upstream>, &FilterContext<'_>) -> Vec<Upstream> + Send + Sync + 'static,
{
    fn filter(&self, listed: Vec<Upstream>, context: &FilterContext<'_>) -> Vec<Upstream> {
        (self.0)(listed, context)
    }
}

impl<F> fmt::Debug for FilterFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FilterFn")
    }
}

#[cfg(test)]
mod tests;
