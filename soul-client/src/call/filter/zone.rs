//! Staying in one's own zone while it can carry the load.

use super::{Filter, FilterContext};
use crate::balance::Upstream;

/// Keeps the upstreams of the own zone, and all of them when the own zone is not well.
///
/// It is not well, for all of its `m` upstreams of which `t` are tripped (down, ejected or switched off), if `t / m` or the requests in flight
/// per untripped upstream reach a limit, or fewer than so many are untripped. Zones are compared without regard to case.
///
/// # Source
/// Ribbon `ZoneAffinityServerListFilter`, with its limits; differs: it is run again when health changes, not only when the list does.
///
/// # Examples
/// ```
/// use soul_client::call::{Membership, filter::ZoneAffinity};
///
/// let orders = Membership::builder("orders").filter(ZoneAffinity::new("eu-1"));
/// # let _ = orders;
/// ```
#[doc(alias = "ZoneAffinityServerListFilter")]
#[doc(alias = "ZonePreferenceServerListFilter")]
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneAffinity {
    /// The own zone.
    pub zone: String,
    /// Requests in flight per untripped upstream from which on other zones help. Default 0.6.
    #[doc(alias = "activeReqeustsPerServer")]
    pub max_load: f64,
    /// Share of tripped upstreams from which on other zones help. Default 0.8.
    #[doc(alias = "blackOutServerPercentage")]
    pub max_tripped: f64,
    /// Untripped upstreams below which other zones help. Default 2.
    #[doc(alias = "availableServers")]
    pub min_available: usize,
    /// Whether other zones never help. Default false.
    #[doc(alias = "EnableZoneExclusivity")]
    pub exclusive: bool,
}

impl ZoneAffinity {
    /// Prefers a zone, with Ribbon's limits.
    #[must_use]
    pub fn new(zone: impl Into<String>) -> Self {
        Self { zone: zone.into(), max_load: 0.6, max_tripped: 0.8, min_available: 2, exclusive: false }
    }

    /// Keeps to a zone, come what may.
    #[must_use]
    pub fn exclusive(zone: impl Into<String>) -> Self {
        Self { exclusive: true, ..Self::new(zone) }
    }

    fn is_own(&self, upstream: &Upstream) -> bool {
        upstream.zone().is_some_and(|zone| zone.eq_ignore_ascii_case(&self.zone))
    }

    fn is_well(&self, listed: &[Upstream], context: &FilterContext<'_>) -> bool {
        let states = context.states();
        let (mut all, mut tripped, mut in_flight) = (0_usize, 0_usize, 0_u64);
        for upstream in listed.iter().filter(|upstream| self.is_own(upstream)) {
            all += 1;
            let state = states.get(upstream.base_url());
            in_flight += state.map_or(0, |state| u64::from(state.in_flight()));
            let is_tripped =
                !upstream.takes_traffic() || state.is_some_and(|state| context.is_tripped(state));
            tripped += usize::from(is_tripped);
        }
        let available = all - tripped;
        if available < self.min_available || available == 0 {
            return false;
        }
        #[allow(clippy::cast_precision_loss)]
        let (tripped, load) = (tripped as f64 / all as f64, in_flight as f64 / available as f64);
        tripped < self.max_tripped && load < self.max_load
    }
}

impl Filter for ZoneAffinity {
    fn filter(&self, mut listed: Vec<Upstream>, context: &FilterContext<'_>) -> Vec<Upstream> {
        if self.exclusive || self.is_well(&listed, context) {
            listed.retain(|upstream| self.is_own(upstream));
        }
        listed
    }

    fn heeds_health(&self) -> bool {
        true
    }
}
