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
mod tests {
    use axum::{
        extract::Path,
        routing::{get, post},
    };

    use super::*;
    use crate::{
        __private::mount::{MethodFilter, erase, of, on},
        plan::{Dialect, Properties, RegistrationPlan},
        route::{Annotation, Class, Mount, Route},
        testing::unserved,
    };

    const ITEM: Mount =
        of(&["GET"], || erase::<()>(on(MethodFilter::GET, async |Path(id): Path<u64>| format!("{id}"))));
    const ROOT: Mount = of(&["GET"], || erase::<()>(on(MethodFilter::GET, async || "root")));
    const STATE: Mount = of(&["POST"], || {
        erase::<u8>(on(MethodFilter::POST, async |axum::extract::State(n): axum::extract::State<u8>| {
            format!("{n}")
        }))
    });

    /// `/order` with an item, a route with a state and a plain one; `/` outside of it.
    fn all() -> Collected {
        let route = |path, module| Route::new(Annotation::new(path)).module(module);
        Collected::group(
            [Class::new("shop::orders", Annotation::new("/order"))],
            [
                route("/{id}", "shop::orders").mount(ITEM),
                route("/count", "shop::orders").mount(STATE),
                route("/plain", "shop::orders"),
                route("/", "shop").mount(ROOT),
            ],
        )
    }

    fn registered(scope: Scope, dialect: Dialect) -> Vec<String> {
        let mut properties = Properties::new(dialect, "10.0.0.2");
        properties.server_lists = Some("http://a".into());
        properties.context_path = Some("/shop".into());
        properties.app_name = Some("shop".into());
        properties.port = Some("80".into());
        let (_, classes) = scope.into_parts().unwrap();
        let plan = RegistrationPlan::new(&properties, &classes).unwrap();
        assert!(plan.failures().is_empty(), "{:?}", plan.failures());
        plan.registrations().iter().map(|one| one.path().to_owned()).collect()
    }

    /// Mounted, with a state, and by hand; nested twice, merged, layered and with a fallback.
    fn app() -> Scope {
        let all = all();
        let by_hand = Router::new().route("/order/plain", post(async || "plain"));
        let orders = Scope::<u8>::mounted_of(&all.within("shop::orders"));
        let api = Scope::new().nest("/v1", orders.merge(Scope::routed_of(&all, by_hand))).map(|router| {
            router.layer(axum::middleware::map_response(async |answer: axum::response::Response| answer))
        });
        Scope::new()
            .merge(Scope::mounted_of(&Collected::group([], all.routes.clone())).nest("/{tenant}", api))
            .map(|router| {
                router
                    .route("/alive", get(async || "yes"))
                    .fallback(async || (axum::http::StatusCode::NOT_FOUND, "no"))
            })
            .with_state(7)
    }

    #[test]
    fn prefixes_are_registered_in_every_dialect() {
        let expected = ["/shop/", "/shop/*/v1/order/*", "/shop/*/v1/order/count", "/shop/*/v1/order/plain"];
        for dialect in
            [Dialect::Feb2021, Dialect::V2_3_0, Dialect::Any, Dialect::Shenyu(crate::ShenyuVersion::V2_7)]
        {
            assert_eq!(registered(app(), dialect), expected, "{dialect}");
        }
    }

    #[tokio::test]
    async fn what_is_registered_is_served() {
        assert_eq!(unserved(app()).await, []);
        // The same routes, with the prefix forgotten in a router of one's own.
        let (router, _) = app().into_parts().unwrap();
        let flat = Scope { router, ..Scope::<()>::registered(&all()) };
        let missing: Vec<_> = unserved(flat).await.into_iter().map(|(path, _)| path).collect();
        assert_eq!(missing, ["/order/count", "/order/plain", "/order/{id}"]);
    }

    #[test]
    fn nested_root_is_the_prefix() {
        let root = || Scope::<()>::mounted_of(&Collected::group([], all().routes));
        assert_eq!(registered(Scope::new().nest("/api", root()), Dialect::Any), ["/shop/api"]);
        assert_eq!(registered(Scope::new().nest("/", root()), Dialect::Any), ["/shop/"]);
    }

    #[tokio::test]
    async fn what_is_nested_oddly_is_served_where_it_is_registered() {
        for prefix in
            ["", "/", "/v1", "/v1/", "/v1//", "/{tenant}", "/{tenant}/", "/a/{tenant}/b", "/订单", "/订单/"]
        {
            let scope = Scope::<u8>::new().nest(prefix, Scope::mounted_of(&all())).with_state(7);
            assert_eq!(unserved(scope).await, [], "{prefix}");
        }
    }

    #[test]
    fn mistakes_are_told_together_at_the_end() {
        let empty = || Scope::<()>::new();
        let scope = empty()
            .nest("api", empty())
            .nest("/{*rest}", Scope::mounted("nowhere"))
            .merge(Scope::routed("nowhere", Router::new()))
            .nest("/api", Scope::mounted("nowhere"));
        let problems: Vec<_> =
            scope.into_parts().unwrap_err().problems().iter().map(ToString::to_string).collect();
        for (problem, part) in problems.iter().zip([
            "`prefix`: `api` must start with `/`: write `/api`",
            "`prefix`: `/{*rest}` cannot be nested at",
            "`module`: no handler in `nowhere` is annotated",
            "`module`: no handler in `nowhere` is mounted (state `()`)",
        ]) {
            assert!(problem.contains(part), "{problem}");
        }
        assert_eq!(problems.len(), 4);
    }

    #[test]
    fn odd_prefixes_are_told_and_never_panic() {
        let nested = |prefix: &str| Scope::<()>::new().nest(prefix, Scope::mounted_of(&all())).into_parts();
        for (prefix, root) in [
            ("", "/"),
            ("/", "/"),
            ("//", "/"),
            ("/v1/", "/v1/"),
            ("/v1//", "/v1/"),
            ("/{a}/", "/{a}/"),
            ("/{a-b}", "/{a-b}"),
            ("/a:b", "/a:b"),
            ("/%7B", "/%7B"),
            ("/订单", "/订单"),
        ] {
            let (_, classes) = nested(prefix).unwrap();
            let paths: Vec<_> =
                classes.0.iter().flat_map(|class| &class.routes).map(|route| &*route.path).collect();
            assert!(paths.contains(&root), "{prefix}: {paths:?}");
        }
        for prefix in [
            "/{",
            "/}",
            "/{}",
            "/{a",
            "/a}",
            "/x{a}",
            "/{a}x",
            "/{a}{b}",
            "/{{",
            "/{{a}}",
            "/{*}",
            "/{*a}",
            "/x/{*a}/y",
            "/*",
            "/**",
            "/a*b",
            "/:a",
            "/:",
            "/{:a}",
            "/?",
            "/a?b",
            "/a#b",
            "/a b",
            "/{ }",
            "/\u{0}",
        ] {
            let error = nested(prefix).unwrap_err();
            let text = error.chain();
            assert!(text.contains(&format!("`prefix`: `{prefix}` cannot be nested at")), "{text}");
        }
    }
}
