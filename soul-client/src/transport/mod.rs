//! One body to one admin: the seam between the life of a client and the wire.

mod http;

use std::{future::Future, sync::Arc};

pub(crate) use http::HttpTransport;

use crate::error::Error;

/// Sends one registration to one admin.
pub(crate) trait Transport: Send + Sync + 'static {
    /// Posts `body` to `admin` + `endpoint`.
    ///
    /// # Errors
    /// [`SendError::Unanswered`] if no admin answered there, so that another one may be asked;
    /// [`SendError::Refused`] if one did, with anything but `success`.
    ///
    /// # Cancel safety
    /// Dropping the future gives the attempt up; whether the admin got it is then unknown. Sending the same
    /// again is safe.
    fn send(
        &self,
        admin: &str,
        endpoint: &'static str,
        body: Arc<str>,
    ) -> impl Future<Output = Result<(), SendError>> + Send;
}

/// Why a registration is not known to be accepted.
#[derive(Clone, Debug)]
pub(crate) enum SendError {
    /// Nobody answered, or something that is no Soul admin did.
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
