//! Splitting a text, as Java's `String.split`.

use regex::Regex;

use super::{RegexError, compile, emit::Use};

/// A compiled separator.
#[derive(Debug)]
pub(crate) struct Splitter(Regex);

impl Splitter {
    /// Compiles the expression of a separator.
    ///
    /// `$` is the end of the text here, and not also the place in front of a last line break.
    pub(crate) fn new(pattern: &str) -> Result<Self, RegexError> {
        compile(pattern, Use::Find).map(Self)
    }

    /// The pieces between the separators; empty ones at the end do not count.
    pub(crate) fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut pieces = Vec::new();
        let (mut start, mut from) = (0, 0);
        while let Some(found) = self.0.find_at(text, from) {
            // An empty separator at the very beginning does not make an empty first piece.
            if found.end() > 0 {
                pieces.push(&text[start..found.start()]);
                start = found.end();
            }
            from = if found.is_empty() { next_char(text, found.end()) } else { found.end() };
            if from > text.len() {
                break;
            }
        }
        if pieces.is_empty() {
            return vec![text];
        }
        pieces.push(&text[start..]);
        while pieces.last().is_some_and(|last| last.is_empty()) {
            pieces.pop();
        }
        pieces
    }
}

/// The next place behind `at`; one past the end behind the last.
fn next_char(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(text.len() + 1, |c| at + c.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_javas() {
        for (pattern, text, expected) in [
            ("/http", "/http/x/http/y", vec!["", "/x", "/y"]),
            ("/ab", "/ab/ab", vec![]),
            ("/ab", "/x", vec!["/x"]),
            ("x*", "axb", vec!["a", "", "b"]),
            ("", "abc", vec!["a", "b", "c"]),
            ("a|b", "xaybz", vec!["x", "y", "z"]),
            ("b*?", "ab", vec!["a", "b"]),
            ("x", "", vec![""]),
        ] {
            assert_eq!(Splitter::new(pattern).unwrap().split(text), expected, "{pattern} {text}");
        }
    }
}
