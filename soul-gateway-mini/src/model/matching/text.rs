//! What Java calls blank, trimmed and a line break; each differs from Rust's notion.

pub(crate) use soul_client::wire::gson::is_blank;

/// The characters at which Java's `.` stops, and with it `*`, `?` and `{x}` of a path pattern.
pub(crate) const LINE_BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// Whether `text` holds a line break in Java's sense.
pub(crate) fn has_line_break(text: &str) -> bool {
    text.contains(LINE_BREAKS)
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
    fn trim_cuts_controls_and_keeps_unicode_spaces() {
        assert_eq!(trim("\u{1} a\u{1f}\t"), "a");
        assert_eq!(trim("\u{a0}a\u{3000}"), "\u{a0}a\u{3000}");
        assert_eq!(trim(" \u{1f} "), "");
    }
}
