//! Answers in Soul's shape: `code`, `message`, `data`.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use serde::Serialize;
use soul_client::wire::soul::SoulResult;

/// Soul's code for any failure of the admin.
pub(crate) const SOUL_FAILURE: i32 = 500;
/// What a Java admin says of a failure that it does not explain.
pub(crate) const BUSY: &str = "The system is busy, please try again later";

/// An answer with a status of its own.
pub(crate) fn answer<T: Serialize>(status: StatusCode, code: i32, message: &str, data: T) -> Response {
    match serde_json::to_vec(&SoulResult { code, message: message.into(), data: Some(data) }) {
        Ok(body) => response(status, "application/json", body),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            failure(StatusCode::INTERNAL_SERVER_ERROR, SOUL_FAILURE, BUSY)
        }
    }
}

/// An answer without data.
pub(crate) fn failure(status: StatusCode, code: i32, message: &str) -> Response {
    // A number, a text and null have no value that cannot be written.
    let body = serde_json::to_vec(&SoulResult::<()> { code, message: message.into(), data: None })
        .unwrap_or_default();
    response(status, "application/json", body)
}

/// A body of some media type.
pub(crate) fn response(status: StatusCode, media_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
