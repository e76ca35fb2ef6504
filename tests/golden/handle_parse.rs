//! What Soul's `GsonUtils` reads from a text.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use soul_client::wire::{
    gson,
    soul::{
        AppAuthData, ContextMappingHandle, DivideRuleHandle, DivideUpstream, MetaData, PluginData,
        RewriteHandle, RuleData, SelectorData, SpringCloudHandle,
    },
};
use soul_tests::vectors::{assert_none, load};

#[derive(Deserialize)]
struct Case {
    version: String,
    #[serde(rename = "type")]
    kind: String,
    json: String,
    expect: Value,
}

#[test]
fn handle_parse() {
    let cases: Vec<Case> = load("handle_parse");
    let failures: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert_none("handle_parse", cases.len(), &failures);
}

fn check(case: &Case) -> Result<(), String> {
    let read = match case.kind.as_str() {
        // A null element stays one, as in Java.
        "DivideUpstream[]" => read::<Vec<Option<DivideUpstream>>>(case),
        "DivideRuleHandle" => read::<DivideRuleHandle>(case),
        "ContextMappingHandle" => read::<ContextMappingHandle>(case),
        "RewriteHandle" => read::<RewriteHandle>(case),
        "SpringCloudSelectorHandle" => read::<SpringCloudHandle>(case),
        "SelectorData" => read::<SelectorData>(case),
        "RuleData" => read::<RuleData>(case),
        "PluginData" => read::<PluginData>(case),
        "MetaData" => read::<MetaData>(case),
        "AppAuthData" => read::<AppAuthData>(case),
        other => return Err(format!("no type `{other}`")),
    };
    match read {
        Ok(value) if value == case.expect => Ok(()),
        Err(_) if case.expect == "throws" => Ok(()),
        read => Err(format!("{} {}\n  expected {}\n  got {read:?}", case.kind, case.json, case.expect)),
    }
}

/// The value with every field shown, but for those that the other version alone has.
fn read<T: DeserializeOwned + Serialize>(case: &Case) -> Result<Value, String> {
    let value: Option<T> = gson::from_str(&case.json).map_err(|e| e.to_string())?;
    let mut value = serde_json::to_value(value).map_err(|e| e.to_string())?;
    let foreign: &[&str] = match (case.kind.as_str(), case.version.as_str()) {
        ("SelectorData", "feb21") => &["logged"],
        ("SelectorData", "2.3.0") => &["loged"],
        ("AppAuthData", "feb21") => &["open"],
        _ => &[],
    };
    if let Value::Object(fields) = &mut value {
        fields.retain(|name, _| !foreign.contains(&name.as_str()));
    }
    Ok(value)
}
