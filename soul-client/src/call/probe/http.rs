//! Whether an upstream answers a request as it should.

use std::{ops::RangeInclusive, sync::OnceLock, time::Duration};

use reqwest::{Client, Method, header, redirect};

use super::{CheckError, Checked, HealthCheck, Probing};
use crate::{balance::Upstream, call::discover::BoxFuture, transport};

/// Passes if a request is answered with an expected status and, if one is expected, a body. Each check has a connection of its own, and a
/// redirect is not followed but an answer like any other.
///
/// # Examples
/// ```
/// use soul_client::call::probe::{HttpCheck, Probing};
///
/// let check = HttpCheck::new("/actuator/health").host("orders.example").expect(200..=299).expect_body(r#"{"status":"UP"}"#);
/// let probing = Probing::custom(check);
/// # let _ = probing;
/// ```
#[doc(alias = "PingUrl")]
#[derive(Clone, Debug)]
pub struct HttpCheck {
    method: Method,
    path: String,
    host: Option<String>,
    expected: Vec<RangeInclusive<u16>>,
    body: Option<String>,
}

/// Longest body that is compared.
const BODY_LIMIT: usize = 64 * 1024;

impl HttpCheck {
    /// A `GET` of a path that expects status 200.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Self {
        let mut path = path.into();
        if !path.starts_with('/') {
            path.insert(0, '/');
        }
        Self { method: Method::GET, path, host: None, expected: Vec::new(), body: None }
    }

    /// Sets the method.
    #[must_use]
    pub fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// Sets the `Host` header; default is the address.
    #[must_use]
    pub fn host(self, host: impl Into<String>) -> Self {
        Self { host: Some(host.into()), ..self }
    }

    /// Adds statuses that are right; the first replaces 200.
    #[must_use]
    pub fn expect(mut self, statuses: RangeInclusive<u16>) -> Self {
        self.expected.push(statuses);
        self
    }

    /// Sets the body that is right, which must be the whole answer.
    #[doc(alias = "expectedContent")]
    #[must_use]
    pub fn expect_body(self, body: impl Into<String>) -> Self {
        Self { body: Some(body.into()), ..self }
    }

    async fn ask(&self, upstream: &Upstream) -> Checked {
        let base = upstream.base_url().trim_end_matches('/');
        let mut request = client(base)?.request(self.method.clone(), format!("{base}{}", self.path));
        if let Some(host) = &self.host {
            request = request.header(header::HOST, host);
        }
        // The address is known to whoever reads the error.
        let mut response = request.send().await.map_err(reqwest::Error::without_url)?;
        let status = response.status().as_u16();
        let is_expected = match &*self.expected {
            [] => status == 200,
            expected => expected.iter().any(|statuses| statuses.contains(&status)),
        };
        if !is_expected {
            return Err(format!("`{}` answers with status {status}", self.path).into());
        }
        let Some(expected) = &self.body else { return Ok(()) };
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(reqwest::Error::without_url)? {
            body.extend_from_slice(&chunk);
            if body.len() > BODY_LIMIT.max(expected.len()) {
                break;
            }
        }
        if body == expected.as_bytes() {
            return Ok(());
        }
        let shown: String = String::from_utf8_lossy(&body).chars().take(80).collect();
        Err(format!("`{}` answers `{shown}`, expected `{expected}`", self.path).into())
    }
}

impl HealthCheck for HttpCheck {
    fn check<'a>(&'a self, upstream: &'a Upstream) -> BoxFuture<'a, Checked> {
        Box::pin(self.ask(upstream))
    }

    fn key(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

impl Probing {
    /// Whether a `GET` of a path is answered with 200.
    #[must_use]
    pub fn http(path: impl Into<String>) -> Self {
        Self::custom(HttpCheck::new(path))
    }

    /// As Ribbon's `PingUrl`: 200 at a path, every 30 s, and one answer decides. Differs: there is a timeout.
    #[must_use]
    pub fn ribbon_ping_url(path: impl Into<String>) -> Self {
        let mut this = Self::http(path);
        let every = Duration::from_secs(30);
        this.settings.every = every;
        this.settings.every_down = every;
        this.settings.every_in_doubt = every;
        (this.settings.fall, this.settings.rise) = (1, 1);
        this
    }
}

/// One client for all checks: without kept connections it has nothing that belongs to anyone.
fn client(base: &str) -> Result<&'static Client, CheckError> {
    static PLAIN: OnceLock<Result<Client, String>> = OnceLock::new();
    static TLS: OnceLock<Result<Client, String>> = OnceLock::new();

    let is_tls = base.starts_with("https:");
    let client = if is_tls { &TLS } else { &PLAIN };
    let client =
        client.get_or_init(|| make(is_tls).map_err(|error| format!("build the HTTP client: {error}")));
    client.as_ref().map_err(|error| error.clone().into())
}

fn make(is_tls: bool) -> reqwest::Result<Client> {
    #[cfg_attr(not(feature = "rustls"), allow(unused_mut))]
    let mut builder = Client::builder();
    // What the system trusts is only looked at for TLS.
    #[cfg(feature = "rustls")]
    if !is_tls && let Some(tls) = transport::trusting_nobody() {
        builder = builder.tls_backend_preconfigured(tls);
    }
    let _ = is_tls;
    builder
        .http1_only()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .pool_max_idle_per_host(0)
        .user_agent(transport::USER_AGENT)
        .build()
}

#[cfg(test)]
mod tests {
    use axum::{Router, http::HeaderMap, routing::get};

    use super::*;

    async fn server() -> Upstream {
        let router = Router::new()
            .route("/health", get(|| async { "UP" }).head(|| async { axum::http::StatusCode::NO_CONTENT }))
            .route(
                "/host",
                get(|headers: HeaderMap| async move { headers["host"].to_str().unwrap().to_owned() }),
            )
            .route("/moved", get(|| async { axum::response::Redirect::to("/health") }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = Upstream::new(listener.local_addr().unwrap().to_string());
        tokio::spawn(async { axum::serve(listener, router).await });
        upstream
    }

    #[tokio::test]
    async fn path_method_host_statuses_and_body_count() {
        let upstream = server().await;
        let health = || HttpCheck::new("health");
        let cases = [
            (health(), ""),
            (health().expect_body("UP"), ""),
            (health().expect_body("DOWN"), "`/health` answers `UP`, expected `DOWN`"),
            (health().method(Method::HEAD), "`/health` answers with status 204"),
            (health().method(Method::HEAD).expect(204..=204), ""),
            (health().expect(300..=399).expect(200..=200), ""),
            (HttpCheck::new("/none"), "`/none` answers with status 404"),
            (HttpCheck::new("/none").expect(200..=499), ""),
            (HttpCheck::new("/moved"), "`/moved` answers with status 303"),
            (HttpCheck::new("/host").host("orders.example").expect_body("orders.example"), ""),
            (HttpCheck::new("/host").expect_body(upstream.address()), ""),
        ];
        for (check, error) in cases {
            let said = check.check(&upstream).await.err().map_or_else(String::new, |error| error.to_string());
            assert_eq!(said, error, "{check:?}");
        }
    }

    #[test]
    fn checks_that_ask_the_same_have_one_key() {
        let key = |check: HttpCheck| check.key().unwrap();
        assert_eq!(key(HttpCheck::new("/a")), key(HttpCheck::new("a")));
        assert_ne!(key(HttpCheck::new("/a")), key(HttpCheck::new("/a").host("b")));
    }
}
