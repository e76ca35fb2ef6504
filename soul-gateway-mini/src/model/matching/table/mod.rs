//! The selectors and rules of one plugin, compiled and in the order in which they are tried.

mod compile;
mod entry;
mod ordered;
mod patch;
mod paths;
mod reuse;

use std::fmt;

use soul_client::wire::soul::{RuleData, SelectorData};

use super::{error::MatchError, view::RequestView};
use crate::model::Row;
use compile::{Compiler, Grouped, former_rules, sorted};
use ordered::Ordered;
use reuse::{Before, Fate, Known};

pub use entry::{CompiledRule, CompiledSelector};
pub(crate) use paths::PathTable;

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
    selectors: Ordered<CompiledSelector<S, R>>,
    refused: Box<[Known<SelectorData>]>,
}

impl<S, R> Default for PluginTable<S, R> {
    fn default() -> Self {
        Self { selectors: Ordered::default(), refused: Box::default() }
    }
}

impl<S, R> PluginTable<S, R> {
    /// Compiles the selectors of `plugin` and their rules.
    ///
    /// # Shape
    /// - `selectors`, `rules`: in order of arrival, of any plugin; the ones of others are passed over, and so
    ///   are rules of no selector here. Among equal `sort` the earlier comes first; an absent `sort` is 0.
    /// - `previous`: the table this one replaces, compiled with the same `plugin` and `invalids`. What it made of
    ///   a row that is still the same is taken over as it is.
    /// - `selector_payload`, `rule_payload`: what to keep for an entry, given what was kept for the one of its id
    ///   before. An error text refuses the entry for its field `handle`, whatever `invalids` says. Called once
    ///   for each entry that can be taken and was not taken over.
    /// - returns the table and what was refused, in the order of the lists.
    ///
    /// A disabled entry is not looked at, but for the last rule of a selector of type 0 ("full flow"), which
    /// takes that rule unconditionally.
    pub fn compile(
        plugin: &str,
        selectors: &[Row<SelectorData>],
        rules: &[Row<RuleData>],
        invalids: Invalids,
        previous: Option<&Self>,
        selector_payload: impl FnMut(&SelectorData, Option<&S>) -> Result<S, String>,
        rule_payload: impl FnMut(&RuleData, Option<&R>) -> Result<R, String>,
    ) -> (Self, Vec<Refused>) {
        let none = |_: &str| false;
        Self::compile_anew(plugin, selectors, rules, invalids, previous, none, selector_payload, rule_payload)
    }

    /// The same, but what is kept for some selectors is made anew although their rows are the same.
    ///
    /// - `outdated`: whether a selector is one of them, by its id.
    #[allow(clippy::too_many_arguments)]
    pub fn compile_anew(
        plugin: &str,
        selectors: &[Row<SelectorData>],
        rules: &[Row<RuleData>],
        invalids: Invalids,
        previous: Option<&Self>,
        outdated: impl Fn(&str) -> bool,
        selector_payload: impl FnMut(&SelectorData, Option<&S>) -> Result<S, String>,
        rule_payload: impl FnMut(&RuleData, Option<&R>) -> Result<R, String>,
    ) -> (Self, Vec<Refused>) {
        let mut compiler = Compiler { invalids, refused: Vec::new(), selector_payload, rule_payload };
        let before = previous.map_or_else(Before::none, Self::before);
        let former = previous.map(|previous| former_rules(previous.selectors.entries())).unwrap_or_default();
        let rules = Grouped::new(rules);
        let rows = sorted(selectors, plugin);
        let (mut compiled, mut refused) = (Vec::new(), Vec::new());
        for (row, fate) in rows.iter().zip(before.of(&rows)) {
            let row = (*row).clone();
            let id = row.head().id.unwrap_or_default();
            match compiler.selector(&row, fate, outdated(id)) {
                Fate::Taken(made) => {
                    let rules = compiler.rules(&row, rules.of(id).collect(), former.get(id).copied());
                    compiler.refused.extend(rules.refused.iter().map(|known| known.refused.clone()));
                    compiled.push(CompiledSelector { row, made, rules });
                }
                Fate::Refused(reason) => {
                    compiler.refused.push(reason.clone());
                    refused.push(Known { row, refused: reason });
                }
                Fate::LeftOut => {}
            }
        }
        let selectors = Ordered::after(previous.map(|previous| &previous.selectors), compiled);
        (Self { selectors, refused: refused.into() }, compiler.refused)
    }

    fn before(&self) -> Before<'_, SelectorData, S> {
        let selectors = self.selectors.entries().iter();
        Before::new(selectors.map(|selector| (&selector.row, &selector.made)), &self.refused)
    }

    /// The first selector whose conditions hold.
    ///
    /// # Errors
    /// With [`Invalids::Error`], when a selector that had to be tried cannot be evaluated.
    pub fn select(&self, view: &RequestView<'_>) -> Result<Option<&CompiledSelector<S, R>>, &MatchError> {
        self.selectors.first(view)
    }

    /// The selectors, in the order in which they are tried.
    pub fn selectors(&self) -> impl ExactSizeIterator<Item = &CompiledSelector<S, R>> {
        self.selectors.entries().iter()
    }

    /// Whether nothing can match.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.selectors.entries().is_empty()
    }
}

#[cfg(test)]
mod tests;
