//! What callers are told: the only place that chooses statuses and words for the gateway's own answers.

use std::{fmt, io, net::IpAddr};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode, Uri,
    header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER},
    request,
};
use soul_client::wire::soul::SoulResult;

use super::{
    ACCESS_LOG,
    access::Entry,
    config::ErrorStatus,
    connection::Caller,
    error::Refusal,
    forward::{AnswerBody, CallerFault, Tally},
    grpc,
    plugin::divide::{Rule, Selector},
};
use crate::{causes::chain, clock::Moment, sync::StatusStats};

/// Soul's codes and words for them (specification, section 8).
const PARAM_ERROR: (i32, &str) = (-100, "Your parameter error, please check the relevant documentation!");
const RULE_NOT_FIND: (i32, &str) = (-102, "Rule not found!");
const SERVICE_RESULT_ERROR: (i32, &str) = (-103, "Service invocation exception, or no result is returned!");
const SERVICE_TIMEOUT: (i32, &str) = (-104, "Service call timeout!");
const CANNOT_FIND_URL: (i32, &str) = (-106, "Can not find url, please check your configuration!");
const CANNOT_FIND_SELECTOR: (i32, &str) = (-107, "Can not find selector, please check your configuration!");
const CONTEXT_PATH_ERROR: (i32, &str) =
    (-111, "the context path illegal, please check the context path mapping plugin!");
/// Counted for a caller that left before its answer began; nginx's number for it.
const CALLER_GONE: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => StatusCode::REQUEST_TIMEOUT,
};
const TOO_MANY_REQUESTS: (i32, &str) = (429, "You have been restricted, please try again later!");
/// What Soul's global error handler says of every failing upstream (section 7.4).
const INTERNAL: (i32, &str) = (500, "Internal Server Error");

/// What is told of a request when it is over: one access line and its counters, for every request.
pub(super) struct Record<'r> {
    came: Moment,
    head: &'r request::Parts,
    selector: Option<&'r Selector>,
    rule: Option<&'r Rule>,
    unmatched: &'r StatusStats,
    tally: Tally<'r>,
    caller: &'r Caller,
    /// Who asked, as far as it is known.
    address: IpAddr,
    told: bool,
}

impl<'r> Record<'r> {
    pub(super) fn start(
        head: &'r request::Parts,
        caller: &'r Caller,
        unmatched: &'r StatusStats,
        came: Moment,
    ) -> Self {
        Self {
            came,
            head,
            selector: None,
            rule: None,
            unmatched,
            tally: Tally::default(),
            caller,
            address: caller.peer.address(),
            told: false,
        }
    }

    /// When the request came.
    pub(super) fn came(&self) -> Moment {
        self.came
    }

    /// On whose connection.
    pub(super) fn caller(&self) -> &'r Caller {
        self.caller
    }

    /// Notes who asked, from behind the other end of the connection.
    pub(super) fn address(&mut self, address: IpAddr) {
        self.address = address;
    }

    /// Notes the selector that took the request.
    pub(super) fn selector(&mut self, selector: &'r Selector) -> &'r Selector {
        self.selector = Some(selector);
        selector
    }

    /// Notes the rule that took the request.
    pub(super) fn rule(&mut self, rule: &'r Rule) -> &'r Rule {
        self.rule = Some(rule);
        rule
    }

    pub(super) fn tally(&mut self) -> &mut Tally<'r> {
        &mut self.tally
    }

    fn tell(&mut self, status: StatusCode) {
        self.told = true;
        let now = self.tally.answered.unwrap_or_else(|| self.caller.lane.now());
        self.caller.alarm.saw(now.at);
        let took = now.at.saturating_duration_since(self.came.at);
        match (self.selector, self.rule) {
            (_, Some(rule)) => rule.payload().stats.count(status),
            (Some(selector), None) => selector.payload().stats().without_rule.count(status),
            (None, None) => self.unmatched.count(status),
        }
        if let Some(selector) = self.selector {
            selector.payload().stats().durations.observe(took);
        }
        let lines = self.caller.lane.lines();
        if lines.are_wanted() {
            let peer = &self.caller.peer;
            let behind = (self.address != peer.address()).then(|| self.address.to_string());
            lines.add(&Entry {
                time_ms: now.ms,
                peer: behind.as_deref().or(peer.text().to_str().ok()).unwrap_or_default(),
                method: &self.head.method,
                uri: &self.head.uri,
                status,
                selector: self.selector.map(Selector::name),
                rule: self.rule.map(Rule::name),
                upstream: self.tally.upstream,
                retries: self.tally.retries,
                elapsed: took,
            });
        }
        tracing::debug!(target: ACCESS_LOG, status = status.as_u16(), "{}", Line(&self.tally, &self.head.uri));
    }
}

/// Soul's words for a request that an upstream was asked for.
struct Line<'r>(&'r Tally<'r>, &'r Uri);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Tally { upstream, target, allowed, .. }, asked) = self;
        match (upstream, target) {
            (Some(upstream), Some(target)) => {
                let target = target.text(asked);
                write!(f, "The request urlPath is http://{upstream}{target}, retryTimes is {allowed}")
            }
            _ => f.write_str("The request was not forwarded"),
        }
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if !self.told {
            self.tell(CALLER_GONE);
        }
    }
}

/// The answer to a request that may go no further (RFC 9110, section 7.6.2): there is somebody here, and no more is told. What
/// a request looks like on its way is not shown to callers.
pub(super) fn as_the_last_hop(method: &Method) -> Result<Response<AnswerBody>, Refusal> {
    match *method {
        Method::OPTIONS => Ok(Response::new(AnswerBody::whole(Bytes::new()))),
        _ => Err(Refusal::NotServed("`TRACE` for the gateway itself")),
    }
}

/// Says that the connection ends with this answer, for the caller is to know before it asks again. (HTTP/2 says it otherwise.)
pub(super) fn as_last(response: &mut Response<AnswerBody>) {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Ends a request: an upstream's answer as it is, or the gateway's own.
pub(super) fn finish(
    outcome: Result<Response<AnswerBody>, Refusal>,
    mut record: Record<'_>,
    mode: ErrorStatus,
) -> Response<AnswerBody> {
    // It is answered all the same: some that end their side too early still read.
    let left = matches!(outcome, Err(Refusal::Caller(CallerFault::Left)));
    let mut refused = None;
    let response = outcome.unwrap_or_else(|refusal| {
        log(&refusal, &record);
        let told = if grpc::is_asked(record.head) {
            // Counted as what it is, whatever such callers are told.
            refused = Some(http_status(&refusal));
            grpc::refusal(&refusal, grpc_words(&refusal))
        } else {
            self::refusal(&refusal, mode)
        };
        told.map(AnswerBody::whole)
    });
    record.tell(if left { CALLER_GONE } else { refused.unwrap_or(response.status()) });
    response
}

/// What failed on the side of the upstreams is for whoever runs the gateway; what a caller got wrong is not.
fn log(refusal: &Refusal, record: &Record<'_>) {
    let (selector, rule) = (record.selector.map(Selector::name), record.rule.map(Rule::name));
    let retries = record.tally.retries;
    if http_status(refusal).is_server_error()
        && !matches!(
            refusal,
            Refusal::NotReady
                | Refusal::NotServed(_)
                | Refusal::Overloaded
                | Refusal::Busy
                | Refusal::GivenUp { .. }
        )
    {
        tracing::warn!(
            selector,
            rule,
            retries,
            error = chain(refusal),
            "a request was not answered by an upstream"
        );
    } else {
        tracing::debug!(selector, rule, error = chain(refusal), "a request was refused");
    }
}

/// The answer to a request that no upstream answered.
fn refusal(refusal: &Refusal, mode: ErrorStatus) -> Response<Bytes> {
    let (status, (code, message), data) = match mode {
        ErrorStatus::Http => (http_status(refusal), words(refusal), None),
        ErrorStatus::Soul => as_soul(refusal),
    };
    let body = SoulResult { code, message: message.into(), data };
    // Three plain fields cannot fail to serialise; an empty body would still carry the status.
    let body = serde_json::to_vec(&body).unwrap_or_default();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if matches!(refusal, Refusal::Overloaded | Refusal::Busy) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if matches!(refusal, Refusal::Malformed(_) | Refusal::NotServed(_) | Refusal::Caller(_)) {
        // What was misread here may be read otherwise by whoever stands in front: nothing more is taken from it.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn words(refusal: &Refusal) -> (i32, &'static str) {
    match refusal {
        Refusal::Malformed(_) | Refusal::HeadTooLarge | Refusal::NotServed(_) | Refusal::Caller(_) => {
            PARAM_ERROR
        }
        Refusal::NoSelector => CANNOT_FIND_SELECTOR,
        Refusal::NoRule => RULE_NOT_FIND,
        Refusal::Overloaded | Refusal::Busy => TOO_MANY_REQUESTS,
        Refusal::NotReady
        | Refusal::NotDivided(_)
        | Refusal::NoUpstreamConfigured { .. }
        | Refusal::NoUpstream => CANNOT_FIND_URL,
        Refusal::ContextPath(_) => CONTEXT_PATH_ERROR,
        Refusal::Condition(_) => INTERNAL,
        Refusal::Connect { .. }
        | Refusal::Broken { .. }
        | Refusal::Unusable { .. }
        | Refusal::NoHttp2 { .. } => SERVICE_RESULT_ERROR,
        Refusal::ConnectLate { .. } | Refusal::Late { .. } | Refusal::GivenUp { .. } => SERVICE_TIMEOUT,
    }
}

/// What callers of gRPC are shown.
fn grpc_words(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Malformed(what) => what,
        Refusal::NoHttp2 { .. } => "gRPC needs HTTP/2, which the service is not registered for",
        _ => words(refusal).1,
    }
}

fn http_status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Malformed(_) | Refusal::Caller(CallerFault::Left | CallerFault::Malformed) => {
            StatusCode::BAD_REQUEST
        }
        Refusal::Caller(CallerFault::Stalled) => StatusCode::REQUEST_TIMEOUT,
        Refusal::Caller(CallerFault::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::Condition(_) => StatusCode::INTERNAL_SERVER_ERROR,
        Refusal::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        Refusal::NotServed(_) => StatusCode::NOT_IMPLEMENTED,
        Refusal::NoSelector | Refusal::NoRule | Refusal::ContextPath(_) => StatusCode::NOT_FOUND,
        Refusal::NotReady
        | Refusal::Overloaded
        | Refusal::Busy
        | Refusal::NotDivided(_)
        | Refusal::NoUpstreamConfigured { .. }
        | Refusal::NoUpstream => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Connect { .. }
        | Refusal::Broken { .. }
        | Refusal::Unusable { .. }
        | Refusal::NoHttp2 { .. } => StatusCode::BAD_GATEWAY,
        Refusal::ConnectLate { .. } | Refusal::Late { .. } | Refusal::GivenUp { .. } => {
            StatusCode::GATEWAY_TIMEOUT
        }
    }
}

/// Soul's way: 200 for a request that finds no way, 500 with the exception's text for an upstream that fails.
fn as_soul(refusal: &Refusal) -> (StatusCode, (i32, &'static str), Option<String>) {
    let failed = |data: String| (StatusCode::INTERNAL_SERVER_ERROR, INTERNAL, Some(data));
    match refusal {
        Refusal::Malformed(_)
        | Refusal::HeadTooLarge
        | Refusal::NotServed(_)
        | Refusal::Caller(_)
        | Refusal::Overloaded
        | Refusal::Busy => (http_status(refusal), words(refusal), None),
        Refusal::Connect { upstream, source } if source.kind() == io::ErrorKind::ConnectionRefused => {
            failed(format!("Connection refused: {}", java_address(upstream)))
        }
        Refusal::Connect { source, .. } => failed(source.to_string()),
        Refusal::ConnectLate { upstream, .. } => failed(format!(
            "io.netty.channel.ConnectTimeoutException: connection timed out: {}",
            java_address(upstream)
        )),
        Refusal::Late { after, .. } | Refusal::GivenUp { after, .. } => failed(format!(
            "Did not observe any item or terminal signal within {}ms in 'flatMap' (and no fallback has been configured)",
            after.as_millis()
        )),
        Refusal::Condition(reason) => failed(reason.clone()),
        Refusal::Broken { .. } => failed("Connection prematurely closed BEFORE response".to_owned()),
        Refusal::Unusable { what, .. } => failed(what.clone()),
        Refusal::NoHttp2 { .. } => failed(refusal.to_string()),
        _ => (StatusCode::OK, words(refusal), None),
    }
}

/// As Java prints a socket address that was given by number.
fn java_address(upstream: &str) -> String {
    if upstream.starts_with(|c: char| c.is_ascii_digit() || c == '[') {
        format!("/{upstream}")
    } else {
        upstream.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;

    async fn told(of: Refusal, mode: ErrorStatus) -> (u16, String) {
        let response = refusal(&of, mode);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let status = response.status().as_u16();
        (status, String::from_utf8(response.into_body().to_vec()).unwrap())
    }

    fn upstream() -> Arc<str> {
        Arc::from("10.0.0.2:8189")
    }

    #[tokio::test]
    async fn http_statuses_by_default_with_souls_codes() {
        use ErrorStatus::Http;

        let no_selector = told(Refusal::NoSelector, Http).await;
        let body = r#"{"code":-107,"message":"Can not find selector, please check your configuration!","data":null}"#;
        assert_eq!(no_selector, (404, body.to_owned()));
        let no_rule = told(Refusal::NoRule, Http).await;
        assert_eq!(no_rule, (404, r#"{"code":-102,"message":"Rule not found!","data":null}"#.to_owned()));
        let refused =
            Refusal::Connect { upstream: upstream(), source: io::ErrorKind::ConnectionRefused.into() };
        let body = r#"{"code":-103,"message":"Service invocation exception, or no result is returned!","data":null}"#;
        assert_eq!(told(refused, Http).await, (502, body.to_owned()));
        let late = Refusal::Late { upstream: upstream(), after: Duration::from_secs(3) };
        assert_eq!(
            told(late, Http).await,
            (504, r#"{"code":-104,"message":"Service call timeout!","data":null}"#.to_owned())
        );
        for refusal in [Refusal::NotReady, Refusal::NoUpstream, Refusal::NotDivided("off")] {
            let body =
                r#"{"code":-106,"message":"Can not find url, please check your configuration!","data":null}"#;
            assert_eq!(told(refusal, Http).await, (503, body.to_owned()));
        }
        assert_eq!(told(Refusal::Malformed("no host"), Http).await.0, 400);
    }

    #[tokio::test]
    async fn souls_own_statuses_by_setting() {
        use ErrorStatus::Soul;

        assert_eq!(told(Refusal::NoSelector, Soul).await.0, 200);
        assert_eq!(told(Refusal::NoUpstream, Soul).await.0, 200);
        let refused =
            Refusal::Connect { upstream: upstream(), source: io::ErrorKind::ConnectionRefused.into() };
        assert_eq!(
            told(refused, Soul).await,
            (
                500,
                r#"{"code":500,"message":"Internal Server Error","data":"Connection refused: /10.0.0.2:8189"}"#
                    .to_owned()
            )
        );
        let late = Refusal::Late { upstream: upstream(), after: Duration::from_millis(3000) };
        let (status, body) = told(late, Soul).await;
        assert_eq!(status, 500);
        assert!(body.contains("Did not observe any item or terminal signal within 3000ms"), "{body}");
    }
}
