//! An error and what is behind it, for one line of a log or an answer.

use std::error::Error;

/// The error and its causes, joined by `: `.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        line.push_str(": ");
        line.push_str(&inner.to_string());
        cause = inner.source();
    }
    line
}
