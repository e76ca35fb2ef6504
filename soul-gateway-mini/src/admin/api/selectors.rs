//! Selectors: shown, made, changed, deleted with their rules.

use std::sync::Arc;

use axum::{
    extract::{RawQuery, Request, State},
    http::HeaderMap,
    response::Response,
};
use serde_json::{Value, json};

use super::{
    conditions,
    fields::{Fields, query},
    reply::{Failure, Made, Reply, Segments, object, submit},
    upstreams,
    views::{MATCH_MODES, SelectorView, TYPES},
};
use crate::admin::{
    shared::Shared,
    store::{Edit, NewSelector, SelectorPatch, Store},
};

type Shares = State<Arc<Shared>>;

pub(super) async fn list(State(shared): Shares, RawQuery(text): RawQuery) -> Result<Response, Failure> {
    let (page, [plugin, name]) = query(text.as_deref(), ["plugin", "name"])?;
    let store = shared.store.store();
    let rows = store.selectors().iter().filter(|row| {
        plugin.as_ref().is_none_or(|plugin| row.data.plugin_name.as_ref() == Some(plugin))
            && name.as_ref().is_none_or(|name| row.data.name.as_ref() == Some(name))
    });
    Ok(Reply::list(&store, &page, rows.map(|row| SelectorView::of(row))))
}

pub(super) async fn one(State(shared): Shares, Segments(id): Segments<String>) -> Result<Response, Failure> {
    let store = shared.store.store();
    let row =
        store.selectors().by_id(&id).ok_or_else(|| Failure::not_found(format!("no selector `{id}`")))?;
    Ok(Reply::item(&store, SelectorView::of(row)))
}

pub(super) async fn create(State(shared): Shares, request: Request) -> Result<Response, Failure> {
    let (headers, fields) = object(&shared, request).await?;
    let mut fields = Fields::new(fields);
    let plugin = fields.name("pluginName");
    let plugin = fields.need("pluginName", plugin).unwrap_or_default();
    let patch = patch(&mut fields);
    fields.need("name", patch.name.as_ref());
    let allow_link_local = shared.config().allow_link_local;
    let upstreams = fields.objects("upstreams", |item| upstreams::new(item, allow_link_local));
    fields.finish()?;
    let new = NewSelector { plugin, patch, upstreams };
    submit(&shared, &headers, Edit::NewSelector(Box::new(new)), Made::New("/api/v1/selectors"), view).await
}

pub(super) async fn change(
    State(shared): Shares,
    Segments(id): Segments<String>,
    request: Request,
) -> Result<Response, Failure> {
    let (headers, fields) = object(&shared, request).await?;
    let mut fields = Fields::new(fields);
    let patch = patch(&mut fields);
    fields.finish_patch()?;
    submit(&shared, &headers, Edit::Selector(id, patch), Made::Changed, view).await
}

pub(super) async fn delete(
    State(shared): Shares,
    Segments(id): Segments<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    submit(&shared, &headers, Edit::DeleteSelector(id), Made::Changed, view).await
}

fn patch(fields: &mut Fields) -> SelectorPatch {
    SelectorPatch {
        name: fields.name("name"),
        match_mode: fields.code("matchMode", MATCH_MODES),
        kind: fields.code("type", TYPES),
        sort: fields.number("sort", 0..=i32::MAX),
        enabled: fields.flag("enabled"),
        logged: fields.flag("logged"),
        conditions: conditions::read(fields),
        handle: fields.text("handle"),
    }
}

/// The selector of an id, or null when it is gone.
pub(super) fn view(store: &Store, id: &str) -> Option<Value> {
    store.selectors().by_id(id).map(|row| json!(SelectorView::of(row)))
}
