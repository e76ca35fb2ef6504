//! Rows of the configuration, packed into few bytes.
//!
//! A gateway needs a row whole when it changes, and otherwise only has to know it again, to tell its name, and to write
//! it to disk. As structures of Java's fields 10,000 rules take 8 MB, mostly for texts that are the same in
//! each; packed, one.

mod pack;

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use soul_client::wire::soul::{ConditionData, MetaData, RuleData, SelectorData};

use self::pack::{Pack, Packer, Unpacker};
use crate::slices;

/// A `D`, packed and shared. Made by `Row::from(&data)`, and whole again by `D::from(&row)`.
///
/// Work on many rows can be interrupted at each of them (`slices.rs`): where one is made, unpacked, compared, shared or
/// let go of.
pub struct Row<D> {
    packed: Arc<[u8]>,
    of: PhantomData<fn() -> D>,
}

impl<D> Row<D> {
    /// Where it is in memory; see [`address`](super::address).
    pub(crate) fn address(&self) -> usize {
        self.packed.as_ptr().addr()
    }

    fn unpacker(&self) -> Unpacker<'_> {
        Unpacker::new(&self.packed)
    }
}

impl<D> Clone for Row<D> {
    fn clone(&self) -> Self {
        slices::step();
        Self { packed: Arc::clone(&self.packed), of: PhantomData }
    }
}

impl<D> Drop for Row<D> {
    fn drop(&mut self) {
        slices::step();
    }
}

impl<D> PartialEq for Row<D> {
    fn eq(&self, other: &Self) -> bool {
        slices::step();
        self.address() == other.address() || self.packed == other.packed
    }
}

impl<D> Eq for Row<D> {}

/// Its texts, with what is between them.
impl<D> fmt::Debug for Row<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Row").field(&String::from_utf8_lossy(&self.packed)).finish()
    }
}

impl<D: Serialize> Serialize for Row<D>
where
    D: for<'r> From<&'r Row<D>>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        D::from(self).serialize(serializer)
    }
}

impl<'de, D: Deserialize<'de>> Deserialize<'de> for Row<D>
where
    Row<D>: for<'d> From<&'d D>,
{
    fn deserialize<T: Deserializer<'de>>(deserializer: T) -> Result<Self, T::Error> {
        D::deserialize(deserializer).map(|data| Self::from(&data))
    }
}

/// Packs the fields in the order given: first those that a head has, last the handle if there is one.
macro_rules! packed {
    ($data:ident: $($field:ident),+ $(; $handle:ident)?) => {
        impl Pack for $data {
            fn pack(&self, packer: &mut Packer) {
                $(self.$field.pack(packer);)+
                $(packer.handle(self.$handle.as_deref());)?
            }

            fn unpack(from: &mut Unpacker<'_>) -> Self {
                $(let $field = Pack::unpack(from);)+
                $(let $handle = from.handle();)?
                Self { $($field,)+ $($handle)? }
            }
        }

        impl From<&$data> for Row<$data> {
            fn from(data: &$data) -> Self {
                slices::step();
                Self { packed: Packer::pack(data), of: PhantomData }
            }
        }

        impl From<&Row<$data>> for $data {
            fn from(row: &Row<$data>) -> Self {
                slices::step();
                Self::unpack(&mut row.unpacker())
            }
        }
    };
}

packed!(SelectorData: sort, enabled, kind, id, name, plugin_name, plugin_id, match_mode, loged, logged, continued, condition_list; handle);
packed!(RuleData: sort, enabled, selector_id, id, name, plugin_name, match_mode, loged, condition_data_list; handle);
packed!(MetaData: enabled, path, rpc_type, id, app_name, context_path, service_name, method_name, parameter_types, rpc_ext);

impl Pack for ConditionData {
    fn pack(&self, packer: &mut Packer) {
        [&self.param_type, &self.operator, &self.param_name, &self.param_value]
            .into_iter()
            .for_each(|text| text.pack(packer));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let [param_type, operator, param_name, param_value] = [(); 4].map(|()| Pack::unpack(from));
        Self { param_type, operator, param_name, param_value }
    }
}

/// What is asked of a selector's row before it is known whether it is needed whole.
pub(crate) struct SelectorHead<'r> {
    pub(crate) sort: Option<i32>,
    pub(crate) enabled: Option<bool>,
    pub(crate) kind: Option<i32>,
    pub(crate) id: Option<&'r str>,
    pub(crate) name: Option<&'r str>,
    pub(crate) plugin_name: Option<&'r str>,
}

impl Row<SelectorData> {
    pub(crate) fn head(&self) -> SelectorHead<'_> {
        let mut from = self.unpacker();
        SelectorHead {
            sort: Pack::unpack(&mut from),
            enabled: Pack::unpack(&mut from),
            kind: Pack::unpack(&mut from),
            id: from.text(),
            name: from.text(),
            plugin_name: from.text(),
        }
    }
}

/// The same of a rule's row.
pub(crate) struct RuleHead<'r> {
    pub(crate) sort: Option<i32>,
    pub(crate) enabled: Option<bool>,
    pub(crate) selector_id: Option<&'r str>,
    pub(crate) id: Option<&'r str>,
    pub(crate) name: Option<&'r str>,
}

impl Row<RuleData> {
    pub(crate) fn head(&self) -> RuleHead<'_> {
        let mut from = self.unpacker();
        RuleHead {
            sort: Pack::unpack(&mut from),
            enabled: Pack::unpack(&mut from),
            selector_id: from.text(),
            id: from.text(),
            name: from.text(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{option::of, prelude::*};
    use soul_client::wire::soul::DivideUpstream;

    use super::*;

    /// Texts that are words, that repeat, and others.
    fn text() -> impl Strategy<Value = Option<String>> {
        of(prop_oneof![
            prop::sample::select(vec!["", "divide", "uri", "match", "/", "/a/**", "/b/**"])
                .prop_map(str::to_owned),
            any::<String>(),
            "[a-z]{200,300}",
        ])
    }

    /// Texts in which well-known pieces come whole, in part and side by side.
    fn handle() -> impl Strategy<Value = Option<String>> {
        let part = prop_oneof![
            4 => prop::sample::select(&pack::PIECES[..]).prop_map(str::to_owned),
            1 => prop::sample::select(&pack::PIECES[..]).prop_map(|piece| piece[..piece.len() / 2].to_owned()),
            1 => any::<String>(),
            1 => r#"[\[{}",a]{0,4}"#,
        ];
        of(prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat()))
    }

    prop_compose! {
        fn condition()(param_type in text(), operator in text(), param_name in text(), param_value in text())
            -> ConditionData {
            ConditionData { param_type, operator, param_name, param_value }
        }
    }

    prop_compose! {
        fn rule()(
            (id, name, plugin_name, selector_id, handle) in (text(), text(), text(), text(), handle()),
            (match_mode, sort) in any::<(Option<i32>, Option<i32>)>(),
            (enabled, loged) in any::<(Option<bool>, Option<bool>)>(),
            condition_data_list in of(prop::collection::vec(of(condition()), 0..4)),
        ) -> RuleData {
            RuleData {
                id, name, plugin_name, selector_id, match_mode, sort, enabled, loged, handle, condition_data_list,
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_row_is_what_it_was_made_of(rule in rule(), other in rule()) {
            let row = Row::from(&rule);
            prop_assert_eq!(&RuleData::from(&row), &rule);
            let head = row.head();
            prop_assert_eq!((head.sort, head.enabled), (rule.sort, rule.enabled));
            prop_assert_eq!((head.selector_id, head.id), (rule.selector_id.as_deref(), rule.id.as_deref()));
            prop_assert_eq!(head.name, rule.name.as_deref());
            prop_assert_eq!(Row::from(&other) == row, other == rule);
            prop_assert!(Row::from(&rule) == row, "an equal row at another address");
        }
    }

    #[test]
    fn selectors_and_metadata_come_out_whole_too() {
        let text = |text: &str| Some(text.to_owned());
        let selector = SelectorData {
            id: text("1"),
            plugin_id: text("5"),
            plugin_name: text("divide"),
            name: text("/a"),
            match_mode: Some(0),
            kind: Some(1),
            sort: Some(-3),
            enabled: Some(true),
            loged: None,
            logged: Some(true),
            continued: Some(false),
            handle: text("[]"),
            condition_list: Some(vec![None]),
        };
        let row = Row::from(&selector);
        assert_eq!(SelectorData::from(&row), selector);
        let head = row.head();
        assert_eq!((head.sort, head.enabled, head.kind), (Some(-3), Some(true), Some(1)));
        assert_eq!((head.id, head.name, head.plugin_name), (Some("1"), Some("/a"), Some("divide")));
        let meta = MetaData { path: text("/a/b"), rpc_type: text("http"), ..MetaData::default() };
        assert_eq!(MetaData::from(&Row::from(&meta)), meta);
    }

    #[test]
    fn of_a_usual_handle_little_but_the_addresses_is_left() {
        let upstreams = ["10.0.0.2:8188", "10.0.0.3:8188"].map(DivideUpstream::registered);
        let handle = DivideUpstream::write_handle(&upstreams);
        let row = Row::from(&SelectorData { handle: Some(handle.clone()), ..SelectorData::default() });
        assert_eq!(SelectorData::from(&row).handle.as_deref(), Some(&*handle));
        assert!(handle.len() > 250 && row.packed.len() < 60, "{} in {}", handle.len(), row.packed.len());
    }

    #[test]
    fn a_usual_rule_takes_few_bytes() {
        let text = |text: &str| Some(text.to_owned());
        let path = text("/orders/customers/{id}/open");
        let rule = RuleData {
            id: text("1357924680246813579"),
            name: path.clone(),
            plugin_name: text("divide"),
            selector_id: text("1357924680246813570"),
            match_mode: Some(0),
            sort: Some(1),
            enabled: Some(true),
            loged: Some(true),
            handle: text(r#"{"loadBalance":"random","retry":0,"timeout":3000}"#),
            condition_data_list: Some(vec![Some(ConditionData {
                param_type: text("uri"),
                operator: text("match"),
                param_name: text("/"),
                param_value: path,
            })]),
        };
        assert!(Row::from(&rule).packed.len() < 90, "{}", Row::from(&rule).packed.len());
    }
}
