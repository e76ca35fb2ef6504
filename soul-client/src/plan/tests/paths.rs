//! What becomes of the paths of routers, dialect by dialect.

use super::*;
use crate::route::Mount;

/// As annotated; for Soul as a plain annotation, which is verbatim, and as one that mounts; for ShenYu either way.
const TABLE: &[(&str, &str, &str, &str)] = &[
    ("/list", "/list", "/list", "/list"),
    ("/", "/", "/", "/"),
    ("/list/", "/list/", "/list/", "/list/"),
    // axum 0.8, axum 0.7.
    ("/item/{id}", "/item/{id}", "/item/*", "/item/*"),
    ("/item/:id", "/item/:id", "/item/*", "/item/*"),
    ("/item/{id}/name", "/item/{id}/name", "/item/*/name", "/item/*/name"),
    ("/a/{x}/b/{y}", "/a/{x}/b/{y}", "/a/*/b/*", "/a/*/b/*"),
    ("/find/{*rest}", "/find/{*rest}", "/find/**", "/find/**"),
    ("/find/*rest", "/find/*rest", "/find/**", "/find/**"),
    ("/a/{x}/{*rest}", "/a/{x}/{*rest}", "/a/*/**", "/a/*/**"),
    // The gateway's own.
    ("/item/*", "/item/*", "/item/*", "/item/*"),
    ("/find/**", "/find/**", "/find/**", "/find/**"),
    ("/a/*/b/**", "/a/*/b/**", "/a/*/b/**", "/a/*/b/**"),
    // Not only variables begin with a colon.
    ("/v1/item:batch", "/v1/item:batch", "/v1/item:batch", "/v1/item:batch"),
];

fn registered(dialect: Dialect, route: Route) -> String {
    let plan = plan(&properties(dialect), &Collected::group([], [route]));
    assert!(plan.failures().is_empty(), "{:?}", plan.failures());
    paths(&plan)[0].strip_prefix("/http").unwrap().to_owned()
}

#[test]
fn path_of_a_router_becomes_what_the_matcher_of_each_dialect_knows() {
    const MOUNT: Mount = Mount { methods: &["GET"], build: || Box::new(()) };
    for &(annotated, soul_plain, soul_mounted, shenyu) in TABLE {
        let plain = Route::new(Annotation::new(annotated));
        for dialect in Dialect::ALL {
            let soul = matches!(dialect, Dialect::Any | Dialect::Feb2021 | Dialect::V2_3_0);
            let (expected, mounted) = if soul { (soul_plain, soul_mounted) } else { (shenyu, shenyu) };
            assert_eq!(registered(dialect, plain), expected, "{annotated} for {dialect}");
            assert_eq!(
                registered(dialect, plain.mount(MOUNT)),
                mounted,
                "{annotated}, mounted, for {dialect}"
            );
        }
    }
}

#[test]
fn what_soul_does_not_understand_is_told() {
    for (annotated, told) in [
        ("/item/{id}", true),
        ("/item/:id", true),
        ("/item/:id/**", true),
        ("/find/{*rest}", true),
        ("/find/*rest", true),
        // Its own matcher knows a variable beside a wildcard.
        ("/item/{id}/**", false),
        ("/item/*", false),
        ("/find/**", false),
        ("/page/*.html", false),
        ("/v1/item:batch", false),
    ] {
        let routes = Collected::group([], [Route::new(Annotation::new(annotated))]);
        let plan_of = |dialect| plan(&properties(dialect), &routes);
        assert_eq!(plan_of(Dialect::Any).literal_variables().count(), usize::from(told), "{annotated}");
        assert_eq!(plan_of(Dialect::Auto).literal_variables().count(), 0, "{annotated}");
    }
}
