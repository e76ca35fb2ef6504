//! Java regular expressions on an engine whose time is linear in the input.

use std::fmt;

/// A compiled expression.
#[derive(Debug)]
pub struct JavaRegex(regex::Regex);

/// Why an expression is not usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexError(String);

impl fmt::Display for RegexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RegexError {}

impl JavaRegex {
    /// Compiles an expression.
    ///
    /// # Errors
    /// When the engine refuses it.
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        regex::Regex::new(&format!(r"\A(?:{pattern})\z")).map(Self).map_err(|e| RegexError(e.to_string()))
    }

    /// Whether it matches the whole text.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

pub(crate) fn quote(text: &str) -> String {
    regex::escape(text)
}
