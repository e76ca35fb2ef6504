//! Changes by an operator.

use std::{collections::BTreeSet, sync::Arc};

use soul_client::{
    balance::Way,
    wire::{
        gson,
        soul::{ConditionData, DivideRuleHandle, DivideUpstream, RuleData, SelectorData},
    },
};

use super::{
    Change, Edit, MetaDataPatch, NewRule, NewSelector, PluginPatch, Probing, Rejected, Row, RulePatch,
    SelectorPatch, SelectorRow, Store, Table, TableKind, UpstreamPatch, UpstreamRow, delete,
};
use crate::{
    admin::problem::Problem,
    model::{DIVIDE, GroupData},
};

/// Plugins whose selectors own upstreams when an operator makes them.
const WITH_UPSTREAMS: [&str; 1] = [DIVIDE];

impl Store {
    pub(super) fn edit(&mut self, edit: Edit, now_ms: i64) -> Result<Change, Rejected> {
        match edit {
            Edit::Plugin(id, patch) => self.edit_plugin(&id, patch),
            Edit::NewSelector(new) => self.new_selector(*new, now_ms),
            Edit::Selector(id, patch) => self.edit_selector(&id, patch),
            Edit::DeleteSelector(id) => self.delete_selector(&id),
            Edit::NewUpstream(id, entry, probing) => self.add_upstream(&id, entry, probing),
            Edit::Upstream(id, url, patch) => self.edit_upstream(&id, &url, &patch),
            Edit::DeleteUpstream(id, url) => self.delete_upstream(&id, &url),
            Edit::NewRule(new) => self.new_rule(*new, now_ms),
            Edit::Rule(id, patch) => self.edit_rule(&id, patch),
            Edit::DeleteRule(id) => self.delete_rule(&id),
            Edit::MetaData(id, patch) => self.edit_meta_data(&id, &patch),
            Edit::DeleteMetaData(id) => self.delete_meta_data(&id),
        }
    }

    // === plugins ===

    fn edit_plugin(&mut self, id: &str, patch: PluginPatch) -> Result<Change, Rejected> {
        let (place, row) = find(&self.plugins, "plugin", id)?;
        let mut new = (*row).clone();
        set(&mut new.enabled, patch.enabled);
        if let Some(config) = patch.config {
            new.config = (!config.is_empty()).then_some(config);
        }
        let mut change = Change::of(id);
        if new != *row {
            change.row(self.put_plugin(place, new));
        }
        Ok(change)
    }

    // === selectors ===

    fn new_selector(&mut self, new: NewSelector, now_ms: i64) -> Result<Change, Rejected> {
        let NewSelector { plugin, patch, upstreams } = new;
        let Some(plugin) = self.plugins.by_name(&plugin).cloned() else {
            let names: Vec<&str> = self.plugins.iter().map(|row| row.name()).collect();
            return Err(Rejected::Invalid(vec![Problem::not_one_of("pluginName", &plugin, &names)]));
        };
        let owns_upstreams = WITH_UPSTREAMS.contains(&plugin.name());
        if upstreams.is_some() && !owns_upstreams {
            return Err(invalid("upstreams", format!("plugin `{}` has no upstreams", plugin.name())));
        }
        if let Some(twice) = repeated(upstreams.as_deref().unwrap_or_default()) {
            return Err(Rejected::Exists { kind: "upstream", name: twice.to_owned() });
        }
        let mut ids = self.ids.clone();
        let id = self.unused_id(&mut ids, now_ms);
        let data = SelectorData {
            id: Some(id.clone()),
            plugin_id: plugin.id.clone(),
            plugin_name: plugin.name.clone(),
            match_mode: Some(0),
            kind: Some(1),
            sort: Some(1),
            enabled: Some(true),
            loged: Some(true),
            logged: Some(true),
            continued: Some(true),
            condition_list: Some(Vec::new()),
            ..SelectorData::default()
        };
        let upstreams = if owns_upstreams {
            let list = upstreams.unwrap_or_default();
            Some(list.into_iter().map(|(entry, probing)| self.added_upstream(entry, probing)).collect())
        } else {
            None
        };
        let row = self.patched_selector(SelectorRow { data, upstreams }, patch)?;
        self.ids = ids;
        let mut change = Change::of(&id);
        let place = self.new_place();
        change.row(self.put_selector(place, row));
        Ok(change)
    }

    fn edit_selector(&mut self, id: &str, patch: SelectorPatch) -> Result<Change, Rejected> {
        let (place, row) = find(&self.selectors, "selector", id)?;
        let new = self.patched_selector((*row).clone(), patch)?;
        let mut change = Change::of(id);
        if new != *row {
            change.row(self.put_selector(place, new));
        }
        Ok(change)
    }

    fn patched_selector(&self, mut row: SelectorRow, patch: SelectorPatch) -> Result<SelectorRow, Rejected> {
        if let Some(name) = patch.name {
            self.free_name(&self.selectors, "selector", &name, row.id())?;
            row.data.name = Some(name);
        }
        if let Some(handle) = patch.handle {
            if row.upstreams.is_some() {
                return Err(invalid("handle", "this selector owns upstreams: change those"));
            }
            row.data.handle = Some(handle);
        }
        set(&mut row.data.match_mode, patch.match_mode);
        set(&mut row.data.kind, patch.kind);
        set(&mut row.data.sort, patch.sort);
        set(&mut row.data.enabled, patch.enabled);
        set(&mut row.data.loged, patch.logged);
        set(&mut row.data.logged, patch.logged);
        set(&mut row.data.condition_list, patch.conditions.map(some_each));
        Ok(row)
    }

    fn delete_selector(&mut self, id: &str) -> Result<Change, Rejected> {
        let (place, row) = find(&self.selectors, "selector", id)?;
        let mut change = Change::of(id);
        self.unsaved.insert((TableKind::Selector, place));
        Arc::make_mut(&mut self.selectors).remove(place);
        // Soul tells gateways of the selector without conditions, then of each of its rules.
        let gone = SelectorData { condition_list: None, ..row.published() };
        change.row(delete(GroupData::Selector(vec![Arc::new(gone)])));
        let rules: Vec<String> = self
            .rules
            .iter()
            .filter(|rule| rule.selector_id.as_deref() == Some(id))
            .map(|rule| rule.id().to_owned())
            .collect();
        for rule in rules {
            let Change { events, .. } = self.delete_rule(&rule)?;
            change.events.extend(events);
        }
        Ok(change)
    }

    // === upstreams ===

    fn added_upstream(&mut self, entry: DivideUpstream, probing: Probing) -> UpstreamRow {
        UpstreamRow { unchecked: probing == Probing::Off, ..self.new_upstream(entry) }
    }

    fn add_upstream(
        &mut self,
        id: &str,
        entry: DivideUpstream,
        probing: Probing,
    ) -> Result<Change, Rejected> {
        let (place, row) = find(&self.selectors, "selector", id)?;
        if row.upstreams.is_none() {
            return Err(invalid("url", "this selector owns no upstreams"));
        }
        let url = entry.upstream_url.clone().unwrap_or_default();
        if row.upstream(&url).is_some() {
            return Err(Rejected::Exists { kind: "upstream", name: url });
        }
        let upstream = self.added_upstream(entry, probing);
        let mut change = Change::of(id);
        change.row(self.change_selector(place, |row| row.upstreams.get_or_insert_default().push(upstream)));
        Ok(change)
    }

    fn edit_upstream(&mut self, id: &str, url: &str, patch: &UpstreamPatch) -> Result<Change, Rejected> {
        let (place, row) = find(&self.selectors, "selector", id)?;
        let mut new = (*row).clone();
        let upstream = new.upstream_mut(url).ok_or_else(|| not_found("upstream", url))?;
        let entry = &mut upstream.entry;
        entry.weight = patch.weight.unwrap_or(entry.weight);
        entry.status = patch.status.unwrap_or(entry.status);
        entry.warmup = patch.warmup.unwrap_or(entry.warmup);
        set(&mut entry.protocol, patch.protocol.clone());
        match patch.probing {
            Some(Probing::Off) => {
                upstream.unchecked = true;
                upstream.healthy = true;
                upstream.dead_since = None;
            }
            Some(Probing::On) => upstream.unchecked = false,
            None => {}
        }
        let mut change = Change::of(id);
        if new != *row {
            change.row(self.put_selector(place, new));
        }
        Ok(change)
    }

    fn delete_upstream(&mut self, id: &str, url: &str) -> Result<Change, Rejected> {
        let (place, row) = find(&self.selectors, "selector", id)?;
        row.upstream(url).ok_or_else(|| not_found("upstream", url))?;
        let mut change = Change::of(id);
        change.row(self.drop_upstream(place, url));
        Ok(change)
    }

    // === rules ===

    fn new_rule(&mut self, new: NewRule, now_ms: i64) -> Result<Change, Rejected> {
        let NewRule { selector, patch } = new;
        let Some(owner) = self.selectors.by_id(&selector).cloned() else {
            return Err(invalid("selectorId", format!("no selector `{selector}`")));
        };
        let mut ids = self.ids.clone();
        let id = self.unused_id(&mut ids, now_ms);
        let plugin = owner.data.plugin_name.clone();
        let handle = (plugin.as_deref() == Some(DIVIDE))
            .then(|| gson::to_soul(&DivideRuleHandle::registered()).unwrap_or_default());
        let rule = RuleData {
            id: Some(id.clone()),
            plugin_name: plugin,
            selector_id: Some(selector),
            match_mode: Some(0),
            sort: Some(1),
            enabled: Some(true),
            loged: Some(true),
            handle,
            condition_data_list: Some(Vec::new()),
            ..RuleData::default()
        };
        let rule = self.patched_rule(rule, patch)?;
        self.ids = ids;
        let mut change = Change::of(&id);
        let place = self.new_place();
        change.row(self.put_rule(place, rule));
        Ok(change)
    }

    fn edit_rule(&mut self, id: &str, patch: RulePatch) -> Result<Change, Rejected> {
        let (place, row) = find(&self.rules, "rule", id)?;
        let new = self.patched_rule((*row).clone(), patch)?;
        let mut change = Change::of(id);
        if new != *row {
            change.row(self.put_rule(place, new));
        }
        Ok(change)
    }

    fn patched_rule(&self, mut rule: RuleData, patch: RulePatch) -> Result<RuleData, Rejected> {
        if let Some(name) = &patch.name {
            self.free_name(&self.rules, "rule", name, rule.id())?;
            rule.name = Some(name.clone());
        }
        if let Some(handle) = patched_handle(&rule, &patch)? {
            rule.handle = Some(handle);
        }
        set(&mut rule.match_mode, patch.match_mode);
        set(&mut rule.sort, patch.sort);
        set(&mut rule.enabled, patch.enabled);
        set(&mut rule.loged, patch.logged);
        set(&mut rule.condition_data_list, patch.conditions.map(some_each));
        check_handle(&rule)?;
        Ok(rule)
    }

    fn delete_rule(&mut self, id: &str) -> Result<Change, Rejected> {
        let (place, row) = find(&self.rules, "rule", id)?;
        let mut change = Change::of(id);
        self.unsaved.insert((TableKind::Rule, place));
        Arc::make_mut(&mut self.rules).remove(place);
        change.row(delete(GroupData::Rule(vec![row])));
        Ok(change)
    }

    // === metadata ===

    fn edit_meta_data(&mut self, id: &str, patch: &MetaDataPatch) -> Result<Change, Rejected> {
        let (place, row) = find(&self.meta_data, "metadata", id)?;
        let mut new = (*row).clone();
        set(&mut new.data.enabled, patch.enabled);
        let mut change = Change::of(id);
        if new != *row {
            change.row(self.put_meta_data(place, new));
        }
        Ok(change)
    }

    fn delete_meta_data(&mut self, id: &str) -> Result<Change, Rejected> {
        let (place, row) = find(&self.meta_data, "metadata", id)?;
        let mut change = Change::of(id);
        self.unsaved.insert((TableKind::MetaData, place));
        Arc::make_mut(&mut self.meta_data).remove(place);
        change.row(delete(GroupData::MetaData(vec![Arc::new(row.published())])));
        Ok(change)
    }

    /// Refuses a name that another row has.
    fn free_name<R: Row>(
        &self,
        table: &Table<R>,
        kind: &'static str,
        name: &str,
        own_id: &str,
    ) -> Result<(), Rejected> {
        match table.by_name(name) {
            Some(other) if other.id() != own_id => Err(Rejected::Exists { kind, name: name.to_owned() }),
            _ => Ok(()),
        }
    }
}

impl Change {
    /// Nothing yet, about a row.
    fn of(id: &str) -> Self {
        Self { subject: Some(id.to_owned()), ..Self::default() }
    }
}

/// The first address that is there twice: changes and probing find an upstream by it.
fn repeated(upstreams: &[(DivideUpstream, Probing)]) -> Option<&str> {
    let mut seen = BTreeSet::new();
    upstreams.iter().filter_map(|(entry, _)| entry.upstream_url.as_deref()).find(|url| !seen.insert(*url))
}

/// A `divide` rule's handle must be one that gateways can use.
fn check_handle(rule: &RuleData) -> Result<(), Rejected> {
    if rule.plugin_name.as_deref() != Some(DIVIDE) {
        return Ok(());
    }
    let text = rule.handle.as_deref().unwrap_or_default();
    let handle: Option<DivideRuleHandle> =
        gson::from_str(text).map_err(|e| invalid("handle", e.to_string()))?;
    let balance = handle.and_then(|handle| handle.load_balance).unwrap_or_default();
    match balance.parse::<Way>() {
        Ok(_) => Ok(()),
        Err(error) => Err(invalid("handle", error.to_string())),
    }
}

/// The handle a patch makes of a rule's, if it says anything about it.
fn patched_handle(rule: &RuleData, patch: &RulePatch) -> Result<Option<String>, Rejected> {
    let fields = [
        ("loadBalance", patch.load_balance.is_some()),
        ("retry", patch.retry.is_some()),
        ("timeout", patch.timeout.is_some()),
    ];
    let Some((field, _)) = fields.into_iter().find(|(_, given)| *given) else {
        return Ok(patch.handle.clone());
    };
    if patch.handle.is_some() {
        return Err(invalid(
            "handle",
            "it stands in place of `loadBalance`, `retry` and `timeout`: give either",
        ));
    }
    let plugin = rule.plugin_name.as_deref().unwrap_or_default();
    if plugin != DIVIDE {
        return Err(invalid(field, format!("a rule of plugin `{plugin}` has a `handle` instead")));
    }
    let text = rule.handle.as_deref().unwrap_or_default();
    let unreadable = |e| invalid("handle", format!("the rule's handle cannot be read, replace it: {e}"));
    let mut handle: DivideRuleHandle = gson::from_str(text).map_err(unreadable)?.unwrap_or_default();
    set(&mut handle.load_balance, patch.load_balance.clone());
    handle.retry = patch.retry.unwrap_or(handle.retry);
    handle.timeout = patch.timeout.unwrap_or(handle.timeout);
    Ok(Some(gson::to_soul(&handle).unwrap_or_default()))
}

fn find<R: Row>(table: &Table<R>, kind: &'static str, id: &str) -> Result<(u64, Arc<R>), Rejected> {
    let place = table.place(id).ok_or_else(|| not_found(kind, id))?;
    let row = table.at(place).ok_or_else(|| not_found(kind, id))?;
    Ok((place, Arc::clone(row)))
}

fn not_found(kind: &'static str, id: &str) -> Rejected {
    Rejected::NotFound { kind, id: id.to_owned() }
}

fn invalid(field: &str, why: impl Into<String>) -> Rejected {
    Rejected::Invalid(vec![Problem::new(field, why)])
}

fn set<T>(field: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *field = value;
    }
}

fn some_each(conditions: Vec<ConditionData>) -> Vec<Option<ConditionData>> {
    conditions.into_iter().map(Some).collect()
}
