//! `/platform/login`: a token for a user (ShenYu specification, section 1.2).

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{Method, StatusCode},
    response::Response,
};
use serde::{Deserialize, Serialize};
use soul_client::wire::shenyu::SUCCESS_CODE;
use url::form_urlencoded;

use super::endpoint::Door;
use crate::admin::{
    answer::{SOUL_FAILURE, answer, failure},
    body,
};

/// What a Java admin says of a login that it takes.
const WELCOME: &str = "login dashboard user success";
/// What it says of one that it does not take.
const REFUSED: &str = "username or password error";
/// When the one user was made; there is no such moment here, and clients do not look at it.
const EPOCH: &str = "1970-01-01 00:00:00";

/// Who wants to log in. No `Debug`: it holds a password.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Credentials {
    user_name: Option<String>,
    password: Option<String>,
    client_id: Option<String>,
}

/// The user as a Java admin shows it, in its order; nulls are written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct User<'a> {
    id: &'static str,
    user_name: &'a str,
    role: i32,
    enabled: bool,
    client_id: Option<&'a str>,
    date_created: &'static str,
    date_updated: &'static str,
    token: &'a str,
    /// Milliseconds that the token lives.
    expired_time: u64,
}

/// Answers a login: by the query of a `GET`, as every release takes it, or the JSON of a `POST`, as those to come do.
pub(super) async fn login(State(door): State<Arc<Door>>, request: Request) -> Response {
    let credentials = match *request.method() {
        Method::POST => {
            let config = &door.shared.config();
            match body::read(request.into_body(), config.body_limit, config.body_timeout).await {
                Ok(bytes) => serde_json::from_slice(&bytes).ok(),
                Err(_) => None,
            }
        }
        _ => Some(in_query(request.uri().query().unwrap_or_default())),
    };
    let Credentials { user_name, password, client_id } = credentials.unwrap_or_default();
    let (user, password) = (user_name.unwrap_or_default(), password.unwrap_or_default());
    if door.shared.config().shenyu_login.as_ref().is_some_and(|login| !login.is(&user, &password)) {
        tracing::warn!(user = user.chars().take(64).collect::<String>(), "a login was refused");
        return failure(StatusCode::OK, SOUL_FAILURE, REFUSED);
    }
    let token = door.tokens.issue(&user, client_id.as_deref(), door.clock.now_ms());
    let shown = User {
        id: "1",
        user_name: &user,
        role: 1,
        enabled: true,
        client_id: client_id.as_deref(),
        date_created: EPOCH,
        date_updated: EPOCH,
        token: &token,
        expired_time: u64::try_from(door.shared.config().shenyu_token_life.as_millis()).unwrap_or(u64::MAX),
    };
    answer(StatusCode::OK, SUCCESS_CODE, WELCOME, shown)
}

fn in_query(query: &str) -> Credentials {
    let mut credentials = Credentials::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let field = match &*name {
            "userName" => &mut credentials.user_name,
            "password" => &mut credentials.password,
            "clientId" => &mut credentials.client_id,
            _ => continue,
        };
        *field = Some(value.into_owned());
    }
    credentials
}
