//! What came in, and what goes out.

use std::time::Duration;

/// A request as it came in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
