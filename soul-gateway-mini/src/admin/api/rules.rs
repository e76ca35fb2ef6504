//! Rules: shown, made, changed, deleted.

use std::sync::Arc;

use axum::{
    extract::{RawQuery, Request, State},
    http::HeaderMap,
    response::Response,
};
use serde_json::{Value, json};
use soul_client::balance::Way;

use super::{
    conditions,
    fields::{Fields, query},
    reply::{Failure, Made, Reply, Segments, object, submit},
    views::{MATCH_MODES, RuleView},
};
use crate::admin::{
    problem::Problem,
    shared::Shared,
    store::{Edit, NewRule, RulePatch, Store},
};

type Shares = State<Arc<Shared>>;

/// Most extra attempts.
const RETRY_MAX: i32 = 100;
/// Longest time for one attempt: an hour, in milliseconds.
const TIMEOUT_MAX_MS: i32 = 3_600_000;

pub(super) async fn list(State(shared): Shares, RawQuery(text): RawQuery) -> Result<Response, Failure> {
    let (page, [plugin, selector, name]) = query(text.as_deref(), ["plugin", "selector", "name"])?;
    let store = shared.store.store();
    let rows = store.rules().iter().filter(|row| {
        plugin.as_ref().is_none_or(|plugin| row.plugin_name.as_ref() == Some(plugin))
            && selector.as_ref().is_none_or(|selector| row.selector_id.as_ref() == Some(selector))
            && name.as_ref().is_none_or(|name| row.name.as_ref() == Some(name))
    });
    Ok(Reply::list(&store, &page, rows.map(|row| RuleView::of(row))))
}

pub(super) async fn one(State(shared): Shares, Segments(id): Segments<String>) -> Result<Response, Failure> {
    let store = shared.store.store();
    let row = store.rules().by_id(&id).ok_or_else(|| Failure::not_found(format!("no rule `{id}`")))?;
    Ok(Reply::item(&store, RuleView::of(row)))
}

pub(super) async fn create(State(shared): Shares, request: Request) -> Result<Response, Failure> {
    let (headers, fields) = object(&shared, request).await?;
    let mut fields = Fields::new(fields);
    let selector = fields.name("selectorId");
    let selector = fields.need("selectorId", selector).unwrap_or_default();
    let patch = patch(&mut fields);
    fields.need("name", patch.name.as_ref());
    fields.finish()?;
    let new = NewRule { selector, patch };
    submit(&shared, &headers, Edit::NewRule(Box::new(new)), Made::New("/api/v1/rules"), view).await
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
    submit(&shared, &headers, Edit::Rule(id, patch), Made::Changed, view).await
}

pub(super) async fn delete(
    State(shared): Shares,
    Segments(id): Segments<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    submit(&shared, &headers, Edit::DeleteRule(id), Made::Changed, view).await
}

fn patch(fields: &mut Fields) -> RulePatch {
    let load_balance = fields.text("loadBalance");
    if let Some(text) = load_balance.as_deref().filter(|text| text.parse::<Way>().is_err()) {
        fields.refuse(Problem::not_one_of("loadBalance", text, &Way::NAMES));
    }
    RulePatch {
        name: fields.name("name"),
        match_mode: fields.code("matchMode", MATCH_MODES),
        sort: fields.number("sort", 0..=i32::MAX),
        enabled: fields.flag("enabled"),
        logged: fields.flag("logged"),
        conditions: conditions::read(fields),
        load_balance,
        retry: fields.number("retry", 0..=RETRY_MAX),
        timeout: fields.number("timeout", 1..=TIMEOUT_MAX_MS).map(i64::from),
        handle: fields.text("handle"),
    }
}

fn view(store: &Store, id: &str) -> Option<Value> {
    store.rules().by_id(id).map(|row| json!(RuleView::of(row)))
}
