//! Annotated classes and routes with text of their own, so that a program may also compute them.

use std::borrow::Cow;

use super::ClassDeclarations;
use crate::route::{Annotation, Collected, Place, Route};

/// The attributes of one annotation; what [`Annotation`] says as a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributes {
    /// Path below the context path, as written.
    pub path: Cow<'static, str>,
    /// Name of the rule; empty or blank stands for the full path.
    pub rule_name: Cow<'static, str>,
    /// Description.
    pub desc: Cow<'static, str>,
    /// What the gateway calls the route by; `None`: what the client is.
    pub rpc_type: Option<Cow<'static, str>>,
    /// Whether the metadata is enabled.
    pub enabled: bool,
    /// Whether metadata is registered too.
    pub register_meta_data: bool,
    /// Module of the handler, or the annotated module itself; may be empty.
    pub module: Cow<'static, str>,
    /// Name of the handler; may be empty.
    pub handler: Cow<'static, str>,
    /// Whether the handler is mounted by its annotation, so that its path is written as axum has it. Soul is then
    /// told of wildcards in the place of variables, as ShenYu always is.
    pub mounted: bool,
    /// Where it was declared.
    pub place: Option<Place>,
}

impl Attributes {
    /// Attributes with Soul's defaults and no place.
    #[must_use]
    pub fn new(path: impl Into<Cow<'static, str>>) -> Self {
        Self {
            path: path.into(),
            rule_name: "".into(),
            desc: "".into(),
            rpc_type: None,
            enabled: true,
            register_meta_data: false,
            module: "".into(),
            handler: "".into(),
            mounted: false,
            place: None,
        }
    }

    fn of(annotation: &Annotation, place: Place, module: &'static str, handler: &'static str) -> Self {
        Self {
            path: annotation.path.into(),
            rule_name: annotation.rule_name.into(),
            desc: annotation.desc.into(),
            rpc_type: annotation.rpc_type.map(|rpc_type| rpc_type.as_str().into()),
            enabled: annotation.enabled,
            register_meta_data: annotation.register_meta_data,
            module: module.into(),
            handler: handler.into(),
            mounted: false,
            place: Some(place),
        }
    }

    fn of_route(route: &Route) -> Self {
        let own = Self::of(&route.annotation, route.place, route.module, route.handler);
        Self { mounted: route.mount.is_some(), ..own }
    }
}

/// A class of handlers: in Rust a module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassDeclaration {
    /// Annotation of the class. A class without one is scanned with an empty prefix by Feb-2021 and passed
    /// over by 2.3.0.
    pub annotation: Option<Attributes>,
    /// Its annotated routes.
    pub routes: Vec<Attributes>,
}

impl ClassDeclaration {
    /// A class with these routes.
    #[must_use]
    pub fn new(annotation: Option<Attributes>, routes: Vec<Attributes>) -> Self {
        Self { annotation, routes }
    }
}

impl From<&Collected> for ClassDeclarations {
    /// Handlers outside any annotated module are a class with an empty path: Rust knows no class to annotate
    /// around them, and 2.3.0 would otherwise pass over them.
    fn from(collected: &Collected) -> Self {
        let classes = collected.classes.iter().map(|entry| {
            let class = &entry.class;
            let annotation = Attributes::of(&class.annotation, class.place, class.module, "");
            ClassDeclaration::new(Some(annotation), entry.routes.iter().map(Attributes::of_route).collect())
        });
        let free = collected.routes.iter().map(Attributes::of_route).collect();
        let free = ClassDeclaration::new(Some(Attributes::new("")), free);
        Self(classes.chain([free]).collect())
    }
}
