//! What passes from the admin to its gateways: changes, and the whole configuration at one revision.

use std::sync::Arc;

use soul_client::wire::soul::{
    AppAuthData, ConfigGroup, DataEventType, MetaData, PluginData, RuleData, SelectorData,
};

/// The entries of one group. The large groups share their rows with whoever else holds them, so that a change costs
/// what changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupData {
    /// Applications that sign requests.
    AppAuth(Vec<AppAuthData>),
    /// Plugins.
    Plugin(Vec<PluginData>),
    /// Rules.
    Rule(Vec<Arc<RuleData>>),
    /// Selectors.
    Selector(Vec<Arc<SelectorData>>),
    /// Metadata.
    MetaData(Vec<Arc<MetaData>>),
}

impl GroupData {
    /// The group these entries belong to.
    #[must_use]
    pub fn group(&self) -> ConfigGroup {
        match self {
            Self::AppAuth(_) => ConfigGroup::AppAuth,
            Self::Plugin(_) => ConfigGroup::Plugin,
            Self::Rule(_) => ConfigGroup::Rule,
            Self::Selector(_) => ConfigGroup::Selector,
            Self::MetaData(_) => ConfigGroup::MetaData,
        }
    }
}

/// One change: what happened to which entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataEvent {
    /// What happened.
    pub kind: DataEventType,
    /// The entries it happened to.
    pub data: GroupData,
}

/// One group as the admin publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupImage {
    /// The entries.
    pub data: Arc<GroupData>,
    /// The exact Gson text of the entries; long-poll clients compare its md5.
    pub json: Arc<String>,
    /// Lower-case hex MD5 of `json`.
    pub md5: String,
    /// The admin's clock when the text was made, milliseconds since the epoch.
    pub last_modify_time: i64,
}

/// The whole configuration at one revision of the admin's store.
#[derive(Clone, Debug)]
pub struct ConfigImage {
    /// Grows with every change.
    pub revision: u64,
    /// One image a group, in the order of [`ConfigGroup::ALL`].
    pub groups: [Arc<GroupImage>; 5],
}

impl ConfigImage {
    /// The image of one group.
    #[must_use]
    pub fn group(&self, group: ConfigGroup) -> &Arc<GroupImage> {
        &self.groups[group as usize]
    }
}
