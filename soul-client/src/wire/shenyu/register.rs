//! Bodies of the registration endpoints (ShenYu specification, sections 1.4 to 1.6).

use serde::{Deserialize, Serialize};

/// Body for `register-metadata`, and for `springmvc-register` of 2.4.0: one route.
///
/// The members stand in the order of the specification's example (section 9).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetaDataRegisterDto {
    /// Name of the application. Dropped silently without it.
    pub app_name: Option<String>,
    /// Context path: a slash in front, none at the end.
    pub context_path: Option<String>,
    /// Full path, context path included. Dropped silently without it.
    pub path: Option<String>,
    /// Description.
    pub path_desc: Option<String>,
    /// `http`. Dropped silently without it.
    pub rpc_type: Option<String>,
    /// Class of the handler; in Rust its module.
    pub service_name: Option<String>,
    /// Method of the handler; in Rust its function.
    pub method_name: Option<String>,
    /// Name of the rule. Dropped silently without it.
    pub rule_name: Option<String>,
    /// Types of the parameters, joined by commas.
    pub parameter_types: Option<String>,
    /// JSON text for RPC plugins.
    pub rpc_ext: Option<String>,
    /// Whether the metadata is enabled; the rule is created enabled in any case.
    pub enabled: bool,
    /// Whether metadata is stored beside the rule.
    pub register_meta_data: bool,
    /// Ignored for `http`.
    pub plugin_names: Option<Vec<String>>,
    /// Address of this instance; read by 2.4.0 only.
    pub host: Option<String>,
    /// Port of this instance; read by 2.4.0 only.
    pub port: Option<i32>,
    /// When the client made it, milliseconds since 1970 (2.4.3).
    pub time_millis: Option<i64>,
    /// Whether the gateway keeps the context path in front (2.5.1).
    pub add_prefixed: bool,
    /// The namespace (2.7.0, where it is needed).
    pub namespace_id: Option<String>,
}

/// Body for `register-uri` and `offline`: one instance.
///
/// What takes an instance out must repeat what put it in, down to the protocol, else half of it stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UriRegisterDto {
    /// `http://` or `https://`, with the `://`.
    pub protocol: Option<String>,
    /// Name of the application.
    pub app_name: Option<String>,
    /// The context path of the metadata, to the letter. Dropped silently without it.
    pub context_path: Option<String>,
    /// `http`. Dropped silently without it.
    pub rpc_type: Option<String>,
    /// Address that the admin and the gateways reach.
    pub host: Option<String>,
    /// Port that they reach.
    pub port: Option<i32>,
    /// What happened to the instance; absent stands for [`EventType::Register`]. Decides, whatever the path is.
    pub event_type: Option<EventType>,
    /// The namespace (2.7.0).
    pub namespace_id: Option<String>,
    /// About the machine, as JSON text, to be shown only (2.7.0.3).
    pub instance_info: Option<String>,
}

/// What happened to an instance. A word that an admin does not know is an error to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum EventType {
    /// It listens.
    Register,
    /// Treated as [`Register`](Self::Register) or ignored, depending on the release.
    Updated,
    /// It is gone: 2.4.3 to 2.5.1. Registers it in 2.4.1 and 2.4.2.
    Deleted,
    /// Treated as [`Register`](Self::Register) or ignored, depending on the release.
    Ignored,
    /// It is gone: 2.6.0 and later.
    Offline,
    /// It is still there: 2.7.0 and later.
    Heartbeat,
}

/// The text of [`UriRegisterDto::instance_info`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceInfo {
    /// Architecture of the processor.
    pub arch: Option<String>,
    /// Operating system.
    pub operating_system: Option<String>,
    /// Processors that the process may use.
    pub available_processors: Option<u32>,
    /// `31.2GB`.
    #[serde(rename = "totalMemorySizeGB")]
    pub total_memory_size_gb: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::gson;

    #[test]
    fn words_of_events() {
        for (event, word) in [
            (EventType::Register, "REGISTER"),
            (EventType::Updated, "UPDATED"),
            (EventType::Deleted, "DELETED"),
            (EventType::Ignored, "IGNORED"),
            (EventType::Offline, "OFFLINE"),
            (EventType::Heartbeat, "HEARTBEAT"),
        ] {
            let dto = UriRegisterDto { event_type: Some(event), ..UriRegisterDto::default() };
            assert_eq!(gson::to_plain(&dto).unwrap(), format!(r#"{{"eventType":"{word}"}}"#));
        }
    }

    #[test]
    fn bodies_of_a_java_client_are_read() {
        // ShenYu specification, section 1.4.
        let text = r#"{"appName":"http","contextPath":"/http","path":"/http/order/save","pathDesc":"Save order",
            "rpcType":"http","serviceName":"a.b.OrderController","methodName":"save","ruleName":"/http/order/save",
            "parameterTypes":"a.b.OrderDTO","enabled":true,"pluginNames":[],"registerMetaData":true,
            "timeMillis":1752000000000,"addPrefixed":false,"namespaceId":"649330b6-c2d7-4edc-be8e-8a54df9eb385",
            "unknown":{"a":1}}"#;
        let dto: MetaDataRegisterDto = serde_json::from_str(text).unwrap();
        assert_eq!(dto.path.as_deref(), Some("/http/order/save"));
        assert_eq!(dto.namespace_id.as_deref(), Some(super::super::DEFAULT_NAMESPACE));
        assert!(dto.enabled && dto.register_meta_data && !dto.add_prefixed);
        assert_eq!((dto.time_millis, dto.host), (Some(1_752_000_000_000), None));
    }

    #[test]
    fn machine_is_told_as_text() {
        let info = InstanceInfo {
            arch: Some("x86_64".to_owned()),
            available_processors: Some(4),
            total_memory_size_gb: Some("31.2GB".to_owned()),
            ..InstanceInfo::default()
        };
        assert_eq!(
            gson::to_plain(&info).unwrap(),
            r#"{"arch":"x86_64","availableProcessors":4,"totalMemorySizeGB":"31.2GB"}"#
        );
    }
}
