//! The one error of this crate: opaque, with questions to ask it.

use std::{error::Error as StdError, fmt};

use crate::plan::PlanError;

pub(crate) type Cause = Box<dyn StdError + Send + Sync + 'static>;

/// Why something that was asked of this crate did not happen.
///
/// Its text says what was attempted and on what; the reason, where there is one underneath, is its
/// [`source`](StdError::source) and is not repeated. [`Error::chain`] prints both.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use soul_client::ClientConfig;
///
/// let error = ClientConfig::builder().admin_url("localhost:9095").build().unwrap_err();
/// assert!(error.is_config() && !error.is_retryable());
/// assert_eq!(error.problems()[0].field(), "admin_url");
/// # }
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    subject: String,
    problems: Vec<Problem>,
    source: Option<Cause>,
}

/// What can go wrong; users see it through the `is_…` questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "most of it happens on a wire"))]
pub(crate) enum Kind {
    /// A setting or the set of routes is wrong; trying again changes nothing.
    Config,
    /// Nobody answered at all: refused, unreachable, closed.
    Connect,
    /// Nobody answered in time.
    Timeout,
    /// Somebody answered, and it was not `success`.
    Rejected,
    /// An admin wants a login, or does not take the one it got.
    Login,
    /// The client was shut down meanwhile.
    Stopped,
    /// The server failed, or what it stands on.
    Serve,
    /// The work panicked; the next try starts afresh.
    Panicked,
}

/// One thing that is wrong with a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    field: &'static str,
    text: String,
}

impl Problem {
    pub(crate) fn new(field: &'static str, text: impl Into<String>) -> Self {
        Self { field, text: text.into() }
    }

    /// Name of the setting.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// What is wrong with it, and what would be right.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.field, self.text)
    }
}

impl Error {
    /// An error without anything underneath.
    #[cfg(feature = "http")]
    pub(crate) fn new(kind: Kind, subject: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, subject: subject.into(), problems: Vec::new(), source: None }))
    }

    /// A wrong configuration: every problem by its field.
    pub(crate) fn config(problems: Vec<Problem>) -> Self {
        let subject = "configure the soul client".to_owned();
        Self(Box::new(Inner { kind: Kind::Config, subject, problems, source: None }))
    }

    #[cfg(feature = "http")]
    pub(crate) fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Whether a setting, or the set of routes, is wrong.
    #[must_use]
    pub fn is_config(&self) -> bool {
        self.0.kind == Kind::Config
    }

    /// Whether nobody answered at all: the connection was refused, unreachable or closed.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        self.0.kind == Kind::Connect
    }

    /// Whether it took longer than the time allowed.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.0.kind == Kind::Timeout
    }

    /// Whether an admin answered with anything but `success`.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        self.0.kind == Kind::Rejected
    }

    /// Whether an admin wants a login, or does not take the user and password it got.
    #[must_use]
    pub fn is_login(&self) -> bool {
        self.0.kind == Kind::Login
    }

    /// Whether the client was shut down before it happened.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.kind == Kind::Stopped
    }

    /// Whether the same attempt may succeed later; the client itself goes on trying.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.0.kind, Kind::Connect | Kind::Timeout | Kind::Rejected | Kind::Login | Kind::Panicked)
    }

    /// What is wrong by setting; empty unless [`is_config`](Self::is_config).
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.0.problems
    }

    /// The error and its causes in one line, joined by `: `.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "http")] {
    /// let error = soul_client::ClientConfig::builder().build().unwrap_err();
    /// eprintln!("{}", error.chain());
    /// # }
    /// ```
    #[must_use]
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// An error and its causes in one line, joined by `: `.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Some libraries repeat their cause in their own text; once is enough.
        let piece = error.to_string();
        if !text.ends_with(&piece) {
            text.push_str(": ");
            text.push_str(&piece);
        }
        cause = error.source();
    }
    text
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.subject)?;
        for (i, problem) in self.0.problems.iter().enumerate() {
            write!(f, "{} {problem}", if i == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("text", &self.to_string())
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|cause| &**cause as &(dyn StdError + 'static))
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        let mut this = Self::config(error.problems().to_vec());
        this.0.subject = match error.java_message() {
            Some(java) => format!("plan the registration (in Java: {java})"),
            None => "plan the registration".to_owned(),
        };
        this
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crosses_threads() {
        fn check<T: Send + Sync + 'static>() {}
        check::<Error>();
        check::<Problem>();
    }

    #[cfg(feature = "http")]
    #[test]
    fn chain_names_each_cause_once() {
        let inner = Error::new(Kind::Connect, "connect to `10.0.0.7:9095`");
        let outer = Error::new(Kind::Connect, "register `/order/save`").with_source(inner);
        assert_eq!(outer.to_string(), "register `/order/save`");
        assert_eq!(outer.chain(), "register `/order/save`: connect to `10.0.0.7:9095`");
    }

    #[test]
    fn lists_every_problem() {
        let error =
            Error::config(vec![Problem::new("port", "0 is no port"), Problem::new("host", "is blank")]);
        assert_eq!(error.to_string(), "configure the soul client: `port`: 0 is no port; `host`: is blank");
        assert!(!error.is_retryable());
    }
}
