//! The HTTP that the two requests need: straight to an admin (a proxy of the environment has no business here), one
//! redirect followed, from a follower of a cluster to its leader, and a limit to time and length.
//!
//! Not by `reqwest`: what its client needs to be built (a TLS provider, certificates the system trusts) depends on what
//! other crates of the same build ask of it, and a gateway must not depend on its neighbours.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use percent_encoding::percent_decode_str;
use tokio::time::timeout;
use url::Url;

use crate::sync::SyncConfig;

/// No configuration comes near this; a stream without end is cut here.
const ANSWER_LIMIT: usize = 512 * 1024 * 1024;

/// How long an idle connection to an admin is kept: below what servers keep theirs, since a poll that meets a closed one
/// looks like a failing admin.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Name of this program in requests.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("soul-gateway-mini/", env!("CARGO_PKG_VERSION")));

/// Media type of a poll.
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// Why a request came to no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The exchange took longer than the settings allow.
    #[error("no whole answer within {} s", limit.as_secs_f64())]
    Late {
        /// What the settings allow.
        limit: Duration,
    },
    /// No connection was made, or it broke before the answer.
    #[error("no answer")]
    Exchange(#[source] legacy::Error),
    /// The connection broke in the midst of the answer.
    #[error("the answer broke off")]
    Body(#[source] hyper::Error),
    /// The answer is longer than any configuration can be.
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// What is accepted.
        limit: usize,
    },
    /// The answer sends elsewhere, and that cannot be followed.
    #[error("the answer sends to `{to}`, {why}")]
    Redirect {
        /// Where to.
        to: String,
        /// Why that is not followed.
        why: &'static str,
    },
    /// The address cannot be asked.
    #[error("the address cannot be asked")]
    Address(#[source] http::Error),
}

/// The client for all admins.
#[derive(Clone)]
pub(super) struct HttpClient {
    client: legacy::Client<HttpConnector, Full<Bytes>>,
}

/// A request, which can be sent again.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) url: Url,
    /// The body of a form; without one this is a GET.
    pub(super) form: Option<Bytes>,
    /// For everything, from the connection to the last byte.
    pub(super) limit: Duration,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl HttpClient {
    pub(super) fn new(config: &SyncConfig) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(config.connect_timeout));
        connector.set_nodelay(true);
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self { client }
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn exchange(&self, outgoing: Outgoing) -> Result<Answered, RequestError> {
        let limit = outgoing.limit;
        timeout(limit, self.follow(outgoing)).await.unwrap_or(Err(RequestError::Late { limit }))
    }

    async fn follow(&self, outgoing: Outgoing) -> Result<Answered, RequestError> {
        let response = self.send(&outgoing).await?;
        let Some(next) = redirected(&outgoing, &response)? else { return read(response).await };
        let response = self.send(&next).await?;
        match redirected(&next, &response)? {
            Some(further) => {
                Err(RequestError::Redirect { to: further.url.to_string(), why: "after one redirect already" })
            }
            None => read(response).await,
        }
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Response<Incoming>, RequestError> {
        let request = request(outgoing).map_err(RequestError::Address)?;
        self.client.request(request).await.map_err(RequestError::Exchange)
    }
}

fn request(outgoing: &Outgoing) -> Result<Request<Full<Bytes>>, http::Error> {
    let mut bare = outgoing.url.clone();
    // Both fail only for addresses without a host, which the gateway refuses at start.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.set_fragment(None);
    let mut request = Request::builder().uri(bare.as_str()).header(USER_AGENT, AGENT);
    if let Some(credentials) = basic(&outgoing.url) {
        request = request.header(AUTHORIZATION, credentials);
    }
    match &outgoing.form {
        Some(form) => request.method(Method::POST).header(CONTENT_TYPE, FORM).body(Full::new(form.clone())),
        None => request.method(Method::GET).body(Full::default()),
    }
}

/// User and password of the address, as a header.
fn basic(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut text: Vec<u8> = percent_decode_str(url.username()).collect();
    text.push(b':');
    text.extend(percent_decode_str(url.password().unwrap_or_default()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(text))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The request to send instead, if the answer names one.
fn redirected(outgoing: &Outgoing, response: &Response<Incoming>) -> Result<Option<Outgoing>, RequestError> {
    let form = match response.status() {
        // As every client has it: these turn a POST into a GET.
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => None,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => outgoing.form.clone(),
        _ => return Ok(None),
    };
    let Some(to) = response.headers().get(LOCATION) else { return Ok(None) };
    let to = String::from_utf8_lossy(to.as_bytes()).into_owned();
    let url = match outgoing.url.join(&to) {
        Ok(url) if url.scheme() == "http" && url.has_host() => url,
        Ok(_) => return Err(RequestError::Redirect { to, why: "only `http` is spoken here" }),
        Err(_) => return Err(RequestError::Redirect { to, why: "which is no address" }),
    };
    Ok(Some(Outgoing { url, form, limit: outgoing.limit }))
}

async fn read(response: Response<Incoming>) -> Result<Answered, RequestError> {
    let status = response.status();
    let mut rest = response.into_body();
    let mut body = BytesMut::new();
    while let Some(frame) = rest.frame().await {
        let Ok(chunk) = frame.map_err(RequestError::Body)?.into_data() else { continue };
        if body.len() + chunk.len() > ANSWER_LIMIT {
            return Err(RequestError::TooLong { limit: ANSWER_LIMIT });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answered { status, body: body.freeze() })
}

#[cfg(test)]
mod tests {
    use axum::{
        Router,
        body::Body,
        extract::Request as Asked,
        http::HeaderMap,
        response::{IntoResponse, Redirect},
        routing::{any, get},
    };
    use tokio::net::TcpListener;

    use super::*;

    /// A server with these routes; its address.
    async fn server(router: Router) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async { axum::serve(listener, router).await });
        Url::parse(&url).unwrap()
    }

    fn outgoing(url: Url, form: Option<&'static str>) -> Outgoing {
        Outgoing { url, form: form.map(Bytes::from), limit: Duration::from_secs(20) }
    }

    async fn exchange(outgoing: Outgoing) -> Result<String, RequestError> {
        let answered = HttpClient::new(&SyncConfig::default()).exchange(outgoing).await?;
        Ok(format!("{} {}", answered.status.as_u16(), String::from_utf8_lossy(&answered.body)))
    }

    /// Says what it was asked.
    async fn echo(asked: Asked) -> impl IntoResponse {
        let text =
            |headers: &HeaderMap, name| headers.get(name).map_or("-", |v| v.to_str().unwrap()).to_owned();
        let (head, body) = asked.into_parts();
        let body = axum::body::to_bytes(body, 1000).await.unwrap();
        let body = String::from_utf8_lossy(&body).into_owned();
        let (media, credentials) = (text(&head.headers, CONTENT_TYPE), text(&head.headers, AUTHORIZATION));
        format!("{} {} {media} {credentials} {body}", head.method, head.uri)
    }

    #[tokio::test]
    async fn get_and_form_are_sent_as_they_are_meant() {
        let base = server(Router::new().fallback(any(echo))).await;
        let url = base.join("/configs/fetch?groupKeys=RULE#there").unwrap();
        let told = exchange(outgoing(url, None)).await.unwrap();
        assert_eq!(told, "200 GET /configs/fetch?groupKeys=RULE - - ");
        let told = exchange(outgoing(base.join("/l").unwrap(), Some("RULE=a%2C1"))).await.unwrap();
        assert_eq!(told, "200 POST /l application/x-www-form-urlencoded - RULE=a%2C1");
    }

    #[tokio::test]
    async fn user_and_password_of_the_address_become_a_header() {
        let mut url = server(Router::new().fallback(any(echo))).await;
        url.set_username("me").unwrap();
        url.set_password(Some("s:c%40t")).unwrap();
        let told = exchange(outgoing(url, None)).await.unwrap();
        assert_eq!(told, format!("200 GET / - Basic {} ", STANDARD.encode("me:s:c@t")));
    }

    #[tokio::test]
    async fn one_redirect_is_followed_with_its_method_or_as_a_get() {
        let router = Router::new()
            .route("/kept", any(|| async { Redirect::temporary("/there") }))
            .route("/see", any(|| async { Redirect::to("/there") }))
            .route("/twice", any(|| async { Redirect::temporary("/kept") }))
            .route("/tls", any(|| async { Redirect::temporary("https://127.0.0.1/") }))
            .fallback(any(echo));
        let base = server(router).await;
        let at = |path| outgoing(base.join(path).unwrap(), Some("a=b"));
        let told = exchange(at("/kept")).await.unwrap();
        assert_eq!(told, "200 POST /there application/x-www-form-urlencoded - a=b");
        assert_eq!(exchange(at("/see")).await.unwrap(), "200 GET /there - - ");
        for (path, why) in [("/twice", "after one redirect already"), ("/tls", "only `http` is spoken here")]
        {
            let error = exchange(at(path)).await.unwrap_err().to_string();
            assert!(error.contains(why), "{path}: {error}");
        }
    }

    #[tokio::test]
    async fn silence_and_a_body_without_end_are_cut_off() {
        let router = Router::new()
            .route("/silent", get(std::future::pending::<String>))
            .route("/stuck", get(|| async { Body::new(Stuck) }));
        let base = server(router).await;
        for path in ["/silent", "/stuck"] {
            let limit = Duration::from_millis(100);
            let request = Outgoing { url: base.join(path).unwrap(), form: None, limit };
            let error = exchange(request).await.unwrap_err();
            assert!(matches!(error, RequestError::Late { .. }), "{path}: {error:?}");
        }
    }

    /// A body that never ends.
    struct Stuck;

    impl http_body::Body for Stuck {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
            std::task::Poll::Pending
        }
    }

    #[tokio::test]
    async fn nobody_there_is_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let error = exchange(outgoing(Url::parse(&url).unwrap(), None)).await.unwrap_err();
        assert!(matches!(error, RequestError::Exchange(_)), "{error:?}");
        assert!(crate::causes::chain(&error).contains("refused"), "{}", crate::causes::chain(&error));
    }
}
