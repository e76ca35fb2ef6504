//! Round robin: in turn, spread evenly, in proportion to the weights.

use std::sync::{Arc, Mutex, PoisonError};

use super::Picker;
use crate::balance::{
    context::PickContext,
    set::{Choice, Members},
    soul::{RoundRobin, Turn},
};

/// How many first upstreams are remembered. Soul remembers all for ever, which grows without end where instances
/// come and go.
const LISTS: usize = 16;

/// The counters outlive the set: the next one takes them over.
#[derive(Debug)]
pub(in crate::balance) struct RoundRobinPicker {
    /// Smooth round robin needs all counters at once, so choices exclude each other for the few hundred nanoseconds that
    /// one takes. A policy without shared counters (static stride) can take its place where Soul's exact order
    /// is not asked for.
    counters: Arc<Mutex<RoundRobin>>,
}

impl RoundRobinPicker {
    pub(in crate::balance) fn new(previous: Option<&Self>) -> Self {
        let counters = previous.map(|previous| Arc::clone(&previous.counters)).unwrap_or_default();
        // A panic while counting leaves at worst an uneven round.
        counters.lock().unwrap_or_else(PoisonError::into_inner).keep_lists(LISTS);
        Self { counters }
    }
}

impl Picker for RoundRobinPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let mut candidates = members.candidates(context);
        let turns = candidates.clone().map(|(_, upstream)| {
            let weight = upstream.weight_at(context.now_ms);
            let basis = match members.choice() {
                Choice::Soul => weight,
                // Soul starts a counter again at every step of a warm-up. Counters then forget that they were just
                // served, and of several newcomers the first gets the share of all.
                Choice::Strict => upstream.weight(),
            };
            Turn { url: upstream.url(), weight, basis }
        });
        // Soul's list is the one without the upstreams that are down; with all of them up the names are equal.
        let list = match members.choice() {
            Choice::Soul => candidates.clone().next().map(|(_, upstream)| upstream.url()),
            Choice::Strict => members.all().next().map(|upstream| upstream.url()),
        }?;
        let position = self.counters.lock().unwrap_or_else(PoisonError::into_inner).select(
            list,
            turns,
            context.now_ms,
        )?;
        // Health may have changed since the count: whoever stands there now, or the first, is as good.
        candidates.clone().nth(position).or_else(|| candidates.next()).map(|(index, _)| index)
    }
}
