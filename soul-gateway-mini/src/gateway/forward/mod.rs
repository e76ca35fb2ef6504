//! Sending a request to an upstream: `send` says to which, and to which after that; here is one attempt.

mod answer;
mod body;
mod client;
mod exchange;
mod framing;
mod headers;
mod link;
mod names;
mod pool;
mod send;
mod tunnel;
mod upload;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Response,
    header::{CONNECTION, HOST},
    request,
    uri::PathAndQuery,
};
use http_body::Body as _;
use hyper::{body::Incoming, upgrade::OnUpgrade};
use soul_client::balance::Outcome;
use tokio::time::Instant;

pub(super) use body::AnswerBody;
pub(super) use client::Client;
pub(super) use headers::is_plainly_framed;
pub(super) use names::Names;
pub(super) use send::{Tally, send};
pub(super) use tunnel::Tunnel;
pub(super) use upload::CallerFault;

use answer::Head;
use body::Downloading;
use client::{ConnectError, Connection, Lease};
use exchange::{SendError, Times, exchange};
use headers::{Announced, Asked};
use pool::Limits;
use send::Failure;
use upload::Upload;

use super::{
    config::{Forwarded, GatewayConfig, HostHeader},
    connection::Caller,
    error::Refusal,
    peer::Peer,
    plugin::divide::{Candidate, InFlight, outcome_of},
};
use crate::sync::Destination;

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

/// How requests are sent to upstreams.
pub(super) struct Forwarder {
    pool: Limits,
    connect_timeout: Duration,
    failover_limit: usize,
    body_idle_timeout: Duration,
    /// Bytes of a body that have to come in that time.
    least_upload: u64,
    host_header: HostHeader,
    forwarded: Forwarded,
    max_body: u64,
    tunnel_idle: Duration,
    upstream_max_requests: u32,
}

impl Forwarder {
    pub(super) fn new(config: &GatewayConfig) -> Self {
        Self {
            pool: Limits { max_idle: config.pool_max_idle, idle_timeout: config.pool_idle_timeout },
            connect_timeout: config.connect_timeout,
            failover_limit: config.failover_limit,
            body_idle_timeout: config.body_idle_timeout,
            least_upload: config.least_upload(),
            host_header: config.host_header,
            forwarded: config.forwarded,
            max_body: config.max_body(),
            tunnel_idle: config.tunnel_idle_timeout,
            upstream_max_requests: match config.upstream_max_requests {
                0 => u32::MAX,
                limit => u32::try_from(limit).unwrap_or(u32::MAX),
            },
        }
    }
}

/// One request and what is left of it.
struct Sending<'f> {
    forwarder: &'f Forwarder,
    caller: &'f Caller,
    /// Who asks, possibly from behind the other end of the connection.
    peer: &'f Peer,
    head: request::Parts,
    /// The caller's side of a connection that changes its protocol, if it asked for that.
    upgrade: Option<OnUpgrade>,
    target: PathAndQuery,
    asked_host: Option<HeaderValue>,
    body: Announced,
    /// The body, until it went out with a request.
    upload: Option<Upload>,
    /// Whether nothing that cannot be had again went out.
    whole: bool,
}

impl<'f> Sending<'f> {
    fn new(
        forwarder: &'f Forwarder,
        outbound: Outbound,
        caller: &'f Caller,
        peer: &'f Peer,
    ) -> Result<Self, Refusal> {
        let Outbound { mut head, body, target } = outbound;
        // The address in the request line, if there is one, counts more than `Host` (RFC 9112, section 3.2.2).
        let named = head.uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
        let asked_host = named.or_else(|| head.headers.get(HOST).cloned());
        if body.size_hint().lower() > forwarder.max_body {
            return Err(Refusal::Caller(CallerFault::TooLarge));
        }
        let upload = Upload::new(body, headers::expects_continue(&head.headers), forwarder.max_body);
        let upgrade = match headers::wanted_upgrade(&head.headers) {
            Some(_) if upload.is_none() => head.extensions.remove::<OnUpgrade>(),
            _ => None,
        };
        let body = upload.as_ref().map_or(Announced::Nothing, Upload::announced);
        let target = path_and_query(target)?;
        Ok(Self { forwarder, caller, peer, head, upgrade, target, asked_host, body, upload, whole: true })
    }

    /// Whether the request can be sent once more.
    fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether a repetition is harmless, should the upstream have seen the request.
    fn is_repeatable(&self) -> bool {
        self.body == Announced::Nothing && self.head.method.is_idempotent()
    }

    /// Tries one upstream.
    async fn attempt(
        &mut self,
        candidate: Candidate<'_>,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<Response<AnswerBody>, Failure> {
        let destination = candidate.destination;
        let address = destination.address();
        let mut connection = Connection::Any;
        loop {
            destination.count_attempt();
            let client = self.caller.lane.client();
            let connect_timeout = self.forwarder.connect_timeout;
            let leased =
                client.lease(destination.target(), address, connection, connect_timeout, deadline).await;
            let mut lease = match leased {
                Ok(lease) => lease,
                Err(cause) => return Err(Self::not_connected(candidate, cause)),
            };
            self.write_head(&mut lease, destination);
            let pause = self.forwarder.body_idle_timeout;
            let least = self.forwarder.least_upload;
            let times = Times { alarm: &self.caller.alarm, deadline, timeout, pause, least };
            let outcome = exchange(&mut lease.link, &self.head.method, &mut self.upload, times).await;
            let cause = match outcome {
                Ok(head) => {
                    let outcome = outcome_of(head.response.status(), head.response.headers());
                    let in_flight = candidate.ended(outcome);
                    return self.answer(*head, lease, in_flight);
                }
                Err(cause) => cause,
            };
            self.whole = self.is_repeatable()
                || !lease.link.wrote() && self.upload.as_ref().is_none_or(Upload::is_whole);
            // The upstream closed what it took for idle, just as it was used again.
            if self.whole && lease.link.reused && matches!(cause, SendError::Broken(_)) {
                connection = if lease.link.wrote() { Connection::Fresh } else { Connection::Any };
                continue;
            }
            if !matches!(cause, SendError::Caller(_)) {
                destination.count_failure();
                candidate.ended(Outcome::TimedOut);
            }
            return Err(Failure {
                refusal: not_answered(address, cause, timeout),
                unsent: !lease.link.wrote(),
            });
        }
    }

    /// Writes the head of the request for an upstream.
    fn write_head(&self, lease: &mut Lease, destination: &Destination) {
        let asked = Asked {
            method: &self.head.method,
            headers: &self.head.headers,
            host: self.asked_host.as_ref(),
            caller: match self.forwarder.forwarded {
                // The list goes on with the one who brought it.
                Forwarded::Append => self.caller.peer.text(),
                Forwarded::Replace | Forwarded::Off => self.peer.text(),
            },
            body: self.body,
            upgrade: self.upgrade.as_ref().and_then(|_| headers::wanted_upgrade(&self.head.headers)),
            forwarded: self.forwarder.forwarded,
            secure: self.caller.secure,
            host_header: self.forwarder.host_header,
        };
        lease.link.begin();
        let target = [destination.prefix(), self.target.as_str()];
        asked.write(&mut lease.link.output, target, destination.host());
    }

    /// Makes an upstream's answer one for the caller.
    fn answer(
        &mut self,
        head: Head,
        lease: Lease,
        in_flight: InFlight,
    ) -> Result<Response<AnswerBody>, Failure> {
        let Head { mut response, framing, keep, switches } = head;
        if switches {
            if let Some(upgrade) = self.upgrade.take() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
                self.caller.tunnel(Tunnel::new(upgrade, lease, self.forwarder.tunnel_idle, in_flight));
                return Ok(response.map(|()| AnswerBody::whole(Bytes::new())));
            }
            let what = "it switched protocols unasked".to_owned();
            let refusal = Refusal::Unusable { upstream: Arc::clone(lease.link.address()), what };
            return Err(Failure { refusal, unsent: false });
        }
        let upload = self.upload.take().filter(|upload| !upload.is_done());
        let pause = self.forwarder.body_idle_timeout;
        let alarm = Arc::clone(&self.caller.alarm);
        let mut downloading = Downloading::new(lease, framing, keep, upload, pause, alarm, in_flight);
        let body = match downloading.take_whole() {
            Some(bytes) => AnswerBody::whole(bytes),
            None => AnswerBody::upstream(downloading),
        };
        Ok(response.map(|()| body))
    }

    fn not_connected(candidate: Candidate<'_>, cause: ConnectError) -> Failure {
        let destination = candidate.destination;
        if !cause.is_ours() {
            destination.count_failure();
            candidate.ended(Outcome::Refused);
        }
        let upstream = Arc::clone(destination.address());
        let refusal = match cause {
            ConnectError::Refused(source) => Refusal::Connect { upstream, source },
            ConnectError::Late(after) => Refusal::ConnectLate { upstream, after },
        };
        Failure { refusal, unsent: true }
    }
}

/// The target of a request. What the caller wrote always passes, and what the configuration adds was escaped when it was
/// read.
fn path_and_query(target: String) -> Result<PathAndQuery, Refusal> {
    PathAndQuery::try_from(target)
        .map_err(|_| Refusal::NotDivided("the configured path is none that can be sent"))
}

fn not_answered(address: &Arc<str>, cause: SendError, timeout: Duration) -> Refusal {
    let upstream = Arc::clone(address);
    match cause {
        SendError::Broken(source) => Refusal::Broken { upstream, source },
        SendError::Unreadable(why) => Refusal::Unusable { upstream, what: why.to_string() },
        SendError::Late => Refusal::Late { upstream, after: timeout },
        SendError::Caller(fault) => Refusal::Caller(fault),
    }
}
