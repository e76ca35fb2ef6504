//! What came back, and what it means.

use std::{fmt, sync::Arc};

use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, LOCATION},
};

use super::{SendError, session::Token};
use crate::{
    error::{Error, Kind},
    wire::{
        shenyu::{AdminAnswer, CODE_BAD_TOKEN, SUCCESS},
        soul::paths::{EXTENSION_OFFLINE, EXTENSIONS_HEADER},
    },
};

/// No admin says more than this; a body that goes on is some other server's.
const MAX_ANSWER: usize = 64 * 1024;

/// Characters of a strange answer that are repeated in an error.
const SHOWN: usize = 200;

/// What came back.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    content_type: Option<String>,
    location: Option<String>,
    /// What the admin knows beyond Soul.
    extensions: Option<String>,
    body: String,
}

impl Answer {
    pub(super) async fn read(mut response: reqwest::Response) -> Result<Self, reqwest::Error> {
        let header = |name: &str| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let (content_type, location) = (header(CONTENT_TYPE.as_str()), header(LOCATION.as_str()));
        let extensions = header(EXTENSIONS_HEADER);
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ANSWER {
                break;
            }
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Self { status: response.status(), content_type, location, extensions, body })
    }

    /// The body as JSON of an admin, if it is that.
    pub(super) fn json<T: serde::de::DeserializeOwned>(&self) -> Option<AdminAnswer<T>> {
        serde_json::from_str(&self.body).ok()
    }

    fn message(&self) -> Option<AdminAnswer> {
        serde_json::from_str(&self.body).ok()
    }

    /// Whether the admin has no use for the token, or misses one.
    pub(super) fn refuses_token(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
            || self.message().is_some_and(|answer| answer.code == CODE_BAD_TOKEN)
    }

    /// Whether the answer of a `GET` says that the path exists and wants another method.
    pub(super) fn says_path_exists(&self) -> bool {
        self.status == StatusCode::METHOD_NOT_ALLOWED
            || self.message().is_some_and(|answer| answer.says_method_not_supported())
    }

    /// Whether the admin says that it can be told, in Soul's words, that an instance leaves.
    pub(super) fn announces_offline(&self) -> bool {
        let words = self.extensions.as_deref().unwrap_or_default();
        words.split(',').any(|word| word.trim().eq_ignore_ascii_case(EXTENSION_OFFLINE))
    }

    /// Whether this is an admin's JSON.
    pub(super) fn is_of_an_admin(&self) -> bool {
        self.message().is_some()
    }

    /// Whether a registration was accepted.
    pub(super) fn judge(mut self, url: &str, token: Option<&Token>) -> Result<(), SendError> {
        if self.body == SUCCESS {
            return Ok(());
        }
        self.hide(token);
        let what = format!("register at `{url}`");
        // Errors of an admin are JSON with a code, mostly under status 200.
        match self.message() {
            Some(answer) => Err(SendError::Refused(rejected(what, words(&answer.describe())))),
            None => Err(SendError::Unanswered(rejected(what, self.describe()))),
        }
    }

    /// Takes a token out of what may be shown: some servers repeat what they were sent.
    pub(super) fn hide(&mut self, token: Option<&Token>) {
        let Some(token) = token.map(Token::text).filter(|token| !token.is_empty()) else { return };
        for text in [Some(&mut self.body), self.location.as_mut(), self.content_type.as_mut()] {
            if let Some(text) = text.filter(|text| text.contains(token)) {
                *text = text.replace(token, "***");
            }
        }
    }

    pub(super) fn describe(&self) -> String {
        let mut text = format!("expected the answer `{SUCCESS}`, got status {}", self.status);
        if let Some(location) = self.location.as_deref().filter(|_| self.status.is_redirection()) {
            let location = words(location);
            text.push_str(&format!(", which points to `{location}`: is that the admin's address?"));
        }
        if let Some(content_type) = &self.content_type {
            text.push_str(&format!(", `{}`", words(content_type)));
        }
        match words(&self.body).as_str() {
            "" => text.push_str(" and an empty body"),
            shown => text.push_str(&format!(": `{shown}`")),
        }
        text
    }
}

/// The beginning of what somebody else says, on one line and without what a terminal would act on.
pub(super) fn words(said: &str) -> String {
    let parts = said.split(|c: char| c.is_whitespace() || c.is_control()).filter(|part| !part.is_empty());
    let mut words = parts.collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(SHOWN) {
        words.truncate(end);
        words.push('…');
    }
    words
}

/// An answer that is not `success`.
#[derive(Debug)]
struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// Somebody answered, and not as hoped.
pub(super) fn rejected(what: String, why: String) -> Arc<Error> {
    Arc::new(Error::new(Kind::Rejected, what).with_source(Refusal(why)))
}

/// A login that was refused.
pub(super) fn login_refused(what: String, why: String) -> Arc<Error> {
    Arc::new(Error::new(Kind::Login, what).with_source(Refusal(why)))
}

/// Nobody answered. `error` must not be one whose address holds a secret: it is taken out of it.
pub(super) fn unanswered(what: String, error: reqwest::Error) -> SendError {
    let kind = if error.is_timeout() { Kind::Timeout } else { Kind::Connect };
    // The address is in our words already.
    SendError::Unanswered(Arc::new(Error::new(kind, what).with_source(error.without_url())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(status: u16, body: &str) -> Result<(), SendError> {
        let status = StatusCode::from_u16(status).unwrap();
        let location = Some("http://login/".to_owned());
        answer(status, None, body, location).judge("http://admin/x", None)
    }

    fn answer(status: StatusCode, extensions: Option<&str>, body: &str, location: Option<String>) -> Answer {
        let extensions = extensions.map(str::to_owned);
        Answer { status, content_type: Some("text/plain".into()), location, extensions, body: body.into() }
    }

    #[test]
    fn extensions_are_words_between_commas() {
        for (header, announced) in [
            (None, false),
            (Some(""), false),
            (Some("offline"), true),
            (Some("other, Offline"), true),
            (Some("offline-too"), false),
        ] {
            let answer = answer(StatusCode::OK, header, SUCCESS, None);
            assert_eq!(answer.announces_offline(), announced, "{header:?}");
        }
    }

    #[test]
    fn success_is_the_exact_body_whatever_the_status() {
        assert!(judge(200, "success").is_ok());
        assert!(judge(500, "success").is_ok());
        for body in ["Success", "success ", " success", "success\n", "\"success\"", ""] {
            assert!(judge(200, body).is_err(), "{body:?}");
        }
    }

    #[test]
    fn errors_of_an_admin_carry_its_words() {
        for (status, body) in [
            (200, r#"{"code":500,"message":"unique index conflict, please enter again","data":null}"#),
            (500, r#"{"code":500,"message":"unique index conflict, please enter again"}"#),
        ] {
            let Err(SendError::Refused(error)) = judge(status, body) else { panic!("{body}") };
            assert!(error.is_rejected() && error.is_retryable());
            let chain = error.chain();
            assert!(chain.contains("code 500: unique index conflict, please enter again"), "{chain}");
        }
    }

    #[test]
    fn anything_else_is_no_answer_of_an_admin() {
        for (status, body, part) in [
            (
                502,
                "<html>\n <h1>Bad Gateway</h1>",
                "502 Bad Gateway, `text/plain`: `<html> <h1>Bad Gateway</h1>`",
            ),
            (200, "", "empty body"),
            (200, "[1,2]", "`[1,2]`"),
            (200, "{\"hello\":1}", "hello"),
            (302, "", "points to `http://login/`"),
            (200, "you path already exist!", "you path already exist!"),
        ] {
            let Err(SendError::Unanswered(error)) = judge(status, body) else { panic!("{body}") };
            let chain = error.chain();
            assert!(error.is_rejected() && chain.contains(part), "{chain}");
        }
        let long = "x".repeat(10_000);
        for long in [format!("{{\"code\":500,\"message\":\"{long}\"}}"), long] {
            let Err(error) = judge(200, &long) else { panic!() };
            assert!(error.cause().chain().chars().count() < 2 * SHOWN);
        }
        let Err(error) = judge(200, "{\"code\":500,\"message\":\"a\\u001b[2Jb\\nWARN c\"}") else { panic!() };
        assert!(error.cause().chain().ends_with("code 500: a [2Jb WARN c"), "{}", error.cause().chain());
    }
}
