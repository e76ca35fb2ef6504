//! One thing to register, ready to send.

use std::{cmp::Ordering, fmt};

use super::PlanError;
use crate::{
    route::Place,
    wire::{gson, soul::MetaDataRegisterDto},
};

/// One body for one endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    endpoint: Option<&'static str>,
    path: String,
    rule_name: String,
    rpc_type: String,
    body: String,
    place: Option<Place>,
    /// Whether metadata goes with it.
    has_meta_data: bool,
    /// Position among the declarations; what a later write to the same node of a registry is decided by.
    order: usize,
    /// ShenYu only.
    namespace: Option<String>,
    /// The body as values, where a registry wants them (2.3.0).
    meta_data: Option<MetaDataRegisterDto>,
}

/// What every dialect says of a registration besides its body.
pub(super) struct Label {
    pub(super) endpoint: Option<&'static str>,
    pub(super) path: String,
    pub(super) rule_name: String,
    pub(super) rpc_type: String,
    pub(super) place: Option<Place>,
    pub(super) has_meta_data: bool,
}

impl Registration {
    pub(super) fn new<T: serde::Serialize>(label: Label, dto: &T) -> Result<Self, PlanError> {
        let body = gson::to_plain(dto).map_err(PlanError::unwritable)?;
        let Label { endpoint, path, rule_name, rpc_type, place, has_meta_data } = label;
        Ok(Self {
            endpoint,
            path,
            rule_name,
            rpc_type,
            body,
            place,
            has_meta_data,
            order: 0,
            namespace: None,
            meta_data: None,
        })
    }

    pub(super) fn with_meta_data(mut self, meta_data: MetaDataRegisterDto) -> Self {
        self.meta_data = Some(meta_data);
        self
    }

    pub(super) fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    pub(super) fn declared(mut self, order: usize) -> Self {
        self.order = order;
        self
    }

    pub(super) fn meta_data(&self) -> Option<&MetaDataRegisterDto> {
        self.meta_data.as_ref()
    }

    pub(super) fn order(&self) -> usize {
        self.order
    }

    /// Path below the admin's address that the body is posted to. `None` for a kind that the dialect knows
    /// no endpoint for; the Java client of 2.3.0 then appends the four letters `null`.
    #[must_use]
    pub fn endpoint(&self) -> Option<&'static str> {
        self.endpoint
    }

    /// Full path that is registered.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Name of the rule.
    #[must_use]
    pub fn rule_name(&self) -> &str {
        &self.rule_name
    }

    /// What the gateway calls it by: `http` or `springCloud`.
    #[must_use]
    pub fn rpc_type(&self) -> &str {
        &self.rpc_type
    }

    /// Whether metadata is registered beside the rule.
    #[must_use]
    pub fn has_meta_data(&self) -> bool {
        self.has_meta_data
    }

    /// Id of the namespace; `None` with Soul.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The JSON text that is sent.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Where it was declared; `None` in full mode.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.place
    }

    /// What makes two declarations the same thing to an admin.
    fn identity(&self) -> (&str, &str, &str, Option<&str>) {
        (&self.path, &self.rule_name, &self.rpc_type, self.namespace())
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.identity()
            .cmp(&other.identity())
            .then_with(|| self.place.cmp(&other.place))
            .then_with(|| self.order.cmp(&other.order))
    }
}

/// A path that was declared twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    first: Option<Place>,
    again: Registration,
}

impl Repeat {
    /// Where the declaration stands that is registered.
    #[must_use]
    pub fn first(&self) -> Option<Place> {
        self.first
    }

    /// The declaration that is left out.
    #[must_use]
    pub fn again(&self) -> &Registration {
        &self.again
    }
}

impl fmt::Display for Repeat {
    /// Names both places, as compilers do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |place: Option<Place>| place.map_or_else(|| "(unknown place)".to_owned(), |p| p.to_string());
        let (path, first, again) = (&self.again.path, at(self.first), at(self.again.place));
        write!(f, "`{path}` is declared twice, at {first} and at {again}: the first one is registered")
    }
}

/// Sorts, and takes out what was declared before.
pub(super) fn sort_and_part(mut declared: Vec<Registration>) -> (Vec<Registration>, Vec<Repeat>) {
    declared.sort_by(Registration::compare);
    let mut kept: Vec<Registration> = Vec::with_capacity(declared.len());
    let mut repeats = Vec::new();
    for registration in declared {
        match kept.last() {
            Some(last) if last.identity() == registration.identity() => {
                repeats.push(Repeat { first: last.place, again: registration });
            }
            _ => kept.push(registration),
        }
    }
    (kept, repeats)
}
