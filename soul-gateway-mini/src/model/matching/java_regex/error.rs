//! Why an expression cannot be used.

use thiserror::Error;

/// Whose fault it is that an expression cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegexErrorKind {
    /// It is no regular expression: Java throws a `PatternSyntaxException`.
    Syntax,
    /// Java runs it, with backtracking that can take for ever; an engine with bounded time cannot.
    Unsupported,
    /// It is larger than this gateway compiles.
    TooLarge,
}

/// Why an expression cannot be used: the kind, and words that name place and remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{pattern}` {words}")]
pub struct RegexError {
    kind: RegexErrorKind,
    pattern: Box<str>,
    words: Box<str>,
}

impl RegexError {
    pub(super) fn new(pattern: &str, trouble: &Trouble) -> Self {
        let Trouble { kind, at, what } = trouble;
        let at = at + 1;
        let words = match kind {
            RegexErrorKind::Syntax => format!("is not a regular expression: {what} at character {at}"),
            RegexErrorKind::Unsupported => {
                format!("has {what} at character {at}, which cannot run in bounded time; write it without")
            }
            RegexErrorKind::TooLarge => format!("has {what} at character {at}; write it shorter"),
        };
        Self { kind: *kind, pattern: pattern.into(), words: words.into() }
    }

    pub(super) fn too_large(pattern: &str) -> Self {
        let start: String = pattern.chars().take(40).collect();
        Self {
            kind: RegexErrorKind::TooLarge,
            pattern: start.into(),
            words: "… is too large: at most 4096 characters that compile to 1 MiB; write it shorter or with \
                    smaller counts"
                .into(),
        }
    }

    /// Whose fault it is.
    #[must_use]
    pub fn kind(&self) -> RegexErrorKind {
        self.kind
    }
}

/// An error without the expression.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) kind: RegexErrorKind,
    /// Character of the expression, counted from 0.
    pub(super) at: usize,
    pub(super) what: String,
}
