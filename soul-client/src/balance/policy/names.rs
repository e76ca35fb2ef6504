//! The names by which a configuration chooses a policy.

use std::{fmt, sync::Arc};

use super::{
    AvailabilityFiltering, BestAvailable, BoundedLoad, LeastActive, LeastRequest, Maglev, PeakEwma, Policy,
    Random, Retry, RingHash, RoundRobin, ShenYuP2c, ShortestResponse, SmoothWeightedRoundRobin, SoulHash,
    SoulRandom, WeightedRandom, WeightedResponseTime, WeightedRoundRobin, ZoneAvoidance,
};

/// A name, what else it may be called, and what it stands for.
struct Entry {
    name: &'static str,
    aliases: &'static [&'static str],
    policy: fn() -> Arc<dyn Policy>,
}

const fn entry(
    name: &'static str,
    aliases: &'static [&'static str],
    policy: fn() -> Arc<dyn Policy>,
) -> Entry {
    Entry { name, aliases, policy }
}

const ENTRIES: [Entry; 23] = [
    // Soul.
    entry("random", &[], || Arc::new(SoulRandom)),
    entry("roundRobin", &["smoothWeightedRoundRobin"], || Arc::new(SmoothWeightedRoundRobin)),
    entry("hash", &["soulHash"], || Arc::new(SoulHash)),
    // ShenYu.
    entry("leastActive", &[], || Arc::new(LeastActive)),
    entry("p2c", &[], || Arc::new(ShenYuP2c)),
    entry("shortestResponse", &[], || Arc::new(ShortestResponse)),
    // Ours.
    entry("peakEwma", &[], || Arc::new(PeakEwma::default())),
    entry("leastRequest", &[], || Arc::new(LeastRequest)),
    entry("uniformRandom", &["RandomRule"], || Arc::new(Random)),
    entry("plainRoundRobin", &["RoundRobinRule", "ClientConfigEnabledRoundRobinRule"], || {
        Arc::new(RoundRobin)
    }),
    entry("weightedRandom", &["alias"], || Arc::new(WeightedRandom)),
    entry("weightedRoundRobin", &["stride"], || Arc::new(WeightedRoundRobin)),
    entry("weightedResponseTime", &[], || Arc::new(WeightedResponseTime::by_speed())),
    entry("ringHash", &[], || Arc::new(RingHash::default())),
    entry("maglev", &[], || Arc::new(Maglev)),
    entry("boundedHash", &[], || Arc::new(BoundedLoad::over(SoulHash, BoundedLoad::<SoulHash>::FACTOR))),
    entry("boundedRingHash", &[], || {
        Arc::new(BoundedLoad::over(RingHash::default(), BoundedLoad::<RingHash>::FACTOR))
    }),
    entry("boundedMaglev", &[], || Arc::new(BoundedLoad::over(Maglev, BoundedLoad::<Maglev>::FACTOR))),
    // Ribbon.
    entry("WeightedResponseTimeRule", &["ResponseTimeWeightedRule"], || {
        Arc::new(WeightedResponseTime::ribbon())
    }),
    entry("BestAvailableRule", &["bestAvailable"], || Arc::new(BestAvailable)),
    entry("AvailabilityFilteringRule", &["availabilityFiltering"], || {
        Arc::new(AvailabilityFiltering::default())
    }),
    entry("ZoneAvoidanceRule", &["zoneAvoidance"], || Arc::new(ZoneAvoidance::default())),
    entry("RetryRule", &["retry"], || Arc::new(Retry::default())),
];

/// The names that [`by_name`] knows, without their aliases.
pub const KNOWN: [&str; ENTRIES.len()] = {
    let mut names = [""; ENTRIES.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = ENTRIES[i].name;
        i += 1;
    }
    names
};

/// Where Ribbon's configurations have the name of a class.
const RIBBON_PACKAGE: &str = "com.netflix.loadbalancer.";

/// Finds a policy, with its defaults, by its name. Upper and lower case differ; Ribbon's names may have their
/// package before them.
///
/// # Errors
/// If there is none of that name. The error lists those there are.
///
/// # Examples
/// ```
/// use soul_client::balance::policy;
///
/// assert!(policy::by_name("peakEwma").is_ok());
/// assert!(policy::by_name("com.netflix.loadbalancer.ZoneAvoidanceRule").is_ok());
/// let error = policy::by_name("leastconn").unwrap_err();
/// assert!(error.to_string().contains("`leastRequest`"));
/// ```
pub fn by_name(name: &str) -> Result<Arc<dyn Policy>, UnknownPolicy> {
    place(name).map(|place| (ENTRIES[usize::from(place)].policy)())
}

/// Its place among [`KNOWN`], by that name or an alias.
pub(in crate::balance) fn place(name: &str) -> Result<u8, UnknownPolicy> {
    let bare = name.strip_prefix(RIBBON_PACKAGE).filter(|bare| bare.ends_with("Rule")).unwrap_or(name);
    let is_entry = |entry: &Entry| entry.name == bare || entry.aliases.contains(&bare);
    let entry = (0..).zip(&ENTRIES).find(|(_, entry)| is_entry(entry));
    entry.map(|(place, _)| place).ok_or_else(|| UnknownPolicy { name: name.to_owned() })
}

/// A name that is none of [`KNOWN`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy {
    name: String,
}

impl UnknownPolicy {
    /// The name as it was given; may be blank.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown load balance `{}`, expected one of ", self.name)?;
        for (i, known) in KNOWN.into_iter().enumerate() {
            write!(f, "{}`{known}`", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownPolicy {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_and_alias_is_found_and_none_is_given_twice() {
        let mut seen = HashSet::new();
        for entry in &ENTRIES {
            let policy = format!("{:?}", (entry.policy)());
            for name in entry.aliases.iter().chain([&entry.name]) {
                assert!(seen.insert(*name), "`{name}` twice");
                assert_eq!(format!("{:?}", by_name(name).unwrap()), policy);
            }
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_all_that_are_known() {
        for name in ["", " ", "Random", "ROUNDROBIN", "hash ", "com.netflix.loadbalancer.random", "leastconn"]
        {
            let error = by_name(name).unwrap_err();
            assert_eq!(error.name(), name);
            let text = error.to_string();
            assert!(KNOWN.iter().all(|known| text.contains(&format!("`{known}`"))), "{text}");
        }
    }
}
