//! Everything a request needs, frozen: compiled once for each change, off the request path, and swapped in whole.

mod destination;
mod divide;
mod flow;
mod load;
mod meta;
mod stats;

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use soul_client::{
    balance::{SetSettings, Way},
    wire::{
        gson,
        soul::{ConfigGroup, ContextMappingHandle, SelectorData},
    },
};

pub(crate) use destination::{Destination, Protocol};
pub(crate) use divide::{DivideRule, DivideSelector, DivideTable, End};
pub(crate) use flow::{Flow, OpenTunnel};
pub(crate) use load::Room;
pub(crate) use meta::RpcKinds;
pub(crate) use stats::{SelectorStats, StatusStats};

use self::divide::Destinations;
use super::{Held, Refused};
use crate::model::{
    CONTEXT_PATH, DIVIDE,
    matching::{Invalids, Level, PluginTable, Refused as RefusedEntry},
};

/// How entries are read that Soul and this gateway treat differently.
#[derive(Clone, Debug, Default)]
pub(crate) struct SnapshotOptions {
    /// How upstreams are chosen, but for the ways, which the rules name.
    pub(crate) balance: SetSettings,
    pub(crate) invalids: Invalids,
}

/// The selectors and rules of `context_path`. A rule that does not say what to take off has none.
pub(crate) type ContextPathTable = PluginTable<(), Option<ContextMappingHandle>>;

/// One configuration, ready to serve.
#[derive(Debug)]
pub(crate) struct Snapshot {
    revision: u64,
    made: SystemTime,
    divide: Option<DivideTable>,
    context_path: Option<ContextPathTable>,
    rpc_kinds: Arc<RpcKinds>,
    refused: Vec<Refused>,
    size: (usize, usize, usize),
    /// How its upstreams are chosen.
    balance: SetSettings,
}

impl Snapshot {
    /// Compiles `data`; what cannot be used of it is left out and listed.
    ///
    /// - `unread`: entries that were refused before they got here.
    /// - `previous`: the snapshot this one replaces; state of upstreams, counters and positions of round robin
    ///   live on.
    pub(crate) fn build(
        data: &Held,
        unread: Vec<Refused>,
        previous: Option<&Self>,
        options: &SnapshotOptions,
    ) -> Self {
        let mut refused = unread;
        let divide = is_enabled(data, DIVIDE).then(|| divide(data, previous, options, &mut refused));
        Self {
            size: size(divide.as_ref()),
            revision: previous.map_or(0, |p| p.revision) + 1,
            made: SystemTime::now(),
            divide,
            context_path: is_enabled(data, CONTEXT_PATH)
                .then(|| context_path(data, previous, options, &mut refused)),
            rpc_kinds: RpcKinds::new(&data.meta_data, previous.map(|p| &p.rpc_kinds)),
            refused,
            balance: options.balance.clone(),
        }
    }

    /// Its number; grows by one with every change.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// When it was made.
    pub(crate) fn made(&self) -> SystemTime {
        self.made
    }

    /// What `divide` works by; `None` if it is switched off.
    pub(crate) fn divide(&self) -> Option<&DivideTable> {
        self.divide.as_ref()
    }

    /// What `context_path` works by; `None` if it is switched off.
    pub(crate) fn context_path(&self) -> Option<&ContextPathTable> {
        self.context_path.as_ref()
    }

    /// What kind of service a path belongs to.
    pub(crate) fn rpc_kinds(&self) -> &RpcKinds {
        &self.rpc_kinds
    }

    /// Entries that could not be used.
    pub(crate) fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Selectors, rules and upstreams that serve.
    pub(crate) fn size(&self) -> (usize, usize, usize) {
        self.size
    }
}

fn size(table: Option<&DivideTable>) -> (usize, usize, usize) {
    let selectors = table.into_iter().flat_map(PluginTable::selectors);
    selectors.fold((0, 0, 0), |(selectors, rules, upstreams), selector| {
        let members = selector.payload().upstreams().members().len();
        (selectors + 1, rules + selector.rules().len(), upstreams + members)
    })
}

/// Of two plugins with one name the later counts, as in Soul's map.
fn is_enabled(data: &Held, plugin: &str) -> bool {
    let named = data.plugins.iter().rfind(|p| p.name.as_deref() == Some(plugin));
    named.is_some_and(|p| p.enabled == Some(true))
}

fn divide(
    data: &Held,
    previous: Option<&Snapshot>,
    options: &SnapshotOptions,
    refused: &mut Vec<Refused>,
) -> DivideTable {
    let chosen_otherwise = previous.is_some_and(|previous| previous.balance != options.balance);
    let previous = previous.and_then(Snapshot::divide);
    let mut destinations = Destinations::from(previous);
    let mut compile = |previous, ways: &HashMap<String, Vec<Way>>| {
        let ways_of = |selector: &SelectorData| ways.get(selector.id.as_deref().unwrap_or_default());
        DivideTable::compile_anew(
            DIVIDE,
            &data.selectors,
            &data.rules,
            options.invalids,
            previous,
            |id| chosen_otherwise || ways.contains_key(id),
            |selector, former| {
                Ok(destinations.selector(selector, former, ways_of(selector), &options.balance))
            },
            DivideRule::new,
        )
    };
    let (mut table, mut entries) = compile(previous, &HashMap::new());
    // What a selector keeps is made before its rules are read, and those may choose in a way that is new there.
    let missing = divide::missing(&table);
    if !missing.is_empty() {
        (table, entries) = compile(Some(&table), &missing);
    }
    refused.extend(table.selectors().flat_map(|selector| selector.payload().refused()).cloned());
    refused.extend(entries.into_iter().map(described));
    table
}

fn context_path(
    data: &Held,
    previous: Option<&Snapshot>,
    options: &SnapshotOptions,
    refused: &mut Vec<Refused>,
) -> ContextPathTable {
    let (table, entries) = ContextPathTable::compile(
        CONTEXT_PATH,
        &data.selectors,
        &data.rules,
        options.invalids,
        previous.and_then(Snapshot::context_path),
        |_, _| Ok(()),
        |rule, _| {
            let handle = gson::from_str::<ContextMappingHandle>(rule.handle.as_deref().unwrap_or_default());
            let mapping = handle.map_err(|e| e.to_string())?;
            Ok(mapping.filter(|m| m.context_path.as_deref().is_some_and(|path| !gson::is_blank(path))))
        },
    );
    // As in Soul, such a rule still matches: its requests go on unchanged.
    let without = table.selectors().flat_map(|selector| selector.rules()).filter(|r| r.payload().is_none());
    refused.extend(without.map(|rule| {
        let entry = if rule.name().is_empty() { rule.id() } else { rule.name() }.to_owned();
        let reason = "`handle`: `contextPath` is missing, nothing is taken off".to_owned();
        Refused { group: ConfigGroup::Rule, entry, reason }
    }));
    refused.extend(entries.into_iter().map(described));
    table
}

fn described(entry: RefusedEntry) -> Refused {
    let group = match entry.level {
        Level::Selector => ConfigGroup::Selector,
        Level::Rule => ConfigGroup::Rule,
    };
    let reason = format!("`{}`: {}", entry.field, entry.reason);
    Refused { group, entry: label(&Some(entry.name), &Some(entry.id)), reason }
}

/// An entry as people know it: by its name, else by its id.
fn label(name: &Option<String>, id: &Option<String>) -> String {
    [name, id].into_iter().flatten().find(|text| !text.is_empty()).cloned().unwrap_or_default()
}
