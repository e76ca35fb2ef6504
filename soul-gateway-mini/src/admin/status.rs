//! `/healthz`, `/readyz`, `/metrics`, `/status`.

use std::sync::Arc;

use axum::{Router, extract::State, http::StatusCode, response::Response, routing::get};
use serde::Serialize;
use soul_client::wire::soul::ConfigGroup;

use super::{
    answer::response,
    config::DataDir,
    metrics::{self, Metrics},
    shared::Shared,
    store::{Store, UpstreamRow},
};

/// Media type of a word.
const TEXT: &str = "text/plain; charset=utf-8";

/// The four doors.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/healthz", get(|| async { response(StatusCode::OK, TEXT, "ok\n") }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/status", get(status))
}

/// Ready is an admin that can take registrations.
async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let trouble = match shared.store.trouble() {
        _ if shared.stopping.is_cancelled() => Some("stopping".to_owned()),
        trouble => trouble,
    };
    match trouble {
        None => response(StatusCode::OK, TEXT, "ready\n"),
        Some(why) => response(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("not ready: {why}\n")),
    }
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    response(StatusCode::OK, metrics::CONTENT_TYPE, shared.metrics.encode())
}

async fn status(State(shared): State<Arc<Shared>>) -> Response {
    match serde_json::to_vec_pretty(&Status::of(&shared)) {
        Ok(body) => response(StatusCode::OK, "application/json", body),
        Err(error) => response(StatusCode::INTERNAL_SERVER_ERROR, TEXT, error.to_string()),
    }
}

/// The state of an admin, as a page or a terminal shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    part: &'static str,
    version: &'static str,
    address: String,
    uptime_ms: u64,
    revision: u64,
    store: StoreStatus,
    counts: Counts,
    groups: Vec<GroupStatus>,
    sync: SyncStatus,
    upstream_check: CheckStatus,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StoreStatus {
    data: String,
    durable: bool,
    /// Why it cannot be written; null if it can.
    trouble: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    plugins: usize,
    selectors: usize,
    rules: usize,
    meta_data: usize,
    upstreams: usize,
    upstreams_dead: usize,
    upstreams_disabled: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupStatus {
    group: &'static str,
    md5: String,
    last_modify_time: i64,
    bytes: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SyncStatus {
    polls_held: i64,
    connections: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckStatus {
    /// 0 if it is off.
    interval_ms: u64,
    rounds: u64,
    /// 0 before the first.
    last_round_at: i64,
    last_round_ms: u64,
    last_round_probed: usize,
    last_round_dead: usize,
}

impl Status {
    fn of(shared: &Shared) -> Self {
        let published = shared.store.published();
        let report = *shared.probe_report.borrow();
        let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            part: "admin",
            version: env!("CARGO_PKG_VERSION"),
            address: shared.address.to_string(),
            uptime_ms: millis(shared.started.elapsed()),
            revision: published.store.revision(),
            store: StoreStatus {
                data: shared.config().data.to_string(),
                durable: shared.config().data != DataDir::Memory,
                trouble: shared.store.trouble(),
            },
            counts: Counts::of(&published.store),
            groups: ConfigGroup::ALL
                .into_iter()
                .map(|group| {
                    let image = published.image.group(group);
                    GroupStatus {
                        group: group.as_str(),
                        md5: image.md5.clone(),
                        last_modify_time: image.last_modify_time,
                        bytes: image.json.len(),
                    }
                })
                .collect(),
            sync: SyncStatus::of(&shared.metrics),
            upstream_check: CheckStatus {
                interval_ms: millis(shared.config().upstream_check_interval),
                rounds: report.rounds,
                last_round_at: report.started_ms,
                last_round_ms: millis(report.took),
                last_round_probed: report.tally.probed,
                last_round_dead: report.tally.dead,
            },
        }
    }
}

impl Counts {
    fn of(store: &Store) -> Self {
        let upstreams = || store.selectors().iter().flat_map(|row| row.upstreams.iter().flatten());
        let count = |wanted: fn(&&UpstreamRow) -> bool| upstreams().filter(wanted).count();
        Self {
            plugins: store.plugins().len(),
            selectors: store.selectors().len(),
            rules: store.rules().len(),
            meta_data: store.meta_data().len(),
            upstreams: upstreams().count(),
            upstreams_dead: count(|upstream| !upstream.healthy),
            upstreams_disabled: count(|upstream| !upstream.entry.status),
        }
    }
}

impl SyncStatus {
    fn of(metrics: &Metrics) -> Self {
        Self { polls_held: metrics.polls_held.get(), connections: metrics.connections.get() }
    }
}
