//! The JSON texts inside `handle` fields (specification, sections 2.4, 2.5, 3.7).

use serde::{Deserialize, Serialize};

/// One upstream in the handle of a `divide` selector.
///
/// An absent `status` reads as `false` and an absent number as 0, because Java builds this class without
/// its constructor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DivideUpstream {
    /// Informative; registration writes `localhost`.
    pub upstream_host: Option<String>,
    /// Scheme with `://`; blank means `http://`.
    pub protocol: Option<String>,
    /// `host:port`.
    pub upstream_url: Option<String>,
    /// Relative share.
    pub weight: i32,
    /// Whether it may be chosen.
    pub status: bool,
    /// Start of the warm-up, milliseconds since the epoch; 0 is none.
    pub timestamp: i64,
    /// Length of the warm-up in milliseconds; 0 or less means 600 000.
    pub warmup: i32,
}

/// Handle of a `divide` rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DivideRuleHandle {
    /// `hash`, `random` or `roundRobin`.
    pub load_balance: Option<String>,
    /// Extra attempts.
    pub retry: i32,
    /// Milliseconds for one attempt.
    pub timeout: i64,
}

impl Default for DivideRuleHandle {
    fn default() -> Self {
        // Java keeps its field defaults for this class: 3000 ms when the text does not say.
        Self { load_balance: None, retry: 0, timeout: 3000 }
    }
}

/// Handle of a `context_path` rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContextMappingHandle {
    /// Prefix to take off.
    pub context_path: Option<String>,
    /// Path to use in place of the rest.
    pub real_url: Option<String>,
}

/// Handle of a `rewrite` rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RewriteHandle {
    /// Path to send instead.
    #[serde(rename = "rewriteURI")]
    pub rewrite_uri: Option<String>,
}

/// Handle of a `springCloud` selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpringCloudHandle {
    /// Name of the service in the registry.
    pub service_id: Option<String>,
}
