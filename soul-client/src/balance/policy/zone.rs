//! Ribbon's rule for zones: a zone that is dead or overloaded is left out.

use std::{collections::BTreeMap, time::Duration};

use super::{BuildContext, Picker, Policy, plain::Turns, ribbon::whatever};
use crate::balance::{
    context::PickContext,
    health::Health,
    members::{Members, Up},
};

/// In turn among the upstreams of all zones but those that are dead and, if the load is high, one of the most
/// loaded; if those have nobody, among all that are healthy; if nobody is, among all.
///
/// Where Ribbon works the zones out for every server that it looks at, this does so every second and at every
/// change. A dead zone does not cost an idle one as well, as it does with Ribbon.
///
/// # Source
/// Netflix Ribbon, `ZoneAvoidanceRule`, with its two constants.
#[derive(Clone, Copy, Debug, PartialEq)]
#[doc(alias = "ZoneAvoidanceRule")]
pub struct ZoneAvoidance {
    /// Requests in flight for each upstream of a zone, from which on one of the most loaded zones is left out. Default 0.2.
    pub triggering_load: f64,
    /// Share of a zone's upstreams that are down or ejected, from which on the zone is left out. Default 0.99999.
    pub blackout: f64,
}

impl Default for ZoneAvoidance {
    fn default() -> Self {
        Self { triggering_load: 0.2, blackout: 0.999_99 }
    }
}

/// Loads closer than this are alike.
const ALIKE: f64 = 1e-6;

#[derive(Clone, Copy, Default)]
struct Zone {
    members: u32,
    unavailable: u32,
    in_flight: f64,
}

impl Zone {
    fn load(self) -> f64 {
        self.in_flight / f64::from((self.members - self.unavailable).max(1))
    }
}

struct ZonePicker {
    turns: Turns,
    /// Indexes of those up in zones that are not left out.
    kept: Up,
}

impl Policy for ZoneAvoidance {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        let turns = Turns::after(context.previous::<ZonePicker>().map(|p| &p.turns), members);
        let avoided = self.avoided(members, context);
        let zone_of = |index: u32| members.get(index as usize).and_then(|m| m.upstream().zone());
        let indexes =
            members.up().iter().copied().filter(|&index| !avoided.contains(&zone_of(index))).collect();
        let kept = members.narrowed(indexes);
        Box::new(ZonePicker { turns, kept })
    }

    fn refresh_every(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }
}

impl ZoneAvoidance {
    fn avoided<'s>(&self, members: Members<'s>, context: &BuildContext<'_>) -> Vec<Option<&'s str>> {
        let mut zones: BTreeMap<Option<&str>, Zone> = BTreeMap::new();
        for member in members.iter().filter(|m| members.is_configured(m.upstream())) {
            let zone = zones.entry(member.upstream().zone()).or_default();
            zone.members += 1;
            let state = member.state();
            if state.health() == Health::Down || !state.is_available(context.now_ms) {
                zone.unavailable += 1;
            } else {
                zone.in_flight += f64::from(state.in_flight());
            }
        }
        if zones.len() < 2 {
            return Vec::new();
        }
        let is_dead = |zone: &Zone| f64::from(zone.unavailable) >= f64::from(zone.members) * self.blackout;
        let (dead, living): (Vec<_>, Vec<_>) = zones.into_iter().partition(|(_, zone)| is_dead(zone));
        let mut avoided: Vec<_> = dead.into_iter().map(|(name, _)| name).collect();
        let highest = living.iter().map(|(_, zone)| zone.load()).fold(0.0, f64::max);
        if living.len() < 2 || highest < self.triggering_load {
            return avoided;
        }
        // Of the most loaded zones one, each in proportion to its size. Should all be loaded alike, none is worse.
        let worst: Vec<_> = living.iter().filter(|(_, zone)| highest - zone.load() < ALIKE).collect();
        if worst.len() == living.len() {
            return avoided;
        }
        let total: u32 = worst.iter().map(|(_, zone)| zone.members).sum();
        let mut drawn = context.random.below(total.max(1));
        for (name, zone) in worst {
            if drawn < zone.members {
                avoided.push(*name);
                break;
            }
            drawn -= zone.members;
        }
        avoided
    }
}

impl Picker for ZonePicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let kept = members.with_up(&self.kept);
        let turn = |members: Members<'_>| self.turns.next(members.up().len());
        kept.draw(context, || turn(kept))
            .or_else(|| members.draw(context, || turn(members)))
            .or_else(|| whatever(members, context, &self.turns, |_| true))
    }
}
