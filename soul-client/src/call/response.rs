//! An answer, and who gave it.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{AttemptError, CallError, CallErrorKind, Failed, execute::Served};
use crate::balance::{Member, Upstream};

/// The answer of a service: head at once, body as it comes.
///
/// Each pause in the body may take `read_timeout`, and all of it what is left of `total_timeout`. What is wrong with a body is told to the
/// reader and not to the balancer, and is never repeated: part of it may have been used.
pub struct CallResponse {
    service: String,
    inner: reqwest::Response,
    member: Arc<Member>,
    attempts: u64,
    read_timeout: Duration,
}

impl CallResponse {
    pub(super) fn new(service: &str, served: Served<reqwest::Response>) -> Self {
        Self {
            service: service.to_owned(),
            inner: served.response,
            member: served.upstream,
            attempts: served.attempts,
            read_timeout: served.settings.read_timeout,
        }
    }

    /// The code.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Who answered.
    #[must_use]
    pub fn upstream(&self) -> &Upstream {
        self.member.upstream()
    }

    /// The address of who answered, `host:port`.
    #[must_use]
    pub fn upstream_address(&self) -> &str {
        self.upstream().address()
    }

    /// How many attempts it took.
    #[must_use]
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// If the body breaks off or comes too slowly.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        match timeout(self.read_timeout, self.inner.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => {
                let failed = if error.is_timeout() { Failed::TimedOut } else { Failed::Broken };
                Err(self.broken(AttemptError::new(failed, error.without_url())))
            }
            Err(_) => {
                let text = format!("its body paused for {:.3} s", self.read_timeout.as_secs_f64());
                Err(self.broken(AttemptError::new(Failed::TimedOut, text)))
            }
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// If the body breaks off or comes too slowly.
    pub async fn bytes(mut self) -> Result<Bytes, CallError> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut all = [first, second].concat();
        while let Some(chunk) = self.chunk().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all.into())
    }

    /// The whole body as UTF-8; what is none is replaced.
    ///
    /// # Errors
    /// If the body breaks off or comes too slowly.
    pub async fn text(self) -> Result<String, CallError> {
        Ok(String::from_utf8_lossy(&self.bytes().await?).into_owned())
    }

    /// The whole body, read as JSON.
    ///
    /// # Errors
    /// If the body breaks off, comes too slowly, or is not such JSON.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, CallError> {
        let (service, upstream) = (self.service.clone(), self.upstream().base_url().to_owned());
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            CallError::new(CallErrorKind::Body, service)
                .with_detail(format!("what `{upstream}` answered is not the JSON that was wanted"))
                .with_source(error)
        })
    }

    /// The answer of reqwest, for what there is no way to here; `total_timeout` still bounds its body, `read_timeout` does not.
    #[must_use]
    pub fn into_inner(self) -> reqwest::Response {
        self.inner
    }

    fn broken(&self, error: AttemptError) -> CallError {
        CallError::new(CallErrorKind::Body, self.service.clone())
            .with_source(error.at(self.upstream().base_url()))
    }
}

impl fmt::Debug for CallResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallResponse")
            .field("service", &self.service)
            .field("status", &self.status())
            .field("upstream", &self.upstream().base_url())
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}
