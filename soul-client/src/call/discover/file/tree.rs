//! JSON, YAML and TOML: a list for each service.

use serde_json::{Map, Value};

use super::Lists;
use crate::balance::Upstream;

/// Reads a tree; the error names the place.
pub(super) fn read(tree: Value) -> Result<Lists, String> {
    let Value::Object(services) = tree else {
        return Err("it is no table of services, such as `{\"orders\": [\"10.0.0.2:8188\"]}`".to_owned());
    };
    services.into_iter().map(|(service, list)| Ok((service.clone(), entries(&service, list)?))).collect()
}

fn entries(service: &str, list: Value) -> Result<Vec<Upstream>, String> {
    let Value::Array(entries) = list else {
        return Err(format!("`{service}` is no list of upstreams"));
    };
    let entry = |(index, entry)| upstream(&format!("{service}[{index}]"), entry);
    entries.into_iter().enumerate().map(entry).collect()
}

fn upstream(place: &str, entry: Value) -> Result<Upstream, String> {
    match entry {
        Value::String(address) => word(Upstream::new(""), place, "address", &Value::String(address)),
        Value::Object(table) => {
            let Some(address) = table.get("address") else {
                return Err(format!("`{place}` has no `address`"));
            };
            let begun = word(Upstream::new(""), place, "address", address)?;
            let others = table.iter().filter(|(key, _)| *key != "address");
            others.into_iter().try_fold(begun, |upstream, (key, value)| word(upstream, place, key, value))
        }
        other => Err(format!("`{place}` is `{other}`, expected an address or a table with one")),
    }
}

/// Takes one word on an upstream. Texts of lines come this way too.
pub(super) fn word(upstream: Upstream, place: &str, key: &str, value: &Value) -> Result<Upstream, String> {
    let wrong = |expected: &str| Err(format!("`{place}.{key}` is `{}`, expected {expected}", plain(value)));
    match (key, value) {
        ("address", Value::String(address)) if is_address(address) => Ok(Upstream::new(address)),
        ("address", _) => wrong("`host:port`, without scheme and path"),
        ("weight", _) => match integer(value) {
            Some(weight) => Ok(upstream.with_weight(weight)),
            None => wrong("a whole number"),
        },
        ("enabled", _) => match plain(value).as_str() {
            "true" => Ok(upstream.with_status(true)),
            "false" => Ok(upstream.with_status(false)),
            _ => wrong("`true` or `false`"),
        },
        ("zone", Value::String(zone)) => Ok(upstream.with_zone(zone.as_str())),
        ("zone", _) => wrong("a name"),
        ("protocol", Value::String(protocol)) if matches!(protocol.as_str(), "http://" | "https://") => {
            Ok(upstream.with_protocol(protocol))
        }
        ("protocol", _) => wrong("`http://` or `https://`"),
        ("metadata", Value::Object(words)) => Ok(metadata(upstream, words)),
        ("metadata", _) => wrong("a table of words"),
        _ => match key.strip_prefix("metadata.") {
            Some(name) => Ok(upstream.with_metadata(name, plain(value))),
            None => Err(format!(
                "`{place}` has `{key}`, expected `address`, `weight`, `enabled`, `zone`, `protocol` or `metadata`"
            )),
        },
    }
}

fn metadata(upstream: Upstream, words: &Map<String, Value>) -> Upstream {
    words.iter().fold(upstream, |upstream, (name, value)| upstream.with_metadata(name, plain(value)))
}

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_host =
        !host.is_empty() && !host.contains(['/', '?', '#', '@']) && !host.contains(char::is_whitespace);
    is_host && port.parse::<u16>().is_ok_and(|port| port != 0)
}

fn integer(value: &Value) -> Option<i32> {
    let number = value.as_i64().or_else(|| value.as_str()?.parse().ok())?;
    number.try_into().ok()
}

/// Text without quotes, anything else as it is written.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
