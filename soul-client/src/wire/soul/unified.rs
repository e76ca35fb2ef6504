//! Bodies beyond those of one Java client: one that either admin reads, and the URI of a registry.

use serde::{Deserialize, Serialize};

/// Body that a Feb-2021 admin and a 2.3.0 admin both read in full.
///
/// It carries the context path under either version's name, and everything that either version wants;
/// each admin passes over the fields it does not know.
///
/// # Source
/// Soul specification, section 1.13 ("recommended SDK body").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnifiedRegisterDto {
    /// Name of the application.
    pub app_name: Option<String>,
    /// Context path: the name of the field in Feb-2021.
    pub context: Option<String>,
    /// Context path: the name of the field in 2.3.0.
    pub context_path: Option<String>,
    /// Full path: context path, class path, method path.
    pub path: Option<String>,
    /// Description.
    pub path_desc: Option<String>,
    /// `http` or `springCloud`.
    pub rpc_type: Option<String>,
    /// Address of this instance.
    pub host: Option<String>,
    /// Port of this instance.
    pub port: Option<i32>,
    /// Name of the rule.
    pub rule_name: Option<String>,
    /// Whether the metadata is enabled.
    pub enabled: bool,
    /// Whether metadata is registered too.
    pub register_meta_data: bool,
}

/// An instance as 2.3.0 clients write it into a registry such as ZooKeeper (specification, 1.12.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UriRegisterDto {
    /// Name of the application.
    pub app_name: Option<String>,
    /// Context path.
    pub context_path: Option<String>,
    /// `http`, `tars` or `grpc`.
    pub rpc_type: Option<String>,
    /// Address of this instance.
    pub host: Option<String>,
    /// Port of this instance.
    pub port: Option<i32>,
    /// Never set by clients.
    pub event_type: Option<String>,
}
