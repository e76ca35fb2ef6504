//! A result in the vectors: true, false, or the text `throws`.

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;
use soul_gateway_mini::model::matching::{MatchError, RegexErrorKind};

use crate::backtracking::needs_backtracking;

/// What an evaluation gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// An answer.
    Is(bool),
    /// None: Java threw.
    Throws,
}

impl Outcome {
    /// Whether our own evaluation came to the same.
    ///
    /// An expression that an engine with bounded time cannot run is refused by ours; that counts if it really
    /// is one, and Java did not refuse it.
    pub(crate) fn agrees(self, ours: Result<bool, &MatchError>, expressions: &[&str]) -> bool {
        match ours {
            Err(MatchError::Regex(error)) if error.kind() == RegexErrorKind::Unsupported => {
                self != Self::Throws && expressions.iter().any(|expression| needs_backtracking(expression))
            }
            Err(_) => self == Self::Throws,
            Ok(answer) => self == Self::Is(answer),
        }
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(answer) => Ok(Self::Is(answer)),
            Value::String(text) if text == "throws" => Ok(Self::Throws),
            other => Err(D::Error::custom(format!("expected true, false or \"throws\", found {other}"))),
        }
    }
}
