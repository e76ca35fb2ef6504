//! Configurations and gateways for the stories.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use soul_client::wire::soul::{
    AppAuthData, ConditionData, ConfigGroup, DivideUpstream, MetaData, PluginData, RuleData, SelectorData,
    md5_hex,
};
use tokio::sync::watch;

use super::super::{Gateway, GatewayConfig, GatewaySource, Sockets};
use crate::{
    model::{ConfigImage, GroupData, GroupImage, Row},
    sync::Held,
};

/// All five groups, in the admin's order.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfigData {
    pub(super) app_auth: Vec<AppAuthData>,
    pub(super) plugins: Vec<PluginData>,
    pub(super) rules: Vec<Arc<RuleData>>,
    pub(super) selectors: Vec<Arc<SelectorData>>,
    pub(super) meta_data: Vec<Arc<MetaData>>,
}

impl ConfigData {
    /// As the gateway keeps it.
    pub(super) fn held(&self) -> Held {
        Held {
            app_auth: self.app_auth.as_slice().into(),
            plugins: self.plugins.as_slice().into(),
            rules: self.rules.iter().map(|row| Row::from(&**row)).collect(),
            selectors: self.selectors.iter().map(|row| Row::from(&**row)).collect(),
            meta_data: self.meta_data.iter().map(|row| Row::from(&**row)).collect(),
        }
    }
}

/// A plugin that is switched on or not.
pub(super) fn plugin(name: &str, enabled: bool) -> PluginData {
    PluginData { name: Some(name.to_owned()), enabled: Some(enabled), ..PluginData::default() }
}

/// A condition on the path.
pub(super) fn uri(pattern: &str) -> ConditionData {
    let text = |s: &str| Some(s.to_owned());
    ConditionData {
        param_type: text("uri"),
        operator: text("match"),
        param_name: text("/"),
        param_value: text(pattern),
    }
}

/// A selector that takes the paths below `/<name>`.
pub(super) fn selector(plugin: &str, name: &str, handle: &str) -> Arc<SelectorData> {
    Arc::new(SelectorData {
        id: Some(format!("{plugin}-{name}")),
        plugin_name: Some(plugin.to_owned()),
        name: Some(name.to_owned()),
        match_mode: Some(0),
        kind: Some(1),
        sort: Some(1),
        enabled: Some(true),
        loged: Some(true),
        handle: Some(handle.to_owned()),
        condition_list: Some(vec![Some(uri(&format!("{name}/**")))]),
        ..SelectorData::default()
    })
}

/// A rule of that selector.
pub(super) fn rule(plugin: &str, selector: &str, pattern: &str, handle: &str) -> Arc<RuleData> {
    Arc::new(RuleData {
        id: Some(format!("{plugin}-{pattern}")),
        name: Some(pattern.to_owned()),
        plugin_name: Some(plugin.to_owned()),
        selector_id: Some(format!("{plugin}-{selector}")),
        match_mode: Some(0),
        sort: Some(1),
        enabled: Some(true),
        loged: Some(true),
        handle: Some(handle.to_owned()),
        condition_data_list: Some(vec![Some(uri(pattern))]),
    })
}

/// The handle of a selector with these upstreams.
pub(super) fn upstreams(addresses: &[SocketAddr]) -> String {
    let list: Vec<_> = addresses.iter().map(|a| DivideUpstream::registered(a.to_string())).collect();
    DivideUpstream::write_handle(&list)
}

/// The handle of a rule.
pub(super) fn handle(balance: &str, retry: u32, timeout_ms: u32) -> String {
    format!(r#"{{"loadBalance":"{balance}","retry":{retry},"timeout":{timeout_ms}}}"#)
}

/// One service `/http` whose rule is `/http/**`.
pub(super) fn service(addresses: &[SocketAddr], rule_handle: &str) -> ConfigData {
    ConfigData {
        plugins: vec![plugin("divide", true)],
        selectors: vec![selector("divide", "/http", &upstreams(addresses))],
        rules: vec![rule("divide", "/http", "/http/**", rule_handle)],
        ..ConfigData::default()
    }
}

/// A configuration as an admin in the same process publishes it.
pub(super) fn image(data: &ConfigData) -> Arc<ConfigImage> {
    let group = |data: GroupData| {
        let md5 = md5_hex(&format!("{data:?}"));
        Arc::new(GroupImage { data: Arc::new(data), json: Arc::default(), md5, last_modify_time: 0 })
    };
    let groups = ConfigGroup::ALL.map(|kind| {
        group(match kind {
            ConfigGroup::AppAuth => GroupData::AppAuth(data.app_auth.clone()),
            ConfigGroup::Plugin => GroupData::Plugin(data.plugins.clone()),
            ConfigGroup::Rule => GroupData::Rule(data.rules.clone()),
            ConfigGroup::Selector => GroupData::Selector(data.selectors.clone()),
            ConfigGroup::MetaData => GroupData::MetaData(data.meta_data.clone()),
        })
    });
    Arc::new(ConfigImage { revision: 1, groups })
}

/// Settings on free ports.
pub(super) fn config() -> GatewayConfig {
    let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
    GatewayConfig {
        listen: free,
        status_listen: free,
        drain_timeout: Duration::from_secs(5),
        // So that stories can count connections; those about several say so.
        threads: 1,
        ..GatewayConfig::default()
    }
}

/// A gateway whose configuration the test changes.
pub(super) struct Running {
    pub(super) gateway: Gateway,
    images: watch::Sender<Arc<ConfigImage>>,
}

impl Running {
    pub(super) async fn start(data: &ConfigData) -> Self {
        Self::with(config(), data).await
    }

    pub(super) async fn with(config: GatewayConfig, data: &ConfigData) -> Self {
        Self::on(Sockets::default(), config, data).await
    }

    /// On sockets that are open already.
    pub(super) async fn on(sockets: Sockets, config: GatewayConfig, data: &ConfigData) -> Self {
        let (images, receiver) = watch::channel(image(data));
        let source = GatewaySource::Local(receiver);
        let gateway = Gateway::start_on(sockets, config, source).await.expect("start");
        assert!(super::peers::within(gateway.ready()).await);
        Self { gateway, images }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.gateway.local_addr()
    }

    /// Publishes another configuration and waits until it serves.
    pub(super) async fn publish(&self, data: &ConfigData) {
        let mut status = self.gateway.sync_status();
        let before = status.borrow_and_update().revision;
        self.images.send_replace(image(data));
        super::peers::within(status.wait_for(|s| s.revision > before)).await.expect("the gateway runs");
    }

    /// What `/status` says.
    pub(super) async fn status(&self) -> serde_json::Value {
        let answer = super::peers::get(self.gateway.status_addr(), "/status").await;
        serde_json::from_slice(&answer.body).expect("JSON")
    }
}
