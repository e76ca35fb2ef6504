//! Settings of the gateway.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use soul_client::balance;
use url::Url;

use super::{
    layer::{Area, Written, settings_of},
    value::{
        AdminUrl, AtLeast, Choice, FileName, Interval, ListenAddr, Named, ProxyNetwork, RetryShare, Seconds,
        any_number, one_or_many,
    },
};
use crate::{
    admin,
    gateway::{
        ErrorStatus, Forwarded, GatewayConfig, HostHeader, LaneScheduling, UpstreamLimit, context::PathPrefix,
    },
    model::matching::{AddressResolver, Invalids},
};

/// Settings of the gateway.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[command(next_help_heading = "Gateway")]
pub(super) struct GatewaySettings {
    /// Where the gateway takes requests; port 0 takes a free one
    #[arg(long, global = true, env = "SOUL_GATEWAY_LISTEN", value_name = "IP:PORT")]
    pub(super) gateway_listen: Option<ListenAddr>,

    /// Where the gateway answers `/healthz`, `/readyz`, `/metrics` and `/status`; port 0 takes a free one
    #[arg(long, global = true, env = "SOUL_STATUS_LISTEN", value_name = "IP:PORT")]
    pub(super) status_listen: Option<ListenAddr>,

    /// Admin to learn the configuration from; repeat it, or list them with commas, for several (only with `gateway`)
    #[arg(long, global = true, env = "SOUL_ADMIN", value_name = "URL", value_delimiter = ',')]
    #[serde(deserialize_with = "one_or_many")]
    pub(super) admin: Option<Vec<AdminUrl>>,

    /// HTTP status of the gateway's own errors: `http` the proper ones (404, 502, 503, 504), `soul` those of Soul (200 and 500)
    #[arg(long, global = true, env = "SOUL_ERROR_STATUS", value_name = "http|soul")]
    pub(super) error_status: Option<Choice<ErrorStatus>>,

    /// `Host` that upstreams see: `preserve` the caller's, `upstream` their own address, as from Soul
    #[arg(long, global = true, env = "SOUL_HOST_HEADER", value_name = "preserve|upstream")]
    pub(super) host_header: Option<Choice<HostHeader>>,

    /// `X-Forwarded-For`, `-Proto`, `-Host`: `append` the caller (behind another proxy), `replace` what it sent (at the edge), `off` pass them on, as Soul
    #[arg(long, global = true, env = "SOUL_FORWARDED", value_name = "append|replace|off")]
    pub(super) forwarded: Option<Choice<Forwarded>>,

    /// What the gateway is called in `Via`, which it then adds to requests, as RFC 9110 has it; nginx behind it stops compressing for that
    #[arg(long, global = true, env = "SOUL_VIA", value_name = "NAME")]
    pub(super) via: Option<String>,

    /// What is cut off a path: `auto` what a `context_path` rule says, else the first segment; or either alone
    #[arg(
        long,
        global = true,
        env = "SOUL_PATH_PREFIX",
        value_name = "auto|context-path-rule|first-segment"
    )]
    pub(super) path_prefix: Option<Choice<PathPrefix>>,

    /// Address that `ip` and `host` conditions see: of the `peer`, or the last one in `X-Forwarded-For` (behind a proxy)
    #[arg(long, global = true, env = "SOUL_CALLER_ADDRESS", value_name = "peer|forwarded")]
    pub(super) caller_address: Option<Choice<AddressResolver>>,

    /// Upstreams with weight 0 or status false: `strict` never chooses them, `soul` may, as Soul does
    #[arg(long, global = true, env = "SOUL_UPSTREAM_CHOICE", value_name = "strict|soul")]
    pub(super) upstream_choice: Option<Choice<balance::Choice>>,

    /// Selectors and rules that cannot be evaluated: `refuse` leaves them out, `error` fails requests that reach them, as Soul
    #[arg(long, global = true, env = "SOUL_INVALID_ENTRIES", value_name = "refuse|error")]
    pub(super) invalid_entries: Option<Choice<Invalids>>,

    /// How often the gateway itself asks every upstream whether it is alive, in seconds; 0 is never
    #[arg(long, global = true, env = "SOUL_GATEWAY_CHECK_INTERVAL", value_name = "SECONDS")]
    pub(super) gateway_check_interval: Option<Interval>,

    /// How long such a question may take to connect, in seconds
    #[arg(long, global = true, env = "SOUL_GATEWAY_CHECK_TIMEOUT", value_name = "SECONDS")]
    pub(super) gateway_check_timeout: Option<Seconds>,

    /// How long a connection to an upstream may take to be made, in seconds
    #[arg(long, global = true, env = "SOUL_UPSTREAM_CONNECT_TIMEOUT", value_name = "SECONDS")]
    pub(super) upstream_connect_timeout: Option<Seconds>,

    /// Further upstreams tried, whatever the rule's `retry` says, when a connection cannot be made, or once breaks off without an answer; 0 is Soul's behaviour
    #[arg(long, global = true, env = "SOUL_FAILOVER_LIMIT", value_name = "N")]
    pub(super) failover_limit: Option<AtLeast<0>>,

    /// How long an upstream that could not be connected to is passed over while others are there, in seconds; 0 is off
    #[arg(long, global = true, env = "SOUL_SUSPECT_FOR", value_name = "SECONDS")]
    pub(super) suspect_for: Option<Interval>,

    /// Percent of a selector's upstreams that must be healthy, or health is not heeded; 0 to 100, 0 is off
    #[arg(long, global = true, env = "SOUL_PANIC_THRESHOLD", value_name = "PERCENT")]
    pub(super) panic_threshold: Option<AtLeast<0>>,

    /// How long an idle connection to an upstream is kept, in seconds; 0 keeps none
    #[arg(long, global = true, env = "SOUL_POOL_IDLE_TIMEOUT", value_name = "SECONDS")]
    pub(super) pool_idle_timeout: Option<Interval>,

    /// Idle connections kept for one upstream
    #[arg(long, global = true, env = "SOUL_POOL_MAX_IDLE", value_name = "N")]
    pub(super) pool_max_idle: Option<AtLeast<0>>,

    /// How long either side may pause inside a body, in seconds; 0 is no limit
    #[arg(long, global = true, env = "SOUL_BODY_IDLE_TIMEOUT", value_name = "SECONDS")]
    pub(super) body_idle_timeout: Option<Interval>,

    /// Bytes a second that a caller has to send of its body, on average over each time it may pause; 0 is no limit
    #[arg(long, global = true, env = "SOUL_MIN_BODY_RATE", value_name = "BYTES")]
    pub(super) min_body_rate: Option<AtLeast<0>>,

    /// How long a caller may take to send the head of its next request, in seconds
    #[arg(long, global = true, env = "SOUL_HEADER_READ_TIMEOUT", value_name = "SECONDS")]
    pub(super) header_read_timeout: Option<Seconds>,

    /// Longest head of a request, in bytes; at least 8192
    #[arg(long, global = true, env = "SOUL_MAX_HEAD_BYTES", value_name = "BYTES")]
    pub(super) max_head_bytes: Option<AtLeast<8192>>,

    /// Most header lines of a request
    #[arg(long, global = true, env = "SOUL_MAX_HEADERS", value_name = "N")]
    pub(super) max_headers: Option<AtLeast<1>>,

    /// Most connections of callers served at once; later ones wait
    #[arg(long, global = true, env = "SOUL_MAX_CONNECTIONS", value_name = "N")]
    pub(super) max_connections: Option<AtLeast<1>>,

    /// Threads that serve requests, each with its own connections; 0 is one a core
    #[arg(long, global = true, env = "SOUL_GATEWAY_THREADS", value_name = "N")]
    pub(super) gateway_threads: Option<AtLeast<0>>,

    /// How these threads are scheduled on Linux: `batch` interrupts nobody and costs least, `normal` is sooner beside busy programs
    #[arg(long, global = true, env = "SOUL_LANE_SCHEDULING", value_name = "batch|normal")]
    pub(super) lane_scheduling: Option<Choice<LaneScheduling>>,

    /// Most requests served at once; further ones are refused with 503; 0 is no limit
    #[arg(long, global = true, env = "SOUL_MAX_REQUESTS", value_name = "N")]
    pub(super) max_requests: Option<AtLeast<0>>,

    /// Most requests under way at one upstream; when all are at it, further ones wait (`--upstream-queue`) or are refused with 503; 0 is no limit
    #[arg(long, global = true, env = "SOUL_UPSTREAM_MAX_REQUESTS", value_name = "N")]
    pub(super) upstream_max_requests: Option<AtLeast<0>>,

    /// Whether an upstream gets fewer at once while it takes on more than it can serve: `adaptive` or `fixed`
    #[arg(long, global = true, env = "SOUL_UPSTREAM_LIMIT", value_name = "adaptive|fixed")]
    pub(super) upstream_limit: Option<Choice<UpstreamLimit>>,

    /// Requests of one selector that wait when all upstreams are at that limit, first come, first served; 0 is no queue
    #[arg(long, global = true, env = "SOUL_UPSTREAM_QUEUE", value_name = "N")]
    pub(super) upstream_queue: Option<AtLeast<0>>,

    /// How long each of them may wait, in seconds, until it is refused with 503
    #[arg(long, global = true, env = "SOUL_UPSTREAM_QUEUE_TIMEOUT", value_name = "SECONDS")]
    pub(super) upstream_queue_timeout: Option<Seconds>,

    /// Further attempts for each request of a selector, all its requests together, and 10 per second on top; `off` is as many as their rules say
    #[arg(long, global = true, env = "SOUL_RETRY_BUDGET", value_name = "SHARE|off")]
    pub(super) retry_budget: Option<RetryShare>,

    /// Bytes of the body of a `PUT` or `DELETE` that are kept so that it can be sent once more; 0 keeps none
    #[arg(long, global = true, env = "SOUL_REPLAY_BODY_BYTES", value_name = "BYTES")]
    pub(super) replay_body_bytes: Option<AtLeast<0>>,

    /// How long a request may take to the end of its answer, whatever its rule allows, in seconds; 0 is no limit
    #[arg(long, global = true, env = "SOUL_GATEWAY_REQUEST_TIMEOUT", value_name = "SECONDS")]
    pub(super) gateway_request_timeout: Option<Interval>,

    /// Longest body of a request, in bytes; longer ones are refused with 413; 0 is no limit
    #[arg(long, global = true, env = "SOUL_MAX_BODY_BYTES", value_name = "BYTES")]
    pub(super) max_body_bytes: Option<AtLeast<0>>,

    /// How long a WebSocket, or another connection that changed its protocol, may be silent, in seconds; 0 is no limit
    #[arg(long, global = true, env = "SOUL_TUNNEL_IDLE_TIMEOUT", value_name = "SECONDS")]
    pub(super) tunnel_idle_timeout: Option<Interval>,

    /// Proxies believed when `X-Forwarded-For` says for whom they ask: addresses or ranges such as `10.0.0.0/8`, repeated or with commas
    #[arg(long, global = true, env = "SOUL_TRUSTED_PROXIES", value_name = "NETWORK", value_delimiter = ',')]
    #[serde(deserialize_with = "any_number")]
    pub(super) trusted_proxies: Option<Vec<ProxyNetwork>>,

    /// Whether every connection begins with the PROXY protocol, as from a load balancer that speaks it
    #[arg(long, global = true, env = "SOUL_PROXY_PROTOCOL", value_name = "true|false")]
    pub(super) proxy_protocol: Option<Choice<bool>>,

    /// Most requests under way at once on one connection of HTTP/2; 0 speaks no HTTP/2 to callers
    #[arg(long, global = true, env = "SOUL_HTTP2_MAX_STREAMS", value_name = "N")]
    pub(super) http2_max_streams: Option<AtLeast<0>>,

    /// Certificates by which the port speaks TLS, each a PEM file with its chain; several, repeated or with commas, for several host names
    #[arg(long, global = true, env = "SOUL_TLS_CERTIFICATE", value_name = "FILE", value_delimiter = ',')]
    #[serde(deserialize_with = "any_number")]
    pub(super) tls_certificate: Option<Vec<FileName>>,

    /// Private keys of these certificates, in the same order, each a PEM file (PKCS #8, PKCS #1 or SEC 1)
    #[arg(long, global = true, env = "SOUL_TLS_KEY", value_name = "FILE", value_delimiter = ',')]
    #[serde(deserialize_with = "any_number")]
    pub(super) tls_key: Option<Vec<FileName>>,

    /// Authorities of which callers must show a certificate, a PEM file; without one nobody is asked for a certificate
    #[arg(long, global = true, env = "SOUL_TLS_CLIENT_CA", value_name = "FILE")]
    pub(super) tls_client_ca: Option<PathBuf>,

    /// Authorities that upstreams of `https://` are believed by, besides those of the system, a PEM file
    #[arg(long, global = true, env = "SOUL_UPSTREAM_CA", value_name = "FILE")]
    pub(super) upstream_ca: Option<PathBuf>,

    /// Certificate that is shown to upstreams of `https://` that ask for one, a PEM file with its chain
    #[arg(long, global = true, env = "SOUL_UPSTREAM_CERTIFICATE", value_name = "FILE")]
    pub(super) upstream_certificate: Option<PathBuf>,

    /// Private key of this certificate, a PEM file (PKCS #8, PKCS #1 or SEC 1)
    #[arg(long, global = true, env = "SOUL_UPSTREAM_KEY", value_name = "FILE")]
    pub(super) upstream_key: Option<PathBuf>,

    /// Whether upstreams of `https://` are believed whatever certificate they show; then anybody on the way may be one
    #[arg(long, global = true, env = "SOUL_UPSTREAM_TLS_INSECURE", value_name = "true|false")]
    pub(super) upstream_tls_insecure: Option<Choice<bool>>,

    /// Whether upstreams of `https://` may choose HTTP/2; those of `h2c://` and `grpc://` are spoken to in it anyway
    #[arg(long, global = true, env = "SOUL_UPSTREAM_HTTP2", value_name = "true|false")]
    pub(super) upstream_http2: Option<Choice<bool>>,

    /// File to which a line of JSON is added for every request; `-` is the standard output
    #[arg(long, global = true, env = "SOUL_ACCESS_LOG", value_name = "FILE")]
    pub(super) access_log: Option<PathBuf>,

    /// Socket file by which another gateway on this machine takes over the ports: a gateway that finds one there takes them from it, and then is found there itself (only with `gateway`)
    #[arg(long, global = true, env = "SOUL_TAKEOVER", value_name = "FILE")]
    pub(super) takeover: Option<PathBuf>,

    /// Age of the last contact with an admin from which `/status` calls the configuration stale, in seconds
    #[arg(long, global = true, env = "SOUL_STALE_AFTER", value_name = "SECONDS")]
    pub(super) stale_after: Option<Seconds>,

    /// How long a starting gateway waits for an admin before it serves the configuration kept on disk, in seconds
    #[arg(long, global = true, env = "SOUL_KEPT_AFTER", value_name = "SECONDS")]
    pub(super) kept_after: Option<Interval>,

    /// How long an admin may take to accept a connection, in seconds
    #[arg(long, global = true, env = "SOUL_SYNC_CONNECT_TIMEOUT", value_name = "SECONDS")]
    pub(super) sync_connect_timeout: Option<Seconds>,

    /// How long an admin may hold a poll, in seconds; Soul's admin holds 60
    #[arg(long, global = true, env = "SOUL_SYNC_POLL_TIMEOUT", value_name = "SECONDS")]
    pub(super) sync_poll_timeout: Option<Seconds>,

    /// How long the whole of a fetched configuration may take to arrive, in seconds
    #[arg(long, global = true, env = "SOUL_SYNC_FETCH_TIMEOUT", value_name = "SECONDS")]
    pub(super) sync_fetch_timeout: Option<Seconds>,

    /// First pause after no admin answered, in seconds; doubled at each further failure
    #[arg(long, global = true, env = "SOUL_SYNC_BACKOFF_MIN", value_name = "SECONDS")]
    pub(super) sync_backoff_min: Option<Seconds>,

    /// Longest pause between two attempts while no admin answers, in seconds
    #[arg(long, global = true, env = "SOUL_SYNC_BACKOFF_MAX", value_name = "SECONDS")]
    pub(super) sync_backoff_max: Option<Seconds>,
}

/// What the gateway is given.
#[derive(Clone, Debug)]
pub(super) struct GatewayPart {
    pub(super) config: GatewayConfig,
    /// Admins to learn from, when there is none in the same process.
    pub(super) admins: Vec<Url>,
    pub(super) takeover: Option<PathBuf>,
}

impl Default for GatewayPart {
    fn default() -> Self {
        let admin = Url::parse(&format!("http://{}", admin::LISTEN));
        let admin = admin.expect("OK because an address behind a scheme is a URL, as a test shows");
        Self { config: GatewayConfig::default(), admins: vec![admin], takeover: None }
    }
}

impl Area for GatewaySettings {
    settings_of!(GatewayPart {
        gateway_listen => config.listen,
        status_listen => config.status_listen,
        admin => admins,
        error_status => config.error_status,
        host_header => config.host_header,
        forwarded => config.forwarded,
        path_prefix => config.path_prefix,
        caller_address => config.caller_address,
        upstream_choice => config.upstream_choice,
        invalid_entries => config.invalid_entries,
        gateway_check_interval => config.check_interval,
        gateway_check_timeout => config.check_timeout,
        upstream_connect_timeout => config.connect_timeout,
        failover_limit => config.failover_limit,
        suspect_for => config.suspect_for,
        panic_threshold => config.panic_threshold,
        pool_idle_timeout => config.pool_idle_timeout,
        pool_max_idle => config.pool_max_idle,
        body_idle_timeout => config.body_idle_timeout,
        min_body_rate => config.min_body_rate,
        header_read_timeout => config.header_read_timeout,
        max_head_bytes => config.max_head_bytes,
        max_headers => config.max_headers,
        max_connections => config.max_connections,
        gateway_threads => config.threads,
        lane_scheduling => config.lane_scheduling,
        max_requests => config.max_requests,
        upstream_max_requests => config.upstream_max_requests,
        upstream_limit => config.upstream_limit,
        upstream_queue => config.upstream_queue,
        upstream_queue_timeout => config.upstream_queue_timeout,
        retry_budget => config.retry_budget,
        replay_body_bytes => config.replay_body_bytes,
        gateway_request_timeout => config.request_timeout,
        max_body_bytes => config.max_body_bytes,
        tunnel_idle_timeout => config.tunnel_idle_timeout,
        trusted_proxies => config.trusted_proxies,
        proxy_protocol => config.proxy_protocol,
        http2_max_streams => config.http2_max_streams,
        tls_certificate => config.tls_certificates,
        tls_key => config.tls_keys,
        upstream_http2 => config.upstream_http2,
        upstream_tls_insecure => config.upstream_tls_insecure,
        stale_after => config.sync.stale_after,
        kept_after => config.sync.kept_after,
        sync_connect_timeout => config.sync.connect_timeout,
        sync_poll_timeout => config.sync.poll_timeout,
        sync_fetch_timeout => config.sync.fetch_timeout,
        sync_backoff_min => config.sync.backoff_min,
        sync_backoff_max => config.sync.backoff_max,
    } optional {
        tls_client_ca => config.tls_client_ca,
        via => config.via,
        upstream_ca => config.upstream_ca,
        upstream_certificate => config.upstream_certificate,
        upstream_key => config.upstream_key,
        access_log => config.access_log,
        takeover => takeover,
    });
}

/// Names of the choices that have names of their own.
macro_rules! named_already {
    ($($type:ty),+) => {
        $(impl Named for $type {
            fn names() -> Vec<(&'static str, Self)> {
                Self::ALL.iter().map(|choice| (choice.as_str(), *choice)).collect()
            }
        })+
    };
}
named_already!(ErrorStatus, HostHeader, Forwarded, LaneScheduling, UpstreamLimit);

impl Named for PathPrefix {
    fn names() -> Vec<(&'static str, Self)> {
        vec![
            ("auto", Self::Auto),
            ("context-path-rule", Self::ContextPathRule),
            ("first-segment", Self::FirstSegment),
        ]
    }
}

impl Named for AddressResolver {
    fn names() -> Vec<(&'static str, Self)> {
        vec![("peer", Self::Peer), ("forwarded", Self::Forwarded)]
    }
}

impl Named for balance::Choice {
    fn names() -> Vec<(&'static str, Self)> {
        vec![("strict", Self::Strict), ("soul", Self::Soul)]
    }
}

impl Named for Invalids {
    fn names() -> Vec<(&'static str, Self)> {
        vec![("refuse", Self::Refuse), ("error", Self::Error)]
    }
}
