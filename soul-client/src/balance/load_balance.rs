//! The names of the ways to choose.

use std::{fmt, str::FromStr};

/// How an upstream is chosen: `loadBalance` in the handle of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
}
