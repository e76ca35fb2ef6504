//! What came in, and what goes out.

use std::{fmt, time::Duration};

/// A request as it came in. Its `Debug`, which tests print, shows neither password nor token.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Counted from zero over the life of the admin.
    pub number: usize,
    /// `GET` or `POST`.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Query, encoded as it came; a login has its password here.
    pub query: String,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `X-Access-Token`.
    pub token: Option<String>,
    /// Body.
    pub body: String,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query = match self.query.split_once("password=") {
            Some((before, after)) => {
                let rest = after.find('&').map_or("", |end| &after[end..]);
                format!("{before}password=***{rest}")
            }
            None => self.query.clone(),
        };
        f.debug_struct("Recorded")
            .field("number", &self.number)
            .field("method", &self.method)
            .field("path", &self.path)
            .field("query", &query)
            .field("content_type", &self.content_type)
            .field("token", &self.token.as_ref().map(|_| "***"))
            .field("body", &self.body)
            .finish()
    }
}

/// How a request is answered.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Reply {
    /// As an admin of its dialect does.
    #[default]
    Usual,
    /// As usual, after a while.
    UsualAfter(Duration),
    /// With this status and text; what was sent is not kept.
    Text(u16, String),
    /// Kept, and then answered with this status and text all the same.
    KeptBut(u16, String),
    /// Never.
    Hang,
    /// By closing the connection.
    Close,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_secret() {
        let login = Recorded {
            query: "userName=admin&password=geheim&x=1".into(),
            token: Some("geheim".into()),
            ..Recorded::default()
        };
        let text = format!("{login:?}");
        assert!(!text.contains("geheim") && text.contains("userName=admin&password=***&x=1"), "{text}");
    }
}
