//! The annotations of a program together: sorted, and every route with its class.

use std::{borrow::Cow, collections::HashMap};

use super::{Class, Place, Route};

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

    /// Whether nothing was annotated; [`EMPTY_HINT`](super::EMPTY_HINT) says what to do about it.
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
    use crate::route::Annotation;

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
    fn nothing_collected_is_empty() {
        assert!(Collected::group([], []).is_empty());
        assert!(!Collected::group([class("a", "/a")], []).is_empty());
    }
}
