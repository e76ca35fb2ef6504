//! An upper bound on the requests of one upstream, over any choice by key.

use super::{BuildContext, HashPolicy, Hashing, Picker, Policy, Tuning, share};
use crate::balance::{context::PickContext, members::Members};

/// Chooses by key, but passes over an upstream that has more than its share in flight: at most
/// `⌈factor · (all + 1) · weight / sum of the weights⌉` with the new request.
///
/// The only cure for keys that are not alike: one busy key fills one upstream under every hash. The price is that a key
/// moves to the next upstream while its own is full.
///
/// # Source
/// Mirrokni, Thorup and Zadimoghaddam, Consistent Hashing with Bounded Loads, 2017.
///
/// # Examples
/// ```
/// use soul_client::balance::policy::{BoundedLoad, RingHash};
///
/// let policy = BoundedLoad::over(RingHash::default(), 1.25);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BoundedLoad<H> {
    hash: H,
    factor: f64,
}

impl<H: HashPolicy> BoundedLoad<H> {
    /// How much more than its share one upstream may have, by default a quarter.
    pub const FACTOR: f64 = 1.25;

    /// Bounds a choice by key.
    ///
    /// - `factor`: 1.25 to 2 are usual; less than 1 counts as 1.
    #[must_use]
    pub fn over(hash: H, factor: f64) -> Self {
        Self { hash, factor: factor.max(1.0) }
    }
}

struct BoundedPicker {
    hashing: Box<dyn Hashing>,
    /// For each member the part of the requests that it may have.
    bounds: Box<[f64]>,
}

impl<H: HashPolicy> Policy for BoundedLoad<H> {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        let previous = context.previous::<BoundedPicker>().map(|p| &*p.hashing as &dyn std::any::Any);
        let hashing = self.hash.build_hashing(members, &BuildContext { previous, ..*context });
        let total: f64 = members.up_upstreams().map(|u| f64::from(share(u.weight()))).sum();
        let bound = |weight: u32| if total > 0.0 { self.factor * f64::from(weight) / total } else { 1.0 };
        let bounds = members.all().map(|u| bound(share(u.weight()))).collect();
        Box::new(BoundedPicker { hashing, bounds })
    }

    fn tuning(&self) -> Tuning {
        Tuning { counts_all: true, ..Tuning::default() }
    }

    fn is_by_key(&self) -> bool {
        true
    }
}

impl Picker for BoundedPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let all = f64::from(members.group().in_flight_at(context.now_ms)) + 1.0;
        let has_room = |index: usize| {
            let bound = self.bounds.get(index).map_or(0.0, |bound| (bound * all).ceil());
            members
                .state(index)
                .is_some_and(|state| f64::from(state.in_flight_at(context.now_ms)) + 1.0 <= bound)
        };
        let eligible = |index: usize| members.is_eligible(index, context);
        self.hashing
            .find(members, context, &mut |index| eligible(index) && has_room(index))
            .or_else(|| self.hashing.find(members, context, &mut |index| eligible(index)))
    }
}
