//! Java's idea of white space, and Gson's of escaping.

use std::fmt::Write as _;

/// Whether Java's `Character.isWhitespace` holds: Unicode separators except the non-breaking ones (U+00A0,
/// U+2007, U+202F), and the control characters U+0009 to U+000D and U+001C to U+001F.
#[must_use]
pub fn is_whitespace(c: char) -> bool {
    matches!(c,
        '\u{9}'..='\u{d}' | '\u{1c}'..='\u{1f}' | ' ' | '\u{1680}' | '\u{2000}'..='\u{2006}' | '\u{2008}'..='\u{200a}'
        | '\u{2028}' | '\u{2029}' | '\u{205f}' | '\u{3000}')
}

/// Whether a text is empty or only white space in Java's sense (commons-lang's `isBlank`).
///
/// ```
/// use soul_client::wire::gson::is_blank;
///
/// assert!(is_blank("") && is_blank("\u{3000}"));
/// assert!(!is_blank("\u{a0}"));
/// ```
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.chars().all(is_whitespace)
}

/// Appends a quoted JSON string with Gson's HTML-safe escapes.
pub(super) fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '=' | '\'' | '\u{2028}' | '\u{2029}' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}
