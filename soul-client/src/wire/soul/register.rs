//! Bodies of the registration endpoints (specification, sections 1.3 to 1.5 and 1.12.2).

use serde::{Deserialize, Serialize};

/// Body for `/soul-client/springmvc-register`, Feb-2021.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpringMvcRegisterDto {
    /// Name of the application.
    pub app_name: Option<String>,
    /// Context path.
    pub context: Option<String>,
    /// Full path: context path, class path, method path.
    pub path: Option<String>,
    /// Description.
    pub path_desc: Option<String>,
    /// `http` by default.
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

/// Body for `/soul-client/springcloud-register`, Feb-2021.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpringCloudRegisterDto {
    /// `spring.application.name`.
    pub app_name: Option<String>,
    /// Context path.
    pub context: Option<String>,
    /// Full path.
    pub path: Option<String>,
    /// Description.
    pub path_desc: Option<String>,
    /// `springCloud` by default.
    pub rpc_type: Option<String>,
    /// Name of the rule.
    pub rule_name: Option<String>,
    /// Whether the metadata is enabled.
    pub enabled: bool,
}

/// Body for the dubbo, sofa, tars and grpc endpoints, Feb-2021.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RpcRegisterDto {
    /// Name of the application.
    pub app_name: Option<String>,
    /// Context path.
    pub context_path: Option<String>,
    /// Full path.
    pub path: Option<String>,
    /// Description.
    pub path_desc: Option<String>,
    /// `dubbo`, `sofa`, `tars` or `grpc`.
    pub rpc_type: Option<String>,
    /// Name of the service.
    pub service_name: Option<String>,
    /// Name of the method.
    pub method_name: Option<String>,
    /// Name of the rule.
    pub rule_name: Option<String>,
    /// Java class names of the parameters.
    pub parameter_types: Option<String>,
    /// JSON text.
    pub rpc_ext: Option<String>,
    /// Whether the metadata is enabled.
    pub enabled: bool,
}

/// Body for every registration endpoint of 2.3.0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetaDataRegisterDto {
    /// Name of the application.
    pub app_name: Option<String>,
    /// Context path.
    pub context_path: Option<String>,
    /// Full path.
    pub path: Option<String>,
    /// Description.
    pub path_desc: Option<String>,
    /// Decides which plugin the registration goes to.
    pub rpc_type: Option<String>,
    /// RPC only.
    pub service_name: Option<String>,
    /// RPC only.
    pub method_name: Option<String>,
    /// Name of the rule.
    pub rule_name: Option<String>,
    /// RPC only.
    pub parameter_types: Option<String>,
    /// RPC only.
    pub rpc_ext: Option<String>,
    /// Whether the metadata is enabled.
    pub enabled: bool,
    /// Address of this instance.
    pub host: Option<String>,
    /// Port of this instance.
    pub port: Option<i32>,
    /// Never set by clients.
    pub plugin_names: Option<Vec<String>>,
    /// Whether metadata is registered too.
    pub register_meta_data: bool,
}
