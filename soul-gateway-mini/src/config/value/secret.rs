//! What nobody is shown.

use std::{fmt, str::FromStr};

use super::BadValue;
use crate::admin::{self, ApiToken};

/// A secret; `Debug` does not show it, and it is never written.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::config) struct Token(pub(in crate::config) ApiToken);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl FromStr for Token {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text.trim().is_empty() {
            return Err(BadValue::new("expected a text that is not blank; leave it out to have no token"));
        }
        Ok(Self(ApiToken::new(text)))
    }
}

text_value!(Token, "a string");

/// A password: the text as it is, but for the one line end that a file has at its end. `Debug` does not show it, and
/// it is never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct Password(pub(in crate::config) admin::Password);

impl fmt::Display for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl FromStr for Password {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let line = text.strip_suffix('\n').unwrap_or(text);
        let password = line.strip_suffix('\r').unwrap_or(line);
        if password.is_empty() {
            return Err(BadValue::new(
                "expected a text that is not empty; leave it out to ask for no password",
            ));
        }
        Ok(Self(admin::Password::new(password)))
    }
}

text_value!(Password, "a string");
