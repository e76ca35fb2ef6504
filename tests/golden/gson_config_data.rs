//! The exact Gson texts of the five groups, their md5, and the websocket messages.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use soul_client::wire::{
    gson,
    soul::{
        AppAuthData, ConfigGroup, DataEventType, MetaData, PluginData, RuleData, SelectorData, WebsocketData,
        md5_hex,
    },
};
use soul_tests::vectors::{assert_none, load};

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Cache,
    Websocket,
}

#[derive(Deserialize)]
struct Case {
    kind: Kind,
    group: ConfigGroup,
    event_type: Option<DataEventType>,
    data: Value,
    json: String,
    md5: Option<String>,
}

#[test]
fn gson_config_data() {
    let cases: Vec<Case> = load("gson_config_data");
    let failures: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert_none("gson_config_data", cases.len(), &failures);
}

fn check(case: &Case) -> Result<(), String> {
    let text = match case.group {
        ConfigGroup::AppAuth => write::<AppAuthData>(case),
        ConfigGroup::Plugin => write::<PluginData>(case),
        ConfigGroup::Rule => write::<RuleData>(case),
        ConfigGroup::Selector => write::<SelectorData>(case),
        ConfigGroup::MetaData => write::<MetaData>(case),
    }?;
    if text != case.json {
        return Err(format!("expected {}\n     got {text}", case.json));
    }
    match &case.md5 {
        Some(md5) if *md5 != md5_hex(&text) => Err(format!("md5 of {text}: expected {md5}")),
        _ => Ok(()),
    }
}

fn write<T: Serialize + DeserializeOwned>(case: &Case) -> Result<String, String> {
    let data: Vec<Option<T>> = serde_json::from_value(case.data.clone()).map_err(|e| e.to_string())?;
    let text = match (&case.kind, case.event_type) {
        (Kind::Cache, _) => gson::to_soul(&data),
        (Kind::Websocket, Some(event_type)) => {
            gson::to_soul(&WebsocketData { group_type: case.group, event_type, data })
        }
        (Kind::Websocket, None) => return Err(format!("no event type: {}", case.json)),
    };
    text.map_err(|e| e.to_string())
}
