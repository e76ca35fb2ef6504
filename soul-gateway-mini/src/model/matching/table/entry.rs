//! Compiled selectors and rules.

use std::sync::Arc;

use soul_client::wire::soul::{RuleData, SelectorData};

use super::{
    super::{condition::Conditions, error::MatchError, index::Filings, view::RequestView},
    ordered::{Gated, Ordered},
    reuse::{Known, Named},
};
use crate::model::{Row, address};

/// What was made of a row. It is kept from table to table for as long as the row stays the same.
#[derive(Debug)]
pub(super) struct Made<T> {
    pub(super) gate: Gate,
    pub(super) logged: bool,
    pub(super) payload: T,
}

/// When an entry is taken.
#[derive(Debug)]
pub(super) enum Gate {
    Always,
    If(Conditions),
    /// Only with [`Invalids::Error`](super::Invalids::Error).
    Broken(Box<MatchError>),
}

impl Gate {
    pub(super) fn lets_through(&self, view: &RequestView<'_>) -> Result<bool, &MatchError> {
        match self {
            Self::Always => Ok(true),
            Self::If(conditions) => conditions.hold(view),
            Self::Broken(reason) => Err(reason),
        }
    }

    /// Ways to find the requests that it lets through. Worked out anew for each index: kept, they would take as much
    /// memory as all the rest of an entry.
    pub(super) fn filings(&self) -> Filings {
        match self {
            Self::If(conditions) => conditions.filings(),
            Self::Always | Self::Broken(_) => Filings::default(),
        }
    }
}

macro_rules! entry_accessors {
    ($payload:ty) => {
        /// Its id, empty when it has none.
        #[must_use]
        pub fn id(&self) -> &str {
            self.row.head().id.unwrap_or_default()
        }

        /// Its name, empty when it has none.
        #[must_use]
        pub fn name(&self) -> &str {
            self.row.head().name.unwrap_or_default()
        }

        /// Whether a match is to be logged.
        #[must_use]
        pub fn is_logged(&self) -> bool {
            self.made.logged
        }

        /// What the gateway made of its handle.
        #[must_use]
        pub fn payload(&self) -> &$payload {
            &self.made.payload
        }
    };
}

/// A rule, compiled, with what the gateway made of its handle.
#[derive(Debug)]
pub struct CompiledRule<R> {
    pub(super) row: Row<RuleData>,
    pub(super) made: Arc<Made<R>>,
}

impl<R> CompiledRule<R> {
    entry_accessors!(R);
}

impl<R> Gated for CompiledRule<R> {
    fn gate(&self) -> &Gate {
        &self.made.gate
    }

    fn address(&self) -> usize {
        address(&self.made)
    }

    fn has_gate_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.made, &other.made) || {
            let asked = |row| {
                let row = RuleData::from(row);
                (row.enabled, row.match_mode, row.condition_data_list)
            };
            asked(&self.row) == asked(&other.row)
        }
    }
}

/// The rules of one selector.
#[derive(Debug)]
pub(super) struct Rules<R> {
    /// Whether the selector takes every request, and the last rule with it.
    pub(super) full: bool,
    pub(super) list: Ordered<CompiledRule<R>>,
    pub(super) refused: Box<[Known<RuleData>]>,
}

/// A selector, compiled, with its rules and what the gateway made of its handle.
#[derive(Debug)]
pub struct CompiledSelector<S, R> {
    pub(super) row: Row<SelectorData>,
    pub(super) made: Arc<Made<S>>,
    pub(super) rules: Arc<Rules<R>>,
}

impl<S, R> CompiledSelector<S, R> {
    entry_accessors!(S);

    /// The first of its rules whose conditions hold; the last one, unconditionally, if it takes every
    /// request.
    ///
    /// # Errors
    /// With [`Invalids::Error`](super::Invalids::Error), when a rule that had to be tried cannot be evaluated.
    pub fn rule(&self, view: &RequestView<'_>) -> Result<Option<&CompiledRule<R>>, &MatchError> {
        self.rules.list.first(view)
    }

    /// Its rules, in the order in which they are tried.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &CompiledRule<R>> {
        self.rules.list.entries().iter()
    }
}

impl<S, R> Gated for CompiledSelector<S, R> {
    fn gate(&self) -> &Gate {
        &self.made.gate
    }

    fn address(&self) -> usize {
        address(&self.made)
    }

    fn has_gate_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.made, &other.made) || {
            let asked = |row| {
                let row = SelectorData::from(row);
                (row.enabled, row.kind, row.match_mode, row.condition_list)
            };
            asked(&self.row) == asked(&other.row)
        }
    }
}

impl Named for Row<SelectorData> {
    fn id(&self) -> Option<&str> {
        self.head().id
    }
}

impl Named for Row<RuleData> {
    fn id(&self) -> Option<&str> {
        self.head().id
    }
}
