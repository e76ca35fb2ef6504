//! Reading an admin's answers, tolerantly: unknown members are passed over, numbers may be strings, and an entry
//! that cannot be read is refused without taking its group along.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use soul_client::wire::{
    gson,
    soul::{
        ConfigGroup, MetaData, RuleData, SelectorData,
        answer::{AnsweredGroup, WholeGroup, payload},
    },
};

use crate::{
    model::{Row, matching::text_hash, places},
    slices,
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

/// The text of one entry. There may be many, so reading can be interrupted before each.
struct Entry<'a>(&'a RawValue);

impl<'de: 'a, 'a> Deserialize<'de> for Entry<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        slices::step();
        Deserialize::deserialize(deserializer).map(Self)
    }
}

/// The groups of an answer to `/configs/fetch`, in the order asked for.
///
/// - `known`: what was read last; rows of the same text are taken from there.
pub(super) fn fetched(
    body: &[u8],
    wanted: &[ConfigGroup],
    known: &mut Known,
) -> Result<Vec<Fetched>, AnswerError> {
    let mut groups: HashMap<&str, AnsweredGroup<Entry<'_>>> = payload(body)?.unwrap_or_default();
    wanted
        .iter()
        .map(|&group| {
            let whole = groups.remove(group.as_str()).and_then(AnsweredGroup::whole);
            let WholeGroup { md5, last_modify_time, entries } =
                whole.ok_or(AnswerError::Incomplete(group))?;
            let echo = Echo { md5, last_modify_time };
            Ok(Fetched { group, echo, learned: learned(group, &entries, known) })
        })
        .collect()
}

/// The groups that an answer to `/configs/listener` names as changed; names we do not know are passed over.
pub(super) fn changed(body: &[u8]) -> Result<Vec<ConfigGroup>, AnswerError> {
    let names: Vec<String> = payload(body)?.unwrap_or_default();
    // Each once, however often it is named.
    Ok(ConfigGroup::ALL.into_iter().filter(|group| names.iter().any(|name| name == group.as_str())).collect())
}

fn learned(group: ConfigGroup, entries: &[Entry<'_>], known: &mut Known) -> Learned {
    let mut reader = Reader { group, refused: Vec::new() };
    let data = match group {
        ConfigGroup::AppAuth => HeldGroup::AppAuth(reader.all(entries)),
        ConfigGroup::Plugin => HeldGroup::Plugin(reader.all(entries)),
        ConfigGroup::Rule => HeldGroup::Rule(reader.rows(entries, &mut known.rules)),
        ConfigGroup::Selector => HeldGroup::Selector(reader.rows(entries, &mut known.selectors)),
        ConfigGroup::MetaData => HeldGroup::MetaData(reader.rows(entries, &mut known.meta_data)),
    };
    Learned { data, refused: reader.refused }
}

/// The large groups as they were read last.
#[derive(Debug, Default)]
pub(super) struct Known {
    rules: KnownRows<RuleData>,
    selectors: KnownRows<SelectorData>,
    meta_data: KnownRows<MetaData>,
}

/// Rows, and a hash of the text that each was read from.
#[derive(Debug)]
struct KnownRows<T> {
    texts: Vec<u128>,
    rows: Arc<[Row<T>]>,
}

impl<T> Default for KnownRows<T> {
    fn default() -> Self {
        Self { texts: Vec::new(), rows: Arc::new([]) }
    }
}

/// Reads the entries of one group.
struct Reader {
    group: ConfigGroup,
    refused: Vec<Refused>,
}

impl Reader {
    fn all<T: DeserializeOwned>(&mut self, entries: &[Entry<'_>]) -> Arc<[T]> {
        entries.iter().enumerate().filter_map(|(place, Entry(entry))| self.read(place, entry)).collect()
    }

    /// One entry after the other, so that there is never more than one unpacked.
    fn rows<T: DeserializeOwned>(&mut self, entries: &[Entry<'_>], known: &mut KnownRows<T>) -> Arc<[Row<T>]>
    where
        Row<T>: for<'d> From<&'d T>,
    {
        let text = |Entry(entry): &Entry<'_>| {
            slices::step();
            text_hash(entry.get())
        };
        let texts: Vec<u128> = entries.iter().map(text).collect();
        let places = places(&known.texts, &texts);
        let (mut rows, mut taken) = (Vec::with_capacity(entries.len()), Vec::with_capacity(entries.len()));
        for (at, (Entry(entry), (text, place))) in entries.iter().zip(texts.iter().zip(places)).enumerate() {
            let same = place.and_then(|place| known.rows.get(place)).cloned();
            if let Some(row) = same.or_else(|| self.read(at, entry).map(|data: T| Row::from(&data))) {
                rows.push(row);
                taken.push(*text);
            }
        }
        *known = KnownRows { texts: taken, rows: rows.into() };
        Arc::clone(&known.rows)
    }

    /// An entry, if it can be read. A `null` is what a Java admin sends for a selector without a plugin: nothing.
    fn read<T: DeserializeOwned>(&mut self, place: usize, entry: &RawValue) -> Option<T> {
        gson::from_plain::<T>(entry.get()).unwrap_or_else(|error| {
            let entry = label(entry, place);
            self.refused.push(Refused { group: self.group, entry, reason: error.to_string() });
            None
        })
    }
}

fn label(entry: &RawValue, place: usize) -> String {
    let value: Value = serde_json::from_str(entry.get()).unwrap_or_default();
    let named = ["name", "path", "appKey", "id"].iter().find_map(|key| value.get(key)?.as_str());
    named.map_or_else(|| format!("#{place}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use soul_client::wire::soul::answer::BadAnswer;

    use super::*;

    const FETCHED: &str = r#"{"code":200,"message":"success","new":1,"data":{
        "PLUGIN":{"md5":"aa","lastModifyTime":1612368121901,"data":[{"id":"5","name":"divide","config":null,"role":0,"enabled":true}]},
        "SELECTOR":{"md5":"bb","lastModifyTime":"7","extra":[],"data":[
            null,
            {"id":"1","name":"/http","sort":"1","enabled":"true","logged":true,"newField":{"a":1}},
            {"id":"2","name":"/bad","sort":"one"}]}}}"#;

    #[test]
    fn groups_are_read_leniently_and_a_bad_entry_is_refused_alone() {
        let groups =
            fetched(FETCHED.as_bytes(), &[ConfigGroup::Selector, ConfigGroup::Plugin], &mut Known::default())
                .unwrap();
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
    fn rows_of_the_same_text_stay_and_the_others_are_read() {
        let mut known = Known::default();
        let mut read = |body: &str| {
            let [fetched] = &fetched(body.as_bytes(), &[ConfigGroup::Selector], &mut known).unwrap()[..]
            else {
                panic!("one group was asked for")
            };
            let HeldGroup::Selector(rows) = fetched.learned.data.clone() else { panic!("{fetched:?}") };
            (rows, fetched.learned.refused.len())
        };
        let (first, refused) = read(FETCHED);
        assert_eq!((first.len(), refused), (1, 1));
        let more = FETCHED.replace("null,\n", r#"null,{"id":"0","name":"/new"},"#);
        let (second, refused) = read(&more);
        assert_eq!((second.len(), refused), (2, 1));
        assert_eq!(second[1].address(), first[0].address());
        assert_eq!(second[0].head().id, Some("0"));
        let (third, _) = read(&more.replace("newField", "other"));
        assert_eq!(third[0].address(), second[0].address());
        assert!(third[1] == first[0] && third[1].address() != first[0].address());
    }

    #[test]
    fn what_is_not_an_admins_answer_is_an_error_with_its_beginning() {
        let login =
            fetched(b"<html><body>\nplease log in", &[ConfigGroup::Rule], &mut Known::default()).unwrap_err();
        assert!(login.to_string().contains("<html><body> please log in"), "{login}");
        assert!(matches!(
            fetched(b"", &[ConfigGroup::Rule], &mut Known::default()),
            Err(AnswerError::Bad(BadAnswer::NotAnAdmin { .. }))
        ));
        assert!(matches!(
            fetched(b"[]", &[ConfigGroup::Rule], &mut Known::default()),
            Err(AnswerError::Bad(BadAnswer::NotAnAdmin { .. }))
        ));
        let busy = br#"{"code":500,"message":"The system is busy, please try again later","data":null}"#;
        let refused = fetched(busy, &[ConfigGroup::Rule], &mut Known::default()).unwrap_err();
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
            let error = fetched(body.as_bytes(), &[ConfigGroup::Rule], &mut Known::default()).unwrap_err();
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
        assert!(matches!(changed(invalid), Err(AnswerError::Bad(BadAnswer::Refused { .. }))));
    }
}
