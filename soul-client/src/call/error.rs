//! Why a call came to nothing.

use std::{error::Error as StdError, fmt, time::Duration};

use crate::error::{Cause, chain};

/// What became of a call that has no answer.
///
/// A call that ends with an answer, be it a 503, is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// Nobody could be asked: the list is empty, or nobody on it may be chosen. Nothing was sent.
    NoInstance,
    /// Every attempt that there may be was made, and each failed.
    AllTried,
    /// An attempt failed, and this request must not be repeated: it may have been acted on.
    NotRepeatable,
    /// An attempt failed, and the body cannot be sent again: it is a stream.
    BodyNotReplayable,
    /// An attempt failed, and too many calls to this service are being repeated already.
    BudgetExhausted,
    /// The time of the whole call is over.
    DeadlineExceeded,
    /// The head of the answer was there, but its body broke or came too slowly.
    Body,
    /// There is no such service, or nothing that would know it.
    UnknownService,
    /// The address cannot be called.
    InvalidUri,
    /// The request cannot be sent as it is, wherever to.
    InvalidRequest,
    /// A setting is wrong.
    Config,
}

impl CallErrorKind {
    fn text(self) -> &'static str {
        match self {
            Self::NoInstance => "no instance may be chosen",
            Self::AllTried => "every attempt failed",
            Self::NotRepeatable => "the attempt failed, and the request must not be repeated",
            Self::BodyNotReplayable => "the attempt failed, and the body cannot be sent again",
            Self::BudgetExhausted => "the attempt failed, and the retry budget is exhausted",
            Self::DeadlineExceeded => "no answer in time",
            Self::Body => "the answer broke off",
            Self::UnknownService => "the service is not known",
            Self::InvalidUri => "the address cannot be called",
            Self::InvalidRequest => "the request cannot be sent",
            Self::Config => "a setting is wrong",
        }
    }

    fn remedy(self) -> Option<&'static str> {
        match self {
            Self::NotRepeatable => Some("`retry_all_methods` would allow it"),
            Self::BodyNotReplayable => Some("a body of bytes could be"),
            Self::BudgetExhausted => Some("see `budget`"),
            Self::DeadlineExceeded => Some("see `total_timeout`"),
            _ => None,
        }
    }
}

/// What was known of the service when its call failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Situation {
    /// Upstreams on the list.
    pub known: usize,
    /// Those of them that were healthy.
    pub up: usize,
    /// Different upstreams that were tried.
    pub tried: usize,
    /// Attempts that were made.
    pub attempts: u64,
    /// Number of the snapshot that was chosen from; grows with each change.
    pub generation: u64,
    /// Time since the source of the list last said or confirmed it; `None` if it never has.
    pub age: Option<Duration>,
}

/// Why a call to a service has no answer.
///
/// Its text names the service and what was known of it; how the last attempt failed is its [`source`](StdError::source).
///
/// # Examples
/// ```
/// # use soul_client::call::{CallErrorKind, ClientFactory};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let factory = ClientFactory::builder().service("orders", |c| c.servers([])).build()?;
/// let error = factory.client("orders")?.get("/api/hello").send().await.unwrap_err();
/// assert_eq!(error.kind(), CallErrorKind::NoInstance);
/// assert_eq!((error.service(), error.situation().known), ("orders", 0));
/// # Ok::<(), soul_client::call::CallError>(()) }).unwrap();
/// ```
pub struct CallError(Box<Inner>);

struct Inner {
    kind: CallErrorKind,
    service: String,
    situation: Option<Situation>,
    /// What more there is to say than the kind.
    detail: Option<String>,
    source: Option<Cause>,
}

impl CallError {
    pub(crate) fn new(kind: CallErrorKind, service: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, service: service.into(), situation: None, detail: None, source: None }))
    }

    pub(crate) fn with_situation(mut self, situation: Situation) -> Self {
        self.0.situation = Some(situation);
        self
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    pub(crate) fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> CallErrorKind {
        self.0.kind
    }

    /// The service that was called; empty if the call did not get that far.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.0.service
    }

    /// What was known of the service; all zero if the call did not get that far.
    #[must_use]
    pub fn situation(&self) -> Situation {
        self.0.situation.unwrap_or_default()
    }

    /// Whether nobody could be asked. Nothing was sent then.
    #[must_use]
    pub fn is_no_instance(&self) -> bool {
        self.0.kind == CallErrorKind::NoInstance
    }

    /// Whether it took too long: the whole call, or its last attempt.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        let last = self.0.source.as_ref().and_then(|cause| cause.downcast_ref::<AttemptError>());
        self.0.kind == CallErrorKind::DeadlineExceeded
            || last.is_some_and(|last| last.kind == Failed::TimedOut)
    }

    /// Whether an upstream may have acted on the request.
    #[must_use]
    pub fn may_have_been_sent(&self) -> bool {
        let last = self.0.source.as_ref().and_then(|cause| cause.downcast_ref::<AttemptError>());
        match self.0.kind {
            CallErrorKind::NoInstance
            | CallErrorKind::UnknownService
            | CallErrorKind::InvalidUri
            | CallErrorKind::InvalidRequest
            | CallErrorKind::Config => false,
            CallErrorKind::DeadlineExceeded => self.situation().attempts > 0,
            _ => self.situation().attempts > 1 || last.is_none_or(|last| last.kind != Failed::Refused),
        }
    }

    /// The error and its causes in one line, joined by `: `.
    #[must_use]
    pub fn chain(&self) -> String {
        chain(self)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, service, situation, detail, .. } = &*self.0;
        if service.is_empty() {
            write!(f, "call a service: {}", kind.text())?;
        } else {
            write!(f, "call `{service}`: {}", kind.text())?;
        }
        if let Some(Situation { known, up, tried, attempts, generation, age }) = situation {
            write!(f, " ({known} known, {up} up, {tried} tried in {attempts} attempts; list {generation}")?;
            match age {
                Some(age) => write!(f, ", confirmed {:.1} s ago)", age.as_secs_f64())?,
                None => f.write_str(", never confirmed)")?,
            }
        }
        if let Some(text) = detail.as_deref().or(kind.remedy()) {
            write!(f, "; {text}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallError")
            .field("kind", &self.0.kind)
            .field("text", &self.to_string())
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for CallError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|cause| &**cause as &(dyn StdError + 'static))
    }
}

/// How an attempt failed that has no answer; decides on whether it may be repeated, and what the upstream is charged with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failed {
    /// No connection was made: nothing was sent.
    Refused,
    /// No answer in time; it may have been acted on.
    TimedOut,
    /// The connection broke; it may have been acted on.
    Broken,
    /// The request itself is wrong, and would be so anywhere. Nobody is charged with it, and it is not repeated.
    Invalid,
}

/// One attempt that has no answer.
#[derive(Debug)]
pub struct AttemptError {
    kind: Failed,
    upstream: String,
    source: Cause,
}

impl AttemptError {
    /// An attempt that failed, and why.
    pub fn new(kind: Failed, source: impl Into<Cause>) -> Self {
        Self { kind, upstream: String::new(), source: source.into() }
    }

    pub(crate) fn at(self, upstream: &str) -> Self {
        Self { upstream: upstream.to_owned(), ..self }
    }

    /// How it failed.
    #[must_use]
    pub fn kind(&self) -> Failed {
        self.kind
    }

    /// The upstream, as `http://10.0.0.2:8188`.
    #[must_use]
    pub fn upstream(&self) -> &str {
        &self.upstream
    }
}

impl fmt::Display for AttemptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Failed::Refused => "cannot be connected to",
            Failed::TimedOut => "did not answer in time",
            Failed::Broken => "broke the connection",
            Failed::Invalid => "cannot be sent this request",
        };
        write!(f, "`{}` {what}", self.upstream)
    }
}

impl StdError for AttemptError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crosses_threads() {
        fn check<T: Send + Sync + 'static>() {}
        check::<CallError>();
        check::<AttemptError>();
    }

    #[test]
    fn tells_what_was_known_and_the_cause_once() {
        let situation = Situation {
            known: 3,
            up: 2,
            tried: 2,
            attempts: 4,
            generation: 7,
            age: Some(Duration::from_millis(12_340)),
        };
        let last = AttemptError::new(Failed::TimedOut, "nothing within 1 s").at("http://10.0.0.2:80");
        let error =
            CallError::new(CallErrorKind::AllTried, "orders").with_situation(situation).with_source(last);
        assert_eq!(
            error.to_string(),
            "call `orders`: every attempt failed (3 known, 2 up, 2 tried in 4 attempts; list 7, confirmed 12.3 s ago)"
        );
        let chain = error.chain();
        assert!(
            chain.ends_with("ago): `http://10.0.0.2:80` did not answer in time: nothing within 1 s"),
            "{chain}"
        );
        assert!(error.is_timeout() && error.may_have_been_sent() && !error.is_no_instance());
    }

    #[test]
    fn nobody_there_and_all_tried_are_two_kinds() {
        let none = CallError::new(CallErrorKind::NoInstance, "orders").with_situation(Situation::default());
        assert_eq!(
            none.to_string(),
            "call `orders`: no instance may be chosen (0 known, 0 up, 0 tried in 0 attempts; list 0, never confirmed)"
        );
        assert!(none.is_no_instance() && !none.may_have_been_sent());
    }

    #[test]
    fn says_whether_anything_was_sent() {
        for (kind, failed, attempts, sent) in [
            (CallErrorKind::AllTried, Failed::Refused, 1, false),
            (CallErrorKind::AllTried, Failed::Refused, 2, true),
            (CallErrorKind::AllTried, Failed::Broken, 1, true),
            (CallErrorKind::NotRepeatable, Failed::TimedOut, 1, true),
            (CallErrorKind::DeadlineExceeded, Failed::TimedOut, 1, true),
        ] {
            let error = CallError::new(kind, "orders")
                .with_situation(Situation { attempts, ..Situation::default() })
                .with_source(AttemptError::new(failed, "why"));
            assert_eq!(error.may_have_been_sent(), sent, "{error}");
        }
    }
}
