//! One body to one admin: the seam between the life of a client and the wire.
//!
//! | room | does |
//! |---|---|
//! | `http` | posts a body, and reads what comes back |
//! | `answer` | judges it |
//! | `session` | keeps one admin's token: one login at a time, renewed before it ends |
//! | `tls` | what is trusted, and how this client shows who it is |
//! | `detect` | finds out what kind of admin it is, without registering anything |

mod answer;
mod detect;
mod http;
mod session;
#[cfg(feature = "rustls")]
mod tls;

use std::{future::Future, sync::Arc};

pub(crate) use http::HttpTransport;
pub(crate) use session::Credentials;
#[cfg(feature = "call")]
pub(crate) use session::{LoggedIn, Token};
#[cfg(all(feature = "call", feature = "rustls"))]
pub(crate) use tls::trusting_nobody;

use crate::{error::Error, plan::Dialect};

/// What every HTTP client of this crate calls itself.
pub(crate) const USER_AGENT: &str = concat!("soul-client/", env!("CARGO_PKG_VERSION"));

/// What is posted.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Path below the admin's address.
    pub(crate) endpoint: &'static str,
    pub(crate) body: Arc<str>,
    /// Whether the admin wants a token with it.
    pub(crate) needs_login: bool,
}

/// Sends one registration to one admin.
pub(crate) trait Transport: Send + Sync + 'static {
    /// Posts a message to `admin`.
    ///
    /// # Errors
    /// [`SendError::Unanswered`] if no admin answered there, so that another one may be asked;
    /// [`SendError::Refused`] if one did, with anything but `success`.
    ///
    /// # Cancel safety
    /// Dropping the future gives the attempt up; whether the admin got it is then unknown. Sending the same
    /// again is safe.
    fn send(&self, admin: &str, message: Message) -> impl Future<Output = Result<(), SendError>> + Send;

    /// Whether `admin` said, when it last accepted a registration, that it takes a farewell although its dialect has none.
    fn takes_farewell(&self, _admin: &str) -> bool {
        false
    }

    /// Finds out which dialect `admin` speaks; nothing is registered by it.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn detect(&self, admin: &str) -> impl Future<Output = Result<Dialect, SendError>> + Send;
}

/// Why a registration is not known to be accepted.
#[derive(Clone, Debug)]
pub(crate) enum SendError {
    /// Nobody answered, or something that is no admin did.
    Unanswered(Arc<Error>),
    /// An admin answered, and not with `success`.
    Refused(Arc<Error>),
}

impl SendError {
    pub(crate) fn cause(&self) -> &Arc<Error> {
        match self {
            Self::Unanswered(cause) | Self::Refused(cause) => cause,
        }
    }
}
