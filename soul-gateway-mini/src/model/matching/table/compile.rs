//! From rows to compiled entries.

use std::{collections::HashMap, sync::Arc};

use soul_client::wire::soul::{RuleData, SelectorData};

use super::{
    super::{condition::Conditions, error::MatchError, index},
    Invalids, Level, Refused,
    entry::{CompiledRule, CompiledSelector, Gate, Made, Rules},
    ordered::Ordered,
    reuse::{Before, Fate, Former, Known},
};
use crate::{model::Row, slices};

/// Type of a selector that takes every request.
const FULL_FLOW: Option<i32> = Some(0);

/// Type of a selector that goes by its conditions.
const CUSTOM_FLOW: Option<i32> = Some(1);

/// A problem of an entry: the JSON field and what is wrong with it.
type Problem = (String, MatchError);

/// Compiles entries and collects what is refused.
pub(super) struct Compiler<PS, PR> {
    pub(super) invalids: Invalids,
    pub(super) refused: Vec<Refused>,
    pub(super) selector_payload: PS,
    pub(super) rule_payload: PR,
}

impl<PS, PR> Compiler<PS, PR> {
    /// - `outdated`: what was kept for it is to be made anew although the row is the same.
    pub(super) fn selector<S>(
        &mut self,
        row: &Row<SelectorData>,
        former: Former<'_, S>,
        outdated: bool,
    ) -> Fate<S>
    where
        PS: FnMut(&SelectorData, Option<&S>) -> Result<S, String>,
    {
        let same;
        let former = match former {
            Former::Same(Fate::Taken(made)) if outdated => {
                same = made;
                Some(&same.payload)
            }
            Former::Same(fate) => return fate,
            Former::Other(former) => former,
        };
        let data = &SelectorData::from(row);
        let labels =
            Labels { level: Level::Selector, id: &data.id, name: &data.name, logged: data.is_logged() };
        let gate = self.selector_gate(data);
        let payload = &mut self.selector_payload;
        made(self.invalids, &labels, gate, || payload(data, former))
    }

    /// `Ok(None)` for a selector that no request can match.
    fn selector_gate(&self, data: &SelectorData) -> Result<Option<Gate>, Problem> {
        if !is_enabled(data.enabled)? {
            return Ok(None);
        }
        match data.kind {
            FULL_FLOW => Ok(Some(Gate::Always)),
            CUSTOM_FLOW => {
                let list = data.condition_list.as_deref().filter(|list| !list.is_empty());
                let conditions = list.map(|list| Conditions::compile(data.match_mode, Some(list)));
                conditions.map(|conditions| self.conditional(conditions, "conditionList")).transpose()
            }
            // Soul lets every request through, and then goes by the rules' conditions.
            Some(_) if self.invalids == Invalids::Error => Ok(Some(Gate::Always)),
            other => Err(("type".to_owned(), MatchError::SelectorType(other))),
        }
    }

    /// The rules of a selector, `rows` in order of arrival: those of the table before where nothing changed.
    pub(super) fn rules<R>(
        &mut self,
        selector: &Row<SelectorData>,
        mut rows: Vec<Listed<'_, RuleData>>,
        previous: Option<&Arc<Rules<R>>>,
    ) -> Arc<Rules<R>>
    where
        PR: FnMut(&RuleData, Option<&R>) -> Result<R, String>,
    {
        let full = selector.head().kind == FULL_FLOW;
        rows.sort_by_key(|rule| rule.sort);
        if full {
            rows.drain(..rows.len().saturating_sub(1));
        } else {
            rows.retain(|rule| rule.enabled != Some(false));
        }
        let rows: Vec<_> = rows.into_iter().map(|rule| rule.row).collect();
        // By what a rule is taken hangs on the selector's type.
        let previous = previous.filter(|previous| previous.full == full);
        let before = previous.map_or_else(Before::none, |previous| previous.before());
        if let Some(previous) = previous.filter(|_| before.is(&rows)) {
            return Arc::clone(previous);
        }
        let mut entries = Vec::with_capacity(rows.len());
        let mut refused = Vec::new();
        for (row, former) in rows.iter().zip(before.of(&rows)) {
            let row = (*row).clone();
            match self.rule(&row, full, former) {
                Fate::Taken(made) => entries.push(CompiledRule { row, made }),
                Fate::Refused(reason) => refused.push(Known { row, refused: reason }),
                Fate::LeftOut => {}
            }
        }
        let list = Ordered::after(previous.map(|previous| &previous.list), entries);
        Arc::new(Rules { full, list, refused: refused.into() })
    }

    fn rule<R>(&mut self, row: &Row<RuleData>, full: bool, former: Former<'_, R>) -> Fate<R>
    where
        PR: FnMut(&RuleData, Option<&R>) -> Result<R, String>,
    {
        let former = match former {
            Former::Same(fate) => return fate,
            Former::Other(former) => former,
        };
        let data = &RuleData::from(row);
        let logged = data.loged.unwrap_or(false);
        let labels = Labels { level: Level::Rule, id: &data.id, name: &data.name, logged };
        let gate = if full { Ok(Some(Gate::Always)) } else { self.rule_gate(data) };
        let payload = &mut self.rule_payload;
        made(self.invalids, &labels, gate, || payload(data, former))
    }

    fn rule_gate(&self, data: &RuleData) -> Result<Option<Gate>, Problem> {
        if !is_enabled(data.enabled)? {
            return Ok(None);
        }
        let conditions = Conditions::compile(data.match_mode, data.condition_data_list.as_deref());
        self.conditional(conditions, "conditionDataList").map(Some)
    }

    fn conditional(&self, conditions: Conditions, list: &str) -> Result<Gate, Problem> {
        match conditions.problem(list) {
            Some(problem) if self.invalids == Invalids::Refuse => Err(problem),
            _ => Ok(Gate::If(conditions)),
        }
    }
}

/// The entry with its gate; a problem is reported or kept as the gate.
fn made<T>(
    invalids: Invalids,
    labels: &Labels<'_>,
    gate: Result<Option<Gate>, Problem>,
    payload: impl FnOnce() -> Result<T, String>,
) -> Fate<T> {
    let gate = match gate {
        Ok(Some(gate)) => gate,
        Ok(None) => return Fate::LeftOut,
        Err((_, reason)) if invalids == Invalids::Error => Gate::Broken(Box::new(reason)),
        Err((field, reason)) => return Fate::Refused(labels.refused(field, reason.to_string())),
    };
    match payload() {
        Ok(payload) => Fate::Taken(Arc::new(Made { gate, logged: labels.logged, payload })),
        Err(reason) => Fate::Refused(labels.refused("handle".to_owned(), reason)),
    }
}

/// What an entry is called, and whether its matches are logged.
struct Labels<'d> {
    level: Level,
    id: &'d Option<String>,
    name: &'d Option<String>,
    logged: bool,
}

impl Labels<'_> {
    fn refused(&self, field: String, reason: String) -> Refused {
        Refused {
            level: self.level,
            id: self.id.clone().unwrap_or_default(),
            name: self.name.clone().unwrap_or_default(),
            field,
            reason,
        }
    }
}

impl<R> Rules<R> {
    fn before(&self) -> Before<'_, RuleData, R> {
        Before::new(self.list.entries().iter().map(|rule| (&rule.row, &rule.made)), &self.refused)
    }
}

/// The rules that selectors had in the table before, by the selector's id.
pub(super) fn former_rules<S, R>(selectors: &[CompiledSelector<S, R>]) -> HashMap<&str, &Arc<Rules<R>>> {
    selectors.iter().map(|selector| (selector.id(), &selector.rules)).collect()
}

fn is_enabled(enabled: Option<bool>) -> Result<bool, Problem> {
    enabled.ok_or_else(|| ("enabled".to_owned(), MatchError::NoEnabled))
}

/// A row with what its place in the order hangs on.
pub(super) struct Listed<'r, D> {
    pub(super) row: &'r Row<D>,
    /// Lower is tried first; equals in order of arrival.
    pub(super) sort: i32,
    pub(super) enabled: Option<bool>,
}

/// Rules by their selector's id, those of one in order of arrival. Small numbers in one list, since what is needed for a
/// moment only would be left behind as holes in memory.
pub(super) struct Grouped<'r> {
    rules: &'r [Row<RuleData>],
    /// Hash of the selector's id, and place of the rule, ascending.
    places: Vec<(u32, u32)>,
}

impl<'r> Grouped<'r> {
    pub(super) fn new(rules: &'r [Row<RuleData>]) -> Self {
        let place = |(at, row): (u32, &Row<RuleData>)| {
            slices::step();
            Some((index::short(row.head().selector_id?), at))
        };
        let mut places: Vec<_> = (0..).zip(rules).filter_map(place).collect();
        sort(&mut places);
        Self { rules, places }
    }

    /// The rules of one selector.
    pub(super) fn of(&self, selector: &str) -> impl Iterator<Item = Listed<'r, RuleData>> {
        let hash = index::short(selector);
        let start = self.places.partition_point(|(other, _)| *other < hash);
        let same = self.places.iter().skip(start).take_while(move |(other, _)| *other == hash);
        same.filter_map(|(_, at)| self.rules.get(*at as usize)).filter_map(move |row| {
            slices::step();
            let head = row.head();
            let listed = Listed { row, sort: head.sort.unwrap_or(0), enabled: head.enabled };
            (head.selector_id == Some(selector)).then_some(listed)
        })
    }
}

/// Sorts places in pieces, so that it can be interrupted.
fn sort(places: &mut [(u32, u32)]) {
    /// So many take some ten microseconds.
    const PIECE: usize = 1024;
    slices::step();
    if places.len() <= PIECE {
        return places.sort_unstable();
    }
    let (below, _, above) = places.select_nth_unstable(places.len() / 2);
    sort(below);
    sort(above);
}

/// The selectors of a plugin that may take part, in the order in which they are tried.
pub(super) fn sorted<'r>(selectors: &'r [Row<SelectorData>], plugin: &str) -> Vec<&'r Row<SelectorData>> {
    let mut rows: Vec<_> = selectors
        .iter()
        .inspect(|_| slices::step())
        .map(|row| (row.head(), row))
        .filter(|(head, _)| head.plugin_name == Some(plugin) && head.enabled != Some(false))
        .map(|(head, row)| (head.sort.unwrap_or(0), row))
        .collect();
    rows.sort_by_key(|(sort, _)| *sort);
    rows.into_iter().map(|(_, row)| row).collect()
}
