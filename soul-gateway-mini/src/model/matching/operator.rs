//! Comparing a value taken from a request with a condition's value.

use soul_client::wire::soul::ConditionData;

use super::{
    ant::PathPatterns,
    error::MatchError,
    index::{Filing, PathPlaces, Place, Sought},
    java_regex::JavaRegex,
    text::{is_blank, trim},
};

/// The comparison of one condition, compiled.
#[derive(Debug)]
pub struct Comparison(Kind);

#[derive(Debug)]
enum Kind {
    /// `match` on a `uri`.
    Path(PathPatterns),
    /// `like`, and `match` on anything else.
    Contains(Box<str>),
    /// `=`
    Equals(Box<str>),
    /// `regEx`
    Regex(Box<JavaRegex>),
    /// Nothing that can be evaluated: an error, but only for a value that is not blank.
    Invalid(Box<MatchError>),
}

impl Comparison {
    /// Compiles operator and value of a condition; never fails, see [`problem`](Self::problem).
    #[must_use]
    pub fn new(condition: &ConditionData) -> Self {
        Self(Kind::new(condition).unwrap_or_else(|reason| Kind::Invalid(Box::new(reason))))
    }

    /// Compares a value taken from a request.
    ///
    /// An absent or blank value is never equal to anything, whatever the operator.
    ///
    /// # Errors
    /// When operator or value of the condition cannot be evaluated and the value is not blank.
    pub fn judge(&self, real: Option<&str>) -> Result<bool, &MatchError> {
        let Some(real) = real.filter(|real| !is_blank(real)) else { return Ok(false) };
        match &self.0 {
            Kind::Path(patterns) => patterns.matches(real),
            Kind::Contains(text) => Ok(real.contains(&**text)),
            Kind::Equals(text) => Ok(*real == **text),
            Kind::Regex(regex) => Ok(regex.is_match(real)),
            Kind::Invalid(reason) => Err(reason),
        }
    }

    /// Ways to find every path for which it holds.
    pub(super) fn path_filings(&self) -> Vec<Filing> {
        let places = |text: &str| {
            let mut places = PathPlaces::new(text);
            text.split('/')
                .filter(|segment| !segment.is_empty())
                .for_each(|segment| places.push(Some(segment)));
            places
        };
        match &self.0 {
            Kind::Path(patterns) => patterns.filings(),
            Kind::Equals(text) => vec![[places(text).exact()].into()],
            Kind::Regex(regex) => {
                regex.first_segments().map(|text| [places(&text).below()].into()).into_iter().collect()
            }
            Kind::Contains(_) | Kind::Invalid(_) => Vec::new(),
        }
    }

    /// The one way to find every value for which it holds.
    pub(super) fn value_filing(&self, sought: Sought) -> Option<Filing> {
        match &self.0 {
            Kind::Equals(text) => Some([Place::value(sought, text)].into()),
            _ => None,
        }
    }

    /// Why some value makes [`judge`](Self::judge) fail, if one does.
    #[must_use]
    pub fn problem(&self) -> Option<&MatchError> {
        match &self.0 {
            Kind::Invalid(reason) => Some(reason),
            Kind::Path(patterns) => patterns.problems().next(),
            Kind::Contains(_) | Kind::Equals(_) | Kind::Regex(_) => None,
        }
    }
}

impl Kind {
    fn new(condition: &ConditionData) -> Result<Self, MatchError> {
        let compile = match condition.operator.as_deref() {
            Some("match") if condition.param_type.as_deref() == Some("uri") => Self::path,
            Some("match" | "like") => Self::contains,
            Some("=") => Self::equals,
            Some("regEx") => Self::regex,
            _ => return Err(MatchError::Operator(condition.operator.clone())),
        };
        compile(condition.param_value.as_deref().ok_or(MatchError::NoValue)?)
    }

    fn path(value: &str) -> Result<Self, MatchError> {
        PathPatterns::new(trim(value)).map(Self::Path)
    }

    fn contains(value: &str) -> Result<Self, MatchError> {
        Ok(Self::Contains(trim(value).into()))
    }

    fn equals(value: &str) -> Result<Self, MatchError> {
        Ok(Self::Equals(trim(value).into()))
    }

    /// The one operator whose value is not trimmed.
    fn regex(value: &str) -> Result<Self, MatchError> {
        Ok(Self::Regex(Box::new(JavaRegex::new(value)?)))
    }
}

/// Compares `real`, taken from a request, with a condition: Soul's `OperatorJudgeFactory.judge`.
///
/// Compiles the condition anew; a gateway keeps a [`Comparison`].
///
/// # Errors
/// When operator or value of the condition cannot be evaluated and `real` is not blank.
pub fn judge(condition: &ConditionData, real: Option<&str>) -> Result<bool, MatchError> {
    Comparison::new(condition).judge(real).map_err(Clone::clone)
}
