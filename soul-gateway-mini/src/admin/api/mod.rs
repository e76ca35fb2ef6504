//! `/api/v1`: what the store holds, and how an operator changes it. `API.md` beside the crate describes it.
//!
//! | path | methods | module |
//! |---|---|---|
//! | `/api/v1` | GET | here |
//! | `/api/v1/plugins`, `/{id}` | GET, PATCH | `plugins` |
//! | `/api/v1/selectors`, `/{id}` | GET, POST, PATCH, DELETE | `selectors` |
//! | `/api/v1/selectors/{id}/upstreams`, `/{url}` | GET, POST, PATCH, DELETE | `upstreams` |
//! | `/api/v1/rules`, `/{id}` | GET, POST, PATCH, DELETE | `rules` |
//! | `/api/v1/meta-data`, `/{id}` | GET, PATCH, DELETE | `meta_data` |
//!
//! Answers have Soul's shape (`code`, `message`, `data`); the code is the status. `data` carries the revision, which is
//! also the ETag; a change may say by If-Match which revision it was made from.

mod access;
mod conditions;
mod fields;
mod meta_data;
mod plugins;
mod reply;
mod rules;
mod selectors;
mod upstreams;
mod views;

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    middleware::from_fn_with_state,
    response::Response,
    routing::{get, patch},
};
use serde_json::json;

use reply::{Failure, Reply};

use super::shared::Shared;

/// The routes, with the check who may use them.
pub(crate) fn routes(shared: &Arc<Shared>) -> Router<Arc<Shared>> {
    let one_selector = get(selectors::one).patch(selectors::change).delete(selectors::delete);
    let one_rule = get(rules::one).patch(rules::change).delete(rules::delete);
    let one_meta_data = get(meta_data::one).patch(meta_data::change).delete(meta_data::delete);
    Router::new()
        .route("/api/v1", get(overview))
        .route("/api/v1/plugins", get(plugins::list))
        .route("/api/v1/plugins/{id}", get(plugins::one).patch(plugins::change))
        .route("/api/v1/selectors", get(selectors::list).post(selectors::create))
        .route("/api/v1/selectors/{id}", one_selector)
        .route("/api/v1/selectors/{id}/upstreams", get(upstreams::list).post(upstreams::create))
        .route("/api/v1/selectors/{id}/upstreams/{url}", patch(upstreams::change).delete(upstreams::delete))
        .route("/api/v1/rules", get(rules::list).post(rules::create))
        .route("/api/v1/rules/{id}", one_rule)
        .route("/api/v1/meta-data", get(meta_data::list))
        .route("/api/v1/meta-data/{id}", one_meta_data)
        .route("/api/v1/{*rest}", axum::routing::any(nowhere))
        .route_layer(from_fn_with_state(Arc::clone(shared), access::check))
}

async fn overview(State(shared): State<Arc<Shared>>) -> Response {
    let store = shared.store.store();
    Reply::ok(
        store.revision(),
        &json!({
            "revision": store.revision(),
            "version": env!("CARGO_PKG_VERSION"),
            "plugins": store.plugins().len(),
            "selectors": store.selectors().len(),
            "rules": store.rules().len(),
            "metaData": store.meta_data().len(),
        }),
    )
}

async fn nowhere(uri: axum::http::Uri) -> Failure {
    Failure::not_found(format!("no such path: `{}`", uri.path()))
}
