//! What a registration does in the admin: rows, events with their exact texts, upstreams to check.

use serde::Deserialize;
use soul_client::wire::{
    gson,
    soul::{
        ConditionData, ConfigGroup, DataEventType, DivideUpstream, MetaDataRegisterDto, SelectorData,
        WebsocketData,
    },
};
use soul_gateway_mini::{
    admin::register::{
        Dialect, Effect, HandleFault, MetaDataRow, Plan, Refusal, Service, Stored, StoredSelector,
        parse_upstreams, plan, rule_handle, spring_cloud_handle,
    },
    model::{DataEvent, GroupData},
};
use soul_tests::vectors::{assert_none, load};
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Case {
    version: Version,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Clone, Copy, Deserialize)]
enum Version {
    #[serde(rename = "feb21")]
    Feb21,
    #[serde(rename = "2.3.0")]
    V230,
    #[serde(rename = "both")]
    Both,
}

impl Version {
    fn dialects(self) -> &'static [Dialect] {
        match self {
            Self::Feb21 => &[Dialect::Feb2021],
            Self::V230 => &[Dialect::V230],
            Self::Both => &[Dialect::Feb2021, Dialect::V230],
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "kind")]
enum Kind {
    #[serde(rename = "springmvc")]
    SpringMvc(Box<Registration>),
    #[serde(rename = "springcloud")]
    SpringCloud(Box<Registration>),
    #[serde(rename = "default_rule_handle")]
    RuleHandle { key: Option<String>, path: Option<String>, handle: String },
    #[serde(rename = "default_upstream")]
    Upstream { uri: Option<String>, handle: String },
    #[serde(rename = "default_spring_cloud_selector")]
    SpringCloudSelector { service_id: Option<String>, handle: String },
}

#[derive(Deserialize)]
struct Registration {
    dto: MetaDataRegisterDto,
    existing: Existing,
    result: String,
    exception: Option<String>,
    metadata_rows: Vec<Row>,
    handle_updates: Vec<HandleUpdate>,
    events: Vec<Event>,
    upstreams_submitted: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Existing {
    selectors: Vec<ExistingSelector>,
    rule_names: Vec<String>,
    metadata_paths: Vec<String>,
}

#[derive(Deserialize)]
struct ExistingSelector {
    name: String,
    plugin: String,
    handle: Option<String>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Row {
    app_name: Option<String>,
    path: Option<String>,
    path_desc: Option<String>,
    rpc_type: Option<String>,
    service_name: Option<String>,
    method_name: Option<String>,
    enabled: Option<bool>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct HandleUpdate {
    selector: Option<String>,
    handle: Option<String>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Event {
    group: ConfigGroup,
    event_type: DataEventType,
    json: String,
}

#[test]
fn admin_register() {
    let cases: Vec<Case> = load("admin_register");
    let failures: Vec<String> = cases
        .iter()
        .enumerate()
        .flat_map(|(at, case)| case.version.dialects().iter().map(move |dialect| (at, case, *dialect)))
        .filter_map(|(at, case, dialect)| {
            check(&case.kind, dialect).err().map(|why| format!("case {at} {dialect:?}: {why}"))
        })
        .collect();
    assert_none("admin_register", cases.len(), &failures);
}

fn check(kind: &Kind, dialect: Dialect) -> Result<(), String> {
    match kind {
        Kind::SpringMvc(case) => registration(case, dialect, Service::SpringMvc),
        Kind::SpringCloud(case) => registration(case, dialect, Service::SpringCloud),
        Kind::RuleHandle { key, path, handle } => {
            let ours = rule_handle(dialect, key.as_deref(), path.as_deref());
            same("handle", &ours.unwrap_or_else(|_| "throws".to_owned()), handle)
        }
        Kind::Upstream { uri, handle } => {
            let entry = DivideUpstream { upstream_url: uri.clone(), ..DivideUpstream::registered("") };
            same("handle", &DivideUpstream::write_handle(&[entry]), handle)
        }
        Kind::SpringCloudSelector { service_id, handle } => {
            same("handle", &spring_cloud_handle(service_id.as_deref()), handle)
        }
    }
}

fn registration(case: &Registration, dialect: Dialect, service: Service) -> Result<(), String> {
    let stored = Rows { dialect, existing: &case.existing };
    let mut last_id = 1000;
    let Plan { effects, end, .. } = plan(dialect, service, &case.dto, &stored, &mut || {
        last_id += 1;
        last_id.to_string()
    });
    match &end {
        Ok(reply) => same("result", reply.as_str(), &case.result)?,
        Err(refusal) => {
            same("result", "throws", &case.result)?;
            same("exception", exception(refusal), case.exception.as_deref().unwrap_or_default())?;
        }
    }
    same("metadata_rows", &effects.iter().filter_map(row).collect(), &case.metadata_rows)?;
    same("handle_updates", &effects.iter().filter_map(handle_update).collect(), &case.handle_updates)?;
    same("events", &effects.iter().map(event).collect(), &case.events)?;
    let mut submitted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (selector, url) in effects.iter().filter_map(Effect::submitted) {
        submitted.entry(selector.unwrap_or_default().to_owned()).or_default().push(url.to_owned());
    }
    same("upstreams_submitted", &submitted, &case.upstreams_submitted)
}

/// Java's exception for each way to fail.
fn exception(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Missing(_) | Refusal::Handle { fault: HandleFault::NoAddress, .. } => "NullPointerException",
        Refusal::Handle { fault: HandleFault::NotAList, .. } => "JsonSyntaxException",
        Refusal::RpcType(_) => "SoulException",
        Refusal::Plugin { .. } => "none, of an instance that registers apart from its routes",
    }
}

fn row(effect: &Effect) -> Option<Row> {
    let Effect::MetaData(effect) = effect else { return None };
    let row = &effect.row;
    let data = row.data.clone();
    Some(Row {
        app_name: data.app_name,
        path: data.path,
        path_desc: row.path_desc.clone(),
        rpc_type: data.rpc_type,
        service_name: data.service_name,
        method_name: data.method_name,
        enabled: data.enabled,
    })
}

fn handle_update(effect: &Effect) -> Option<HandleUpdate> {
    let Effect::Upstream { data, .. } = effect else { return None };
    Some(HandleUpdate { selector: data.name.clone(), handle: data.handle.clone() })
}

fn event(effect: &Effect) -> Event {
    let DataEvent { kind: event_type, data } = effect.event();
    let group_type = data.group();
    let json = match data {
        GroupData::Selector(data) => gson::to_soul(&WebsocketData { group_type, event_type, data }),
        GroupData::Rule(data) => gson::to_soul(&WebsocketData { group_type, event_type, data }),
        GroupData::MetaData(data) => gson::to_soul(&WebsocketData { group_type, event_type, data }),
        other => panic!("a registration does not change {other:?}"),
    };
    Event { group: group_type, event_type, json: json.expect("OK because the data is texts and numbers") }
}

fn same<T: PartialEq + std::fmt::Debug + ?Sized>(what: &str, ours: &T, expected: &T) -> Result<(), String> {
    if ours == expected { Ok(()) } else { Err(format!("{what}\n expected {expected:?}\n      got {ours:?}")) }
}

/// The rows of a case.
struct Rows<'a> {
    dialect: Dialect,
    existing: &'a Existing,
}

impl Stored for Rows<'_> {
    fn selector(&self, name: &str) -> Option<StoredSelector> {
        let at = self.existing.selectors.iter().position(|selector| selector.name == name)?;
        let ExistingSelector { name, plugin, handle } = &self.existing.selectors[at];
        let plugin_id = match plugin.as_str() {
            "divide" => "5",
            "dubbo" => "6",
            "springCloud" => "8",
            "sofa" => "11",
            "tars" => "13",
            "context_path" => "14",
            "grpc" => "15",
            other => panic!("unknown plugin `{other}`"),
        };
        let condition = ConditionData {
            param_type: Some("uri".to_owned()),
            operator: Some("match".to_owned()),
            param_name: Some("/".to_owned()),
            param_value: Some(format!("{name}/**")),
        };
        let data = SelectorData {
            id: Some((901 + at).to_string()),
            plugin_id: Some(plugin_id.to_owned()),
            plugin_name: Some(plugin.clone()),
            name: Some(name.clone()),
            match_mode: Some(0),
            kind: Some(1),
            sort: Some(1),
            enabled: Some(true),
            loged: (self.dialect == Dialect::Feb2021).then_some(true),
            logged: (self.dialect == Dialect::V230).then_some(true),
            continued: Some(true),
            handle: handle.clone(),
            condition_list: Some(vec![Some(condition)]),
        };
        Some(StoredSelector { data, upstreams: parse_upstreams(handle.as_deref()) })
    }

    fn has_rule(&self, name: &str) -> bool {
        self.existing.rule_names.iter().any(|known| known == name)
    }

    fn meta_data_by_path(&self, path: &str) -> Option<MetaDataRow> {
        self.existing.metadata_paths.iter().any(|known| known == path).then(MetaDataRow::default)
    }

    fn meta_data_by_method(&self, _service: Option<&str>, _method: Option<&str>) -> Option<MetaDataRow> {
        None
    }
}
