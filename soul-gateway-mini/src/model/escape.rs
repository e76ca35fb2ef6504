//! Paths out of the configuration, as they can stand in a request.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// ASCII that must be escaped in a path with a query; `%` and `?` are taken for what they are.
const NOT_IN_A_TARGET: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A path, or path and query, with escapes for characters that no request can hold. What is escaped already stays so.
pub(crate) fn target(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, NOT_IN_A_TARGET).into()
}
