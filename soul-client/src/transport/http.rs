//! Over HTTP/1.1, as the Java clients do.

use std::{fmt, sync::Arc, time::Duration};

use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderValue, LOCATION},
    redirect::Policy,
};
use serde::Deserialize;

use super::{SendError, Transport};
use crate::{
    config::ClientConfig,
    error::{Error, Kind},
};

/// What an admin says when a registration is accepted; any other body is none, whatever the status
/// (specification, section 1.6).
const SUCCESS: &str = "success";

/// Java's client writes it so.
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// No admin says more than this; a body that goes on is some other server's.
const MAX_ANSWER: usize = 64 * 1024;

/// Characters of a strange answer that are repeated in an error.
const SHOWN: usize = 200;

/// Connections stay open from one round to the next, if rounds are not too far apart.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A pool of connections to the admins.
#[derive(Clone, Debug)]
pub(crate) struct HttpTransport {
    client: reqwest::Client,
}

impl HttpTransport {
    pub(crate) fn new(config: &ClientConfig) -> Result<Self, Error> {
        let client = reqwest::Client::builder()
            .http1_only()
            // A registration must not leave through a proxy that happens to stand in the environment.
            .no_proxy()
            // A redirect would turn the POST into a GET, whose answer says nothing.
            .redirect(Policy::none())
            .connect_timeout(config.connect_timeout())
            .timeout(config.request_timeout())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(config.concurrency())
            .user_agent(concat!("soul-client/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Error::new(Kind::Config, "build the HTTP client").with_source(error))?;
        Ok(Self { client })
    }
}

impl Transport for HttpTransport {
    async fn send(&self, admin: &str, endpoint: &'static str, body: Arc<str>) -> Result<(), SendError> {
        let url = format!("{admin}{endpoint}");
        let request = self.client.post(&url).header(CONTENT_TYPE, JSON).body(body.as_bytes().to_vec());
        let response = request.send().await.map_err(|error| unanswered(&url, error))?;
        let answer = Answer::read(response).await.map_err(|error| unanswered(&url, error))?;
        answer.judge(&url)
    }
}

/// What an admin says when something went wrong: a `SoulResult` whose data is of no interest.
#[derive(Deserialize)]
struct AdminError {
    code: i32,
    message: Option<String>,
}

/// What came back.
struct Answer {
    status: StatusCode,
    content_type: Option<String>,
    location: Option<String>,
    body: String,
}

impl Answer {
    async fn read(mut response: reqwest::Response) -> Result<Self, reqwest::Error> {
        let header =
            |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (content_type, location) = (header(CONTENT_TYPE), header(LOCATION));
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ANSWER {
                break;
            }
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Self { status: response.status(), content_type, location, body })
    }

    fn judge(self, url: &str) -> Result<(), SendError> {
        if self.body == SUCCESS {
            return Ok(());
        }
        let what = format!("register at `{url}`");
        // Errors of an admin are JSON with a code, mostly under status 200.
        match serde_json::from_str::<AdminError>(&self.body) {
            Ok(AdminError { code, message }) => {
                let message = message.unwrap_or_else(|| "without a message".to_owned());
                let cause = Refusal(format!("the admin answered code {code}: {message}"));
                Err(SendError::Refused(Arc::new(Error::new(Kind::Rejected, what).with_source(cause))))
            }
            Err(_) => {
                let cause = Refusal(self.describe());
                Err(SendError::Unanswered(Arc::new(Error::new(Kind::Rejected, what).with_source(cause))))
            }
        }
    }

    fn describe(&self) -> String {
        let mut text = format!("expected the answer `{SUCCESS}`, got status {}", self.status);
        if let Some(location) = self.location.as_deref().filter(|_| self.status.is_redirection()) {
            text.push_str(&format!(", which points to `{location}`: is that the admin's address?"));
        }
        if let Some(content_type) = &self.content_type {
            text.push_str(&format!(", `{content_type}`"));
        }
        let words = self.body.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() {
            text.push_str(" and an empty body");
            return text;
        }
        let shown: String = words.chars().take(SHOWN).collect();
        let more = if shown.len() < words.len() { "…" } else { "" };
        text.push_str(&format!(": `{shown}{more}`"));
        text
    }
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

fn unanswered(url: &str, error: reqwest::Error) -> SendError {
    let kind = if error.is_timeout() { Kind::Timeout } else { Kind::Connect };
    // The address is in our words already.
    let error = Error::new(kind, format!("register at `{url}`")).with_source(error.without_url());
    SendError::Unanswered(Arc::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(status: u16, body: &str) -> Result<(), SendError> {
        let status = StatusCode::from_u16(status).unwrap();
        let location = Some("http://login/".to_owned());
        let answer = Answer { status, content_type: Some("text/plain".into()), location, body: body.into() };
        answer.judge("http://admin/x")
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
        let Err(error) = judge(200, &long) else { panic!() };
        assert!(error.cause().chain().chars().count() < 2 * SHOWN);
    }
}
