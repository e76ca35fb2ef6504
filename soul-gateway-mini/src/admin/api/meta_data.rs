//! Metadata: shown, enabled, disabled, deleted.

use std::sync::Arc;

use axum::{
    extract::{RawQuery, Request, State},
    http::HeaderMap,
    response::Response,
};
use serde_json::{Value, json};

use super::{
    fields::{Fields, query},
    reply::{Failure, Made, Reply, Segments, object, submit},
    views::MetaDataView,
};
use crate::admin::{
    shared::Shared,
    store::{Edit, MetaDataPatch, Store},
};

type Shares = State<Arc<Shared>>;

pub(super) async fn list(State(shared): Shares, RawQuery(text): RawQuery) -> Result<Response, Failure> {
    let (page, [path]) = query(text.as_deref(), ["path"])?;
    let store = shared.store.store();
    let rows = store
        .meta_data()
        .iter()
        .filter(|row| path.as_ref().is_none_or(|path| row.data.path.as_ref() == Some(path)));
    Ok(Reply::list(&store, &page, rows.map(|row| MetaDataView::of(row))))
}

pub(super) async fn one(State(shared): Shares, Segments(id): Segments<String>) -> Result<Response, Failure> {
    let store = shared.store.store();
    let row =
        store.meta_data().by_id(&id).ok_or_else(|| Failure::not_found(format!("no metadata `{id}`")))?;
    Ok(Reply::item(&store, MetaDataView::of(row)))
}

pub(super) async fn change(
    State(shared): Shares,
    Segments(id): Segments<String>,
    request: Request,
) -> Result<Response, Failure> {
    let (headers, fields) = object(&shared, request).await?;
    let mut fields = Fields::new(fields);
    let patch = MetaDataPatch { enabled: fields.flag("enabled") };
    fields.finish_patch()?;
    submit(&shared, &headers, Edit::MetaData(id, patch), Made::Changed, view).await
}

pub(super) async fn delete(
    State(shared): Shares,
    Segments(id): Segments<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    submit(&shared, &headers, Edit::DeleteMetaData(id), Made::Changed, view).await
}

fn view(store: &Store, id: &str) -> Option<Value> {
    store.meta_data().by_id(id).map(|row| json!(MetaDataView::of(row)))
}
