//! Everything in `pass` is collected, and nothing else, with its class, module and place.

use std::collections::BTreeMap;

use soul_client::route::{Annotation, Class, Collected, Route, RpcType, collected};

use crate::pass;

/// Module of `pass`, and the paths and handlers that it declares.
const EXPECTED: &[(&str, &[(&str, &str)])] = &[
    ("below_and_above_other_attributes", pass::below_and_above_other_attributes::ROUTES),
    ("by_macro_rules", pass::by_macro_rules::ROUTES),
    ("class_of_a_file", pass::class_of_a_file::ROUTES),
    ("classes", pass::classes::ROUTES),
    ("conditional", pass::conditional::ROUTES),
    ("every_key", pass::every_key::ROUTES),
    ("extractors", pass::extractors::ROUTES),
    ("functions", pass::functions::ROUTES),
    ("impl_blocks", pass::impl_blocks::ROUTES),
    ("mounted", pass::mounted::ROUTES),
    ("mounted_anywhere", pass::mounted_anywhere::ROUTES),
    ("renamed_crate", pass::renamed_crate::ROUTES),
    ("strict_lints", pass::strict_lints::ROUTES),
];

fn all_routes(collected: &Collected) -> Vec<Route> {
    let in_classes = collected.classes.iter().flat_map(|class| class.routes.iter());
    in_classes.chain(&collected.routes).copied().collect()
}

/// The module below `ui::pass`.
fn below_pass(module: &str) -> &str {
    module.strip_prefix("ui::pass::").unwrap_or_else(|| panic!("`{module}` is not a pass case"))
}

fn class<'c>(collected: &'c Collected, module: &str) -> &'c soul_client::route::ClassRoutes {
    let mut found = collected.classes.iter().filter(|class| below_pass(class.class.module) == module);
    let class = found.next().unwrap_or_else(|| panic!("no class `{module}`"));
    assert!(found.next().is_none(), "`{module}` is collected twice");
    class
}

#[test]
fn every_handler_of_every_case_is_collected_once() {
    let mut found: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for route in all_routes(&collected()) {
        let case = below_pass(route.module).split("::").next().unwrap_or_default();
        found.entry(case).or_default().push((route.annotation.path, route.handler));
    }
    for (case, expected) in EXPECTED {
        let mut expected = expected.to_vec();
        let mut found = found.remove(case).unwrap_or_default();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{case}");
    }
    assert!(found.is_empty(), "not expected: {found:?}");
}

#[test]
fn routes_stand_in_their_nearest_class() {
    let collected = collected();
    let cases = [
        ("class_of_a_file", "/file", vec!["/in-file"]),
        ("classes::order", "/order", vec!["/save", "/deep"]),
        ("classes::order::refund", "/refunds", vec!["/refund"]),
        ("classes::test", "/test/**", vec!["/in-test"]),
        ("classes::r#type", "/raw", vec!["/raw"]),
        ("classes::r#empty", "/empty", vec![]),
        ("renamed_crate::class", "/renamed-class", vec![]),
        ("mounted::orders", "/mounted", vec!["/item/{id}", "/plain", "/quoted", "/rest/**", "/save"]),
        (
            "mounted_anywhere::Orders",
            "/anywhere",
            vec!["/found/{id}", "/quiet", "/stored/{id}", "/typed/{number}"],
        ),
        ("mounted_anywhere::deep", "/anywhere", vec!["/match", "/on"]),
        ("strict_lints::class", "/strict-class", vec!["/strict/in-class"]),
    ];
    for (module, path, routes) in &cases {
        let class = class(&collected, module);
        assert_eq!(class.class.annotation.path, *path, "{module}");
        let found: Vec<_> = class.routes.iter().map(|route| route.annotation.path).collect();
        assert_eq!(found, *routes, "{module}");
    }
    assert_eq!(collected.classes.len(), cases.len(), "{:?}", collected.classes);
}

#[test]
fn every_key_arrives() {
    let routes = all_routes(&collected());
    let find = |path: &str| routes.iter().find(|route| route.annotation.path == path).expect("collected");
    let expected = Annotation::new("/a/{id}/{*rest}")
        .rule_name("the \"one\" rule")
        .desc("two\nlines")
        .rpc_type(RpcType::SpringCloud)
        .enabled(false)
        .register_meta_data(true);
    assert_eq!(find("/a/{id}/{*rest}").annotation, expected);
    assert_eq!(find("/a/:id/*rest").annotation, Annotation::new("/a/:id/*rest").rpc_type(RpcType::Http));
    assert_eq!(find("/save").annotation, Annotation::new("/save"));

    let collected = collected();
    let wildcard = class(&collected, "classes::test").class.annotation;
    assert_eq!(wildcard, Annotation::new("/test/**").rule_name("all of test").enabled(false));
}

/// The attribute of a route with a literal of its own is where `needle` is in the source.
#[test]
fn place_is_that_of_the_attribute() {
    let cases = [
        (
            "/method",
            include_str!("pass/impl_blocks.rs"),
            "ui/pass/impl_blocks.rs",
            "#[soul_client(path = \"/method\")]",
        ),
        (
            "/several/2",
            include_str!("pass/functions.rs"),
            "ui/pass/functions.rs",
            "#[soul_client(path = \"/several/2\")]",
        ),
        (
            "/deep",
            include_str!("pass/classes.rs"),
            "ui/pass/classes.rs",
            "#[soul_client::soul_client(path = \"/deep\")]",
        ),
    ];
    let routes = all_routes(&collected());
    for (path, source, file, attribute) in cases {
        let place = routes.iter().find(|route| route.annotation.path == path).expect("collected").place;
        let (line, column) = source
            .lines()
            .enumerate()
            .find_map(|(index, line)| line.find(attribute).map(|column| (index + 1, column + 1)))
            .expect("the attribute stands in the source");
        assert!(place.file.replace('\\', "/").ends_with(file), "{place}");
        assert_eq!((place.line as usize, place.column as usize), (line, column), "{place}");
    }
}

#[test]
fn routes_written_by_hand_are_grouped_alike() {
    let by_attribute = collected();
    let classes: Vec<_> =
        by_attribute.classes.iter().map(|c| Class::new(c.class.module, c.class.annotation)).collect();
    let routes: Vec<_> = all_routes(&by_attribute)
        .iter()
        .map(|route| Route::new(route.annotation).module(route.module).handler(route.handler))
        .collect();
    let by_hand = Collected::group(classes, routes);
    let shape = |collected: &Collected| -> Vec<_> {
        let routes =
            |routes: &[Route]| routes.iter().map(|r| (r.module, r.annotation, r.handler)).collect::<Vec<_>>();
        let mut shape: Vec<_> = collected
            .classes
            .iter()
            .map(|c| (Some((c.class.module, c.class.annotation)), routes(&c.routes)))
            .collect();
        shape.push((None, routes(&collected.routes)));
        shape
    };
    assert_eq!(shape(&by_hand), shape(&by_attribute));
}
