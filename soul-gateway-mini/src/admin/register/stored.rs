//! What a registration has to know of the rows that are there already.

use serde::{Deserialize, Serialize};
use soul_client::wire::{
    gson,
    soul::{DivideUpstream, MetaData, SelectorData},
};
use thiserror::Error;

/// One row of metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetaDataRow {
    /// What gateways get.
    pub data: MetaData,
    /// Description of the path; stays in the admin.
    pub path_desc: Option<String>,
}

/// A selector found by its name.
#[derive(Clone, Debug)]
pub struct StoredSelector {
    /// The selector as gateways see it.
    pub data: SelectorData,
    /// Its upstreams, dead ones too, or why its handle is no list of them.
    pub upstreams: Result<Vec<DivideUpstream>, HandleFault>,
}

/// The rows a registration looks at.
pub trait Stored {
    /// The selector of this name, in whichever plugin.
    fn selector(&self, name: &str) -> Option<StoredSelector>;
    /// Whether a rule has this name, in whichever selector.
    fn has_rule(&self, name: &str) -> bool;
    /// The metadata of exactly this path.
    fn meta_data_by_path(&self, path: &str) -> Option<MetaDataRow>;
    /// The metadata of a service's method.
    fn meta_data_by_method(&self, service: Option<&str>, method: Option<&str>) -> Option<MetaDataRow>;
}

/// Why a handle cannot be read as a list of upstreams.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HandleFault {
    /// The text is no JSON array of upstreams.
    #[error("the handle is no list of upstreams")]
    NotAList,
    /// The text is `null`, or an entry or its address is.
    #[error("the handle holds an entry without address")]
    NoAddress,
}

/// Reads the handle of a selector as a list of upstreams; a blank one is the empty list.
///
/// # Errors
/// [`HandleFault::NotAList`] where Gson's reader fails, [`HandleFault::NoAddress`] where Java meets a null.
pub fn parse_upstreams(handle: Option<&str>) -> Result<Vec<DivideUpstream>, HandleFault> {
    let Some(text) = handle.filter(|text| !gson::is_blank(text)) else { return Ok(Vec::new()) };
    let list = DivideUpstream::read_entries(text).map_err(|_| HandleFault::NotAList)?;
    let list = list.ok_or(HandleFault::NoAddress)?;
    list.into_iter().map(|entry| entry.ok_or(HandleFault::NoAddress)).collect()
}
