//! The five groups of configuration that an admin gives to its gateways (specification, section 3).
//!
//! Field order is Java's declaration order: the md5 of a group is taken over the text in that order.
//! Every field may be absent, as in Java; readers decide what an absent one means.

use serde::{Deserialize, Serialize};

/// A plugin and whether it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginData {
    /// Opaque id; the built-in ones are `"1"` to `"16"`.
    pub id: Option<String>,
    /// Key of the plugin, for example `divide`.
    pub name: Option<String>,
    /// The plugin's own configuration, JSON text.
    pub config: Option<String>,
    /// 0 system, 1 custom.
    pub role: Option<i32>,
    /// Whether the plugin runs.
    pub enabled: Option<bool>,
}

/// First match level: one service and its upstreams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectorData {
    /// Opaque id.
    pub id: Option<String>,
    /// Id of the plugin it belongs to.
    pub plugin_id: Option<String>,
    /// Name of the plugin it belongs to.
    pub plugin_name: Option<String>,
    /// Name; registration uses the context path.
    pub name: Option<String>,
    /// 0 all conditions, 1 any condition; other codes count as 0.
    pub match_mode: Option<i32>,
    /// 0 full flow (every request), 1 custom flow (by conditions).
    #[serde(rename = "type")]
    pub kind: Option<i32>,
    /// Lower is tried first.
    pub sort: Option<i32>,
    /// Whether it takes part in matching.
    pub enabled: Option<bool>,
    /// Whether a match is logged: the name of the field in Feb-2021.
    pub loged: Option<bool>,
    /// Whether a match is logged: the name of the field in 2.3.0.
    pub logged: Option<bool>,
    /// Without effect in every Soul gateway.
    pub continued: Option<bool>,
    /// Text for the plugin; for `divide` a JSON array of [`DivideUpstream`](super::DivideUpstream).
    pub handle: Option<String>,
    /// Conditions; absent in delete events.
    pub condition_list: Option<Vec<Option<ConditionData>>>,
}

impl SelectorData {
    /// Whether a match is to be logged, under either version's name.
    #[must_use]
    pub fn is_logged(&self) -> bool {
        self.loged.or(self.logged).unwrap_or(false)
    }
}

/// Second match level, inside a selector: one path pattern and how it is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleData {
    /// Opaque id.
    pub id: Option<String>,
    /// Name; registration uses the rule name of the route.
    pub name: Option<String>,
    /// Name of the plugin it belongs to.
    pub plugin_name: Option<String>,
    /// Id of the selector it belongs to.
    pub selector_id: Option<String>,
    /// 0 all conditions, 1 any condition; other codes count as 0.
    pub match_mode: Option<i32>,
    /// Lower is tried first.
    pub sort: Option<i32>,
    /// Whether it takes part in matching.
    pub enabled: Option<bool>,
    /// Whether a match is logged; the same name in both versions.
    pub loged: Option<bool>,
    /// Text for the plugin; for `divide` a [`DivideRuleHandle`](super::DivideRuleHandle).
    pub handle: Option<String>,
    /// Conditions.
    pub condition_data_list: Option<Vec<Option<ConditionData>>>,
}

/// One test of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConditionData {
    /// What is looked at: `uri`, `query`, `header`, `host`, `ip`, `post`, `req_method`.
    pub param_type: Option<String>,
    /// How: `match`, `=`, `regEx`, `like`.
    pub operator: Option<String>,
    /// Name of the header, parameter or field; `/` where there is none.
    pub param_name: Option<String>,
    /// What it is compared with.
    pub param_value: Option<String>,
}

/// What is known of a registered path besides its rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetaData {
    /// Opaque id; absent in the events of RPC registrations.
    pub id: Option<String>,
    /// Name of the application.
    pub app_name: Option<String>,
    /// Context path; the Java admin does not store it.
    pub context_path: Option<String>,
    /// Path or pattern; the key in a gateway.
    pub path: Option<String>,
    /// `http`, `springCloud`, `dubbo`, `sofa`, `tars`, `grpc`.
    pub rpc_type: Option<String>,
    /// RPC only.
    pub service_name: Option<String>,
    /// RPC only.
    pub method_name: Option<String>,
    /// RPC only.
    pub parameter_types: Option<String>,
    /// RPC only: JSON text.
    pub rpc_ext: Option<String>,
    /// Whether the gateway heeds it.
    pub enabled: Option<bool>,
}

/// An application that may sign its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppAuthData {
    /// Public key of the application.
    pub app_key: Option<String>,
    /// Its secret.
    pub app_secret: Option<String>,
    /// Whether it is accepted.
    pub enabled: Option<bool>,
    /// Whether paths are checked; 2.3.0 only, absent in Feb-2021.
    pub open: Option<bool>,
    /// Extra parameters by application.
    pub param_data_list: Option<Vec<Option<AuthParamData>>>,
    /// Allowed paths.
    pub path_data_list: Option<Vec<Option<AuthPathData>>>,
}

/// Extra parameter of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthParamData {
    /// Name of the application.
    pub app_name: Option<String>,
    /// The parameter's text.
    pub app_param: Option<String>,
}

/// Path that an application may call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthPathData {
    /// Name of the application.
    pub app_name: Option<String>,
    /// Ant pattern.
    pub path: Option<String>,
    /// Whether it counts.
    pub enabled: Option<bool>,
}
