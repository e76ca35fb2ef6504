//! Health, metrics and status, on a listener of their own so that no path of a user's service is taken.
//!
//! | path | answers |
//! |---|---|
//! | `/healthz` | 200 while the process runs |
//! | `/readyz` | 200 while requests are served by a configuration; else 503 and why not |
//! | `/metrics` | Prometheus text |
//! | `/status` | JSON: synchronisation, selectors with their upstreams, entries that cannot be used |

use std::{
    future::pending,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use axum::{
    Json, Router, extract,
    http::{
        HeaderValue, StatusCode,
        header::{CONNECTION, CONTENT_TYPE},
    },
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::get,
    serve::Listener,
};
use serde::Serialize;
use soul_client::balance::{Health, Member};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    GatewayConfig,
    lane::Lane,
    metrics::{self, Metrics},
    plugin::divide::Selector,
};
use crate::{
    clock::now_ms,
    listen::GRACE,
    sync::{ConfigSync, Refused, Snapshot, StatusStats, SyncStatus},
};

/// What the answers are made of.
#[derive(Clone)]
pub(super) struct Watched {
    pub(super) sync: ConfigSync,
    /// Requests that no selector took.
    pub(super) unmatched: Arc<StatusStats>,
    pub(super) lanes: Arc<[Arc<Lane>]>,
    /// Connections of callers.
    pub(super) callers: TaskTracker,
    pub(super) draining: CancellationToken,
    /// Another gateway listens by the same sockets and serves.
    pub(super) handed_over: CancellationToken,
    pub(super) config: watch::Receiver<Arc<GatewayConfig>>,
}

impl Watched {
    /// How many connections to upstreams are open.
    pub(super) fn upstream_connections(&self) -> usize {
        self.lanes.iter().map(|lane| lane.client().connections()).sum()
    }

    /// Why no requests should be sent here; `None` if they should.
    fn not_ready(&self) -> Option<String> {
        // Whoever asks for the port is served by the other one then, so nobody is to stay away.
        if self.draining.is_cancelled() && !self.handed_over.is_cancelled() {
            return Some("draining".to_owned());
        }
        let status = self.sync.status();
        let status = status.borrow();
        (status.revision == 0).then(|| match &status.last_error {
            Some(error) => format!("no configuration yet: {error}"),
            None => format!("no configuration yet, asking {}", status.source),
        })
    }
}

struct State {
    watched: Watched,
    metrics: Metrics,
}

type Shared = extract::State<Arc<State>>;

/// Answers until `stop` is cancelled.
pub(super) async fn serve(listener: TcpListener, watched: Watched, stop: CancellationToken) {
    let handed_over = watched.handed_over.clone();
    let ended = until_told(stop, handed_over.clone());
    let listener = UntilHandedOver { listener: Some(listener), handed_over: handed_over.clone() };
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/status", get(status))
        .with_state(Arc::new(State { metrics: Metrics::new(watched.clone()), watched }))
        .layer(map_response(move |mut response: Response| {
            if handed_over.is_cancelled() {
                // The other one is to be asked next time.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            std::future::ready(response)
        }));
    let served = axum::serve(listener, router).with_graceful_shutdown(ended).await;
    if let Err(error) = served {
        tracing::error!(%error, "status is no longer served");
    }
}

/// Waits for the end, and after a handover a little longer: a connection that was taken just before it has not asked yet,
/// and would be closed with its question under way.
async fn until_told(stop: CancellationToken, handed_over: CancellationToken) {
    stop.cancelled().await;
    if handed_over.is_cancelled() {
        sleep(GRACE).await;
    }
}

/// Takes connections until another gateway does; those that are open may go on asking.
struct UntilHandedOver {
    listener: Option<TcpListener>,
    handed_over: CancellationToken,
}

impl Listener for UntilHandedOver {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        if let Some(listener) = &mut self.listener
            && let Some(accepted) = self.handed_over.run_until_cancelled(Listener::accept(listener)).await
        {
            return accepted;
        }
        self.listener = None;
        pending().await
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.as_ref().ok_or(io::ErrorKind::NotConnected)?.local_addr()
    }
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(extract::State(state): Shared) -> (StatusCode, String) {
    match state.watched.not_ready() {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

async fn metrics(extract::State(state): Shared) -> Response {
    match state.metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn status(extract::State(state): Shared) -> Response {
    let watched = &state.watched;
    let snapshot = watched.sync.snapshot();
    let sync = watched.sync.status();
    let document = Document {
        version: env!("CARGO_PKG_VERSION"),
        ready: watched.not_ready().is_none(),
        sync: SyncView::of(&sync.borrow(), watched.config.borrow().sync.stale_after),
        connections: ConnectionsView {
            callers: watched.callers.len(),
            upstreams: watched.upstream_connections(),
            callers_by_lane: watched.lanes.iter().map(|lane| lane.share().open()).collect(),
        },
        config: snapshot.as_deref().map(ConfigView::of),
    };
    Json(document).into_response()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'s> {
    version: &'static str,
    ready: bool,
    sync: SyncView,
    connections: ConnectionsView,
    config: Option<ConfigView<'s>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConnectionsView {
    callers: usize,
    upstreams: usize,
    /// How they are spread; one that goes from lane to lane may be in neither.
    callers_by_lane: Vec<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SyncView {
    source: String,
    origin: Option<String>,
    connected: bool,
    stale: bool,
    age_seconds: Option<f64>,
    consecutive_failures: u32,
    last_error: Option<String>,
}

impl SyncView {
    fn of(status: &SyncStatus, stale_after: Duration) -> Self {
        Self {
            source: status.source.clone(),
            origin: status.origin.as_ref().map(ToString::to_string),
            connected: status.connected,
            stale: status.is_stale(stale_after),
            age_seconds: status.age().map(|age| age.as_secs_f64()),
            consecutive_failures: status.consecutive_failures,
            last_error: status.last_error.clone(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConfigView<'s> {
    revision: u64,
    made_ms: u128,
    divide_enabled: bool,
    context_path_enabled: bool,
    selectors: Vec<SelectorView<'s>>,
    refused: &'s [Refused],
}

impl<'s> ConfigView<'s> {
    fn of(snapshot: &'s Snapshot) -> Self {
        let selectors = snapshot.divide().into_iter().flat_map(|table| table.selectors());
        Self {
            revision: snapshot.revision(),
            made_ms: snapshot.made().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis(),
            divide_enabled: snapshot.divide().is_some(),
            context_path_enabled: snapshot.context_path().is_some(),
            selectors: selectors.map(SelectorView::of).collect(),
            refused: snapshot.refused(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SelectorView<'s> {
    id: &'s str,
    name: &'s str,
    rules: usize,
    upstreams: Vec<UpstreamView<'s>>,
    /// Requests that wait for a busy upstream.
    waiting: usize,
    /// Attempts after the first that were made, and those that the budget did not allow.
    retries: u64,
    retries_denied: u64,
}

impl<'s> SelectorView<'s> {
    fn of(selector: &'s Selector) -> Self {
        let members = selector.payload().upstreams().members();
        let upstreams = members.iter().filter_map(|member| UpstreamView::of(selector, member)).collect();
        let stats = selector.payload().stats();
        Self {
            id: selector.id(),
            name: selector.name(),
            rules: selector.rules().len(),
            upstreams,
            waiting: stats.queue.waiting(),
            retries: stats.retries.spent(),
            retries_denied: stats.retries.denied(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpstreamView<'s> {
    url: &'s str,
    protocol: &'s str,
    weight: i32,
    /// Switched on in the configuration.
    status: bool,
    /// What the gateway's own probe found.
    health: &'static str,
    /// Passed over because it could not be connected to a moment ago.
    suspect: bool,
    in_flight: u32,
    /// How many there may be, for it takes on no more than it can serve; without, `upstream-max-requests` counts.
    limit: Option<u32>,
    attempts: u64,
    failures: u64,
}

impl<'s> UpstreamView<'s> {
    fn of(selector: &'s Selector, member: &'s Member) -> Option<Self> {
        let end = selector.payload().end(member)?;
        let upstream = member.upstream();
        Some(Self {
            url: upstream.address(),
            protocol: upstream.protocol(),
            weight: upstream.weight(),
            status: upstream.status(),
            health: match member.state().health() {
                Health::Unknown => "unknown",
                Health::Up => "up",
                Health::Down => "down",
            },
            suspect: member.state().ejected_until_ms().is_some_and(|until| until > now_ms()),
            in_flight: member.state().in_flight(),
            limit: end.known_flow().and_then(|flow| flow.known_limit(now_ms())),
            attempts: end.destination.attempts(),
            failures: end.destination.failures(),
        })
    }
}
