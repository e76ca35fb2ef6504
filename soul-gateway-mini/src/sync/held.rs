//! The configuration as the gateway holds it: in packed rows, each list shared by whoever needs it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use soul_client::wire::soul::{AppAuthData, ConfigGroup, MetaData, PluginData, RuleData, SelectorData};

use crate::model::Row;

/// All five groups, in the admin's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Held {
    /// Applications that sign requests.
    pub(crate) app_auth: Arc<[AppAuthData]>,
    pub(crate) plugins: Arc<[PluginData]>,
    pub(crate) rules: Arc<[Row<RuleData>]>,
    pub(crate) selectors: Arc<[Row<SelectorData>]>,
    pub(crate) meta_data: Arc<[Row<MetaData>]>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeldGroup {
    AppAuth(Arc<[AppAuthData]>),
    Plugin(Arc<[PluginData]>),
    Rule(Arc<[Row<RuleData>]>),
    Selector(Arc<[Row<SelectorData>]>),
    MetaData(Arc<[Row<MetaData>]>),
}

impl HeldGroup {
    pub(crate) fn group(&self) -> ConfigGroup {
        match self {
            Self::AppAuth(_) => ConfigGroup::AppAuth,
            Self::Plugin(_) => ConfigGroup::Plugin,
            Self::Rule(_) => ConfigGroup::Rule,
            Self::Selector(_) => ConfigGroup::Selector,
            Self::MetaData(_) => ConfigGroup::MetaData,
        }
    }
}

impl Held {
    /// Replaces one group.
    pub(crate) fn replace(&mut self, group: HeldGroup) {
        match group {
            HeldGroup::AppAuth(list) => self.app_auth = list,
            HeldGroup::Plugin(list) => self.plugins = list,
            HeldGroup::Rule(list) => self.rules = list,
            HeldGroup::Selector(list) => self.selectors = list,
            HeldGroup::MetaData(list) => self.meta_data = list,
        }
    }
}
