//! The rows as the API shows them: words in place of Soul's codes, health beside configuration.

use serde::Serialize;
use soul_client::wire::{
    gson,
    soul::{ConditionData, DivideRuleHandle, PluginData, RuleData},
};

use super::fields::Codes;
use crate::admin::{
    register::MetaDataRow,
    store::{SelectorRow, UpstreamRow},
};
use crate::model::DIVIDE;

/// How conditions are joined.
pub(super) const MATCH_MODES: &Codes = &[("and", 0), ("or", 1)];
/// Whether a selector takes every request or looks at its conditions.
pub(super) const TYPES: &Codes = &[("full", 0), ("custom", 1)];

fn word(codes: &Codes, code: Option<i32>) -> Option<&'static str> {
    codes.iter().find(|(_, known)| Some(*known) == code).map(|(word, _)| *word)
}

/// A plugin.
#[derive(Debug, Serialize)]
pub(super) struct PluginView<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
    enabled: bool,
    role: &'static str,
    config: Option<&'a str>,
}

impl<'a> PluginView<'a> {
    pub(super) fn of(row: &'a PluginData) -> Self {
        Self {
            id: row.id.as_deref(),
            name: row.name.as_deref(),
            enabled: row.enabled.unwrap_or_default(),
            role: if row.role == Some(0) { "system" } else { "custom" },
            config: row.config.as_deref(),
        }
    }
}

/// A selector with its upstreams.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SelectorView<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
    plugin_id: Option<&'a str>,
    plugin_name: Option<&'a str>,
    #[serde(rename = "type")]
    kind: Option<&'static str>,
    match_mode: Option<&'static str>,
    sort: Option<i32>,
    enabled: bool,
    logged: bool,
    conditions: Vec<&'a ConditionData>,
    /// Null where the handle is not a list of upstreams.
    upstreams: Option<Vec<UpstreamView<'a>>>,
    /// The text for the plugin; null where there are upstreams.
    handle: Option<&'a str>,
}

impl<'a> SelectorView<'a> {
    pub(super) fn of(row: &'a SelectorRow) -> Self {
        let data = &row.data;
        let upstreams = row.upstreams.as_ref();
        Self {
            id: data.id.as_deref(),
            name: data.name.as_deref(),
            plugin_id: data.plugin_id.as_deref(),
            plugin_name: data.plugin_name.as_deref(),
            kind: word(TYPES, data.kind),
            match_mode: word(MATCH_MODES, data.match_mode),
            sort: data.sort,
            enabled: data.enabled.unwrap_or_default(),
            logged: data.is_logged(),
            conditions: data.condition_list.iter().flatten().flatten().collect(),
            upstreams: upstreams.map(|list| list.iter().map(UpstreamView::of).collect()),
            handle: data.handle.as_deref().filter(|_| upstreams.is_none()),
        }
    }
}

/// An upstream: what is configured, then what is known of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpstreamView<'a> {
    url: &'a str,
    protocol: Option<&'a str>,
    weight: i32,
    status: bool,
    warmup: i32,
    timestamp: i64,
    check: bool,
    healthy: bool,
    dead_since: Option<i64>,
    last_probe: Option<ProbeView<'a>>,
}

/// The last probe of an upstream.
#[derive(Debug, Serialize)]
struct ProbeView<'a> {
    at: i64,
    error: Option<&'a str>,
}

impl<'a> UpstreamView<'a> {
    pub(super) fn of(row: &'a UpstreamRow) -> Self {
        Self {
            url: row.url(),
            protocol: row.entry.protocol.as_deref(),
            weight: row.entry.weight,
            status: row.entry.status,
            warmup: row.entry.warmup,
            timestamp: row.entry.timestamp,
            check: !row.unchecked,
            healthy: row.healthy,
            dead_since: row.dead_since,
            last_probe: row
                .probed
                .as_ref()
                .map(|probed| ProbeView { at: probed.at_ms, error: probed.error.as_deref() }),
        }
    }
}

/// A rule.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleView<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
    plugin_name: Option<&'a str>,
    selector_id: Option<&'a str>,
    match_mode: Option<&'static str>,
    sort: Option<i32>,
    enabled: bool,
    logged: bool,
    conditions: Vec<&'a ConditionData>,
    #[serde(flatten)]
    divide: Option<DivideView>,
    handle: Option<&'a str>,
}

/// The handle of a `divide` rule, read.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DivideView {
    load_balance: Option<String>,
    retry: i32,
    timeout: i64,
}

impl<'a> RuleView<'a> {
    pub(super) fn of(row: &'a RuleData) -> Self {
        Self {
            id: row.id.as_deref(),
            name: row.name.as_deref(),
            plugin_name: row.plugin_name.as_deref(),
            selector_id: row.selector_id.as_deref(),
            match_mode: word(MATCH_MODES, row.match_mode),
            sort: row.sort,
            enabled: row.enabled.unwrap_or_default(),
            logged: row.loged.unwrap_or_default(),
            conditions: row.condition_data_list.iter().flatten().flatten().collect(),
            divide: divide(row),
            handle: row.handle.as_deref(),
        }
    }
}

fn divide(row: &RuleData) -> Option<DivideView> {
    let text = row.handle.as_deref().filter(|_| row.plugin_name.as_deref() == Some(DIVIDE))?;
    let DivideRuleHandle { load_balance, retry, timeout } = gson::from_str(text).ok()??;
    Some(DivideView { load_balance, retry, timeout })
}

/// Metadata.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MetaDataView<'a> {
    id: Option<&'a str>,
    app_name: Option<&'a str>,
    path: Option<&'a str>,
    path_desc: Option<&'a str>,
    rpc_type: Option<&'a str>,
    service_name: Option<&'a str>,
    method_name: Option<&'a str>,
    parameter_types: Option<&'a str>,
    rpc_ext: Option<&'a str>,
    enabled: bool,
}

impl<'a> MetaDataView<'a> {
    pub(super) fn of(row: &'a MetaDataRow) -> Self {
        let data = &row.data;
        Self {
            id: data.id.as_deref(),
            app_name: data.app_name.as_deref(),
            path: data.path.as_deref(),
            path_desc: row.path_desc.as_deref(),
            rpc_type: data.rpc_type.as_deref(),
            service_name: data.service_name.as_deref(),
            method_name: data.method_name.as_deref(),
            parameter_types: data.parameter_types.as_deref(),
            rpc_ext: data.rpc_ext.as_deref(),
            enabled: data.enabled.unwrap_or_default(),
        }
    }
}
