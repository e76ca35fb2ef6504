//! Plugins: shown, enabled, disabled, configured.

use std::sync::Arc;

use axum::{
    extract::{RawQuery, Request, State},
    response::Response,
};
use soul_client::wire::soul::PluginData;

use super::{
    fields::{Fields, query},
    reply::{Failure, Made, Reply, Segments, object, submit},
    views::PluginView,
};
use crate::admin::{
    shared::Shared,
    store::{Edit, PluginPatch, Row, Store},
};

type Shares = State<Arc<Shared>>;

pub(super) async fn list(State(shared): Shares, RawQuery(text): RawQuery) -> Result<Response, Failure> {
    let (page, []) = query(text.as_deref(), [])?;
    let store = shared.store.store();
    Ok(Reply::list(&store, &page, store.plugins().iter().map(|row| PluginView::of(row))))
}

pub(super) async fn one(State(shared): Shares, Segments(id): Segments<String>) -> Result<Response, Failure> {
    let store = shared.store.store();
    Ok(Reply::item(&store, PluginView::of(find(&store, &id)?)))
}

pub(super) async fn change(
    State(shared): Shares,
    Segments(id): Segments<String>,
    request: Request,
) -> Result<Response, Failure> {
    let (headers, fields) = object(&shared, request).await?;
    let mut fields = Fields::new(fields);
    let patch = PluginPatch { enabled: fields.flag("enabled"), config: fields.text("config") };
    fields.finish_patch()?;
    let id = find(&shared.store.store(), &id)?.id().to_owned();
    submit(&shared, &headers, Edit::Plugin(id, patch), Made::Changed, |store, id| {
        store.plugins().by_id(id).map(|row| serde_json::json!(PluginView::of(row)))
    })
    .await
}

/// The plugin of an id or a name.
fn find<'a>(store: &'a Store, id: &str) -> Result<&'a PluginData, Failure> {
    let row = store.plugins().by_id(id).or_else(|| store.plugins().by_name(id));
    row.map(|row| &**row).ok_or_else(|| Failure::not_found(format!("no plugin `{id}`")))
}
