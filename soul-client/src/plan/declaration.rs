//! Annotated classes and routes with text of their own, so that a program may also compute them.

use std::borrow::Cow;

use super::{ClassDeclarations, shenyu::template};
use crate::{
    route::{Annotation, Collected, Place, Route},
    wire::soul::is_pattern,
};

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

impl ClassDeclarations {
    /// The same declarations below a prefix, as a router has them that was nested there: a variable in the prefix
    /// becomes a wildcard, and `/` below `/api` is `/api`, below `/api/` it is `/api/`.
    ///
    /// With axum, `soul_client::Scope` does this where it nests (feature `axum`).
    ///
    /// # Examples
    ///
    /// ```
    /// use soul_client::plan::ClassDeclarations;
    /// use soul_client::route::{Annotation, Collected, Route};
    ///
    /// let routes = Collected::group([], [Route::new(Annotation::new("/order/save"))]);
    /// let nested = ClassDeclarations::from(&routes).nested("/api");
    /// assert_eq!(nested.0[0].routes[0].path, "/api/order/save");
    /// ```
    #[must_use]
    pub fn nested(mut self, prefix: &str) -> Self {
        let text = prefix.trim_end_matches('/');
        if !text.is_empty() {
            let pattern = template::pattern(text).unwrap_or_else(|_| text.to_owned());
            let prefix = Prefix { text, pattern: &pattern, slash: if text == prefix { "" } else { "/" } };
            self.0.iter_mut().for_each(|class| class.nest(&prefix));
        }
        self
    }
}

/// What declarations are nested at.
struct Prefix<'a> {
    /// Without a slash at its end.
    text: &'a str,
    /// The same for admins that know no variables.
    pattern: &'a str,
    /// The slash that stood there.
    slash: &'a str,
}

impl ClassDeclaration {
    /// Whether anything is registered because of it.
    #[cfg(feature = "axum")]
    pub(crate) fn is_something(&self) -> bool {
        !self.routes.is_empty() || self.annotation.as_ref().is_some_and(|class| is_pattern(&class.path))
    }

    /// A class that stands for all its routes gets the prefix itself. Otherwise its routes get the class's path, too:
    /// with a wildcard in the prefix the class would become one that stands for all.
    fn nest(&mut self, prefix: &Prefix<'_>) {
        let Some(class) = &mut self.annotation else {
            self.routes.iter_mut().for_each(|route| route.nest(prefix, ""));
            return;
        };
        if is_pattern(&class.path) {
            class.path = [prefix.pattern, &class.path].concat().into();
            return;
        }
        let path = std::mem::take(&mut class.path);
        self.routes.iter_mut().for_each(|route| route.nest(prefix, &path));
    }
}

impl Attributes {
    fn nest(&mut self, prefix: &Prefix<'_>, class: &str) {
        let (text, whole) = if self.mounted {
            (prefix.text, template::join(&[class, &self.path]))
        } else {
            (prefix.pattern, [class, &self.path].concat())
        };
        // As a router does: the root is the prefix as it was written.
        let whole = if whole == "/" { prefix.slash } else { &whole };
        self.path = [text, whole].concat().into();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Class;

    #[test]
    fn prefix_goes_before_every_path_once() {
        let mounted = |path| Attributes { mounted: true, ..Attributes::new(path) };
        let class = |path, route| ClassDeclaration::new(Some(Attributes::new(path)), vec![route]);
        for (before, prefix, path) in [
            (class("", Attributes::new("/save")), "/api", "/api/save"),
            (class("", Attributes::new("/save")), "/api/", "/api/save"),
            (class("", Attributes::new("/save")), "/", "/save"),
            (class("", Attributes::new("/save")), "", "/save"),
            (class("/order", Attributes::new("/save")), "/api", "/api/order/save"),
            (class("/order", Attributes::new("save")), "/api", "/api/ordersave"),
            (class("/order", mounted("save")), "/api", "/api/order/save"),
            (class("", Attributes::new("/")), "/api", "/api"),
            (class("", mounted("/")), "/api", "/api"),
            (class("", mounted("/")), "/api/", "/api/"),
            (class("", Attributes::new("/")), "/api/", "/api/"),
            (class("/order", mounted("/")), "/api", "/api/order/"),
            (class("/order", Attributes::new("/save")), "/{tenant}", "/*/order/save"),
            (class("/order", mounted("/{id}")), "/a/{tenant}", "/a/{tenant}/order/{id}"),
            (ClassDeclaration::new(None, vec![Attributes::new("/save")]), "/api", "/api/save"),
        ] {
            let nested = ClassDeclarations(vec![before.clone()]).nested(prefix);
            let class = nested.0[0].annotation.as_ref().map_or("", |class| &class.path);
            assert_eq!([class, &*nested.0[0].routes[0].path].concat(), path, "{before:?}");
        }
        let twice = ClassDeclarations(vec![class("/order", mounted("/{id}"))]).nested("/v1").nested("/api");
        assert_eq!(twice.0[0].routes[0].path, "/api/v1/order/{id}");
    }

    #[test]
    fn class_that_stands_for_all_keeps_doing_so() {
        let collected = Collected::group([Class::new("m", Annotation::new("/test/**"))], []);
        let nested = ClassDeclarations::from(&collected).nested("/{tenant}/api");
        assert_eq!(nested.0[0].annotation.as_ref().unwrap().path, "/*/api/test/**");
    }
}
