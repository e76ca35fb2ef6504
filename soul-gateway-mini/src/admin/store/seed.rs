//! The plugins of a new store: specification, section 3.9.

use soul_client::wire::soul::PluginData;

use crate::model::{CONTEXT_PATH, DIVIDE};

/// Id, name, role, enabled, configuration.
type Seed = (&'static str, &'static str, i32, bool, Option<&'static str>);

/// Soul's built-in plugins, in the order of its database.
///
/// `context_path` is enabled as in 2.3.0, whose gateways need it; one of Feb-2021 does not load that plugin.
const PLUGINS: [Seed; 16] = [
    ("1", "sign", 1, false, None),
    ("2", "waf", 1, false, Some(r#"{"model":"black"}"#)),
    ("3", "rewrite", 1, false, None),
    ("4", "rate_limiter", 1, false, None),
    ("5", DIVIDE, 0, true, Some(r#"{"multiSelectorHandle":"1","multiRuleHandle":"0"}"#)),
    ("6", "dubbo", 1, false, None),
    ("7", "monitor", 1, false, None),
    ("8", "springCloud", 1, false, None),
    ("9", "hystrix", 0, false, None),
    ("10", "sentinel", 1, false, None),
    ("11", "sofa", 0, false, None),
    ("12", "resilience4j", 1, false, None),
    ("13", "tars", 1, false, None),
    ("14", CONTEXT_PATH, 1, true, None),
    ("15", "grpc", 1, false, None),
    ("16", "redirect", 1, false, None),
];

/// The rows of a new store.
pub(super) fn plugins() -> impl Iterator<Item = PluginData> {
    PLUGINS.into_iter().map(|(id, name, role, enabled, config)| PluginData {
        id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        config: config.map(str::to_owned),
        role: Some(role),
        enabled: Some(enabled),
    })
}
