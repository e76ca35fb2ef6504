//! The state of the admin: a pure state machine. It does no I/O and reads no clock; time comes as an argument.
//!
//! Everything that changes it enters by [`Store::apply`]: registrations, verdicts of the probe, changes by an
//! operator. Each change has a revision and says what gateways are to be told. A clone is cheap and shares the
//! rows, so a batch is applied to a clone, and the clone is thrown away if the disk does not take it.

mod command;
mod edit;
mod health;
mod ids;
mod instance;
mod row;
mod saved;
mod seed;
mod table;

use std::{collections::BTreeSet, sync::Arc};

use soul_client::wire::soul::{ConfigGroup, DataEventType, DivideUpstream, PluginData, RuleData};

pub use command::{
    Applied, Command, Edit, InstanceEvent, MetaDataPatch, NewRule, NewSelector, Outcome, PluginPatch,
    Probing, Registration, Rejected, Report, Revive, RulePatch, SelectorPatch, UpstreamPatch, Verdict,
    Verdicts,
};
pub use ids::Snowflake;
pub use row::{Probed, SelectorRow, UpstreamRow};
pub use saved::{DamagedRow, RowChange, Saved, SavedRow, TableKind};
pub use table::{Row, Table};

use super::register::{
    Effect, MetaDataRow, Node, Plan, Reply, Stored, StoredSelector, parse_upstreams, plan,
};
use crate::model::{DataEvent, GroupData};

/// The rows, the revision, and what has changed since the rows were last saved.
#[derive(Clone, Debug)]
pub struct Store {
    revision: u64,
    next_place: u64,
    stamp: u64,
    ids: Snowflake,
    plugins: Arc<Table<PluginData>>,
    selectors: Arc<Table<SelectorRow>>,
    rules: Arc<Table<RuleData>>,
    meta_data: Arc<Table<MetaDataRow>>,
    unsaved: BTreeSet<(TableKind, u64)>,
}

impl Store {
    /// A store with Soul's built-in plugins and nothing else, not saved yet.
    #[must_use]
    pub fn new(ids: Snowflake) -> Self {
        let mut store = Self::empty(ids);
        for plugin in seed::plugins() {
            let place = store.new_place();
            store.put_plugin(place, plugin);
        }
        store
    }

    fn empty(ids: Snowflake) -> Self {
        Self {
            revision: 0,
            next_place: 1,
            stamp: 0,
            ids,
            plugins: Arc::default(),
            selectors: Arc::default(),
            rules: Arc::default(),
            meta_data: Arc::default(),
            unsaved: BTreeSet::new(),
        }
    }

    // === reading ===

    /// Number of the last change; only grows.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The plugins.
    #[must_use]
    pub fn plugins(&self) -> &Table<PluginData> {
        &self.plugins
    }

    /// The selectors.
    #[must_use]
    pub fn selectors(&self) -> &Table<SelectorRow> {
        &self.selectors
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &Table<RuleData> {
        &self.rules
    }

    /// The metadata.
    #[must_use]
    pub fn meta_data(&self) -> &Table<MetaDataRow> {
        &self.meta_data
    }

    /// One group as gateways get it.
    #[must_use]
    pub fn group(&self, group: ConfigGroup) -> GroupData {
        match group {
            ConfigGroup::AppAuth => GroupData::AppAuth(Vec::new()),
            ConfigGroup::Plugin => {
                GroupData::Plugin(self.plugins.iter().map(|row| (**row).clone()).collect())
            }
            ConfigGroup::Rule => GroupData::Rule(self.rules.iter().cloned().collect()),
            ConfigGroup::Selector => {
                GroupData::Selector(self.selectors.iter().map(|row| Arc::new(row.published())).collect())
            }
            ConfigGroup::MetaData => {
                GroupData::MetaData(self.meta_data.iter().map(|row| Arc::new(row.published())).collect())
            }
        }
    }

    // === changing ===

    /// Applies one command, whole or not at all.
    ///
    /// # Errors
    /// [`Rejected`] says why nothing changed.
    pub fn apply(&mut self, command: Command, now_ms: i64) -> Result<Applied, Rejected> {
        let change = match command {
            Command::Register(registration) => self.register(&registration, now_ms)?,
            Command::Instance(report) => self.instance(&report, now_ms)?,
            Command::Verdicts(verdicts) => self.judge(&verdicts, now_ms),
            Command::Edit(edit) => self.edit(edit, now_ms)?,
        };
        let Change { rows_changed, events, subject, probe } = change;
        if !rows_changed {
            return Ok(Applied { outcome: Outcome::NoChange, subject, probe });
        }
        self.revision += 1;
        Ok(Applied { outcome: Outcome::Changed { events, revision: self.revision }, subject, probe })
    }

    fn register(&mut self, registration: &Registration, now_ms: i64) -> Result<Change, Rejected> {
        let Registration { dialect, service, body, revive } = registration;
        let mut ids = self.ids.clone();
        let planned = plan(*dialect, *service, body, self, &mut || self.unused_id(&mut ids, now_ms));
        self.carry_out(planned, ids, *revive)
    }

    /// Makes the rows of a plan, or none if it ends in a refusal.
    fn carry_out(&mut self, planned: Plan, ids: Snowflake, revive: Revive) -> Result<Change, Rejected> {
        if planned.end? == Reply::PathTaken {
            return Err(Rejected::PathTaken);
        }
        self.ids = ids;
        let mut change = Change::default();
        for effect in planned.effects {
            change.row(self.take(effect));
        }
        if let Some(node) = planned.node {
            self.hear_of(&node, revive, &mut change);
        }
        Ok(change)
    }

    /// Makes the row of one effect; returns what gateways are told.
    fn take(&mut self, effect: Effect) -> DataEvent {
        let event = effect.event();
        match effect {
            Effect::MetaData(effect) => {
                let row = effect.row;
                let place = row.data.id.as_deref().and_then(|id| self.meta_data.place(id));
                let place = place.unwrap_or_else(|| self.new_place());
                self.put_meta_data(place, row);
                event
            }
            Effect::Selector { mut data, upstreams } => {
                // Either version's gateways find the flag under their own name.
                data.loged = data.loged.or(data.logged);
                data.logged = data.loged;
                let upstreams =
                    upstreams.map(|list| list.into_iter().map(|entry| self.new_upstream(entry)).collect());
                let place = self.new_place();
                self.put_selector(place, SelectorRow { data, upstreams })
            }
            Effect::Upstream { data, added } => {
                let upstream = self.new_upstream(added);
                let place = data.id.as_deref().and_then(|id| self.selectors.place(id));
                let place = place.unwrap_or_else(|| self.new_place());
                let mut row =
                    self.selectors.at(place).map_or_else(SelectorRow::default, |row| (**row).clone());
                let mut upstreams =
                    row.upstreams.take().unwrap_or_else(|| self.adopt(row.data.handle.take()));
                upstreams.push(upstream);
                row.upstreams = Some(upstreams);
                self.put_selector(place, row)
            }
            Effect::Rule(rule) => {
                let place = self.new_place();
                self.put_rule(place, rule);
                event
            }
        }
    }

    /// Notes that a node said by itself that it is there.
    fn hear_of(&mut self, node: &Node, revive: Revive, change: &mut Change) {
        let Some(place) =
            self.selectors.by_name(&node.selector).and_then(|row| self.selectors.place(row.id()))
        else {
            return;
        };
        let stamp = self.new_stamp();
        let mut healthy = true;
        Arc::make_mut(&mut self.selectors).edit(place, |row| {
            if let Some(upstream) = row.upstream_mut(&node.url) {
                upstream.touched = stamp;
                healthy = upstream.healthy;
            }
        });
        if healthy {
            return;
        }
        match revive {
            Revive::AfterProbe => change.probe = Some(node.url.clone()),
            Revive::AtOnce => {
                let revived = self.change_selector(place, |row| {
                    if let Some(upstream) = row.upstream_mut(&node.url) {
                        upstream.healthy = true;
                        upstream.dead_since = None;
                    }
                });
                change.row(revived);
            }
        }
    }

    // === rows ===

    fn new_place(&mut self) -> u64 {
        let place = self.next_place;
        self.next_place += 1;
        place
    }

    fn new_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    fn new_upstream(&mut self, entry: DivideUpstream) -> UpstreamRow {
        UpstreamRow::new(entry, self.new_stamp())
    }

    /// The upstreams of a handle that was kept as text so far.
    fn adopt(&mut self, handle: Option<String>) -> Vec<UpstreamRow> {
        let entries = parse_upstreams(handle.as_deref()).unwrap_or_default();
        entries.into_iter().map(|entry| self.new_upstream(entry)).collect()
    }

    fn unused_id(&self, ids: &mut Snowflake, now_ms: i64) -> String {
        loop {
            let id = ids.next(now_ms);
            let used = self.selectors.by_id(&id).is_some()
                || self.rules.by_id(&id).is_some()
                || self.meta_data.by_id(&id).is_some();
            if !used {
                return id;
            }
        }
    }

    fn put_plugin(&mut self, place: u64, row: PluginData) -> DataEvent {
        let event = update(GroupData::Plugin(vec![row.clone()]));
        self.unsaved.insert((TableKind::Plugin, place));
        Arc::make_mut(&mut self.plugins).put(place, row);
        event
    }

    fn put_selector(&mut self, place: u64, row: SelectorRow) -> DataEvent {
        let event = update(GroupData::Selector(vec![Arc::new(row.published())]));
        self.unsaved.insert((TableKind::Selector, place));
        Arc::make_mut(&mut self.selectors).put(place, row);
        event
    }

    /// Changes a selector where it stands.
    fn change_selector(&mut self, place: u64, change: impl FnOnce(&mut SelectorRow)) -> DataEvent {
        let mut row = self.selectors.at(place).map_or_else(SelectorRow::default, |row| (**row).clone());
        change(&mut row);
        self.put_selector(place, row)
    }

    /// Takes an upstream out of a selector.
    fn drop_upstream(&mut self, place: u64, url: &str) -> DataEvent {
        self.change_selector(place, |row| {
            if let Some(list) = &mut row.upstreams {
                list.retain(|upstream| upstream.url() != url);
            }
        })
    }

    fn put_rule(&mut self, place: u64, row: RuleData) -> DataEvent {
        let event = update(GroupData::Rule(vec![Arc::new(row.clone())]));
        self.unsaved.insert((TableKind::Rule, place));
        Arc::make_mut(&mut self.rules).put(place, row);
        event
    }

    fn put_meta_data(&mut self, place: u64, row: MetaDataRow) -> DataEvent {
        let event = update(GroupData::MetaData(vec![Arc::new(row.published())]));
        self.unsaved.insert((TableKind::MetaData, place));
        Arc::make_mut(&mut self.meta_data).put(place, row);
        event
    }
}

/// The event of rows that are new or changed; Soul sends an update for both.
fn update(data: GroupData) -> DataEvent {
    DataEvent { kind: DataEventType::Update, data }
}

/// The event of rows that are gone.
fn delete(data: GroupData) -> DataEvent {
    DataEvent { kind: DataEventType::Delete, data }
}

/// What one command has done so far.
#[derive(Debug, Default)]
struct Change {
    rows_changed: bool,
    events: Vec<DataEvent>,
    subject: Option<String>,
    probe: Option<String>,
}

impl Change {
    /// A row was made, changed or deleted, and gateways are told.
    fn row(&mut self, event: DataEvent) {
        self.rows_changed = true;
        self.events.push(event);
    }
}

impl Stored for Store {
    fn selector(&self, name: &str) -> Option<StoredSelector> {
        let row = self.selectors.by_name(name)?;
        let upstreams = match &row.upstreams {
            // Dead ones count: a known node is not new because it is dead.
            Some(list) => Ok(list.iter().map(|upstream| upstream.entry.clone()).collect()),
            None => parse_upstreams(row.data.handle.as_deref()),
        };
        Some(StoredSelector { data: row.data.clone(), upstreams })
    }

    fn has_rule(&self, name: &str) -> bool {
        self.rules.by_name(name).is_some()
    }

    fn meta_data_by_path(&self, path: &str) -> Option<MetaDataRow> {
        self.meta_data.by_name(path).map(|row| (**row).clone())
    }

    fn meta_data_by_method(&self, service: Option<&str>, method: Option<&str>) -> Option<MetaDataRow> {
        let of_method = |row: &&Arc<MetaDataRow>| {
            row.data.service_name.as_deref() == service && row.data.method_name.as_deref() == method
        };
        self.meta_data.iter().find(of_method).map(|row| (**row).clone())
    }
}

#[cfg(test)]
mod tests;
