//! Compiled selectors and rules.

use super::super::{condition::Conditions, error::MatchError, view::RequestView};

/// What selectors and rules have in common.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) id: Box<str>,
    pub(super) name: Box<str>,
    pub(super) index: usize,
    pub(super) logged: bool,
    pub(super) handle: Option<Box<str>>,
    pub(super) gate: Gate,
    pub(super) payload: T,
}

/// When an entry is taken.
#[derive(Debug)]
pub(super) enum Gate {
    Always,
    If(Conditions),
    /// Only with [`Invalids::Error`](super::Invalids::Error).
    Broken(MatchError),
}

impl Gate {
    pub(super) fn lets_through(&self, view: &RequestView<'_>) -> Result<bool, &MatchError> {
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
    pub(super) entry: Entry<R>,
}

impl<R> CompiledRule<R> {
    entry_accessors!(R);
}

/// A selector, compiled, with its rules and what the gateway made of its handle.
#[derive(Debug)]
pub struct CompiledSelector<S, R> {
    pub(super) entry: Entry<S>,
    pub(super) rules: Box<[CompiledRule<R>]>,
}

impl<S, R> CompiledSelector<S, R> {
    entry_accessors!(S);

    /// The first of its rules whose conditions hold; the last one, unconditionally, if it takes every
    /// request.
    ///
    /// # Errors
    /// With [`Invalids::Error`](super::Invalids::Error), when a rule that had to be tried cannot be evaluated.
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
