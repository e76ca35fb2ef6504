//! What the annotations of a program say: [`Route`] for a handler, [`Class`] for a module of handlers.
//!
//! Both are plain constants. The attribute `#[soul_client]` submits them at link time and [`collected`]
//! hands them out; written by hand and passed to [`Collected::group`] they give the same result where
//! link-time collection is not available. Paths are kept exactly as written: joining them with the
//! context path and the rule about wildcards of a class belong to the registration plan.

use std::{fmt, panic::Location};

mod annotation;
mod collected;

pub use annotation::{Annotation, RpcType};
pub use collected::{ClassRoutes, Collected, collected};

/// What to look at when [`collected`] is empty although the program has annotated handlers.
#[cfg(feature = "macros")]
pub const EMPTY_HINT: &str = "no annotated handler was linked into this program: handlers in a dependency crate \
     that the program never names are left out by the linker, `use that_crate as _;` brings them back";

/// What to look at when [`collected`] is empty although the program has annotated handlers.
#[cfg(not(feature = "macros"))]
pub const EMPTY_HINT: &str = "`soul-client` was built without the feature `macros`, which collects annotated \
     handlers: turn it on, or pass the routes explicitly";

/// Where in the source an annotation stands; lines and columns count from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Place {
    /// File as the compiler was given it.
    pub file: &'static str,
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

impl Place {
    /// The place of the caller.
    #[must_use]
    #[track_caller]
    pub const fn here() -> Self {
        let caller = Location::caller();
        Self { file: caller.file(), line: caller.line(), column: caller.column() }
    }
}

impl fmt::Display for Place {
    /// `src/orders.rs:12:5`, which editors and terminals turn into a link.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One annotated handler.
///
/// # Examples
///
/// Without the attribute, for a handler that is registered explicitly:
///
/// ```
/// use soul_client::route::{Annotation, Route};
///
/// const SAVE: Route = Route::new(Annotation::new("/order/save")).handler("save").module(module_path!());
/// assert_eq!(SAVE.annotation.path, "/order/save");
/// assert!(SAVE.place.file.ends_with(".rs"), "the place is that of the call to `new`");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// What was annotated.
    pub annotation: Annotation,
    /// Module that contains the handler, `crate_name::orders`; empty: stands in no class.
    pub module: &'static str,
    /// Name of the function; may be empty when written by hand.
    pub handler: &'static str,
    /// Where the annotation stands.
    pub place: Place,
    /// How the handler gets into a router, if the annotation says so (`#[soul_client(get, …)]`).
    pub mount: Option<Mount>,
}

/// How a handler gets into a router: known to the attribute and to `soul_client::router` only.
///
/// Two of them are equal: what tells routes apart is everything else about them.
#[derive(Clone, Copy)]
pub struct Mount {
    /// Names of methods, `any` for all.
    #[cfg_attr(not(feature = "axum"), allow(dead_code, reason = "only a router reads it"))]
    pub(crate) methods: &'static [&'static str],
    /// Gives a `MethodRouter`.
    #[cfg_attr(not(feature = "axum"), allow(dead_code, reason = "only a router reads it"))]
    pub(crate) build: fn() -> Box<dyn std::any::Any>,
}

impl PartialEq for Mount {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Mount {}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mount")
    }
}

impl Route {
    /// A route in no module and without a name; its place is that of the caller.
    #[must_use]
    #[track_caller]
    pub const fn new(annotation: Annotation) -> Self {
        Self { annotation, module: "", handler: "", place: Place::here(), mount: None }
    }

    /// Says how the handler gets into a router; the attribute does.
    #[doc(hidden)]
    #[must_use]
    pub const fn mount(mut self, mount: Mount) -> Self {
        self.mount = Some(mount);
        self
    }

    /// Sets the module of the handler, as `module_path!()` gives it (default: empty, no class).
    #[must_use]
    pub const fn module(mut self, module: &'static str) -> Self {
        self.module = module;
        self
    }

    /// Sets the name of the handler, for messages (default: empty).
    #[must_use]
    pub const fn handler(mut self, handler: &'static str) -> Self {
        self.handler = handler;
        self
    }
}

/// The annotation of a module of handlers, which stands for Soul's annotation of a controller class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Class {
    /// What was annotated.
    pub annotation: Annotation,
    /// The annotated module itself, `crate_name::orders`.
    pub module: &'static str,
    /// Where the annotation stands.
    pub place: Place,
}

impl Class {
    /// The annotation of `module`, written as `module_path!()` gives it inside that module.
    #[must_use]
    #[track_caller]
    pub const fn new(module: &'static str, annotation: Annotation) -> Self {
        Self { annotation, module, place: Place::here() }
    }
}

#[cfg(feature = "macros")]
inventory::collect!(Route);
#[cfg(feature = "macros")]
inventory::collect!(Class);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_that_of_the_caller() {
        const HERE: Route = Route::new(Annotation::new("/x"));
        let line = line!() - 1;
        assert_eq!(HERE.place.line, line);
        assert!(HERE.place.to_string().ends_with(&format!("mod.rs:{line}:29")), "{}", HERE.place);
    }
}
