//! The selectors and rules of one plugin, compiled and in the order in which they are tried.

use std::{collections::HashMap, fmt};

use soul_client::wire::soul::{RuleData, SelectorData};

use super::{condition::Conditions, error::MatchError, view::RequestView};

/// What becomes of a selector or rule that cannot always be evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Invalids {
    /// It is left out and reported: it never matches and disturbs nobody.
    #[default]
    Refuse,
    /// It stays, and a request that reaches the part in question ends with an error: what Soul does.
    Error,
}

/// First or second match level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A selector.
    Selector,
    /// A rule.
    Rule,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Selector => "selector",
            Self::Rule => "rule",
        })
    }
}

/// An entry that takes no part in matching, and why; shown as "rule `/a` (id `7`): `handle`: …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which level.
    pub level: Level,
    /// Its id, empty when it has none.
    pub id: String,
    /// Its name, empty when it has none.
    pub name: String,
    /// The JSON field at fault, for example `conditionList[0].paramValue`.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, id, name, field, reason } = self;
        write!(f, "{level} `{name}` (id `{id}`): `{field}`: {reason}")
    }
}

/// What selectors and rules have in common.
#[derive(Debug)]
struct Entry<T> {
    id: Box<str>,
    name: Box<str>,
    index: usize,
    logged: bool,
    handle: Option<Box<str>>,
    gate: Gate,
    payload: T,
}

/// When an entry is taken.
#[derive(Debug)]
enum Gate {
    Always,
    If(Conditions),
    /// Only with [`Invalids::Error`].
    Broken(MatchError),
}

impl Gate {
    fn lets_through(&self, view: &RequestView<'_>) -> Result<bool, &MatchError> {
        match self {
            Self::Always => Ok(true),
            Self::If(conditions) => conditions.hold(view),
            Self::Broken(reason) => Err(reason),
        }
    }
}

macro_rules! entry_accessors {
    ($payload:ty) => {
        /// Its id, empty when it has none.
        #[must_use]
        pub fn id(&self) -> &str {
            &self.entry.id
        }

        /// Its name, empty when it has none.
        #[must_use]
        pub fn name(&self) -> &str {
            &self.entry.name
        }

        /// Its place in the list that was compiled.
        #[must_use]
        pub fn index(&self) -> usize {
            self.entry.index
        }

        /// Whether a match is to be logged.
        #[must_use]
        pub fn is_logged(&self) -> bool {
            self.entry.logged
        }

        /// Its handle as received.
        #[must_use]
        pub fn handle(&self) -> Option<&str> {
            self.entry.handle.as_deref()
        }

        /// What the gateway made of its handle.
        #[must_use]
        pub fn payload(&self) -> &$payload {
            &self.entry.payload
        }
    };
}

/// A rule, compiled, with what the gateway made of its handle.
#[derive(Debug)]
pub struct CompiledRule<R> {
    entry: Entry<R>,
}

impl<R> CompiledRule<R> {
    entry_accessors!(R);
}

/// A selector, compiled, with its rules and what the gateway made of its handle.
#[derive(Debug)]
pub struct CompiledSelector<S, R> {
    entry: Entry<S>,
    rules: Box<[CompiledRule<R>]>,
}

impl<S, R> CompiledSelector<S, R> {
    entry_accessors!(S);

    /// The first of its rules whose conditions hold; the last one, unconditionally, if it takes every
    /// request.
    ///
    /// # Errors
    /// With [`Invalids::Error`], when a rule that had to be tried cannot be evaluated.
    pub fn rule(&self, view: &RequestView<'_>) -> Result<Option<&CompiledRule<R>>, &MatchError> {
        for rule in &self.rules {
            if rule.entry.gate.lets_through(view)? {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }

    /// Its rules, in the order in which they are tried.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &CompiledRule<R>> {
        self.rules.iter()
    }
}

/// All selectors of one plugin in the order in which they are tried.
///
/// Only the first selector that matches counts: when none of its rules matches, no other is tried. `S` and
/// `R` are what the gateway keeps for a selector and a rule, made when the table is compiled, so that no
/// handle is parsed while a request waits.
///
/// # Source
/// Soul specification, sections 4.1 and 4.2.
#[derive(Debug)]
pub struct PluginTable<S, R> {
    selectors: Box<[CompiledSelector<S, R>]>,
}

impl<S, R> Default for PluginTable<S, R> {
    fn default() -> Self {
        Self { selectors: Box::default() }
    }
}

impl<S, R> PluginTable<S, R> {
    /// Compiles the selectors of `plugin` and their rules.
    ///
    /// # Shape
    /// - `selectors`, `rules`: in order of arrival, of any plugin; the ones of others are passed over, and so
    ///   are rules of no selector here. Among equal `sort` the earlier comes first; an absent `sort` is 0.
    /// - `selector_payload`, `rule_payload`: what to keep for an entry. An error text refuses the entry for
    ///   its field `handle`, whatever `invalids` says. Called once for each entry that can be taken.
    /// - returns the table and what was refused, in the order of the lists.
    ///
    /// A disabled entry is not looked at, but for the last rule of a selector of type 0 ("full flow"), which
    /// takes that rule unconditionally.
    pub fn compile(
        plugin: &str,
        selectors: &[SelectorData],
        rules: &[RuleData],
        invalids: Invalids,
        mut selector_payload: impl FnMut(&SelectorData) -> Result<S, String>,
        mut rule_payload: impl FnMut(&SelectorData, &RuleData) -> Result<R, String>,
    ) -> (Self, Vec<Refused>) {
        let mut compiler = Compiler { invalids, refused: Vec::new() };
        let rules = group(rules);
        let mut compiled = Vec::new();
        for (index, selector) in sorted(selectors.iter().enumerate(), |selector| selector.sort) {
            if selector.plugin_name.as_deref() != Some(plugin) {
                continue;
            }
            let Some(entry) = compiler.selector(index, selector, &mut selector_payload) else { continue };
            let own = rules.get(selector.id.as_deref().unwrap_or_default());
            let own = compiler.rules(selector, own.map_or(&[], Vec::as_slice), &mut rule_payload);
            compiled.push(CompiledSelector { entry, rules: own });
        }
        (Self { selectors: compiled.into() }, compiler.refused)
    }

    /// The first selector whose conditions hold.
    ///
    /// # Errors
    /// With [`Invalids::Error`], when a selector that had to be tried cannot be evaluated.
    pub fn select(&self, view: &RequestView<'_>) -> Result<Option<&CompiledSelector<S, R>>, &MatchError> {
        for selector in &self.selectors {
            if selector.entry.gate.lets_through(view)? {
                return Ok(Some(selector));
            }
        }
        Ok(None)
    }

    /// The selectors, in the order in which they are tried.
    pub fn selectors(&self) -> impl ExactSizeIterator<Item = &CompiledSelector<S, R>> {
        self.selectors.iter()
    }

    /// Whether nothing can match.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.selectors.is_empty()
    }
}

/// Type of a selector that takes every request.
const FULL_FLOW: Option<i32> = Some(0);

/// Type of a selector that goes by its conditions.
const CUSTOM_FLOW: Option<i32> = Some(1);

/// A problem of an entry: the JSON field and what is wrong with it.
type Problem = (String, MatchError);

struct Compiler {
    invalids: Invalids,
    refused: Vec<Refused>,
}

impl Compiler {
    fn selector<S>(
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

    fn rules<R>(
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
fn group(rules: &[RuleData]) -> HashMap<&str, Vec<(usize, &RuleData)>> {
    let mut groups: HashMap<&str, Vec<(usize, &RuleData)>> = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        if let Some(selector) = rule.selector_id.as_deref() {
            groups.entry(selector).or_default().push((index, rule));
        }
    }
    groups
}

/// Entries by ascending `sort`; equals stay in order.
fn sorted<'d, T>(
    entries: impl Iterator<Item = (usize, &'d T)>,
    sort: impl Fn(&T) -> Option<i32>,
) -> Vec<(usize, &'d T)> {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by_key(|(_, entry)| sort(entry).unwrap_or(0));
    entries
}

#[cfg(test)]
mod tests;
