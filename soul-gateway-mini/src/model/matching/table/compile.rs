//! From data to compiled entries.

use std::collections::HashMap;

use soul_client::wire::soul::{RuleData, SelectorData};

use super::{
    super::{condition::Conditions, error::MatchError},
    Invalids, Level, Refused,
    entry::{CompiledRule, Entry, Gate},
};

/// Type of a selector that takes every request.
const FULL_FLOW: Option<i32> = Some(0);

/// Type of a selector that goes by its conditions.
const CUSTOM_FLOW: Option<i32> = Some(1);

/// A problem of an entry: the JSON field and what is wrong with it.
type Problem = (String, MatchError);

/// Compiles entries and collects what is refused.
pub(super) struct Compiler {
    pub(super) invalids: Invalids,
    pub(super) refused: Vec<Refused>,
}

impl Compiler {
    pub(super) fn selector<S>(
        &mut self,
        index: usize,
        data: &SelectorData,
        payload: &mut impl FnMut(&SelectorData) -> Result<S, String>,
    ) -> Option<Entry<S>> {
        let parts = Parts {
            level: Level::Selector,
            index,
            id: &data.id,
            name: &data.name,
            logged: data.is_logged(),
            handle: &data.handle,
        };
        let gate = self.gate(&parts, self.selector_gate(data))?;
        self.entry(&parts, gate, payload(data))
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

    pub(super) fn rules<R>(
        &mut self,
        selector: &SelectorData,
        rules: &[(usize, &RuleData)],
        payload: &mut impl FnMut(&SelectorData, &RuleData) -> Result<R, String>,
    ) -> Box<[CompiledRule<R>]> {
        let mut rules = sorted(rules.iter().copied(), |rule| rule.sort);
        let is_full = selector.kind == FULL_FLOW;
        if is_full {
            rules = rules.pop().into_iter().collect();
        }
        let mut compile = |(index, data): (usize, &RuleData)| {
            let parts = Parts {
                level: Level::Rule,
                index,
                id: &data.id,
                name: &data.name,
                logged: data.loged.unwrap_or(false),
                handle: &data.handle,
            };
            let gate = if is_full { Ok(Some(Gate::Always)) } else { self.rule_gate(data) };
            let gate = self.gate(&parts, gate)?;
            self.entry(&parts, gate, payload(selector, data)).map(|entry| CompiledRule { entry })
        };
        rules.into_iter().filter_map(&mut compile).collect()
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

    /// The gate, or none for an entry that is left out; a problem is reported or kept as the gate.
    fn gate(&mut self, parts: &Parts<'_>, gate: Result<Option<Gate>, Problem>) -> Option<Gate> {
        match gate {
            Ok(gate) => gate,
            Err((_, reason)) if self.invalids == Invalids::Error => Some(Gate::Broken(reason)),
            Err((field, reason)) => {
                self.refused.push(parts.refused(field, reason.to_string()));
                None
            }
        }
    }

    fn entry<T>(&mut self, parts: &Parts<'_>, gate: Gate, payload: Result<T, String>) -> Option<Entry<T>> {
        match payload {
            Ok(payload) => Some(parts.entry(gate, payload)),
            Err(reason) => {
                self.refused.push(parts.refused("handle".to_owned(), reason));
                None
            }
        }
    }
}

/// What is taken over from the data of an entry.
struct Parts<'d> {
    level: Level,
    index: usize,
    id: &'d Option<String>,
    name: &'d Option<String>,
    logged: bool,
    handle: &'d Option<String>,
}

impl Parts<'_> {
    fn entry<T>(&self, gate: Gate, payload: T) -> Entry<T> {
        Entry {
            id: self.id.as_deref().unwrap_or_default().into(),
            name: self.name.as_deref().unwrap_or_default().into(),
            index: self.index,
            logged: self.logged,
            handle: self.handle.as_deref().map(Into::into),
            gate,
            payload,
        }
    }

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

fn is_enabled(enabled: Option<bool>) -> Result<bool, Problem> {
    enabled.ok_or_else(|| ("enabled".to_owned(), MatchError::NoEnabled))
}

/// The rules of each selector, by its id, in order of arrival.
pub(super) fn group(rules: &[RuleData]) -> HashMap<&str, Vec<(usize, &RuleData)>> {
    let mut groups: HashMap<&str, Vec<(usize, &RuleData)>> = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        if let Some(selector) = rule.selector_id.as_deref() {
            groups.entry(selector).or_default().push((index, rule));
        }
    }
    groups
}

/// Entries by ascending `sort`; equals stay in order.
pub(super) fn sorted<'d, T>(
    entries: impl Iterator<Item = (usize, &'d T)>,
    sort: impl Fn(&T) -> Option<i32>,
) -> Vec<(usize, &'d T)> {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by_key(|(_, entry)| sort(entry).unwrap_or(0));
    entries
}
