//! What the annotations of a program say: [`Route`] for a handler, [`Class`] for a module of handlers.
//!
//! Both are plain constants. The attribute `#[soul_client]` submits them at link time and [`collected`]
//! hands them out; written by hand and passed to [`Collected::group`] they give the same result where
//! link-time collection is not available. Paths are kept exactly as written: joining them with the
//! context path and the rule about wildcards of a class belong to the registration plan.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;

/// What to look at when [`collected`] is empty although the program has annotated handlers.
#[cfg(feature = "macros")]
pub const EMPTY_HINT: &str = "no annotated handler was linked into this program: handlers in a dependency crate \
     that the program never names are left out by the linker, `use that_crate as _;` brings them back";

/// What to look at when [`collected`] is empty although the program has annotated handlers.
#[cfg(not(feature = "macros"))]
pub const EMPTY_HINT: &str = "`soul-client` was built without the feature `macros`, which collects annotated \
     handlers: turn it on, or pass the routes explicitly";

/// How the gateway calls a route; decides which plugin of Soul gets the selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RpcType {
    /// Plain HTTP, `http` on the wire.
    Http,
    /// By the service's name in a Spring Cloud registry, `springCloud` on the wire.
    SpringCloud,
}

impl RpcType {
    /// Every kind that a Rust service can be registered as.
    pub const ALL: &[Self] = &[Self::Http, Self::SpringCloud];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::SpringCloud => "springCloud",
        }
    }
}

impl fmt::Display for RpcType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The attributes of Soul's annotation, the same for a handler and for a class.
///
/// # Examples
///
/// ```
/// use soul_client::route::Annotation;
///
/// const SAVE: Annotation = Annotation::new("/save").desc("Save order").register_meta_data(true);
/// assert!(SAVE.enabled);
/// assert_eq!(SAVE.rule_name, "", "the path names the rule");
/// ```
///
/// # Source
/// Soul specification, section 1.8 (`@SoulSpringMvcClient`, `@SoulSpringCloudClient`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annotation {
    /// Path below the context path (and below the path of the class), as written.
    pub path: &'static str,
    /// Name of the rule in the admin; empty: the full path is the name.
    pub rule_name: &'static str,
    /// Description shown by the admin; may be empty.
    pub desc: &'static str,
    /// `None`: what the client is, `http` or `springCloud`.
    pub rpc_type: Option<RpcType>,
    /// Whether the metadata is enabled. An admin makes selector and rule enabled in any case, as in Java.
    pub enabled: bool,
    /// Whether metadata is registered beside the rule; Soul heeds it for `http` only.
    pub register_meta_data: bool,
}

impl Annotation {
    /// An annotation with Soul's defaults: enabled, no metadata, named by its path.
    #[must_use]
    pub const fn new(path: &'static str) -> Self {
        Self { path, rule_name: "", desc: "", rpc_type: None, enabled: true, register_meta_data: false }
    }

    /// Names the rule; an empty name stands for the full path (default).
    #[must_use]
    pub const fn rule_name(mut self, rule_name: &'static str) -> Self {
        self.rule_name = rule_name;
        self
    }

    /// Describes the route for the people at the admin (default: empty).
    #[must_use]
    pub const fn desc(mut self, desc: &'static str) -> Self {
        self.desc = desc;
        self
    }

    /// Sets how the gateway calls the route (default: what the client is).
    #[must_use]
    pub const fn rpc_type(mut self, rpc_type: RpcType) -> Self {
        self.rpc_type = Some(rpc_type);
        self
    }

    /// Sets whether the metadata is enabled (default: yes); selector and rule are in any case.
    #[must_use]
    pub const fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets whether metadata is registered too (default: no).
    #[must_use]
    pub const fn register_meta_data(mut self, register_meta_data: bool) -> Self {
        self.register_meta_data = register_meta_data;
        self
    }
}

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

/// A class with the routes that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassRoutes {
    /// The annotation of the module.
    pub class: Class,
    /// Routes whose nearest annotated module this is; may be empty.
    pub routes: Vec<Route>,
}

/// Every annotation of a program, grouped and in an order that is the same in every run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Annotated modules, sorted by module, path and place.
    pub classes: Vec<ClassRoutes>,
    /// Routes in no annotated module, sorted by module, path and place.
    pub routes: Vec<Route>,
}

impl Collected {
    /// Sorts annotations and gives every route to its nearest enclosing class.
    ///
    /// A module encloses another only at a border of names: `shop::order` does not enclose
    /// `shop::orders`. A module annotated twice is two classes, and each gets the routes.
    ///
    /// Annotations that are equal down to their place are one: attributes such as axum's `debug_handler`
    /// copy the function below them, its annotation included. A path that is given at two places is kept
    /// twice, for the plan to complain about.
    ///
    /// # Examples
    ///
    /// ```
    /// use soul_client::route::{Annotation, Class, Collected, Route};
    ///
    /// let collected = Collected::group(
    ///     [Class::new("shop::order", Annotation::new("/order"))],
    ///     [
    ///         Route::new(Annotation::new("/save")).module("shop::order::write"),
    ///         Route::new(Annotation::new("/list")).module("shop::orders"),
    ///     ],
    /// );
    /// assert_eq!(collected.classes[0].routes[0].annotation.path, "/save");
    /// assert_eq!(collected.routes[0].annotation.path, "/list");
    /// ```
    #[must_use]
    pub fn group(classes: impl IntoIterator<Item = Class>, routes: impl IntoIterator<Item = Route>) -> Self {
        let classes: Vec<_> = classes.into_iter().collect();
        let routes: Vec<_> = routes.into_iter().collect();
        Self::group_refs(classes.iter().collect(), routes.iter().collect())
    }

    /// By reference, because sorting moves: with thousands of routes that is most of the time.
    fn group_refs(mut classes: Vec<&Class>, mut routes: Vec<&Route>) -> Self {
        classes.sort_by(order);
        classes.dedup();
        routes.sort_by(order);
        routes.dedup();

        let mut by_module: HashMap<Cow<'static, str>, Vec<usize>> = HashMap::new();
        for (index, class) in classes.iter().enumerate() {
            by_module.entry(plain(class.module)).or_default().push(index);
        }
        let mut collected = Self {
            classes: classes.into_iter().map(|&class| ClassRoutes { class, routes: Vec::new() }).collect(),
            routes: Vec::new(),
        };
        for siblings in routes.chunk_by(|a, b| a.module == b.module) {
            let module = plain(siblings[0].module);
            let siblings = siblings.iter().map(|route| **route);
            match enclosing(&module).find_map(|outer| by_module.get(outer)) {
                Some(owners) => {
                    for &index in owners {
                        collected.classes[index].routes.extend(siblings.clone());
                    }
                }
                None => collected.routes.extend(siblings),
            }
        }
        collected
    }

    /// What is annotated in a module and the modules in it, as `module_path!()` names it. Routes keep their class, even
    /// if that is a module around this one.
    ///
    /// # Examples
    ///
    /// ```
    /// use soul_client::route::{Annotation, Collected, Route};
    ///
    /// let route = |module| Route::new(Annotation::new("/list")).module(module);
    /// let all = Collected::group([], [route("shop::orders::read"), route("shop::orders2"), route("shop")]);
    /// assert_eq!(all.within("shop::orders").routes, [route("shop::orders::read")]);
    /// ```
    #[must_use]
    pub fn within(&self, module: &str) -> Self {
        let outer = plain(module);
        let is_inside = |module: &'static str| {
            let module = plain(module);
            enclosing(&module).any(|around| around == &*outer)
        };
        let inside = |routes: &[Route]| -> Vec<Route> {
            routes.iter().filter(|route| is_inside(route.module)).copied().collect()
        };
        let classes = self.classes.iter().filter_map(|entry| {
            let routes = inside(&entry.routes);
            (is_inside(entry.class.module) || !routes.is_empty())
                .then_some(ClassRoutes { class: entry.class, routes })
        });
        Self { classes: classes.collect(), routes: inside(&self.routes) }
    }

    /// The routes that `keep` says yes to, and the classes that have any or are routes themselves.
    #[cfg(feature = "axum")]
    pub(crate) fn only(&self, keep: impl Fn(&Route) -> bool) -> Self {
        let kept =
            |routes: &[Route]| -> Vec<Route> { routes.iter().filter(|route| keep(route)).copied().collect() };
        let classes = self.classes.iter().filter_map(|entry| {
            let routes = kept(&entry.routes);
            // With handlers of the other sort only, it is the other sort's class.
            (entry.routes.is_empty() || !routes.is_empty())
                .then_some(ClassRoutes { class: entry.class, routes })
        });
        Self { classes: classes.collect(), routes: kept(&self.routes) }
    }

    /// Whether nothing was annotated; [`EMPTY_HINT`] says what to do about it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty() && self.routes.is_empty()
    }
}

/// Gathers what `#[soul_client]` submitted, in this program and in the crates linked into it.
///
/// Without the feature `macros` nothing is submitted and the result is empty.
#[must_use]
pub fn collected() -> Collected {
    #[cfg(feature = "macros")]
    return Collected::group_refs(inventory::iter::<Class>().collect(), inventory::iter::<Route>().collect());
    #[cfg(not(feature = "macros"))]
    Collected::default()
}

/// What decides the order of annotations: the linker's order says nothing.
trait Annotated {
    /// Module, path, place, name.
    fn key(&self) -> (&'static str, &'static str, Place, &'static str);
}

impl Annotated for Route {
    fn key(&self) -> (&'static str, &'static str, Place, &'static str) {
        (self.module, self.annotation.path, self.place, self.handler)
    }
}

impl Annotated for Class {
    fn key(&self) -> (&'static str, &'static str, Place, &'static str) {
        (self.module, self.annotation.path, self.place, "")
    }
}

fn order<T: Annotated>(a: &&T, b: &&T) -> std::cmp::Ordering {
    a.key().cmp(&b.key())
}

/// `a::b::c`, `a::b`, `a`: a module and those around it, nearest first.
fn enclosing(module: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(module), |inner| inner.rsplit_once("::").map(|(outer, _)| outer))
        .filter(|module| !module.is_empty())
}

/// Drops the `r#` of raw names: the compiler prints it for keywords only, sources may write it anywhere.
fn plain(module: &str) -> Cow<'_, str> {
    if module.contains("r#") { Cow::Owned(module.replace("r#", "")) } else { Cow::Borrowed(module) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn route(module: &'static str, path: &'static str) -> Route {
        Route::new(Annotation::new(path)).module(module)
    }

    const fn class(module: &'static str, path: &'static str) -> Class {
        Class::new(module, Annotation::new(path))
    }

    fn paths(routes: &[Route]) -> Vec<&'static str> {
        routes.iter().map(|route| route.annotation.path).collect()
    }

    #[test]
    fn route_belongs_to_the_nearest_class() {
        let collected = Collected::group(
            [class("shop::order", "/order"), class("shop", "/shop"), class("shop::order::admin", "/admin")],
            [
                route("shop", "/health"),
                route("shop::order", "/save"),
                route("shop::order::read", "/find"),
                route("shop::order::admin::deep", "/purge"),
                route("shopping", "/cart"),
                route("shop::orders", "/list"),
                route("", "/by-hand"),
            ],
        );
        let classes: Vec<_> =
            collected.classes.iter().map(|c| (c.class.annotation.path, paths(&c.routes))).collect();
        assert_eq!(
            classes,
            [
                ("/shop", vec!["/health", "/list"]),
                ("/order", vec!["/save", "/find"]),
                ("/admin", vec!["/purge"]),
            ]
        );
        assert_eq!(paths(&collected.routes), ["/by-hand", "/cart"]);
    }

    #[test]
    fn order_does_not_depend_on_the_input() {
        let routes = [route("a", "/2"), route("a", "/1"), route("b", "/0"), route("a", "/1").handler("f")];
        let classes = [class("b", "/x"), class("a", "/y"), class("a", "/x")];
        let forward = Collected::group(classes, routes);
        let backward = Collected::group(classes.into_iter().rev(), routes.into_iter().rev());
        assert_eq!(forward, backward);
        assert_eq!(paths(&forward.classes[0].routes), ["/1", "/1", "/2"]);
    }

    #[test]
    fn copy_of_an_annotation_is_the_same_one() {
        let save = Route::new(Annotation::new("/save"));
        let elsewhere = Route::new(Annotation::new("/save"));
        let collected = Collected::group([class("a", "/a"), class("a", "/a")], [save, elsewhere, save]);
        assert_eq!(collected.routes, [save, elsewhere]);
        assert_eq!(collected.classes.len(), 1);
    }

    #[test]
    fn module_annotated_twice_gives_its_routes_to_both() {
        let collected = Collected::group([class("a", "/new"), class("a", "/old")], [route("a", "/save")]);
        assert_eq!(paths(&collected.classes[0].routes), ["/save"]);
        assert_eq!(paths(&collected.classes[1].routes), ["/save"]);
        assert!(collected.routes.is_empty());
    }

    #[test]
    fn raw_module_names_are_the_same_modules() {
        let collected = Collected::group([class("a::r#order", "/order")], [route("a::order::r#in", "/save")]);
        assert_eq!(paths(&collected.classes[0].routes), ["/save"]);
    }

    #[test]
    fn class_without_a_module_takes_no_routes() {
        let collected = Collected::group([class("", "/x")], [route("", "/save")]);
        assert!(collected.classes[0].routes.is_empty());
        assert_eq!(paths(&collected.routes), ["/save"]);
    }

    #[test]
    fn place_is_that_of_the_caller() {
        const HERE: Route = Route::new(Annotation::new("/x"));
        let line = line!() - 1;
        assert_eq!(HERE.place.line, line);
        assert!(HERE.place.to_string().ends_with(&format!("route.rs:{line}:29")), "{}", HERE.place);
    }

    #[test]
    fn nothing_collected_is_empty() {
        assert!(Collected::group([], []).is_empty());
        assert!(!Collected::group([class("a", "/a")], []).is_empty());
    }
}
