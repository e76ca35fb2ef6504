//! Why a source does not know a list.

use std::{error::Error as StdError, fmt};

use crate::error::{Cause, chain};

/// Why the upstreams of a service are not known.
///
/// # Examples
/// ```
/// use soul_client::call::DiscoverError;
///
/// let error = DiscoverError::new("read the table of `orders`").with_source("no such table");
/// assert_eq!(error.chain(), "read the table of `orders`: no such table");
/// assert!(!error.is_unknown_service());
/// ```
#[derive(Debug)]
pub struct DiscoverError {
    text: String,
    unknown_service: bool,
    source: Option<Cause>,
}

impl DiscoverError {
    /// An error that says what was attempted.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), unknown_service: false, source: None }
    }

    /// The source answers, but has no such service; the text says where it was looked for.
    pub fn unknown_service(text: impl Into<String>) -> Self {
        Self { unknown_service: true, ..Self::new(text) }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(self, source: impl Into<Cause>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// Whether the source answers, but has no such service.
    #[must_use]
    pub fn is_unknown_service(&self) -> bool {
        self.unknown_service
    }

    /// The error and its causes in one line, joined by `: `.
    #[must_use]
    pub fn chain(&self) -> String {
        chain(self)
    }
}

impl fmt::Display for DiscoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for DiscoverError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|cause| &**cause as &(dyn StdError + 'static))
    }
}
