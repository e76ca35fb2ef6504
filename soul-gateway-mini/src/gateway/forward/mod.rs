//! Sending a request to an upstream: `send` says to which, and to which after that; here is one attempt.

mod answer;
mod body;
mod client;
mod download;
mod exchange;
mod framing;
mod headers;
pub(super) mod hops;
mod http2;
mod interim;
mod link;
mod names;
mod pool;
mod send;
mod stream;
mod target;
mod tunnel;
mod upload;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Response, Version, header::CONNECTION, request};
use hyper::{body::Incoming, upgrade::OnUpgrade};
use soul_client::balance::{BudgetSettings, Outcome};
use tokio::time::Instant;

pub(super) use body::{AnswerBody, Unsent};
pub(super) use client::Client;
pub(super) use headers::Said;
pub(super) use names::Names;
pub(super) use send::{RoomSettings, Tally, send};
pub(super) use target::RequestTarget;
pub(super) use tunnel::Tunnel;
pub(super) use upload::CallerFault;

use answer::Head;
use body::{Origin, Passing};
use client::{ConnectError, Fresh, Lease};
use download::Downloading;
use exchange::{SendError, Times, exchange};
use headers::{Announced, Asked};
use hops::Via;
use interim::Listener;
use pool::Limits;
use send::{Elsewhere, Failure, Patience};
use upload::Upload;

use super::{
    config::{Forwarded, GatewayConfig, HostHeader, UpstreamLimit},
    connection::Caller,
    error::Refusal,
    grpc,
    peer::Peer,
    plugin::divide::{Candidate, InFlight, outcome_of},
};
use crate::{
    clock::Moment,
    sync::{Destination, End},
};

/// A request as it is to reach an upstream.
pub(super) struct Outbound<'r> {
    pub(super) head: &'r request::Parts,
    /// What its headers say.
    pub(super) said: Said<'r>,
    pub(super) body: Incoming,
    /// The caller's side of a connection that may change its protocol.
    pub(super) upgrade: Option<OnUpgrade>,
    pub(super) target: RequestTarget,
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
    via: Option<Via>,
    max_body: u64,
    tunnel_idle: Duration,
    room: RoomSettings,
    retry_budget: Option<BudgetSettings>,
    /// Bytes of a body that are kept to be sent once more.
    replay_body: usize,
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
            via: config.via.as_deref().and_then(Via::new),
            max_body: config.max_body(),
            tunnel_idle: config.tunnel_idle_timeout,
            room: RoomSettings {
                limit: match config.upstream_max_requests {
                    0 => u32::MAX,
                    limit => u32::try_from(limit).unwrap_or(u32::MAX),
                },
                queue: config.upstream_queue,
                patience: config.upstream_queue_timeout,
                adaptive: config.upstream_limit == UpstreamLimit::Adaptive,
            },
            retry_budget: config.retry_budget,
            replay_body: config.replay_body_bytes,
        }
    }
}

impl Forwarder {
    /// How many requests an upstream may get at once, if it is to get only as many as it can serve.
    pub(super) fn watched(&self) -> Option<u32> {
        self.room.adaptive.then_some(self.room.limit)
    }
}

/// One request and what is left of it.
pub(super) struct Sending<'r> {
    forwarder: &'r Forwarder,
    caller: &'r Caller,
    /// Who asks, possibly from behind the other end of the connection.
    peer: &'r Peer,
    head: &'r request::Parts,
    said: Said<'r>,
    /// The protocol that the caller wants to go on in, with its side of the connection.
    upgrade: Option<(&'r HeaderValue, OnUpgrade)>,
    /// Whether it is good for nothing else: over HTTP/2, where the answer to it is about the tunnel and not about a request.
    only_upgrade: bool,
    target: RequestTarget,
    /// The address in the request line, if there is one.
    named_host: Option<HeaderValue>,
    body: Announced,
    /// The body, until it went out with a request.
    upload: Option<Box<Upload>>,
    /// Whether nothing that cannot be had again went out.
    whole: bool,
    /// Whether it is one of gRPC, which needs an upstream of HTTP/2.
    grpc: bool,
    /// How long its caller waits, if it says so.
    patience: Option<Patience>,
}

impl<'r> Sending<'r> {
    pub(super) fn new(
        forwarder: &'r Forwarder,
        outbound: Outbound<'r>,
        caller: &'r Caller,
        peer: &'r Peer,
    ) -> Self {
        let Outbound { head, said, body, upgrade, target } = outbound;
        let named = head.uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
        let keep = if head.method.is_idempotent() { forwarder.replay_body } else { 0 };
        let upload = Upload::new(body, said.expects_continue, forwarder.max_body, keep).map(Box::new);
        let only_upgrade = head.version == Version::HTTP_2 && upgrade.is_some();
        let upgrade = said.wanted_upgrade().filter(|_| upload.is_none()).zip(upgrade);
        let body = upload.as_ref().map_or(Announced::Nothing, |upload| upload.announced());
        Self {
            forwarder,
            caller,
            peer,
            head,
            said,
            upgrade,
            only_upgrade,
            target,
            named_host: named,
            body,
            upload,
            whole: true,
            grpc: grpc::is_asked(head),
            patience: None,
        }
    }

    /// Whether its body is longer than any may be. Of one that comes in chunks that is seen on the way.
    fn is_too_large(&self) -> bool {
        matches!(self.body, Announced::Length(length) if length > self.forwarder.max_body)
    }

    /// Whether the request can be sent once more.
    fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether a repetition is harmless, should the upstream have seen the request.
    fn is_repeatable(&self) -> bool {
        self.head.method.is_idempotent() && self.upload.as_ref().is_none_or(|upload| upload.is_kept())
    }

    /// Tries one upstream. Notes when it answered.
    async fn attempt(
        &mut self,
        candidate: Candidate<'_>,
        deadline: Instant,
        timeout: Duration,
        answered: &mut Option<Moment>,
    ) -> Result<Response<AnswerBody>, Failure> {
        let end = candidate.end;
        let destination = &end.destination;
        let address = destination.address();
        let client = self.caller.lane.client();
        if client.shares(destination) {
            return Box::pin(self.attempt_http2(candidate, None, deadline, timeout, answered)).await;
        }
        let mut waiting = true;
        loop {
            destination.count_attempt();
            let leased = if waiting { client.waiting(address, candidate.chosen()) } else { None };
            let mut lease = match leased {
                Some(lease) => lease,
                // On the heap, for it is large and seldom.
                None => {
                    let within = self.forwarder.connect_timeout;
                    let fresh = client.fresh(destination, within, deadline);
                    match Box::pin(fresh).await {
                        Ok(Fresh::Http1(lease)) => lease,
                        Ok(Fresh::Http2(first)) => {
                            let first = Some(first);
                            return Box::pin(
                                self.attempt_http2(candidate, first, deadline, timeout, answered),
                            )
                            .await;
                        }
                        Err(cause) => return Err(self.not_connected(candidate, cause)),
                    }
                }
            };
            if self.grpc {
                lease.give_back(Instant::now());
                let refusal = Refusal::NoHttp2 { upstream: Arc::clone(address) };
                return Err(Failure { refusal, elsewhere: Elsewhere::Freely });
            }
            self.write_head(&mut lease, destination);
            let pause = self.forwarder.body_idle_timeout;
            let least = self.forwarder.least_upload;
            let times = Times { alarm: &self.caller.alarm, deadline, timeout, pause, least };
            let mut head = Head::default();
            let listener = listener(self.caller, self.head, &self.said);
            let (link, method) = (&mut lease.link, &self.head.method);
            let exchanged = exchange(link, method, &mut self.upload, times, listener, &mut head).await;
            let cause = match exchanged {
                Ok(()) => {
                    let now = self.caller.lane.now();
                    *answered = Some(now);
                    let in_flight = candidate.ended(outcome_of(head.status, &head.headers), now);
                    return self.answer(head, lease, end, in_flight, now.at);
                }
                Err(cause) => cause,
            };
            self.whole = self.is_repeatable()
                || !lease.link.wrote() && self.upload.as_ref().is_none_or(|upload| upload.is_whole());
            if let Some(upload) = self.upload.as_mut().filter(|upload| upload.is_kept()) {
                upload.rewind();
            }
            // The upstream closed what it took for idle, just as it was used again.
            if self.whole && lease.link.reused && matches!(cause, SendError::Broken(_)) {
                waiting = !lease.link.wrote();
                continue;
            }
            if !matches!(cause, SendError::Caller(_)) {
                destination.count_failure();
                let now = self.caller.lane.now();
                match cause {
                    SendError::Late => candidate.ran_out(now),
                    _ => candidate.ended(Outcome::TimedOut, now),
                };
            }
            let went_away = matches!(cause, SendError::Broken(_));
            return Err(Failure {
                refusal: not_answered(address, cause, timeout),
                elsewhere: Elsewhere::after(!lease.link.wrote(), went_away),
            });
        }
    }

    /// What stays the same of the request, whatever is spoken.
    fn asked(&self) -> Asked<'_> {
        Asked {
            method: &self.head.method,
            said: &self.said,
            // The address in the request line counts more than `Host` (RFC 9112, section 3.2.2).
            host: self.named_host.as_ref().or(self.said.host),
            caller: match self.forwarder.forwarded {
                // The list goes on with the one who brought it.
                Forwarded::Append => self.caller.peer.text(),
                Forwarded::Replace | Forwarded::Off => self.peer.text(),
            },
            body: self.body,
            upgrade: self.upgrade.as_ref().map(|(protocol, _)| *protocol),
            forwarded: self.forwarder.forwarded,
            secure: self.caller.secure,
            hops: hops::left(self.head).map(|hops| hops.saturating_sub(1)),
            via: self.forwarder.via.as_ref().map(|via| via.of(self.head.version)),
            host_header: self.forwarder.host_header,
        }
    }

    /// Writes the head of the request for an upstream.
    fn write_head(&self, lease: &mut Lease, destination: &Destination) {
        lease.link.begin();
        let target = [destination.prefix(), self.target.text(&self.head.uri)];
        self.asked().write(&mut lease.link.output, target, destination.host());
    }

    /// Makes an upstream's answer, which came now, one for the caller.
    fn answer(
        &mut self,
        head: Head,
        mut lease: Lease,
        end: &End,
        in_flight: InFlight,
        now: Instant,
    ) -> Result<Response<AnswerBody>, Failure> {
        let mut upload = self.upload.take().filter(|upload| !upload.is_done());
        if let Some(upload) = &mut upload {
            // An answer is not asked for again.
            upload.forget();
        }
        if self.only_upgrade && head.status.is_success() {
            let what = "it answered the handshake of a WebSocket and did not switch to it";
            return Err(unusable(lease.link.address(), what, Elsewhere::No));
        }
        let body = if head.switches {
            let Some((_, upgrade)) = self.upgrade.take() else {
                // With its body gone, what is left may not be sent for the request.
                self.whole = self.head.method.is_idempotent() && self.body == Announced::Nothing;
                return Err(unusable(lease.link.address(), "it switched protocols unasked", Elsewhere::No));
            };
            let held = (end.flow().tunnel(), in_flight.changed());
            self.caller.tunnel(Tunnel::new(upgrade, lease, self.forwarder.tunnel_idle, held));
            AnswerBody::whole(Bytes::new())
        } else if upload.is_none()
            && let Some(bytes) = lease.link.take_whole(head.framing)
        {
            if head.keep {
                lease.give_back(now);
            }
            AnswerBody::whole(bytes)
        } else {
            let alarm = Arc::clone(&self.caller.alarm);
            let pause = self.forwarder.body_idle_timeout;
            let origin = Origin::Http1(Downloading::new(lease, head.framing, head.keep, upload));
            AnswerBody::passing(Passing::new(origin, pause, alarm, in_flight), &self.caller.unsent)
        };
        let mut response = Response::new(body);
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        if let Some(reason) = head.reason {
            response.extensions_mut().insert(reason);
        }
        if head.switches {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
        Ok(response)
    }

    /// What the caller is told of an attempt that was not over when its time was.
    fn given_up(&self, upstream: &Arc<str>) -> Option<Failure> {
        let Patience { whole: after, .. } = self.patience.filter(|patience| patience.is_over())?;
        let refusal = Refusal::GivenUp { upstream: Arc::clone(upstream), after };
        Some(Failure { refusal, elsewhere: Elsewhere::No })
    }

    fn not_connected(&self, candidate: Candidate<'_>, cause: ConnectError) -> Failure {
        let destination = &candidate.end.destination;
        if matches!(cause, ConnectError::Late(_))
            && let Some(given_up) = self.given_up(destination.address())
        {
            return given_up;
        }
        if !cause.is_ours() {
            destination.count_failure();
            candidate.ended(Outcome::Refused, self.caller.lane.now());
        }
        let upstream = Arc::clone(destination.address());
        let refusal = match cause {
            ConnectError::Refused(source) => Refusal::Connect { upstream, source },
            ConnectError::Late(after) => Refusal::ConnectLate { upstream, after },
        };
        Failure { refusal, elsewhere: Elsewhere::Freely }
    }
}

/// An attempt that failed because of `what` an upstream is, or does.
fn unusable(upstream: &Arc<str>, what: &str, elsewhere: Elsewhere) -> Failure {
    let refusal = Refusal::Unusable { upstream: Arc::clone(upstream), what: what.to_owned() };
    Failure { refusal, elsewhere }
}

/// Who is told of interim answers, if anybody.
fn listener<'c>(caller: &'c Caller, head: &request::Parts, said: &Said<'_>) -> Option<Listener<'c>> {
    Listener::new(caller.interims.as_deref(), head, said.expects_continue)
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
