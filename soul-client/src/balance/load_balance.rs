//! The names of the ways to choose.

use std::{fmt, str::FromStr, sync::Arc};

use super::policy::{self, Policy, UnknownPolicy};

/// How an upstream is chosen: `loadBalance` in the handle of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadBalance {
    /// The same key reaches the same upstream; weights play no part.
    Hash,
    /// By chance, in proportion to the weights. What registration writes into a new rule.
    #[default]
    Random,
    /// In turn, in proportion to the weights, spread evenly.
    RoundRobin,
}

impl LoadBalance {
    /// All of them, in Soul's order.
    pub const ALL: [Self; 3] = [Self::Hash, Self::Random, Self::RoundRobin];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Random => "random",
            Self::RoundRobin => "roundRobin",
        }
    }
}

impl fmt::Display for LoadBalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Reads the exact name; upper and lower case differ, as in Soul.
impl FromStr for LoadBalance {
    type Err = UnknownLoadBalance;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|b| b.as_str() == name)
            .ok_or_else(|| UnknownLoadBalance { name: name.to_owned() })
    }
}

/// A name that is none of [`LoadBalance::ALL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLoadBalance {
    name: String,
}

impl UnknownLoadBalance {
    /// The name as it was given; may be blank.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for UnknownLoadBalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown load balance `{}`, expected one of ", self.name)?;
        for (i, known) in LoadBalance::ALL.into_iter().enumerate() {
            write!(f, "{}`{known}`", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownLoadBalance {}

/// How a rule of the gateway chooses, by its name: one of Soul's three, bit for bit, or any other [`policy`].
///
/// # Examples
/// ```
/// use soul_client::balance::{LoadBalance, Way};
///
/// assert_eq!("hash".parse(), Ok(Way::Soul(LoadBalance::Hash)));
/// let way: Way = "RoundRobinRule".parse()?;
/// assert_eq!(way.as_str(), "plainRoundRobin");
/// assert!("leastconn".parse::<Way>().unwrap_err().to_string().contains("`leastActive`"));
/// # Ok::<(), soul_client::balance::policy::UnknownPolicy>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// As Soul.
    Soul(LoadBalance),
    /// By the policy of this name.
    Policy(PolicyName),
}

/// A name that [`policy::by_name`] knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyName {
    /// Its place among [`policy::KNOWN`]: a large configuration has very many, one a rule.
    place: u8,
}

impl PolicyName {
    const fn as_str(self) -> &'static str {
        policy::KNOWN[self.place as usize]
    }

    pub(super) fn policy(self) -> Option<Arc<dyn Policy>> {
        policy::by_name(self.as_str()).ok()
    }
}

impl fmt::Debug for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyName").field(&self.as_str()).finish()
    }
}

impl Way {
    /// The names of all, without their aliases: Soul's, then ShenYu's, ours and Ribbon's.
    pub const NAMES: [&str; policy::KNOWN.len()] = policy::KNOWN;

    /// Its name, without an alias.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Soul(balance) => balance.as_str(),
            Self::Policy(name) => name.as_str(),
        }
    }
}

impl Default for Way {
    fn default() -> Self {
        Self::Soul(LoadBalance::default())
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Reads a name or an alias; upper and lower case differ, as in Soul.
impl FromStr for Way {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let policy = PolicyName { place: policy::place(name)? };
        Ok(policy.as_str().parse().map_or(Self::Policy(policy), Self::Soul))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_exactly() {
        for known in LoadBalance::ALL {
            assert_eq!(known.as_str().parse(), Ok(known));
        }
        for unknown in ["", " ", "Hash", "roundrobin", "random ", "leastActive"] {
            let error = unknown.parse::<LoadBalance>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("unknown load balance `{unknown}`, expected one of `hash`, `random`, `roundRobin`")
            );
        }
    }

    #[test]
    fn every_policy_is_a_way_and_souls_names_are_souls_own() {
        for name in Way::NAMES {
            let way: Way = name.parse().unwrap();
            assert_eq!(way.as_str(), name);
            assert_eq!(matches!(way, Way::Soul(_)), name.parse::<LoadBalance>().is_ok(), "{name}");
        }
        assert_eq!("smoothWeightedRoundRobin".parse(), Ok(Way::Soul(LoadBalance::RoundRobin)));
        let error = "fastest".parse::<Way>().unwrap_err().to_string();
        assert!(Way::NAMES.iter().all(|name| error.contains(&format!("`{name}`"))), "{error}");
    }
}
