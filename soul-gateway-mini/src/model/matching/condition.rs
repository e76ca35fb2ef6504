//! Conditions, and lists of them joined by a match mode.

use std::borrow::Cow;

use http::HeaderName;
use soul_client::wire::soul::ConditionData;

use super::{
    error::MatchError,
    operator::Comparison,
    view::{Field, RequestView},
};

/// How the conditions of a list are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchMode {
    /// All must hold; an empty list holds.
    And,
    /// One must hold; an empty list does not.
    Or,
}

impl MatchMode {
    /// Reads the code of the wire: 1 is [`Or`](Self::Or), every other number [`And`](Self::And).
    ///
    /// # Errors
    /// When there is no code.
    pub fn from_code(code: Option<i32>) -> Result<Self, MatchError> {
        match code {
            None => Err(MatchError::NoMatchMode),
            Some(1) => Ok(Self::Or),
            Some(_) => Ok(Self::And),
        }
    }
}

/// What is taken from a request.
#[derive(Debug)]
enum Source {
    Uri,
    Query(Box<str>),
    Header(HeaderName),
    Host,
    Ip,
    Context(Box<str>, MatchError),
    Method,
    /// A name that no request has: an absent one, or one that is no header name.
    Nothing,
}

impl Source {
    fn new(condition: &ConditionData) -> Result<Self, MatchError> {
        let name = condition.param_name.as_deref();
        Ok(match condition.param_type.as_deref() {
            Some("uri") => Self::Uri,
            Some("host") => Self::Host,
            Some("ip") => Self::Ip,
            Some("req_method") => Self::Method,
            Some("query") => name.map_or(Self::Nothing, |name| Self::Query(name.into())),
            Some("post") => name.map_or(Self::Nothing, Self::context),
            Some("header") => name.and_then(|name| name.parse().ok()).map_or(Self::Nothing, Self::Header),
            _ => return Err(MatchError::ParamType(condition.param_type.clone())),
        })
    }

    fn context(name: &str) -> Self {
        Self::Context(name.into(), MatchError::ContextField(name.to_owned()))
    }

    fn value<'v>(&self, view: &'v RequestView<'_>) -> Result<Option<Cow<'v, str>>, &MatchError> {
        Ok(match self {
            Self::Uri => Some(view.path().into()),
            Self::Query(name) => view.query(name),
            Self::Header(name) => view.header(name),
            Self::Host => Some(view.host().into()),
            Self::Ip => view.ip().map(Into::into),
            Self::Method => Some(view.method().into()),
            Self::Nothing => None,
            Self::Context(name, not_text) => match view.context_field(name) {
                Field::Text(text) => Some(text),
                Field::NotText => return Err(not_text),
                Field::Absent => None,
            },
        })
    }
}

/// One test of a request, compiled.
#[derive(Debug)]
pub struct Condition(Result<(Source, Comparison), MatchError>);

impl Condition {
    /// Compiles a condition; never fails, see [`problem`](Self::problem).
    #[must_use]
    pub fn compile(condition: Option<&ConditionData>) -> Self {
        let Some(condition) = condition else { return Self(Err(MatchError::NullCondition)) };
        Self(Source::new(condition).map(|source| (source, Comparison::new(condition))))
    }

    /// Whether the request passes.
    ///
    /// # Errors
    /// When the condition cannot be evaluated: its param type is unknown, or the value taken from the
    /// request is not blank and operator or value of the condition are unusable.
    pub fn holds(&self, view: &RequestView<'_>) -> Result<bool, &MatchError> {
        let (source, comparison) = self.0.as_ref()?;
        comparison.judge(source.value(view)?.as_deref())
    }

    /// Why some request makes [`holds`](Self::holds) fail, if one does.
    #[must_use]
    pub fn problem(&self) -> Option<&MatchError> {
        match &self.0 {
            Err(reason) => Some(reason),
            // The one field of Soul's context that is always there and no text.
            Ok((Source::Context(name, reason), _)) if **name == *"startDateTime" => Some(reason),
            Ok((_, comparison)) => comparison.problem(),
        }
    }
}

/// The conditions of a selector or a rule, compiled.
#[derive(Debug)]
pub struct Conditions(Result<(MatchMode, Box<[Condition]>), MatchError>);

impl Conditions {
    /// Compiles a list; never fails, see [`problem`](Self::problem).
    #[must_use]
    pub fn compile(match_mode: Option<i32>, list: Option<&[Option<ConditionData>]>) -> Self {
        Self(MatchMode::from_code(match_mode).and_then(|mode| {
            let list = list.ok_or(MatchError::NoConditions)?;
            Ok((mode, list.iter().map(|condition| Condition::compile(condition.as_ref())).collect()))
        }))
    }

    /// Whether the request passes; conditions are tried in order, and none after the result is known.
    ///
    /// # Errors
    /// When a condition that had to be tried cannot be evaluated, or the list as a whole cannot.
    pub fn hold(&self, view: &RequestView<'_>) -> Result<bool, &MatchError> {
        let (mode, list) = self.0.as_ref()?;
        let decisive = *mode == MatchMode::Or;
        for condition in list {
            if condition.holds(view)? == decisive {
                return Ok(decisive);
            }
        }
        Ok(!decisive)
    }

    /// The first thing that makes [`hold`](Self::hold) fail for some request: the JSON field, `list` being the
    /// name of the list's own field, and the reason.
    #[must_use]
    pub fn problem(&self, list: &str) -> Option<(String, MatchError)> {
        match &self.0 {
            Err(reason @ MatchError::NoMatchMode) => Some(("matchMode".to_owned(), reason.clone())),
            Err(reason) => Some((list.to_owned(), reason.clone())),
            Ok((_, conditions)) => conditions.iter().enumerate().find_map(|(at, condition)| {
                let reason = condition.problem()?;
                let field = reason.condition_field().map_or_else(String::new, |field| format!(".{field}"));
                Some((format!("{list}[{at}]{field}"), reason.clone()))
            }),
        }
    }
}
