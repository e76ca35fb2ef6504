//! The rows, and what gateways see of them.

use serde::{Deserialize, Serialize};
use soul_client::wire::soul::{DivideUpstream, MetaData, PluginData, RuleData, SelectorData};

use super::table::Row;
use crate::admin::register::MetaDataRow;

/// A selector with its upstreams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectorRow {
    /// The selector; its `handle` is used only if it owns no upstreams.
    pub data: SelectorData,
    /// Every configured upstream, dead ones too; absent if the handle is some other plugin's text.
    pub upstreams: Option<Vec<UpstreamRow>>,
}

/// One upstream: what is configured, and apart from it what probing found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpstreamRow {
    /// What is configured. `status` is the operator's switch, which probing never touches.
    pub entry: DivideUpstream,
    /// What probing concluded; a dead one is left out of the handle.
    pub healthy: bool,
    /// Since when it is dead, milliseconds since the epoch.
    pub dead_since: Option<i64>,
    /// Whether it is left out of probing.
    pub unchecked: bool,
    /// Tells this entry from an earlier one of the same address.
    #[serde(skip)]
    pub incarnation: u64,
    /// The last time the node was heard of by itself, on the store's own count; a verdict from before says nothing.
    #[serde(skip)]
    pub touched: u64,
    /// The last probe.
    #[serde(skip)]
    pub probed: Option<Probed>,
}

/// Equal if what is kept on disk is equal.
impl PartialEq for UpstreamRow {
    fn eq(&self, other: &Self) -> bool {
        self.entry == other.entry
            && self.healthy == other.healthy
            && self.dead_since == other.dead_since
            && self.unchecked == other.unchecked
    }
}

impl Eq for UpstreamRow {}

/// The outcome of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// When it ended, milliseconds since the epoch.
    pub at_ms: i64,
    /// Why it failed.
    pub error: Option<String>,
}

impl UpstreamRow {
    /// A node that has just become known.
    pub fn new(entry: DivideUpstream, stamp: u64) -> Self {
        Self {
            entry,
            healthy: true,
            dead_since: None,
            unchecked: false,
            incarnation: stamp,
            touched: stamp,
            probed: None,
        }
    }

    /// The address.
    pub fn url(&self) -> &str {
        self.entry.upstream_url.as_deref().unwrap_or_default()
    }
}

impl SelectorRow {
    /// The selector as gateways get it: living upstreams only, both names of the log flag.
    pub fn published(&self) -> SelectorData {
        let handle = match &self.upstreams {
            Some(list) => Some(handle_of(list.iter().filter(|upstream| upstream.healthy))),
            None => self.data.handle.clone(),
        };
        SelectorData { handle, ..self.data.clone() }
    }

    /// The upstream of an address.
    pub fn upstream(&self, url: &str) -> Option<&UpstreamRow> {
        self.upstreams.iter().flatten().find(|upstream| upstream.url() == url)
    }

    /// The upstream of an address, to change it.
    pub fn upstream_mut(&mut self, url: &str) -> Option<&mut UpstreamRow> {
        self.upstreams.iter_mut().flatten().find(|upstream| upstream.url() == url)
    }
}

/// The handle of a list of upstreams; `""` for none, as Soul writes when the last one died.
fn handle_of<'a>(upstreams: impl Iterator<Item = &'a UpstreamRow>) -> String {
    let list: Vec<DivideUpstream> = upstreams.map(|upstream| upstream.entry.clone()).collect();
    if list.is_empty() { String::new() } else { DivideUpstream::write_handle(&list) }
}

impl Row for SelectorRow {
    fn id(&self) -> &str {
        self.data.id.as_deref().unwrap_or_default()
    }
    fn name(&self) -> &str {
        self.data.name.as_deref().unwrap_or_default()
    }
}

impl Row for RuleData {
    fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

impl Row for PluginData {
    fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

impl Row for MetaDataRow {
    fn id(&self) -> &str {
        self.data.id.as_deref().unwrap_or_default()
    }
    fn name(&self) -> &str {
        self.data.path.as_deref().unwrap_or_default()
    }
}

impl MetaDataRow {
    /// The metadata as a full synchronisation gives it.
    pub fn published(&self) -> MetaData {
        self.data.clone()
    }
}
