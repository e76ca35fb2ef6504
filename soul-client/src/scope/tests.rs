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
