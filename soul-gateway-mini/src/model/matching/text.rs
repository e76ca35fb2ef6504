//! What Java calls blank, trimmed and a line break; each differs from Rust's notion.

/// The characters at which Java's `.` stops, and with it `*`, `?` and `{x}` of a path pattern.
pub(crate) const LINE_BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// Whether `text` holds a line break in Java's sense.
pub(crate) fn has_line_break(text: &str) -> bool {
    text.contains(LINE_BREAKS)
}

/// Java's `Character.isWhitespace`: Unicode separators but for the non-breaking ones, and nine controls.
fn is_white_space(c: char) -> bool {
    match c {
        '\t'..='\r' | '\u{1c}'..=' ' => true,
        // Rust counts these as white space, Java does not.
        '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}' => false,
        _ => !c.is_ascii() && c.is_whitespace(),
    }
}

/// Java's `StringUtils.isBlank` of a text that is there: empty, or nothing but white space.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(is_white_space)
}

/// The text unless it is absent or blank.
pub(crate) fn non_blank(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !is_blank(text))
}

/// Java's `String.trim`: cuts characters up to U+0020 from both ends, and nothing above.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_is_javas_white_space() {
        for text in ["", " ", "\t\n", "\u{3000}", "\u{1c}\u{1f}", "\u{2028}\u{2003}"] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["\u{a0}", "\u{2007}", "\u{202f}", "\u{85}", "\0", "x", " x "] {
            assert!(!is_blank(text), "{text:?}");
        }
    }

    #[test]
    fn trim_cuts_controls_and_keeps_unicode_spaces() {
        assert_eq!(trim("\u{1} a\u{1f}\t"), "a");
        assert_eq!(trim("\u{a0}a\u{3000}"), "\u{a0}a\u{3000}");
        assert_eq!(trim(" \u{1f} "), "");
    }
}
