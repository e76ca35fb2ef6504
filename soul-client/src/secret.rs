//! Text that no log and no `Debug` shows.

use std::{fmt, path::Path, sync::Arc};

use crate::error::{Error, Problem};

/// A password. Its `Debug` and `Display` show three stars.
///
/// # Examples
///
/// ```
/// use soul_client::Secret;
///
/// let secret = Secret::new("123456");
/// assert_eq!(format!("{secret:?} {secret}"), "*** ***");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps `text` from view.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Reads a file, such as those that containers are given; one line end at its end is no part of it.
    ///
    /// # Errors
    /// When the file cannot be read or holds nothing ([`Error::is_config`]).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::read(path.as_ref()).map_err(|problem| Error::config(vec![problem]))
    }

    pub(crate) fn read(path: &Path) -> Result<Self, Problem> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Problem::new("password_file", format!("`{shown}` cannot be read: {error}")))?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let secret = line.strip_suffix('\r').unwrap_or(line);
        if secret.is_empty() {
            return Err(Problem::new(
                "password_file",
                format!("`{shown}` is empty: write the password into it"),
            ));
        }
        Ok(Self::new(secret))
    }

    /// The text itself, for the one place that needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_read_without_its_last_line_end() {
        let path = std::env::temp_dir().join(format!("soul-client-secret-{}", std::process::id()));
        for (text, secret) in
            [("pass", "pass"), ("pass\n", "pass"), ("pass\r\n", "pass"), (" pa ss \n\n", " pa ss \n")]
        {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Secret::from_file(&path).unwrap().expose(), secret);
        }
        std::fs::write(&path, "\n").unwrap();
        assert!(Secret::from_file(&path).unwrap_err().to_string().contains("is empty"));
        std::fs::remove_file(&path).unwrap();
        let error = Secret::from_file(&path).unwrap_err();
        assert!(error.is_config() && error.to_string().contains("cannot be read"), "{error}");
    }
}
