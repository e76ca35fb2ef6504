//! Reading an admin's answers, tolerantly: unknown members are passed over, numbers may be strings, and an entry
//! that cannot be read is refused without taking its group along.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use soul_client::wire::{
    gson,
    soul::{ConfigGroup, MetaData, RuleData, SelectorData},
};

use crate::{
    model::Row,
    sync::{AnswerError, HeldGroup, Learned, Refused},
};

/// What an admin wants echoed of a group: its checksum and time, exactly as it gave them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Echo {
    pub(super) md5: String,
    pub(super) last_modify_time: String,
}

/// One group of a fetched configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    pub(super) group: ConfigGroup,
    pub(super) echo: Echo,
    pub(super) learned: Learned,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    code: Value,
    #[serde(default)]
    message: Value,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawGroup<'a> {
    #[serde(default)]
    md5: Option<String>,
    #[serde(default)]
    last_modify_time: Value,
    #[serde(borrow, default)]
    data: Option<Vec<&'a RawValue>>,
}

/// The groups of an answer to `/configs/fetch`, in the order asked for.
pub(super) fn fetched(body: &[u8], wanted: &[ConfigGroup]) -> Result<Vec<Fetched>, AnswerError> {
    let data = payload(body)?.map_or("null", RawValue::get);
    let mut groups: HashMap<&str, RawGroup<'_>> =
        serde_json::from_str::<Option<_>>(data).map_err(|e| not_an_admin(body, e))?.unwrap_or_default();
    wanted
        .iter()
        .map(|&group| {
            let raw = groups.remove(group.as_str()).ok_or(AnswerError::Incomplete(group))?;
            let (Some(md5), Some(entries)) = (raw.md5.filter(|m| !m.is_empty()), raw.data) else {
                return Err(AnswerError::Incomplete(group));
            };
            let echo = Echo { md5, last_modify_time: number_text(&raw.last_modify_time) };
            Ok(Fetched { group, echo, learned: learned(group, &entries) })
        })
        .collect()
}

/// The groups that an answer to `/configs/listener` names as changed; names we do not know are passed over.
pub(super) fn changed(body: &[u8]) -> Result<Vec<ConfigGroup>, AnswerError> {
    let data = payload(body)?.map_or("null", RawValue::get);
    let names: Option<Vec<String>> = serde_json::from_str(data).map_err(|e| not_an_admin(body, e))?;
    let names = names.unwrap_or_default();
    // Each once, however often it is named.
    Ok(ConfigGroup::ALL.into_iter().filter(|group| names.iter().any(|name| name == group.as_str())).collect())
}

/// The beginning of a body, fit for one line of a log.
pub(super) fn beginning(body: &[u8]) -> String {
    const SHOWN: usize = 80;
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn payload(body: &[u8]) -> Result<Option<&RawValue>, AnswerError> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(|e| not_an_admin(body, e))?;
    let code = number_text(&envelope.code);
    if code == "200" {
        return Ok(envelope.data);
    }
    let message = envelope.message.as_str().unwrap_or_default().to_owned();
    Err(AnswerError::Refused { code, message })
}

fn not_an_admin(body: &[u8], source: serde_json::Error) -> AnswerError {
    AnswerError::NotAnAdmin { body: beginning(body), source }
}

/// A number, or a string that stands for one.
fn number_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => "0".to_owned(),
        other => other.to_string(),
    }
}

fn learned(group: ConfigGroup, entries: &[&RawValue]) -> Learned {
    let mut refused = Vec::new();
    let data = match group {
        ConfigGroup::AppAuth => HeldGroup::AppAuth(read(group, entries, &mut refused, |entry| entry)),
        ConfigGroup::Plugin => HeldGroup::Plugin(read(group, entries, &mut refused, |entry| entry)),
        ConfigGroup::Rule => HeldGroup::Rule(packed::<RuleData>(group, entries, &mut refused)),
        ConfigGroup::Selector => HeldGroup::Selector(packed::<SelectorData>(group, entries, &mut refused)),
        ConfigGroup::MetaData => HeldGroup::MetaData(packed::<MetaData>(group, entries, &mut refused)),
    };
    Learned { data, refused }
}

/// One entry after the other, so that there is never more than one whole.
fn packed<T: DeserializeOwned>(
    group: ConfigGroup,
    entries: &[&RawValue],
    refused: &mut Vec<Refused>,
) -> Arc<[Row<T>]>
where
    Row<T>: for<'d> From<&'d T>,
{
    read(group, entries, refused, |entry: T| Row::from(&entry))
}

/// The entries that can be read. A `null` is what a Java admin sends for a selector without a plugin: nothing.
fn read<T: DeserializeOwned, R>(
    group: ConfigGroup,
    entries: &[&RawValue],
    refused: &mut Vec<Refused>,
    taken: impl Fn(T) -> R,
) -> Arc<[R]> {
    let mut read = Vec::with_capacity(entries.len());
    for (place, entry) in entries.iter().enumerate() {
        match gson::from_plain::<T>(entry.get()) {
            Ok(Some(value)) => read.push(taken(value)),
            Ok(None) => {}
            Err(error) => {
                refused.push(Refused { group, entry: label(entry, place), reason: error.to_string() })
            }
        }
    }
    read.into()
}

fn label(entry: &RawValue, place: usize) -> String {
    let value: Value = serde_json::from_str(entry.get()).unwrap_or_default();
    let named = ["name", "path", "appKey", "id"].iter().find_map(|key| value.get(key)?.as_str());
    named.map_or_else(|| format!("#{place}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FETCHED: &str = r#"{"code":200,"message":"success","new":1,"data":{
        "PLUGIN":{"md5":"aa","lastModifyTime":1612368121901,"data":[{"id":"5","name":"divide","config":null,"role":0,"enabled":true}]},
        "SELECTOR":{"md5":"bb","lastModifyTime":"7","extra":[],"data":[
            null,
            {"id":"1","name":"/http","sort":"1","enabled":"true","logged":true,"newField":{"a":1}},
            {"id":"2","name":"/bad","sort":"one"}]}}}"#;

    #[test]
    fn groups_are_read_leniently_and_a_bad_entry_is_refused_alone() {
        let groups = fetched(FETCHED.as_bytes(), &[ConfigGroup::Selector, ConfigGroup::Plugin]).unwrap();
        let [selectors, plugins] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!(plugins.echo, Echo { md5: "aa".into(), last_modify_time: "1612368121901".into() });
        assert_eq!(selectors.echo, Echo { md5: "bb".into(), last_modify_time: "7".into() });
        let HeldGroup::Selector(list) = &selectors.learned.data else { panic!("{selectors:?}") };
        assert_eq!(list.len(), 1);
        let selector = SelectorData::from(&list[0]);
        assert_eq!((selector.sort, selector.enabled, selector.is_logged()), (Some(1), Some(true), true));
        assert_eq!(selectors.learned.refused[0].entry, "/bad");
        assert!(selectors.learned.refused[0].reason.contains("sort"), "{:?}", selectors.learned.refused);
    }

    #[test]
    fn what_is_not_an_admins_answer_is_an_error_with_its_beginning() {
        let login = fetched(b"<html><body>\nplease log in", &[ConfigGroup::Rule]).unwrap_err();
        assert!(login.to_string().contains("<html><body> please log in"), "{login}");
        assert!(matches!(fetched(b"", &[ConfigGroup::Rule]), Err(AnswerError::NotAnAdmin { .. })));
        assert!(matches!(fetched(b"[]", &[ConfigGroup::Rule]), Err(AnswerError::NotAnAdmin { .. })));
        let busy = br#"{"code":500,"message":"The system is busy, please try again later","data":null}"#;
        let refused = fetched(busy, &[ConfigGroup::Rule]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "it has code 500 and says `The system is busy, please try again later`"
        );
    }

    #[test]
    fn a_group_without_list_or_checksum_is_never_taken_for_an_empty_one() {
        for body in [
            r#"{"code":200,"data":{}}"#,
            r#"{"code":200,"data":null}"#,
            r#"{"code":200,"data":{"RULE":{"md5":"aa","lastModifyTime":1,"data":null}}}"#,
            r#"{"code":200,"data":{"RULE":{"md5":"","lastModifyTime":1,"data":[]}}}"#,
            r#"{"code":200,"data":{"RULE":{"lastModifyTime":1,"data":[]}}}"#,
        ] {
            let error = fetched(body.as_bytes(), &[ConfigGroup::Rule]).unwrap_err();
            assert!(matches!(error, AnswerError::Incomplete(ConfigGroup::Rule)), "{body}: {error}");
        }
    }

    #[test]
    fn changed_groups_are_named_and_unknown_names_passed_over() {
        let some =
            br#"{"code":200,"message":"success","data":["SELECTOR","PROXY_SELECTOR","PLUGIN","SELECTOR"]}
"#;
        assert_eq!(changed(some).unwrap(), [ConfigGroup::Plugin, ConfigGroup::Selector]);
        assert_eq!(changed(br#"{"code":200,"message":"success","data":[]}"#).unwrap(), []);
        let invalid = br#"{"code":500,"message":"group param invalid:,0","data":null}"#;
        assert!(matches!(changed(invalid), Err(AnswerError::Refused { .. })));
    }
}
