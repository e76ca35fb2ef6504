//! What carries a request to the upstream that was chosen for it.

use std::{future::Future, sync::Arc, time::Duration};

use http::{HeaderMap, Method, StatusCode};
use tokio::time::Instant;

use super::{AttemptError, config::Effective, retry};
use crate::balance::{Outcome, Upstream};

/// Where an attempt goes, and by which settings.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Destination<'a> {
    /// Name of the service.
    pub service: &'a str,
    /// Who was chosen.
    pub upstream: &'a Upstream,
    /// What is set for this call.
    pub settings: &'a Effective,
    /// When the whole call must be over, its body included.
    pub deadline: Instant,
}

/// What an answer says, as far as balancing and retry go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// Its code; `None`, of a protocol that has none, is success.
    pub status: Option<StatusCode>,
    /// How long it asks to be spared.
    pub retry_after: Option<Duration>,
}

impl Answer {
    /// That of an HTTP answer.
    #[must_use]
    pub fn of_http(status: StatusCode, headers: &HeaderMap) -> Self {
        let asks = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let retry_after = if asks { retry::retry_after(headers, std::time::SystemTime::now()) } else { None };
        Self { status: Some(status), retry_after }
    }

    /// What the upstream is charged with.
    pub(super) fn outcome(self) -> Outcome {
        match (self.status.map(|status| status.as_u16()), self.retry_after) {
            (Some(429), retry_after) | (Some(503), retry_after @ Some(_)) => {
                Outcome::Overloaded { retry_after }
            }
            (Some(502..=504), _) => Outcome::BadGateway,
            _ => Outcome::Success,
        }
    }
}

/// Carries requests of one kind: over reqwest, any service of tower, or a protocol of one's own.
///
/// It makes one attempt; choosing, retries and their pauses, timeouts and statistics are around it.
///
/// # Examples
/// A protocol of lines over TCP, in which nothing but the connection can fail:
/// ```
/// use soul_client::call::{Answer, AttemptError, ClientFactory, Destination, Failed, Transport};
/// use tokio::{io::{AsyncReadExt, AsyncWriteExt}, net::TcpStream};
///
/// struct Lines;
///
/// impl Transport for Lines {
///     type Request = String;
///     type Response = String;
///
///     async fn send(&self, line: String, to: Destination<'_>) -> Result<String, AttemptError> {
///         let broken = |error| AttemptError::new(Failed::Broken, error);
///         let mut stream = TcpStream::connect(to.upstream.address()).await
///             .map_err(|error| AttemptError::new(Failed::Refused, error))?;
///         stream.write_all(line.as_bytes()).await.map_err(broken)?;
///         stream.shutdown().await.map_err(broken)?;
///         let mut answer = String::new();
///         stream.read_to_string(&mut answer).await.map_err(broken)?;
///         Ok(answer)
///     }
///
///     fn replay(&self, line: &String) -> Option<String> {
///         Some(line.clone())
///     }
///
///     fn answer(&self, _: &String) -> Answer {
///         Answer::default()
///     }
/// }
/// ```
#[doc(alias = "AbstractLoadBalancerAwareClient")]
pub trait Transport: Send + Sync {
    /// What is sent.
    type Request: Send;
    /// The head of what comes back.
    type Response: Send;

    /// Sends a request and waits for the head of the answer. Given up after `read_timeout`.
    ///
    /// # Errors
    /// When there is no answer; [`Failed`](super::Failed) says how, and so whether anybody may have acted on it.
    fn send(
        &self,
        request: Self::Request,
        to: Destination<'_>,
    ) -> impl Future<Output = Result<Self::Response, AttemptError>> + Send;

    /// The request once more, if that can be.
    fn replay(&self, request: &Self::Request) -> Option<Self::Request>;

    /// What an answer says.
    fn answer(&self, response: &Self::Response) -> Answer;

    /// The method, by which it is decided whether a request may be repeated that may have been acted on. A request without one, the
    /// default, is taken for GET.
    fn method(&self, request: &Self::Request) -> Method {
        let _ = request;
        Method::GET
    }
}

impl<T: Transport> Transport for Arc<T> {
    type Request = T::Request;
    type Response = T::Response;

    fn send(
        &self,
        request: Self::Request,
        to: Destination<'_>,
    ) -> impl Future<Output = Result<Self::Response, AttemptError>> + Send {
        (**self).send(request, to)
    }

    fn replay(&self, request: &Self::Request) -> Option<Self::Request> {
        (**self).replay(request)
    }

    fn answer(&self, response: &Self::Response) -> Answer {
        (**self).answer(response)
    }

    fn method(&self, request: &Self::Request) -> Method {
        (**self).method(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_charged_by_their_codes() {
        let ten = Some(Duration::from_secs(10));
        for (status, retry_after, outcome) in [
            (200, None, Outcome::Success),
            (404, None, Outcome::Success),
            (500, None, Outcome::Success),
            (501, None, Outcome::Success),
            (502, None, Outcome::BadGateway),
            (503, None, Outcome::BadGateway),
            (504, None, Outcome::BadGateway),
            (429, None, Outcome::Overloaded { retry_after: None }),
            (429, ten, Outcome::Overloaded { retry_after: ten }),
            (503, ten, Outcome::Overloaded { retry_after: ten }),
            (502, ten, Outcome::BadGateway),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(Answer { status: Some(status), retry_after }.outcome(), outcome, "{status}");
        }
        assert_eq!(Answer::default().outcome(), Outcome::Success);
    }
}
