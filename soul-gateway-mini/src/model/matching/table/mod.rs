//! The selectors and rules of one plugin, compiled and in the order in which they are tried.

mod compile;
mod entry;

use std::fmt;

use soul_client::wire::soul::{RuleData, SelectorData};

use super::{error::MatchError, view::RequestView};
use compile::{Compiler, group, sorted};

pub use entry::{CompiledRule, CompiledSelector};

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

#[cfg(test)]
mod tests;
