//! Why a condition, and with it a selector or a rule, cannot be evaluated.

use thiserror::Error;

use super::java_regex::RegexError;

/// Something for which Soul answers a request with HTTP 500, instead of "no match".
///
/// The words fit behind a field name: "`conditionList[0].operator`: …".
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MatchError {
    /// The entry does not say whether it is enabled.
    #[error("is missing, expected `true` or `false`")]
    NoEnabled,
    /// The type of a selector is missing or unknown.
    #[error("is {}, expected 0 (every request) or 1 (by conditions)", number(*.0))]
    SelectorType(Option<i32>),
    /// The match mode is missing.
    #[error("is missing, expected 0 (all conditions) or 1 (any condition)")]
    NoMatchMode,
    /// A rule's list of conditions is missing.
    #[error("is missing, expected a list; an empty one with match mode 0 lets every request through")]
    NoConditions,
    /// An element of the list of conditions is null.
    #[error("is null, expected a condition")]
    NullCondition,
    /// No such thing can be taken from a request.
    #[error("is {}, expected one of `uri`, `query`, `header`, `host`, `ip`, `post`, `req_method`", text(.0))]
    ParamType(Option<String>),
    /// A `post` condition names a field of the request's context that is not text.
    #[error(
        "`{0}` is a field without text, expected `path`, `module`, `method`, `rpcType`, `httpMethod`, `contextPath`, `realUrl`, `appKey`, `sign` or `timestamp`"
    )]
    ContextField(String),
    /// No such comparison.
    #[error("is {}, expected one of `match`, `=`, `like`, `regEx`", text(.0))]
    Operator(Option<String>),
    /// The value to compare with is missing.
    #[error("is missing, expected the text to compare with")]
    NoValue,
    /// The value of `regEx`, or a `{name:regex}` in a path pattern, is not usable.
    #[error(transparent)]
    Regex(#[from] RegexError),
    /// A path pattern is larger than this gateway compiles.
    #[error("has {found} {what}, at most {limit} are compiled; split it into several rules")]
    PatternTooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        found: usize,
        /// How much there may be.
        limit: usize,
    },
}

impl MatchError {
    /// The JSON field of a condition that is at fault; `None` when it is the condition or the entry itself.
    pub(crate) fn condition_field(&self) -> Option<&'static str> {
        match self {
            Self::ParamType(_) => Some("paramType"),
            Self::ContextField(_) => Some("paramName"),
            Self::Operator(_) => Some("operator"),
            Self::NoValue | Self::Regex(_) | Self::PatternTooLarge { .. } => Some("paramValue"),
            Self::NoEnabled
            | Self::SelectorType(_)
            | Self::NoMatchMode
            | Self::NoConditions
            | Self::NullCondition => None,
        }
    }
}

fn text(value: &Option<String>) -> String {
    value.as_ref().map_or_else(|| "missing".to_owned(), |value| format!("`{value}`"))
}

fn number(value: Option<i32>) -> String {
    value.map_or_else(|| "missing".to_owned(), |value| value.to_string())
}
