//! What a gateway can be told: typed values, each default a constant with its unit and reason.

mod problems;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use soul_client::balance::{BudgetSettings, Choice, OutlierDetector, SetSettings};

pub use super::choices::{ErrorStatus, Forwarded, HostHeader, LaneScheduling, UnknownChoice, UpstreamLimit};
use super::{context::PathPrefix, proxied::Network};
use crate::{
    model::matching::{AddressResolver, Invalids},
    sync::SyncConfig,
    tls::{TlsFiles, UpstreamTrust},
};

/// Where requests arrive: loopback, Soul's own port.
pub const DEFAULT_LISTEN: SocketAddr = loopback(9195);

/// Where health, metrics and status are served: next to the traffic port, never on it, so that no path of a
/// user's service is taken.
pub const DEFAULT_STATUS_LISTEN: SocketAddr = loopback(9196);

/// Pause between two probing rounds of the gateway's own: off, as in Soul. The admin probes anyway.
pub const DEFAULT_CHECK_INTERVAL: Duration = Duration::ZERO;

/// How long one probe may take to connect.
pub const DEFAULT_CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a connection to an upstream may take to be made. Shorter than the 3 s that a rule allows by
/// default, so that another upstream can still answer in time.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Further upstreams that are tried, whatever the rule's `retry` says, when a connection cannot be made.
pub const DEFAULT_FAILOVER_LIMIT: usize = 3;

/// How long an upstream that refused a connection is passed over while others are there.
pub const DEFAULT_SUSPECT_FOR: Duration = Duration::from_secs(3);

/// Percent of healthy upstreams below which health is not heeded: off, so that a node found dead gets no request.
pub const DEFAULT_PANIC_THRESHOLD: usize = 0;

/// How long an idle upstream connection is kept. Below the 5 s of common servers (Node.js, uvicorn), so that
/// it is rarely the upstream that closes first.
pub const DEFAULT_POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Idle connections kept for one upstream.
pub const DEFAULT_POOL_MAX_IDLE: usize = 256;

/// How long either side may pause inside a body; as nginx's `proxy_read_timeout`.
pub const DEFAULT_BODY_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes a second that a caller has to send of its body; below what any network of today carries. An upstream that takes
/// requests as they come, each on a thread of its own, is held by every caller that is slower.
pub const DEFAULT_MIN_BODY_RATE: usize = 100;

/// How long a caller may take to send the head of its next request, idling between two requests included.
pub const DEFAULT_HEADER_READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of a request head, request line included.
pub const DEFAULT_MAX_HEAD_BYTES: usize = 64 * 1024;

/// Header lines of a request.
pub const DEFAULT_MAX_HEADERS: usize = 100;

/// Connections of callers served at once; later ones wait in the system's queue.
pub const DEFAULT_MAX_CONNECTIONS: usize = 10_000;

/// Requests under way at one upstream. More than common servers work on at once (Tomcat 200), so that only a queue is
/// cut; and few enough that one is over within the 3 s of a rule, where an endless one would time out every request in
/// it. The number is Envoy's.
pub const DEFAULT_UPSTREAM_MAX_REQUESTS: usize = 1024;

/// How long a connection that changed its protocol may be silent; longer than the pings of common WebSocket servers.
pub const DEFAULT_TUNNEL_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Requests at once on one connection of HTTP/2: more than the 100 that no sender should be held below (RFC 9113, section
/// 6.5.2), and as in nginx.
pub const DEFAULT_HTTP2_MAX_STREAMS: usize = 128;

/// Threads that serve requests: one a core.
pub const DEFAULT_THREADS: usize = 0;

/// How long a request waits for a busy upstream, should there be a queue; as long as for one that does not take connections.
pub const DEFAULT_UPSTREAM_QUEUE_TIMEOUT: Duration = DEFAULT_CONNECT_TIMEOUT;

/// Bytes of a body that are kept to be sent once more: forms and documents, but no uploads.
pub const DEFAULT_REPLAY_BODY_BYTES: usize = 64 * 1024;

/// How long requests in flight may take to end at shutdown; below the 30 s that orchestrators wait.
pub const DEFAULT_DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

/// The smallest head limit the HTTP parser works with.
const MIN_HEAD_BYTES: usize = 8 * 1024;

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port))
}

/// Settings of a gateway; [`Default`] is what the documentation says.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayConfig {
    /// Where requests arrive; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where `/healthz`, `/readyz`, `/metrics` and `/status` are served; port 0 takes a free one.
    pub status_listen: SocketAddr,
    /// Folder in which the last configuration is kept for a restart without an admin; `None` keeps nothing.
    pub data_dir: Option<PathBuf>,
    /// How the configuration is learned.
    pub sync: SyncConfig,
    /// Pause between two rounds of probing upstreams; zero is off.
    pub check_interval: Duration,
    /// How long one probe may take to connect.
    pub check_timeout: Duration,
    /// How long a connection to an upstream may take to be made.
    pub connect_timeout: Duration,
    /// Further upstreams tried when a connection cannot be made, apart from the rule's `retry`; one of them also when one
    /// broke off without an answer. 0 is off, which is Soul's behaviour.
    pub failover_limit: usize,
    /// How long an upstream that could not be connected to is passed over; zero is off.
    pub suspect_for: Duration,
    /// Percent of a selector's upstreams that must be healthy, or health is not heeded: then it is likelier that the probe is
    /// wrong than that nearly all are dead. 0 is off.
    pub panic_threshold: usize,
    /// How long an idle upstream connection is kept; zero keeps none.
    pub pool_idle_timeout: Duration,
    /// Idle connections kept for one upstream; 0 keeps none.
    pub pool_max_idle: usize,
    /// How long either side may pause inside a body; zero is no limit.
    pub body_idle_timeout: Duration,
    /// Bytes a second that a caller has to send of its body, on average over each `body_idle_timeout`, until the answer
    /// begins; 0 is no limit.
    pub min_body_rate: usize,
    /// How long a caller may take to send the head of its next request.
    pub header_read_timeout: Duration,
    /// Bytes of a request head; at least 8192.
    pub max_head_bytes: usize,
    /// Header lines of a request.
    pub max_headers: usize,
    /// Connections of callers served at once.
    pub max_connections: usize,
    /// Threads that serve requests, each on its own; 0 is one a core.
    pub threads: usize,
    /// How these threads are scheduled.
    pub lane_scheduling: LaneScheduling,
    /// Requests served at once, over all threads; further ones are refused with 503. 0 is no limit but that of connections.
    pub max_requests: usize,
    /// Requests under way at one upstream of a selector, over all threads; with all of them at it, further requests
    /// are refused with 503. Connections that changed their protocol do not count. 0 is no limit.
    pub upstream_max_requests: usize,
    /// Whether an upstream gets fewer at once while it takes on more than it can serve.
    pub upstream_limit: UpstreamLimit,
    /// Requests of one selector that wait, first come, first served, while as many as may be are under way at all of its
    /// upstreams; further ones are refused with 503 at once. 0 is no queue.
    pub upstream_queue: usize,
    /// How long each of them may wait.
    pub upstream_queue_timeout: Duration,
    /// How many further attempts the requests of one selector get together; `None` is as many as their rules say.
    pub retry_budget: Option<BudgetSettings>,
    /// Bytes of the body of a request with an idempotent method, `PUT` or `DELETE`, that are kept so that it can be sent once more;
    /// one with a longer body is sent once. Each such request under way may take as much memory. 0 keeps none.
    pub replay_body_bytes: usize,
    /// How long a request may take from its head to the end of its answer, whatever its rule allows; zero is no limit.
    pub request_timeout: Duration,
    /// Bytes of the body of a request; longer ones are refused with 413. 0 is no limit.
    pub max_body_bytes: usize,
    /// How long a connection that changed its protocol, such as a WebSocket, may be silent; zero is no limit.
    pub tunnel_idle_timeout: Duration,
    /// Proxies that are believed for whom they ask: the caller is the last address in `X-Forwarded-For` that is none
    /// of theirs, for `hash`, conditions and log.
    pub trusted_proxies: Vec<Network>,
    /// Whether every connection begins with the PROXY protocol, version 1 or 2, as from a load balancer in front.
    pub proxy_protocol: bool,
    /// Requests under way at once on one connection of HTTP/2; 0 speaks no HTTP/2 to callers.
    pub http2_max_streams: usize,
    /// Certificates by which the port speaks TLS, each a PEM file with the chain behind it: the first for callers that name
    /// no host, the others for theirs. Empty is plain HTTP. The files are read again when they change.
    pub tls_certificates: Vec<PathBuf>,
    /// The private keys of [`tls_certificates`](Self::tls_certificates), in the same order.
    pub tls_keys: Vec<PathBuf>,
    /// PEM file of authorities of which callers must show a certificate; `None` asks nobody for one.
    pub tls_client_ca: Option<PathBuf>,
    /// PEM file of authorities that upstreams of `https://` are believed by, besides those of the system.
    pub upstream_ca: Option<PathBuf>,
    /// PEM file of the certificate, with the chain behind it, that is shown to upstreams of `https://` that ask for one; `None`
    /// shows none. This file, that of the key and that of the authorities are read again when they change.
    pub upstream_certificate: Option<PathBuf>,
    /// The private key of [`upstream_certificate`](Self::upstream_certificate).
    pub upstream_key: Option<PathBuf>,
    /// Whether upstreams of `https://` are believed whatever certificate they show: then anybody on the way may be one.
    pub upstream_tls_insecure: bool,
    /// Whether upstreams of `https://` may choose HTTP/2. Those of `h2c://` and `grpc://` are spoken to in it anyway.
    pub upstream_http2: bool,
    /// File to which a line is added for every request, `-` for the standard output; `None` writes none.
    pub access_log: Option<PathBuf>,
    /// How long requests in flight may take to end at shutdown.
    pub drain_timeout: Duration,
    /// Which HTTP status goes with the gateway's own errors.
    pub error_status: ErrorStatus,
    /// Which `Host` the upstream sees.
    pub host_header: HostHeader,
    /// What is done about `X-Forwarded-For`, `-Proto` and `-Host`.
    pub forwarded: Forwarded,
    /// What the gateway is called in `Via`, which it then adds to requests: a name, or `host:port`. `None` adds nothing.
    pub via: Option<String>,
    /// Which part of a path is cut off before it goes to its service.
    pub path_prefix: PathPrefix,
    /// Whose address `ip` and `host` conditions see.
    pub caller_address: AddressResolver,
    /// Which upstreams may be chosen; [`Choice::Soul`] restores Soul's behaviour with weight 0 and status false.
    pub upstream_choice: Choice,
    /// What becomes of selectors and rules that cannot always be evaluated.
    pub invalid_entries: Invalids,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: DEFAULT_LISTEN,
            status_listen: DEFAULT_STATUS_LISTEN,
            data_dir: None,
            sync: SyncConfig::default(),
            check_interval: DEFAULT_CHECK_INTERVAL,
            check_timeout: DEFAULT_CHECK_TIMEOUT,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            failover_limit: DEFAULT_FAILOVER_LIMIT,
            suspect_for: DEFAULT_SUSPECT_FOR,
            panic_threshold: DEFAULT_PANIC_THRESHOLD,
            pool_idle_timeout: DEFAULT_POOL_IDLE_TIMEOUT,
            pool_max_idle: DEFAULT_POOL_MAX_IDLE,
            body_idle_timeout: DEFAULT_BODY_IDLE_TIMEOUT,
            min_body_rate: DEFAULT_MIN_BODY_RATE,
            header_read_timeout: DEFAULT_HEADER_READ_TIMEOUT,
            max_head_bytes: DEFAULT_MAX_HEAD_BYTES,
            max_headers: DEFAULT_MAX_HEADERS,
            max_connections: DEFAULT_MAX_CONNECTIONS,
            threads: DEFAULT_THREADS,
            lane_scheduling: LaneScheduling::default(),
            max_requests: 0,
            upstream_max_requests: DEFAULT_UPSTREAM_MAX_REQUESTS,
            upstream_limit: UpstreamLimit::default(),
            upstream_queue: 0,
            upstream_queue_timeout: DEFAULT_UPSTREAM_QUEUE_TIMEOUT,
            retry_budget: Some(BudgetSettings::default()),
            replay_body_bytes: DEFAULT_REPLAY_BODY_BYTES,
            request_timeout: Duration::ZERO,
            max_body_bytes: 0,
            tunnel_idle_timeout: DEFAULT_TUNNEL_IDLE_TIMEOUT,
            trusted_proxies: Vec::new(),
            proxy_protocol: false,
            http2_max_streams: DEFAULT_HTTP2_MAX_STREAMS,
            tls_certificates: Vec::new(),
            tls_keys: Vec::new(),
            tls_client_ca: None,
            upstream_ca: None,
            upstream_certificate: None,
            upstream_key: None,
            upstream_tls_insecure: false,
            upstream_http2: false,
            access_log: None,
            drain_timeout: DEFAULT_DRAIN_TIMEOUT,
            error_status: ErrorStatus::default(),
            host_header: HostHeader::default(),
            forwarded: Forwarded::default(),
            via: None,
            path_prefix: PathPrefix::default(),
            caller_address: AddressResolver::default(),
            upstream_choice: Choice::default(),
            invalid_entries: Invalids::default(),
        }
    }
}

impl GatewayConfig {
    /// Bytes that the body of a request may have.
    pub(super) fn max_body(&self) -> u64 {
        if self.max_body_bytes == 0 { u64::MAX } else { self.max_body_bytes as u64 }
    }

    /// The files for TLS towards callers, if it is to be spoken.
    pub(super) fn caller_tls(&self) -> Option<TlsFiles> {
        let pairs: Vec<_> =
            self.tls_certificates.iter().cloned().zip(self.tls_keys.iter().cloned()).collect();
        (!pairs.is_empty()).then(|| TlsFiles { pairs, client_ca: self.tls_client_ca.clone() })
    }

    /// Whom upstreams of `https://` are believed to be.
    pub(super) fn upstream_trust(&self) -> UpstreamTrust {
        UpstreamTrust {
            ca: self.upstream_ca.clone(),
            identity: self.upstream_certificate.clone().zip(self.upstream_key.clone()),
            anybody: self.upstream_tls_insecure,
            http2: self.upstream_http2,
        }
    }

    /// Whether HTTP/2 is spoken to callers.
    pub(super) fn speaks_http2(&self) -> bool {
        self.http2_max_streams > 0
    }

    /// Bytes of its body that a caller has to send in each pause it may make.
    pub(super) fn least_upload(&self) -> u64 {
        (self.min_body_rate as f64 * self.body_idle_timeout.as_secs_f64()) as u64
    }

    /// How upstreams are chosen, but for the ways, which the rules name.
    ///
    /// - `lanes`: how many choose.
    pub(super) fn balance(&self, lanes: usize) -> SetSettings {
        // One refused connection is enough: there is hardly a doubt, and one request at a time finds out whether it is over.
        let outliers = (!self.suspect_for.is_zero()).then(|| OutlierDetector {
            consecutive_failures: 0,
            consecutive_refusals: 1,
            base: self.suspect_for,
            longest: self.suspect_for,
            jitter: 0.0,
            max_ejected: 1.0,
            ..OutlierDetector::default()
        });
        SetSettings {
            choice: self.upstream_choice,
            outliers,
            panic_threshold: self.panic_threshold as f64 / 100.0,
            parts: lanes,
            ..SetSettings::default()
        }
    }
}
