//! Why a text could not be written or read.

use std::fmt;

/// A text that is not what was expected, with the place inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GsonError {
    /// Field and index, from the outside inwards, for example `[0].weight`; empty for the whole text.
    path: String,
    message: String,
}

impl GsonError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { path: String::new(), message: message.into() }
    }

    /// The place in the text, for example `[0].weight`; empty when it is not inside a value.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Called by each enclosing object while the error travels outwards.
    pub(super) fn in_field(mut self, name: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }

    /// Called by each enclosing array while the error travels outwards.
    pub(super) fn in_element(mut self, index: usize) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("[{index}]{dot}{}", self.path);
        self
    }
}

impl fmt::Display for GsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for GsonError {}

impl serde::ser::Error for GsonError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl serde::de::Error for GsonError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}
