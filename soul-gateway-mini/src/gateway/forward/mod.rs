//! Sending a request to an upstream, and to another one where that is safe.
//!
//! | what failed | who may see it again |
//! |---|---|
//! | no connection was made | any upstream not tried yet, up to `failover_limit` and the rule's `retry`: nothing was sent |
//! | an idle connection had just been closed | the same upstream, once, on a new connection, if a repetition is harmless |
//! | no answer in time, or the upstream broke off | an upstream not tried yet, up to the rule's `retry`, if a repetition is harmless |
//!
//! Harmless is what has an idempotent method and no body. A POST reaches one upstream at most once.

mod body;
mod client;
mod headers;
mod names;
mod pool;

use std::{sync::Arc, time::Duration};

use http::{
    HeaderValue, Request, Response, StatusCode, Uri, Version,
    header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING},
    request,
    uri::PathAndQuery,
};
use hyper::body::Incoming;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use body::RequestBody;
pub(super) use body::{AnswerBody, CallerFault};
use client::{Client, ConnectError, Connection, Failed, SendError};
pub(super) use headers::is_plainly_framed;

use super::{
    config::{Forwarded, GatewayConfig, HostHeader},
    error::Refusal,
    plugin::divide::{Candidate, Candidates, Suspicion},
    server::Peer,
};

/// A request as it is to reach an upstream.
pub(super) struct Outbound {
    head: request::Parts,
    body: Incoming,
    /// Path and query for the upstream.
    target: String,
}

impl Outbound {
    pub(super) fn new(head: request::Parts, body: Incoming, target: String) -> Self {
        Self { head, body, target }
    }
}

/// How it went, for log and metrics.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The last upstream that was tried.
    pub(super) upstream: Option<Arc<str>>,
    /// What it was asked for, without a path of its own.
    pub(super) target: Option<PathAndQuery>,
    /// Attempts the rule allows after the first.
    pub(super) allowed: u32,
    /// Attempts after the first.
    pub(super) retries: u32,
}

/// Sends requests to upstreams.
pub(super) struct Forwarder {
    client: Client,
    suspicion: Suspicion,
    failover_limit: usize,
    body_idle_timeout: Duration,
    host_header: HostHeader,
    forwarded: Forwarded,
}

impl Forwarder {
    /// `connections` owns the tasks of upstream connections, `stop` ends them.
    pub(super) fn new(config: &GatewayConfig, connections: TaskTracker, stop: CancellationToken) -> Self {
        let client = Client::new(
            config.pool_max_idle,
            config.pool_idle_timeout,
            config.connect_timeout,
            connections,
            stop,
        );
        Self {
            client,
            suspicion: Suspicion::new(config.suspect_for),
            failover_limit: config.failover_limit,
            body_idle_timeout: config.body_idle_timeout,
            host_header: config.host_header,
            forwarded: config.forwarded,
        }
    }

    pub(super) fn suspicion(&self) -> &Suspicion {
        &self.suspicion
    }

    /// Closes connections that have been idle for too long, again and again.
    pub(super) fn sweep(&self) -> impl Future<Output = ()> + Send + use<> {
        self.client.sweep()
    }

    /// How many connections to upstreams are open.
    pub(super) fn connections(&self) -> usize {
        self.client.connections()
    }

    /// Closes the connections that wait for a request.
    pub(super) fn close_idle(&self) {
        self.client.close_idle();
    }
}

/// Sends a request to the candidates, one after the other as far as that is safe, and gives the head of the answer
/// with its body still to come.
///
/// # Errors
/// What the last attempt failed by.
pub(super) async fn send(
    forwarder: &Forwarder,
    outbound: Outbound,
    peer: &Peer,
    mut candidates: Candidates<'_>,
    tally: &mut Tally,
) -> Result<Response<AnswerBody>, Refusal> {
    let rule = candidates.rule();
    let mut sending = Sending::new(forwarder, outbound, peer)?;
    (tally.target, tally.allowed) = (Some(sending.target.clone()), rule.retry);
    let mut budget =
        Budget { failovers: forwarder.failover_limit, retries: rule.retry, timeout: rule.timeout };
    let mut deadline = Instant::now() + rule.timeout;
    loop {
        let candidate = candidates.current().ok_or(Refusal::NoUpstream)?;
        tally.upstream = Some(Arc::clone(candidate.destination.address()));
        let failure = match sending.attempt(candidate, deadline, rule.timeout).await {
            Ok(response) => return Ok(response),
            Err(failure) => failure,
        };
        let Some(again) = budget.after(&failure, sending.is_whole(), deadline) else {
            return Err(failure.refusal);
        };
        if !candidates.advance() {
            return Err(failure.refusal);
        }
        tally.retries += 1;
        if again == Again::WithNewTime {
            deadline = Instant::now() + rule.timeout;
        }
    }
}

/// How often and until when a request may be tried again.
struct Budget {
    failovers: usize,
    retries: u32,
    timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// Within the time of the attempt that found no connection.
    InSameTime,
    /// With the rule's time from the start.
    WithNewTime,
}

/// A failed attempt.
struct Failure {
    refusal: Refusal,
    /// Whether the upstream can have seen nothing.
    unsent: bool,
}

impl Budget {
    /// Whether another upstream may be tried after `failure`. `whole`: the request is still, or again, all there.
    fn after(&mut self, failure: &Failure, whole: bool, deadline: Instant) -> Option<Again> {
        if !whole || matches!(failure.refusal, Refusal::Caller(_)) {
            return None;
        }
        if failure.unsent && self.failovers > 0 && Instant::now() < deadline {
            self.failovers -= 1;
            return Some(Again::InSameTime);
        }
        if self.retries > 0 && !self.timeout.is_zero() {
            self.retries -= 1;
            return Some(Again::WithNewTime);
        }
        None
    }
}

/// One request and what is left of it.
struct Sending<'f> {
    forwarder: &'f Forwarder,
    /// `None` once it was sent and cannot be sent again.
    request: Option<Box<Request<RequestBody>>>,
    target: PathAndQuery,
    asked_host: Option<HeaderValue>,
    repeatable: bool,
}

impl<'f> Sending<'f> {
    fn new(forwarder: &'f Forwarder, outbound: Outbound, peer: &Peer) -> Result<Self, Refusal> {
        let Outbound { head, body, target } = outbound;
        let request::Parts { method, uri, mut headers, .. } = head;
        let body = RequestBody::new(body, forwarder.body_idle_timeout);
        headers::end_hop(&mut headers);
        // The address in the request line, if there is one, counts more than `Host` (RFC 9112, section 3.2.2).
        let named = uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
        let asked_host = headers.remove(HOST);
        let asked_host = named.or(asked_host);
        let caller = headers::Caller { address: peer.text(), host: asked_host.clone() };
        headers::tell_caller(&mut headers, caller, forwarder.forwarded);
        if matches!(body, RequestBody::Stream(_)) && !headers.contains_key(CONTENT_LENGTH) {
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        let repeatable = method.is_idempotent() && matches!(body, RequestBody::Empty);
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        Ok(Self {
            forwarder,
            request: Some(Box::new(request)),
            target: path_and_query(target)?,
            asked_host,
            repeatable,
        })
    }

    /// Whether the request can be sent once more.
    fn is_whole(&self) -> bool {
        self.request.is_some()
    }

    /// Tries one upstream.
    async fn attempt(
        &mut self,
        candidate: Candidate<'_>,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<Response<AnswerBody>, Failure> {
        let Candidate { member, destination } = candidate;
        let in_flight = member.state().begin();
        let address = destination.address();
        let mut connection = Connection::Any;
        loop {
            let mut request = self.request.take().ok_or_else(|| self.nothing_left(address))?;
            self.address_to(&mut request, candidate)?;
            let spare = self.repeatable.then(|| copy(&request));
            destination.count_attempt();
            let exchange = self.forwarder.client.exchange(
                destination.target(),
                address,
                request,
                connection,
                deadline,
                timeout,
            );
            match exchange.await {
                Ok((response, lease)) => {
                    destination.trust();
                    return self.answer(response, address, |body| {
                        AnswerBody::upstream(body, self.forwarder.body_idle_timeout, lease, in_flight)
                    });
                }
                Err(Failed::Connect { request, cause }) => {
                    self.request = Some(request);
                    if !cause.is_ours() {
                        destination.count_failure();
                        self.forwarder.suspicion.raise(destination);
                    }
                    return Err(Failure { refusal: not_connected(address, cause), unsent: true });
                }
                // The upstream closed what it took for idle, just as it was used again.
                Err(Failed::Sent { cause: SendError::Broken { reused: true, .. } }) if spare.is_some() => {
                    self.request = spare;
                    connection = Connection::Fresh;
                }
                Err(Failed::Sent { cause }) => {
                    self.request = spare;
                    if !matches!(cause, SendError::Caller(_)) {
                        destination.count_failure();
                    }
                    return Err(Failure { refusal: not_answered(address, cause, timeout), unsent: false });
                }
            }
        }
    }

    /// Sets what differs from upstream to upstream: `Host` and the target.
    fn address_to(
        &self,
        request: &mut Request<RequestBody>,
        candidate: Candidate<'_>,
    ) -> Result<(), Failure> {
        let Candidate { destination, .. } = candidate;
        let target = if destination.prefix().is_empty() {
            self.target.clone()
        } else {
            path_and_query(format!("{}{}", destination.prefix(), self.target))
                .map_err(|refusal| Failure { refusal, unsent: false })?
        };
        *request.uri_mut() = Uri::from(target);
        headers::set_host(
            request.headers_mut(),
            self.asked_host.clone(),
            destination.host(),
            self.forwarder.host_header,
        );
        Ok(())
    }

    /// Makes an upstream's answer one for the caller.
    fn answer(
        &self,
        response: Response<Incoming>,
        address: &Arc<str>,
        body: impl FnOnce(Incoming) -> AnswerBody,
    ) -> Result<Response<AnswerBody>, Failure> {
        let unusable = if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // Nobody asked for it: `Upgrade` is not passed on.
            Some("it switched protocols unasked")
        } else if !headers::is_plainly_framed(response.headers()) {
            Some("its transfer coding is not `chunked`")
        } else {
            None
        };
        if let Some(what) = unusable {
            let refusal = Refusal::Unusable { upstream: Arc::clone(address), what };
            return Err(Failure { refusal, unsent: false });
        }
        let (mut head, incoming) = response.into_parts();
        head.version = Version::HTTP_11;
        headers::end_hop(&mut head.headers);
        Ok(Response::from_parts(head, body(incoming)))
    }

    fn nothing_left(&self, address: &Arc<str>) -> Failure {
        let refusal =
            Refusal::Unusable { upstream: Arc::clone(address), what: "the request was sent before" };
        Failure { refusal, unsent: false }
    }
}

/// A request without a body, once more.
fn copy(request: &Request<RequestBody>) -> Box<Request<RequestBody>> {
    let mut copy = Request::new(RequestBody::Empty);
    copy.method_mut().clone_from(request.method());
    copy.headers_mut().clone_from(request.headers());
    Box::new(copy)
}

/// The target of a request. What the caller wrote always passes, and what the configuration adds was escaped when it was
/// read.
fn path_and_query(target: String) -> Result<PathAndQuery, Refusal> {
    PathAndQuery::try_from(target)
        .map_err(|_| Refusal::NotDivided("the configured path is none that can be sent"))
}

fn not_connected(address: &Arc<str>, cause: ConnectError) -> Refusal {
    let upstream = Arc::clone(address);
    match cause {
        ConnectError::Refused(source) => Refusal::Connect { upstream, source },
        ConnectError::Late(after) => Refusal::ConnectLate { upstream, after },
    }
}

fn not_answered(address: &Arc<str>, cause: SendError, timeout: Duration) -> Refusal {
    let upstream = Arc::clone(address);
    match cause {
        SendError::Broken { source, .. } => Refusal::Broken { upstream, source },
        SendError::Late => Refusal::Late { upstream, after: timeout },
        SendError::Caller(fault) => Refusal::Caller(fault),
    }
}
