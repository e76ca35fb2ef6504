//! How several admins are treated.

use std::fmt;

use crate::plan::Dialect;

/// How several admins are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdminsRule {
    /// Each registration goes to the first admin that answers; the next one is asked only if that fails
    /// (default for Soul, and for ShenYu before 2.6).
    ///
    /// Admins of one Soul installation usually share their database, so telling one is telling all; the
    /// client of 2.3.0 does the same with its `serverLists`. An answer is `success` or an admin's JSON error;
    /// a page of some proxy is none, and the next admin is asked.
    #[default]
    FirstThatAnswers,
    /// Each registration goes to every admin, each in its own time: for admins that share nothing (default for
    /// ShenYu from 2.6 on, and for [`Dialect::Auto`]).
    Each,
}

impl AdminsRule {
    /// Every rule.
    pub const ALL: [Self; 2] = [Self::FirstThatAnswers, Self::Each];

    /// How the Java clients of a dialect treat several admins.
    #[must_use]
    pub const fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Auto => Self::Each,
            Dialect::Shenyu(version) if version.tells_every_admin() => Self::Each,
            _ => Self::FirstThatAnswers,
        }
    }

    /// The word for it in a setting.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FirstThatAnswers => "first",
            Self::Each => "each",
        }
    }
}

impl fmt::Display for AdminsRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
