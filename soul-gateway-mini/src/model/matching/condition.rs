//! Conditions, and lists of them joined by a match mode.

use std::borrow::Cow;

use http::HeaderName;
use soul_client::wire::soul::ConditionData;

use super::{
    error::MatchError,
    few::Few,
    index::{Filing, Filings, Sought},
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

/// What is taken from a request. Small, since a large configuration holds very many: most of them are paths.
#[derive(Debug)]
enum Source {
    Uri,
    Other(Box<Other>),
}

/// What is no path.
#[derive(Debug)]
enum Other {
    Query(Box<str>),
    Header(HeaderName),
    Host,
    Ip,
    /// Its name, and what it is if it has no text.
    Context(Box<str>, MatchError),
    Method,
    /// A name that no request has: an absent one, or one that is no header name.
    Nothing,
}

impl Source {
    fn new(condition: &ConditionData) -> Result<Self, MatchError> {
        let name = condition.param_name.as_deref();
        let other = match condition.param_type.as_deref() {
            Some("uri") => return Ok(Self::Uri),
            Some("host") => Other::Host,
            Some("ip") => Other::Ip,
            Some("req_method") => Other::Method,
            Some("query") => name.map_or(Other::Nothing, |name| Other::Query(name.into())),
            Some("post") => name.map_or(Other::Nothing, Other::context),
            Some("header") => name.and_then(|name| name.parse().ok()).map_or(Other::Nothing, Other::Header),
            _ => return Err(MatchError::ParamType(condition.param_type.clone())),
        };
        Ok(Self::Other(Box::new(other)))
    }

    /// The field of the context that it is, and what it is if it has no text.
    fn field(&self) -> Option<(&str, &MatchError)> {
        match self {
            Self::Other(other) => match &**other {
                Other::Context(name, no_text) => Some((name, no_text)),
                _ => None,
            },
            Self::Uri => None,
        }
    }

    fn value<'v>(&self, view: &'v RequestView<'_>) -> Result<Option<Cow<'v, str>>, &MatchError> {
        match self {
            Self::Uri => Ok(Some(view.path().into())),
            Self::Other(other) => other.value(view),
        }
    }
}

impl Other {
    fn context(name: &str) -> Self {
        Self::Context(name.into(), MatchError::ContextField(name.to_owned()))
    }

    /// What the index looks up of it; a context field may be an error.
    fn sought(&self) -> Option<Sought> {
        match self {
            Self::Query(name) => Some(Sought::Query(name.clone())),
            Self::Header(name) => Some(Sought::Header(name.clone())),
            Self::Host => Some(Sought::Host),
            Self::Ip => Some(Sought::Ip),
            Self::Method => Some(Sought::Method),
            Self::Context(..) | Self::Nothing => None,
        }
    }

    fn value<'v>(&self, view: &'v RequestView<'_>) -> Result<Option<Cow<'v, str>>, &MatchError> {
        Ok(match self {
            Self::Query(name) => view.query(name),
            Self::Header(name) => view.header(name),
            Self::Host => Some(view.host().into()),
            Self::Ip => view.ip().map(Into::into),
            Self::Method => Some(view.method().into()),
            Self::Nothing => None,
            Self::Context(name, no_text) => match view.context_field(name) {
                Field::Text(text) => Some(text),
                Field::NotText => return Err(no_text),
                Field::Absent => None,
            },
        })
    }
}

/// One test of a request, compiled.
#[derive(Debug)]
pub struct Condition(Result<(Source, Comparison), Box<MatchError>>);

impl Condition {
    /// Compiles a condition; never fails, see [`problem`](Self::problem).
    #[must_use]
    pub fn compile(condition: Option<&ConditionData>) -> Self {
        let Some(condition) = condition else { return Self(Err(Box::new(MatchError::NullCondition))) };
        Self(Source::new(condition).map(|source| (source, Comparison::new(condition))).map_err(Box::new))
    }

    /// Whether the request passes.
    ///
    /// # Errors
    /// When the condition cannot be evaluated: its param type is unknown, or the value taken from the
    /// request is not blank and operator or value of the condition are unusable.
    pub fn holds(&self, view: &RequestView<'_>) -> Result<bool, &MatchError> {
        let (source, comparison) = self.0.as_ref().map_err(Box::as_ref)?;
        comparison.judge(source.value(view)?.as_deref())
    }

    /// Whether [`holds`](Self::holds) might fail. More often than it does: whether a field of the context has
    /// text is not ours to know.
    fn can_fail(&self) -> bool {
        self.problem().is_some() || matches!(&self.0, Ok((source, _)) if source.field().is_some())
    }

    /// Ways to find every request for which it holds.
    fn filings(&self) -> Vec<Filing> {
        match &self.0 {
            Err(_) => Vec::new(),
            Ok((Source::Uri, comparison)) => comparison.path_filings(),
            Ok((Source::Other(other), _)) if matches!(**other, Other::Nothing) => vec![Filing::default()],
            Ok((Source::Other(other), comparison)) => {
                other.sought().and_then(|sought| comparison.value_filing(sought)).into_iter().collect()
            }
        }
    }

    /// Why some request makes [`holds`](Self::holds) fail, if one does.
    #[must_use]
    pub fn problem(&self) -> Option<&MatchError> {
        match &self.0 {
            Err(reason) => Some(reason),
            Ok((source, comparison)) => match source.field() {
                // The one field of Soul's context that is always there and no text.
                Some(("startDateTime", no_text)) => Some(no_text),
                _ => comparison.problem(),
            },
        }
    }
}

/// The conditions of a selector or a rule, compiled.
#[derive(Debug)]
pub struct Conditions(Result<(MatchMode, Few<Condition>), Box<MatchError>>);

impl Conditions {
    /// Compiles a list; never fails, see [`problem`](Self::problem).
    #[must_use]
    pub fn compile(match_mode: Option<i32>, list: Option<&[Option<ConditionData>]>) -> Self {
        let compiled = MatchMode::from_code(match_mode).and_then(|mode| {
            let list = list.ok_or(MatchError::NoConditions)?;
            Ok((mode, list.iter().map(|condition| Condition::compile(condition.as_ref())).collect()))
        });
        Self(compiled.map_err(Box::new))
    }

    /// Whether the request passes; conditions are tried in order, and none after the result is known.
    ///
    /// # Errors
    /// When a condition that had to be tried cannot be evaluated, or the list as a whole cannot.
    pub fn hold(&self, view: &RequestView<'_>) -> Result<bool, &MatchError> {
        let (mode, list) = self.0.as_ref().map_err(Box::as_ref)?;
        let decisive = *mode == MatchMode::Or;
        for condition in list.iter() {
            if condition.holds(view)? == decisive {
                return Ok(decisive);
            }
        }
        Ok(!decisive)
    }

    /// Ways to find every request for which they hold, or fail.
    pub(super) fn filings(&self) -> Filings {
        let Ok((mode, list)) = &self.0 else { return Filings::default() };
        // A condition behind one that fails is not reached, and then nothing is false.
        let sure = list.iter().take_while(|condition| !condition.can_fail());
        match mode {
            MatchMode::And => Filings::new(sure.flat_map(Condition::filings).collect()),
            MatchMode::Or if list.iter().any(Condition::can_fail) => Filings::default(),
            MatchMode::Or => {
                let each: Option<Vec<Filing>> = sure.map(|one| one.filings().into_iter().next()).collect();
                Filings::new(each.map(|each| each.into_iter().flatten().collect()).into_iter().collect())
            }
        }
    }

    /// The first thing that makes [`hold`](Self::hold) fail for some request: the JSON field, `list` being the
    /// name of the list's own field, and the reason.
    #[must_use]
    pub fn problem(&self, list: &str) -> Option<(String, MatchError)> {
        match &self.0 {
            Err(reason) => {
                let field = if matches!(**reason, MatchError::NoMatchMode) { "matchMode" } else { list };
                Some((field.to_owned(), (**reason).clone()))
            }
            Ok((_, conditions)) => conditions.iter().enumerate().find_map(|(at, condition)| {
                let reason = condition.problem()?;
                let field = reason.condition_field().map_or_else(String::new, |field| format!(".{field}"));
                Some((format!("{list}[{at}]{field}"), reason.clone()))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn condition(param_type: &str, operator: &str, name: &str, value: &str) -> Option<ConditionData> {
        Some(ConditionData {
            param_type: Some(param_type.to_owned()),
            operator: Some(operator.to_owned()),
            param_name: Some(name.to_owned()),
            param_value: Some(value.to_owned()),
        })
    }

    fn hold(mode: Option<i32>, list: Option<&[Option<ConditionData>]>) -> Result<bool, MatchError> {
        let mut headers = HeaderMap::new();
        headers.append("X-A", "1".parse().unwrap());
        headers.append("X-A", "2".parse().unwrap());
        let view = RequestView::new("GET", "/a%20b", Some("q=x+y&q=z"), &headers, [10, 0, 0, 2].into());
        Conditions::compile(mode, list).hold(&view).map_err(Clone::clone)
    }

    #[test]
    fn every_part_of_a_request_can_be_asked_for() {
        for (param_type, name, value) in [
            ("uri", "/", "/a b"),
            ("query", "q", "x y"),
            ("header", "x-a", "1"),
            ("host", "", "10.0.0.2"),
            ("ip", "", "10.0.0.2"),
            ("req_method", "", "GET"),
        ] {
            assert_eq!(
                hold(Some(0), Some(&[condition(param_type, "=", name, value)])),
                Ok(true),
                "{param_type}"
            );
            assert_eq!(
                hold(Some(0), Some(&[condition(param_type, "=", name, "no")])),
                Ok(false),
                "{param_type}"
            );
        }
        // Without a context there is no field; a header that cannot be has no value.
        assert_eq!(hold(Some(0), Some(&[condition("post", "=", "module", "x")])), Ok(false));
        assert_eq!(hold(Some(0), Some(&[condition("header", "=", "not a name", "x")])), Ok(false));
    }

    #[test]
    fn empty_lists_hold_if_all_must() {
        for (mode, expected) in [(0, true), (1, false), (2, true), (-1, true)] {
            assert_eq!(hold(Some(mode), Some(&[])), Ok(expected), "{mode}");
        }
        assert_eq!(hold(None, Some(&[])), Err(MatchError::NoMatchMode));
        assert_eq!(hold(Some(0), None), Err(MatchError::NoConditions));
    }

    #[test]
    fn nothing_is_tried_once_the_result_is_known() {
        let (yes, no) = (condition("ip", "like", "", "10."), condition("ip", "like", "", "11."));
        let broken = condition("ip", ">", "", "1");
        let tried = |mode, first: &Option<ConditionData>| {
            hold(Some(mode), Some(&[first.clone(), broken.clone(), None])).ok()
        };
        assert_eq!((tried(1, &yes), tried(0, &no)), (Some(true), Some(false)));
        assert_eq!((tried(1, &no), tried(0, &yes)), (None, None));
    }

    #[test]
    fn a_problem_names_its_field() {
        let list = [condition("uri", "=", "/", "/a"), condition("uri", "regEx", "/", "[")];
        let (field, reason) = Conditions::compile(Some(0), Some(&list)).problem("conditionList").unwrap();
        assert_eq!(field, "conditionList[1].paramValue");
        assert!(matches!(reason, MatchError::Regex(_)));
        let shown = |condition: Option<ConditionData>| {
            Condition::compile(condition.as_ref()).problem().unwrap().to_string()
        };
        assert_eq!(shown(None), "is null, expected a condition");
        assert_eq!(
            shown(condition("cookie", "=", "a", "b")),
            "is `cookie`, expected one of `uri`, `query`, `header`, `host`, `ip`, `post`, `req_method`"
        );
        assert_eq!(
            shown(condition("uri", ">", "a", "b")),
            "is `>`, expected one of `match`, `=`, `like`, `regEx`"
        );
    }
}
