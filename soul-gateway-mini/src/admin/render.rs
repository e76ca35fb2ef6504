//! The texts of the large groups, each made of the texts of its rows: a change writes the rows that changed and
//! copies the others.

use std::{ops::Range, sync::Arc};

use serde::Serialize;
use soul_client::wire::{
    gson::{self, GsonError},
    soul::{ConfigGroup, MetaData, RuleData, SelectorData, md5_hex},
};

use super::{
    register::MetaDataRow,
    store::{SelectorRow, Store},
};
use crate::model::{GroupData, GroupImage, address, places};

/// Where in the texts of the newest image which row is.
#[derive(Clone, Debug, Default)]
pub(super) struct Rendering {
    rules: Arc<Parts<RuleData, RuleData>>,
    selectors: Arc<Parts<SelectorRow, SelectorData>>,
    meta_data: Arc<Parts<MetaDataRow, MetaData>>,
}

/// The rows of one group in order.
type Parts<R, D> = Vec<Part<R, D>>;

/// A row, what gateways see of it, and where in the group's text that is.
#[derive(Debug)]
struct Part<R, D> {
    row: Arc<R>,
    data: Arc<D>,
    text: Range<usize>,
}

impl Rendering {
    /// The exact Gson text of a group, and its md5. `former` is the group's text before: what this last rendered.
    ///
    /// # Errors
    /// Never for the entries of today, which are structs of texts, numbers and flags: Gson refuses no such value.
    pub(super) fn group(
        &mut self,
        store: &Store,
        group: ConfigGroup,
        former: &str,
        now_ms: i64,
    ) -> Result<GroupImage, GsonError> {
        let (data, json) = match group {
            ConfigGroup::AppAuth | ConfigGroup::Plugin => {
                let data = store.group(group);
                let json = whole(&data)?;
                (data, json)
            }
            ConfigGroup::Rule => {
                let (data, json) = render(&mut self.rules, store.rules().iter(), former, Arc::clone)?;
                (GroupData::Rule(data), json)
            }
            ConfigGroup::Selector => {
                let published = |row: &Arc<SelectorRow>| Arc::new(row.published());
                let (data, json) = render(&mut self.selectors, store.selectors().iter(), former, published)?;
                (GroupData::Selector(data), json)
            }
            ConfigGroup::MetaData => {
                let published = |row: &Arc<MetaDataRow>| Arc::new(row.published());
                let (data, json) = render(&mut self.meta_data, store.meta_data().iter(), former, published)?;
                (GroupData::MetaData(data), json)
            }
        };
        Ok(GroupImage {
            data: Arc::new(data),
            md5: md5_hex(&json),
            json: Arc::new(json),
            last_modify_time: now_ms,
        })
    }
}

/// The text of a group written at once.
fn whole(data: &GroupData) -> Result<String, GsonError> {
    match data {
        GroupData::AppAuth(list) => gson::to_soul(list),
        GroupData::Plugin(list) => gson::to_soul(list),
        GroupData::Rule(list) => gson::to_soul(list),
        GroupData::Selector(list) => gson::to_soul(list),
        GroupData::MetaData(list) => gson::to_soul(list),
    }
}

/// What gateways see of `rows`, and the text of the list. `parts` changes only if all can be written.
fn render<'r, R: 'r, D: Serialize>(
    parts: &mut Arc<Parts<R, D>>,
    rows: impl Iterator<Item = &'r Arc<R>>,
    former: &str,
    publish: impl Fn(&Arc<R>) -> Arc<D>,
) -> Result<(Vec<Arc<D>>, String), GsonError> {
    let rows: Vec<_> = rows.collect();
    let before: Vec<_> = parts.iter().map(|part| address(&part.row)).collect();
    let now: Vec<_> = rows.iter().map(|row| address(row)).collect();
    let mut next = Vec::with_capacity(rows.len());
    let mut json = String::with_capacity(former.len() + 1024);
    json.push('[');
    for (row, place) in rows.into_iter().zip(places(&before, &now)) {
        if !next.is_empty() {
            json.push(',');
        }
        let start = json.len();
        let known = place.and_then(|place| parts.get(place));
        let data = match known.and_then(|part| Some((part, former.get(part.text.clone())?))) {
            Some((part, text)) => {
                json.push_str(text);
                Arc::clone(&part.data)
            }
            None => {
                let data = publish(row);
                json.push_str(&gson::to_soul(&*data)?);
                data
            }
        };
        next.push(Part { row: Arc::clone(row), data, text: start..json.len() });
    }
    json.push(']');
    let data = next.iter().map(|part| Arc::clone(&part.data)).collect();
    *parts = Arc::new(next);
    Ok((data, json))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(id: usize, name: &str) -> Arc<RuleData> {
        let rule = RuleData { id: Some(id.to_string()), name: Some(name.to_owned()), ..RuleData::default() };
        Arc::new(rule)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_text_made_of_parts_is_the_one_made_at_once(
            edits in prop::collection::vec((0usize..12, "[a\u{e9}\"<]{0,4}", any::<bool>()), 1..20),
        ) {
            let (mut parts, mut former) = (Arc::default(), String::new());
            let mut rows: Vec<Arc<RuleData>> = Vec::new();
            for (at, name, remove) in edits {
                match (rows.get_mut(at), remove) {
                    (Some(_), true) => { rows.remove(at); }
                    (Some(row), false) => *row = rule(at, &name),
                    (None, _) => rows.push(rule(at, &name)),
                }
                let (data, json) = render(&mut parts, rows.iter(), &former, Arc::clone).unwrap();
                prop_assert_eq!(&json, &gson::to_soul(&rows).unwrap());
                prop_assert_eq!(&data, &rows);
                former = json;
            }
        }
    }

    #[test]
    fn only_rows_that_changed_are_written() {
        let mut rows: Vec<_> = (0..40).map(|id| rule(id, "name")).collect();
        let (mut parts, written) = (Arc::default(), std::cell::Cell::new(0));
        let publish = |row: &Arc<RuleData>| {
            written.set(written.get() + 1);
            Arc::clone(row)
        };
        let (_, json) = render(&mut parts, rows.iter(), "", publish).unwrap();
        assert_eq!(written.take(), 40);
        rows.drain(3..30);
        rows[5] = rule(7, "other");
        render(&mut parts, rows.iter(), &json, publish).unwrap();
        assert_eq!(written.take(), 1);
    }
}
