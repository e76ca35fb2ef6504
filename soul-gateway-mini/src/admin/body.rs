//! Reading the body of a request: bounded in size and time.

use std::time::Duration;

use axum::{
    body::Bytes,
    http::{HeaderMap, StatusCode, header},
};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use thiserror::Error;
use tokio::time::timeout;

/// Why a body was not read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum BodyError {
    /// It has more bytes than allowed.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// It did not come in time.
    #[error("the body did not arrive within {0:?}")]
    TooSlow(Duration),
    /// The connection broke.
    #[error("the body could not be read: {0}")]
    Broken(String),
}

impl BodyError {
    /// The status that says so.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a whole body.
pub(crate) async fn read<B>(body: B, limit: usize, wait: Duration) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // One that says it is too large is refused before the first byte.
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge(limit));
    }
    match timeout(wait, Limited::new(body, limit).collect()).await {
        Err(_) => Err(BodyError::TooSlow(wait)),
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge(limit)),
        Ok(Err(error)) => Err(BodyError::Broken(error.to_string())),
    }
}

/// Whether the headers say that the body is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let media_type = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "application/json"
        || (media_type.starts_with("application/") && media_type.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

    #[tokio::test]
    async fn body_over_the_limit_is_refused() {
        let wait = Duration::from_secs(1);
        let body = |bytes: &'static [u8]| Full::new(Bytes::from_static(bytes));
        assert_eq!(read(body(b"1234"), 4, wait).await, Ok(Bytes::from_static(b"1234")));
        assert_eq!(read(body(b"12345"), 4, wait).await, Err(BodyError::TooLarge(4)));
    }

    #[test]
    fn json_is_told_by_its_media_type() {
        for (value, json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/merge-patch+json", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("text/json", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, value.parse().unwrap());
            assert_eq!(is_json(&headers), json, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
