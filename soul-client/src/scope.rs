//! A router together with what is registered because of it, so that a prefix is written once.

use std::fmt;

use axum::Router;

use crate::{
    error::{Error, Problem},
    mount,
    plan::{ClassDeclaration, ClassDeclarations},
    route::{self, Collected},
};

/// A router, and the routes that are registered because it serves them.
///
/// What is nested in a scope is served *and* registered below the prefix. A plain `Router` nested in another one cannot
/// be followed: nobody tells it what the annotations of its handlers say.
///
/// Routes come in by the module that they are annotated in, with the handlers mounted by their annotations
/// ([`mounted`](Self::mounted)) or by a router of one's own ([`routed`](Self::routed)). Mistakes are kept and told by
/// [`into_parts`](Self::into_parts), and so by [`serve`](crate::serve).
///
/// # Examples
///
/// ```standalone_crate
/// use axum::{Router, routing::post};
/// use soul_client::{Scope, soul_client};
///
/// mod orders {
///     use axum::extract::{Path, State};
///     use soul_client::{Scope, soul_client};
///
///     #[soul_client(get, path = "/order/{id}", state = crate::Shop)]
///     async fn find(State(shop): State<crate::Shop>, Path(id): Path<u64>) -> String {
///         format!("order {id} of {}", shop.0)
///     }
///
///     pub fn scope() -> Scope<crate::Shop> {
///         Scope::mounted(module_path!())
///     }
/// }
///
/// mod admin {
///     use super::*;
///
///     #[soul_client(path = "/purge")]
///     async fn purge() {}
///
///     pub fn scope() -> Scope<Shop> {
///         Scope::routed(module_path!(), Router::new().route("/purge", post(purge)))
///     }
/// }
///
/// #[derive(Clone)]
/// struct Shop(&'static str);
///
/// # fn main() -> Result<(), soul_client::Error> {
/// let api = Scope::new().nest("/v1", orders::scope()).nest("/admin", admin::scope());
/// let app = Scope::new().nest("/api", api).with_state(Shop("books"));
/// // Or `soul_client::serve(listener, app, config)`.
/// let (router, routes) = app.into_parts()?;
/// # let paths: Vec<_> = routes.0.iter().flat_map(|class| &class.routes).map(|route| &*route.path).collect();
/// assert_eq!(paths, ["/api/v1/order/{id}", "/api/admin/purge"]);
/// # drop(router);
/// # Ok(())
/// # }
/// ```
#[must_use = "a scope serves and registers nothing by itself"]
pub struct Scope<S = ()> {
    router: Router<S>,
    classes: Vec<ClassDeclaration>,
    problems: Vec<Problem>,
}

impl<S: Clone + Send + Sync + 'static> Scope<S> {
    /// Nothing, to nest in and merge with.
    pub fn new() -> Self {
        Self { router: Router::new(), classes: Vec::new(), problems: Vec::new() }
    }

    /// Every handler of the program that its annotation mounts, as [`router`](crate::router) has it.
    pub fn collected() -> Self {
        Self::mounted_of(&route::collected())
    }

    /// The handlers of a module and of those in it that their annotations mount, as [`router`](crate::router) mounts
    /// them. The module is what `module_path!()` gives in it.
    pub fn mounted(module: &str) -> Self {
        Self::mounted_of(&route::collected().within(module)).unless_empty(module, "mounted")
    }

    /// As [`mounted`](Self::mounted), of these routes.
    pub fn mounted_of(collected: &Collected) -> Self {
        let (router, problems) = match mount::router_of(collected) {
            Ok(router) => (router, Vec::new()),
            Err(error) => (Router::new(), error.problems().to_vec()),
        };
        Self { router, problems, ..Self::registered(&mount::mounted_only::<S>(collected)) }
    }

    /// A router written by hand, and the handlers of a module and of those in it that are annotated without `get` or
    /// another method.
    pub fn routed(module: &str, router: Router<S>) -> Self {
        Self::routed_of(&route::collected().within(module), router).unless_empty(module, "annotated")
    }

    /// As [`routed`](Self::routed), of these routes.
    pub fn routed_of(collected: &Collected, router: Router<S>) -> Self {
        Self { router, ..Self::registered(&mount::plain_only(collected)) }
    }

    fn registered(collected: &Collected) -> Self {
        let mut classes = ClassDeclarations::from(collected).0;
        classes.retain(ClassDeclaration::is_something);
        Self { classes, ..Self::new() }
    }

    fn unless_empty(mut self, module: &str, how: &str) -> Self {
        if self.classes.is_empty() && self.problems.is_empty() {
            let state = std::any::type_name::<S>();
            self.problem(
                "module",
                format!(
                    "no handler in `{module}` is {how} (state `{state}`): write `module_path!()` in the module of the \
                     handlers"
                ),
            );
        }
        self
    }

    /// Serves and registers `inner` below a prefix, as [`Router::nest`] does.
    ///
    /// Each segment of the prefix is a text or a variable such as `{tenant}`; anything else is a mistake.
    ///
    /// # Panics
    /// As [`Router::nest`], when both have a handler for one path and method, or different names for one variable.
    pub fn nest(mut self, prefix: &str, inner: Self) -> Self {
        let text = prefix.trim_end_matches('/');
        if text.is_empty() {
            return self.merge(inner);
        }
        if !prefix.starts_with('/') {
            self.problem("prefix", format!("`{prefix}` must start with `/`: write `/{prefix}`"));
            return self;
        }
        if !text.split('/').skip(1).all(is_literal_or_variable) {
            let text = format!(
                "`{prefix}` cannot be nested at: a segment of a prefix is a text or a variable as `{{name}}`, no wildcard"
            );
            self.problem("prefix", text);
            return self;
        }
        let prefix = if text == prefix { text.to_owned() } else { format!("{text}/") };
        self.router = self.router.nest(&mount::encoded(&prefix), inner.router);
        self.classes.extend(ClassDeclarations(inner.classes).nested(&prefix).0);
        self.problems.extend(inner.problems);
        self
    }

    /// Serves and registers `other` as well, as [`Router::merge`] does.
    ///
    /// # Panics
    /// As [`Router::merge`], when both have a handler for one path and method, or a fallback.
    pub fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.classes.extend(other.classes);
        self.problems.extend(other.problems);
        self
    }

    /// Does with the router what a router can: layers, a fallback, routes that are not registered.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use soul_client::Scope;
    ///
    /// let scope: Scope = Scope::new().map(|router| router.route("/alive", get("yes")).fallback("no such page"));
    /// ```
    ///
    /// A prefix that the router gets here, by its own `nest`, is not registered.
    pub fn map(mut self, change: impl FnOnce(Router<S>) -> Router<S>) -> Self {
        self.router = change(self.router);
        self
    }

    /// Gives the handlers their state, as [`Router::with_state`] does.
    pub fn with_state<T>(self, state: S) -> Scope<T> {
        Scope { router: self.router.with_state(state), classes: self.classes, problems: self.problems }
    }

    fn problem(&mut self, field: &'static str, text: String) {
        self.problems.push(Problem::new(field, text));
    }
}

/// What a router can be nested at, and a request can begin with.
fn is_literal_or_variable(segment: &str) -> bool {
    let name = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let text = name.unwrap_or(segment);
    let odd = |c: char| matches!(c, '{' | '}' | '*' | '?' | '#') || c.is_whitespace() || c.is_control();
    name != Some("") && !text.starts_with(':') && !text.contains(odd)
}

impl Scope {
    /// The router, and what to register: for [`SoulClientBuilder::declarations`](crate::SoulClientBuilder::declarations).
    ///
    /// # Errors
    /// When something could not be mounted or nested, with every reason; see [`router`](crate::router).
    pub fn into_parts(self) -> Result<(Router, ClassDeclarations), Error> {
        if self.problems.is_empty() {
            Ok((self.router, ClassDeclarations(self.classes)))
        } else {
            Err(Error::config(self.problems))
        }
    }
}

impl<S: Clone + Send + Sync + 'static> Default for Scope<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Clone + Send + Sync + 'static> From<Router<S>> for Scope<S> {
    /// A router of one's own, with everything that is annotated in the program.
    fn from(router: Router<S>) -> Self {
        Self { router, ..Self::registered(&route::collected()) }
    }
}

impl<S> fmt::Debug for Scope<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("classes", &self.classes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
