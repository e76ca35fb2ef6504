//! Who may register: whoever has a token, if the settings ask for one.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    middleware::Next,
    response::Response,
};
use soul_client::wire::shenyu::paths::TOKEN_HEADER;
use url::form_urlencoded;

use super::{endpoint::Door, token::Tokens};
use crate::admin::answer::response;

/// What a Java admin answers without a good token: Gson's text, and a line end.
const REFUSED: &str = "{\"code\":600,\"message\":\"token is error\"}\n";

/// Lets a request pass, or answers 401.
pub(super) async fn check(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let now_ms = door.clock.now_ms();
    if door.asks_for_token() && !permitted(&door.tokens, now_ms, &request) {
        tracing::debug!(path = request.uri().path(), "a request without a good token is refused");
        return response(StatusCode::UNAUTHORIZED, "application/json;charset=utf-8", REFUSED);
    }
    next.run(request).await
}

/// In the header, the query or a cookie; `OPTIONS` needs none (ShenYu specification, section 8.1).
fn permitted(tokens: &Tokens, now_ms: i64, request: &Request) -> bool {
    if request.method() == Method::OPTIONS {
        return true;
    }
    let good = |token: &str| tokens.holds(token, now_ms);
    in_header(request.headers()).is_some_and(good)
        || in_query(request.uri()).is_some_and(|token| good(&token))
        || in_cookies(request.headers()).is_some_and(good)
}

fn in_header(headers: &HeaderMap) -> Option<&str> {
    headers.get(TOKEN_HEADER)?.to_str().ok().map(str::trim)
}

fn in_query(uri: &Uri) -> Option<String> {
    let query = uri.query()?;
    let found = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == TOKEN_HEADER);
    found.map(|(_, token)| token.into_owned())
}

fn in_cookies(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut cookies =
        lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    cookies.find(|(name, _)| *name == TOKEN_HEADER).map(|(_, token)| token.trim_matches('"'))
}
