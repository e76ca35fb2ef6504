//! Who may use the API: whoever has the token, or, without one, whoever is on this machine.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::reply::Failure;
use crate::admin::{body::is_json, config::ApiToken, shared::Shared};

/// What stands before the token.
const SCHEME: &[u8] = b"bearer ";

/// Lets a request pass, or answers it.
pub(super) async fn check(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let config = shared.config();
    let token = config.api_token.as_ref();
    let refused = permitted(token, peer.ip(), request.headers()).and_then(|()| intended(&request));
    match refused {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    }
}

fn permitted(token: Option<&ApiToken>, peer: IpAddr, headers: &HeaderMap) -> Result<(), Failure> {
    match token {
        Some(token) => match bearer(headers) {
            Some(given) if token.is(given) => Ok(()),
            given => {
                let what = if given.is_some() { "the token is wrong" } else { "a token is needed" };
                let why = format!("{what}: send `authorization: Bearer <token>`");
                Err(Failure::new(StatusCode::UNAUTHORIZED, why))
            }
        },
        None if !peer.to_canonical().is_loopback() => {
            Err(forbidden("set `--api-token-file` to use the API from another machine"))
        }
        // A page of another site can make its own name lead here; the name it used stays in the header.
        None if !names_this_machine(headers) => {
            Err(forbidden("without a token the API answers only to `localhost` and IP addresses"))
        }
        None => Ok(()),
    }
}

/// Whether a change is meant as one: a page of another site can send a form or a plain text, but not JSON.
fn intended(request: &Request) -> Result<(), Failure> {
    let has_body = matches!(*request.method(), Method::POST | Method::PATCH | Method::PUT);
    if has_body && !is_json(request.headers()) {
        let why = "changes must be sent with `content-type: application/json`";
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why.to_owned()));
    }
    Ok(())
}

/// In bytes: a token may hold what is not ASCII, and goes as UTF-8 then.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}

fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|value| value.to_str().ok()) else { return true };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn forbidden(why: &str) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn status(token: Option<&str>, peer: &str, list: &[(&'static str, &'static str)]) -> u16 {
        let token = token.map(ApiToken::new);
        permitted(token.as_ref(), peer.parse().unwrap(), &headers(list))
            .map_or_else(|f| f.status.as_u16(), |()| 200)
    }

    #[test]
    fn without_a_token_only_this_machine() {
        for (peer, host, expected) in [
            ("127.0.0.1", "localhost:9095", 200),
            ("127.0.0.1", "127.0.0.1:9095", 200),
            ("::1", "[::1]:9095", 200),
            ("::ffff:127.0.0.1", "LOCALHOST", 200),
            ("10.0.0.9", "10.0.0.1:9095", 403),
            ("127.0.0.1", "evil.example:9095", 403),
        ] {
            assert_eq!(status(None, peer, &[("host", host)]), expected, "{peer} {host}");
        }
        assert_eq!(status(None, "127.0.0.1", &[]), 200);
    }

    #[test]
    fn a_token_may_hold_what_is_not_ascii() {
        let token = ApiToken::new("gehe\u{ef}m");
        let with = |text: &str| {
            let value = header::HeaderValue::from_bytes(text.as_bytes()).unwrap();
            HeaderMap::from_iter([(header::AUTHORIZATION, value)])
        };
        let peer = "10.0.0.9".parse().unwrap();
        assert!(permitted(Some(&token), peer, &with("Bearer gehe\u{ef}m")).is_ok());
        assert!(permitted(Some(&token), peer, &with("Bearer geheim")).is_err());
    }

    #[test]
    fn with_a_token_whoever_has_it() {
        for (authorization, expected) in [
            ("Bearer secret", 200),
            ("bearer secret", 200),
            ("Bearer other", 401),
            ("Basic secret", 401),
            ("secret", 401),
            ("Bearer", 401),
            ("Bearersecret", 401),
        ] {
            let given =
                status(Some("secret"), "10.0.0.9", &[("authorization", authorization), ("host", "a")]);
            assert_eq!(given, expected, "{authorization}");
        }
        assert_eq!(status(Some("secret"), "127.0.0.1", &[]), 401);
    }
}
