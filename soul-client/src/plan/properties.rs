//! What a configuration says, before anything is made of it.

use super::{Dialect, java};
use crate::{route::RpcType, wire::shenyu::InstanceInfo};

/// The properties of a Soul client, as text and possibly absent, exactly as a configuration gives them.
///
/// Services use `ClientConfig` (feature `http`), which is typed and stricter; this is what
/// it is turned into, and what the Java clients of either version start from.
///
/// # Source
/// Soul specification, sections 0.4, 1.7 and 1.12.1. The name of each property in Feb-2021 and in 2.3.0 stands
/// beside its field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Properties {
    /// Which admin the bodies are for.
    pub dialect: Dialect,
    /// Which Java client is followed: [`RpcType::Http`] is the Spring MVC one.
    pub rpc_type: RpcType,
    /// `-` / `soul.client.registerType`: `http` or `zookeeper`.
    pub register_type: Option<String>,
    /// `adminUrl`, one address / `serverLists`, several joined by commas.
    pub server_lists: Option<String>,
    /// `contextPath` / `props.contextPath`.
    pub context_path: Option<String>,
    /// `-` / `server.servlet.context-path`, for springCloud when there is no context path.
    pub servlet_context_path: Option<String>,
    /// `appName` / `props.appName`; for springCloud `spring.application.name`.
    pub app_name: Option<String>,
    /// `host` / `props.host`; blank stands for the local address.
    pub host: Option<String>,
    /// `port` / `props.port`.
    pub port: Option<String>,
    /// `full` / `props.isFull`: `true` in any case of letters turns full mode on.
    pub full: Option<String>,
    /// Address of this machine, sent when `host` is blank.
    pub local_ip: String,
    /// ShenYu only, `shenyu.namespace`: ids; none stands for the default one.
    pub namespaces: Vec<String>,
    /// ShenYu only, `props.protocol`: `http://` or `https://`.
    pub protocol: String,
    /// ShenYu only, `props.addPrefixed`: whether the gateway keeps the context path in front.
    pub add_prefixed: bool,
    /// ShenYu only: when the service started, milliseconds since 1970.
    pub time_millis: Option<i64>,
    /// ShenYu 2.7.0.3 and later: what heartbeats tell of this machine; `None` leaves it out.
    pub instance_info: Option<InstanceInfo>,
}

impl Properties {
    /// Properties of an `http` client that say nothing yet but `registerType: http`.
    #[must_use]
    pub fn new(dialect: Dialect, local_ip: impl Into<String>) -> Self {
        Self {
            dialect,
            rpc_type: RpcType::Http,
            register_type: Some("http".to_owned()),
            server_lists: None,
            context_path: None,
            servlet_context_path: None,
            app_name: None,
            host: None,
            port: None,
            full: None,
            local_ip: local_ip.into(),
            namespaces: Vec::new(),
            protocol: "http://".to_owned(),
            add_prefixed: false,
            time_millis: None,
            instance_info: None,
        }
    }

    /// `Boolean.parseBoolean` of the property.
    pub(super) fn is_full(&self) -> bool {
        self.full.as_deref().is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    /// The port, if it is one.
    pub(super) fn port_number(&self) -> Option<i32> {
        java::parse_int(self.port.as_deref()).filter(|port| (1..=65_535).contains(port))
    }

    /// The admins between the commas, trimmed; blank ones are none.
    pub(super) fn servers(&self) -> impl Iterator<Item = &str> {
        let list = self.server_lists.iter().flat_map(|list| list.split(','));
        list.map(str::trim).filter(|server| !server.is_empty())
    }

    pub(super) fn host_or_local(&self) -> String {
        if java::is_blank(self.host.as_deref()) {
            return self.local_ip.clone();
        }
        self.host.clone().unwrap_or_default()
    }
}
