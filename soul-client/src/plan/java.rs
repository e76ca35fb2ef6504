//! What Java's library calls mean, where the Java client's outcome depends on it.

use crate::wire::gson;

/// `StringUtils.isBlank`: null, empty, or white space only.
pub(super) fn is_blank(text: Option<&str>) -> bool {
    text.is_none_or(gson::is_blank)
}

/// `Integer.parseInt`: an optional sign and digits, nothing around them.
pub(super) fn parse_int(text: Option<&str>) -> Option<i32> {
    // Rust takes the same texts; a sign alone is refused by both.
    text?.parse().ok()
}

/// `text.substring(1)`; `None` where Java throws.
pub(super) fn without_first(text: &str) -> Option<&str> {
    let first = text.chars().next()?;
    text.get(first.len_utf8()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_is_what_java_calls_blank() {
        for blank in [None, Some(""), Some(" \t\n"), Some("\u{3000}"), Some("\u{1c}\u{1f}"), Some("\u{2028}")]
        {
            assert!(is_blank(blank), "{blank:?}");
        }
        for text in ["a", "\u{a0}", "\u{2007}", "\u{202f}", "\u{85}", "\u{0}"] {
            assert!(!is_blank(Some(text)), "{text:?}");
        }
    }

    #[test]
    fn integers_as_java_reads_them() {
        for (text, value) in [
            ("8188", Some(8188)),
            ("+80", Some(80)),
            ("-1", Some(-1)),
            ("080", Some(80)),
            ("2147483647", Some(i32::MAX)),
            ("2147483648", None),
            (" 80", None),
            ("", None),
            ("+", None),
            ("1_000", None),
        ] {
            assert_eq!(parse_int(Some(text)), value, "{text}");
        }
        assert_eq!(parse_int(None), None);
    }
}
