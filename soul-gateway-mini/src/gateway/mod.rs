//! The gateway: from a request to its upstream and back.
//!
//! # Life of a request
//! One function, `Requests::serve`, six steps:
//!
//! | step | where | on failure: status · Soul's code |
//! |---|---|---|
//! | accept: one snapshot, the request as conditions see it, its path parted | here, `plugin::context_path` | malformed: 400 · −100 |
//! | match selector | `plugin::divide` | none: 404 · −107 |
//! | match rule | `plugin::divide` | none: 404 · −102 |
//! | pick upstream | `plugin::divide`, `soul_client::balance` | none may be chosen: 503 · −106 |
//! | forward | `forward` | refused: 502 · −103, late: 504 · −104 |
//! | respond | `respond` | – |
//!
//! Every request is answered from exactly one snapshot, so its rules and upstreams are of the same age.
//!
//! # Where we differ from Soul
//! | Soul | ours | Soul's way by |
//! |---|---|---|
//! | errors of matching with status 200, of upstreams with 500 | 404, 502, 503, 504; the same `code` | [`GatewayConfig::error_status`] |
//! | weight 0 and `status` false may be chosen | never | [`GatewayConfig::upstream_choice`] |
//! | a refused connection is an error | another upstream is tried, also for a POST: nothing was sent | [`GatewayConfig::failover_limit`] 0 |
//! | `retry` counts connect timeouts, at the same upstream | all failures that may be repeated safely, at upstreams not tried yet | – |
//! | `timeout` 0 fails at once | 0 and less are 3000 ms | – |
//! | `timeout` includes the time a caller takes to send its body | it does not | – |
//! | `Host` is the upstream's | the caller's | [`GatewayConfig::host_header`] |
//! | no `X-Forwarded-*` | appended | [`GatewayConfig::forwarded`] |
//! | hop-by-hop headers pass, `Content-Type: application/json` is made up | they end here, nothing is made up | – |
//! | path and query are decoded and encoded again | both pass as sent | – |
//! | a rule that cannot be evaluated fails requests with 500 | it is left out and listed in `/status` | [`GatewayConfig::invalid_entries`] |
//! | the first path segment is cut off (Feb-2021) or the `context_path` rule's prefix (2.3.0) | the rule's if one matches, else the first segment | [`GatewayConfig::path_prefix`] |

pub mod config;
pub mod context;
pub mod real_url;

mod access;
mod alarm;
mod choices;
mod connection;
mod error;
mod forward;
mod grpc;
mod host;
mod joined;
mod lane;
mod metrics;
mod patient;
mod peer;
mod plugin;
mod port;
mod probe;
mod proxied;
mod refresh;
mod reload;
mod respond;
mod server;
mod spare;
mod spread;
mod status;
mod work;

use std::{convert::Infallible, sync::Arc};

use http::{Method, Response, Version, request, uri::Scheme};
use hyper::{body::Incoming, upgrade::OnUpgrade};

pub use config::{
    ErrorStatus, Forwarded, GatewayConfig, HostHeader, LaneScheduling, UnknownChoice, UpstreamLimit,
};
pub use error::GatewayError;
pub use port::Sockets;
pub use proxied::{BadNetwork, Network};
pub use server::{Drained, Gateway, GatewaySource};

pub use crate::tls::TlsError;

use self::{
    connection::Caller,
    context::PathPrefix,
    error::Refusal,
    forward::{AnswerBody, Forwarder, Outbound, RequestTarget, Said, Sending},
    peer::Peer,
    plugin::{
        context_path,
        divide::{self, Candidates},
    },
    respond::Record,
};
use crate::{
    model::matching::AddressResolver,
    sync::{Snapshot, StatusStats},
};

/// Target of Soul's own log lines, of level `debug`, for requests whose selector and rule ask to be logged; what every
/// rule does that a client registered. The access log is another thing: [`GatewayConfig::access_log`].
pub const ACCESS_LOG: &str = "soul_gateway_mini::access";

/// Answers requests, by settings that are swapped in whole when they change: one request goes by one of them.
struct Requests {
    forwarder: Forwarder,
    path_prefix: PathPrefix,
    resolver: AddressResolver,
    error_status: ErrorStatus,
    trusted_proxies: Box<[Network]>,
    /// Requests that one lane serves at once.
    max_in_lane: usize,
    /// Requests that no selector took; counted on whatever the settings.
    unmatched: Arc<StatusStats>,
}

impl Requests {
    fn new(config: &GatewayConfig, lanes: usize, unmatched: Arc<StatusStats>) -> Self {
        Self {
            forwarder: Forwarder::new(config),
            path_prefix: config.path_prefix,
            resolver: config.caller_address,
            error_status: config.error_status,
            trusted_proxies: config.trusted_proxies.clone().into(),
            max_in_lane: if config.max_requests == 0 {
                usize::MAX
            } else {
                config.max_requests.div_ceil(lanes.max(1))
            },
            unmatched,
        }
    }

    /// Answers one request, whatever happens.
    async fn answer(
        head: &mut request::Parts,
        body: Incoming,
        caller: &Caller,
    ) -> Result<Response<AnswerBody>, Infallible> {
        let came = caller.lane.now();
        let held = caller.lane.held();
        let requests = held.requests();
        let (turn, served) = caller.turn(came.at);
        let upgrade = head.extensions.remove();
        let mut record = Record::start(head, caller, &requests.unmatched, came);
        let outcome = if served {
            requests.serve(held.snapshot(), head, body, upgrade, &mut record).await
        } else {
            Err(Refusal::Overloaded)
        };
        let mut response = respond::finish(outcome, record, requests.error_status);
        if caller.lane.is_draining() {
            respond::as_last(&mut response);
        }
        response.body_mut().lasts(turn);
        Ok(response)
    }

    /// Answers one that is not looked at, for what is known of it already.
    fn refuse(head: &request::Parts, refusal: Refusal, caller: &Caller) -> Response<AnswerBody> {
        let came = caller.lane.now();
        let held = caller.lane.held();
        let requests = held.requests();
        let (turn, _) = caller.turn(came.at);
        let record = Record::start(head, caller, &requests.unmatched, came);
        let mut response = respond::finish(Err(refusal), record, requests.error_status);
        response.body_mut().lasts(turn);
        response
    }

    async fn serve<'r>(
        &'r self,
        snapshot: Option<&'r Snapshot>,
        head: &'r request::Parts,
        body: Incoming,
        upgrade: Option<OnUpgrade>,
        record: &mut Record<'r>,
    ) -> Result<Response<AnswerBody>, Refusal> {
        let Some(snapshot) = snapshot else { return Err(Refusal::NotReady) };
        let (caller, came) = (record.caller(), record.came());
        let said = accept(head)?;
        if forward::hops::left(head) == Some(0) {
            return respond::as_the_last_hop(&head.method);
        }
        let behind = proxied::behind(&self.trusted_proxies, caller.peer.address(), &head.headers);
        let behind = behind.map(Peer::new);
        let peer = behind.as_ref().unwrap_or(&caller.peer);
        record.address(peer.address());
        let (selector, rule, target) = {
            let parted = context_path::execute(snapshot, head, peer, self.resolver, self.path_prefix)?;
            let context = plugin::soul_context(head, Some(&parted));
            let view = plugin::view(head, peer, self.resolver, &context);
            let selector = record.selector(divide::selector(snapshot, &view)?);
            let rule = record.rule(divide::rule(selector, &view)?);
            (selector, rule, RequestTarget::new(&parted.rest, &head.uri))
        };
        // What the caller wrote always passes.
        let Some(target) = target else {
            return Err(Refusal::NotDivided("the configured path is none that can be sent"));
        };
        let mut candidates = Candidates::of(selector, rule, peer.key(), self.forwarder.watched());
        candidates.pick(came)?;
        let outbound = Outbound { head, said, body, upgrade, target };
        let mut sending = Sending::new(&self.forwarder, outbound, caller, peer);
        forward::send(&mut sending, &mut candidates, record.tally(), came).await
    }
}

/// Whether a request may be forwarded, and what its headers say.
fn accept(head: &request::Parts) -> Result<Said<'_>, Refusal> {
    if head.method == Method::CONNECT {
        return Err(Refusal::NotServed("`CONNECT`, but for WebSockets over HTTP/2"));
    }
    let said = Said::by(&head.headers);
    if !said.plainly_framed {
        return Err(Refusal::Malformed("the only transfer coding understood is `chunked`, once"));
    }
    let whole = head.method == Method::OPTIONS && head.uri.path() == "*";
    if !whole && !head.uri.path().starts_with('/') {
        return Err(Refusal::Malformed("the request line asks for no path"));
    }
    if head.uri.scheme().is_some_and(|scheme| *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS) {
        return Err(Refusal::Malformed("the scheme in the request line is neither `http` nor `https`"));
    }
    if head.uri.authority().is_some_and(|authority| !host::is_plain(authority)) {
        return Err(Refusal::Malformed("the address in the request line is not that of a host"));
    }
    match said.host {
        _ if said.several_hosts => Err(Refusal::Malformed("there is more than one `Host`")),
        Some(host) if !host::is_host(host.as_bytes()) => {
            Err(Refusal::Malformed("`Host` is neither a name nor an address"))
        }
        // RFC 9112, section 3.2: of HTTP/1.1, also when the request line has the host.
        None if head.version == Version::HTTP_11 => Err(Refusal::Malformed("there is no `Host`")),
        _ => Ok(said),
    }
}

#[cfg(test)]
mod tests;
