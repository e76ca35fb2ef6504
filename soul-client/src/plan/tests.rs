//! Tables of what the golden vectors do not show: places, repeats, our own dialect.

use super::*;
use crate::route::{Annotation, Class, Collected, Route, RpcType};

mod paths;

fn properties(dialect: Dialect) -> Properties {
    let mut properties = Properties::new(dialect, "10.0.0.2");
    properties.server_lists = Some("http://localhost:9095".into());
    properties.context_path = Some("/http".into());
    properties.app_name = Some("http".into());
    properties.port = Some("8188".into());
    properties
}

fn plan(properties: &Properties, collected: &Collected) -> RegistrationPlan {
    RegistrationPlan::new(properties, &ClassDeclarations::from(collected)).unwrap()
}

fn paths(plan: &RegistrationPlan) -> Vec<&str> {
    plan.registrations().iter().map(Registration::path).collect()
}

#[test]
fn any_dialect_says_the_context_path_twice() {
    let routes = Collected::group([], [Route::new(Annotation::new("/order/save"))]);
    let plan = plan(&properties(Dialect::Any), &routes);
    assert_eq!(
        plan.registrations()[0].body(),
        "{\"appName\":\"http\",\"context\":\"/http\",\"contextPath\":\"/http\",\"path\":\"/http/order/save\",\
         \"pathDesc\":\"\",\"rpcType\":\"http\",\"host\":\"10.0.0.2\",\"port\":8188,\
         \"ruleName\":\"/http/order/save\",\"enabled\":true,\"registerMetaData\":false}"
    );
}

#[test]
fn any_dialect_keeps_the_address_in_full_mode_and_for_spring_cloud() {
    let mut properties = properties(Dialect::Any);
    properties.rpc_type = RpcType::SpringCloud;
    properties.full = Some("true".into());
    let plan = plan(&properties, &Collected::default());
    assert_eq!(plan.registrations()[0].endpoint(), Some("/soul-client/springcloud-register"));
    assert_eq!(
        plan.registrations()[0].body(),
        "{\"appName\":\"http\",\"context\":\"/http\",\"contextPath\":\"/http\",\"path\":\"/http/**\",\
         \"rpcType\":\"springCloud\",\"host\":\"10.0.0.2\",\"port\":8188,\"ruleName\":\"/http/**\",\
         \"enabled\":true,\"registerMetaData\":false}"
    );
}

#[test]
fn any_dialect_lists_all_that_is_missing() {
    let mut properties = Properties::new(Dialect::Any, "10.0.0.2");
    properties.rpc_type = RpcType::SpringCloud;
    let error = RegistrationPlan::full(&properties).unwrap_err();
    let fields: Vec<_> = error.problems().iter().map(|problem| problem.field()).collect();
    assert_eq!(fields, ["serverLists", "contextPath", "appName", "port"]);
    assert_eq!(error.java_exception(), None);
}

#[test]
fn java_words_and_ours_stand_in_one_error() {
    let mut properties = properties(Dialect::Feb2021);
    properties.context_path = None;
    properties.port = None;
    let error = crate::Error::from(RegistrationPlan::full(&properties).unwrap_err());
    let text = error.to_string();
    assert!(text.contains("spring mvc param must config contextPath, adminUrl and port"), "{text}");
    assert!(text.contains("`contextPath`: is blank: set the prefix"), "{text}");
    assert!(text.contains("`port`: is absent"), "{text}");
    assert!(error.is_config());
}

#[test]
fn routes_outside_any_module_are_registered_in_every_dialect() {
    let routes = Collected::group([], [Route::new(Annotation::new("/health"))]);
    for dialect in Dialect::ALL {
        assert_eq!(paths(&plan(&properties(dialect), &routes)), ["/http/health"], "{dialect}");
    }
}

#[test]
fn module_is_a_prefix_or_one_wildcard() {
    let routes = Collected::group(
        [
            Class::new("shop::order", Annotation::new("/order")),
            Class::new("shop::test", Annotation::new("/test/**")),
        ],
        [
            Route::new(Annotation::new("/save")).module("shop::order"),
            Route::new(Annotation::new("/ignored")).module("shop::test"),
        ],
    );
    for dialect in Dialect::ALL {
        assert_eq!(
            paths(&plan(&properties(dialect), &routes)),
            ["/http/order/save", "/http/test/**"],
            "{dialect}"
        );
    }
}

#[test]
fn plan_is_sorted_and_names_both_places_of_a_repeat() {
    const FIRST: Route = Route::new(Annotation::new("/b"));
    const AGAIN: Route = Route::new(Annotation::new("/b").desc("other words"));
    const OTHER_RULE: Route = Route::new(Annotation::new("/b").rule_name("b2"));
    const A: Route = Route::new(Annotation::new("/a"));
    let plan = plan(&properties(Dialect::Any), &Collected::group([], [AGAIN, OTHER_RULE, FIRST, A]));

    let kept: Vec<_> = plan.registrations().iter().map(|r| (r.path(), r.rule_name(), r.place())).collect();
    assert_eq!(
        kept,
        [
            ("/http/a", "/http/a", Some(A.place)),
            ("/http/b", "/http/b", Some(FIRST.place)),
            ("/http/b", "b2", Some(OTHER_RULE.place))
        ]
    );
    let [repeat] = plan.repeats() else { panic!("{:?}", plan.repeats()) };
    assert_eq!((repeat.first(), repeat.again().place()), (Some(FIRST.place), Some(AGAIN.place)));
    let text = repeat.to_string();
    assert!(text.contains(&FIRST.place.to_string()) && text.contains(&AGAIN.place.to_string()), "{text}");
}

#[test]
fn same_annotations_in_any_order_give_the_same_plan() {
    let routes = [
        Route::new(Annotation::new("/b")),
        Route::new(Annotation::new("/a")),
        Route::new(Annotation::new("/b")),
    ];
    let properties = properties(Dialect::Any);
    let forward = plan(&properties, &Collected::group([], routes));
    let backward = plan(&properties, &Collected::group([], routes.into_iter().rev()));
    assert_eq!(forward, backward);
}

#[test]
fn shared_rule_name_is_seen() {
    let routes = Collected::group(
        [],
        [Route::new(Annotation::new("/a").rule_name("r")), Route::new(Annotation::new("/b").rule_name("r"))],
    );
    let plan = plan(&properties(Dialect::Any), &routes);
    let shared: Vec<_> = plan.shared_rule_names().iter().map(|(a, b)| (a.path(), b.path())).collect();
    assert_eq!(shared, [("/http/a", "/http/b")]);
}

#[test]
fn variable_without_a_star_is_seen_on_soul_and_translated_on_shenyu() {
    let annotated = ["/item/{id}", "/item/{id}/**", "/item/*", "/item"];
    let routes = Collected::group([], annotated.map(|path| Route::new(Annotation::new(path))));
    let literal = |dialect| {
        let plan = plan(&properties(dialect), &routes);
        plan.literal_variables().map(|registration| registration.path().to_owned()).collect::<Vec<_>>()
    };
    for soul in [Dialect::Any, Dialect::Feb2021, Dialect::V2_3_0] {
        assert_eq!(literal(soul), ["/http/item/{id}"], "{soul}");
    }
    assert!(literal(Dialect::Auto).is_empty());
}

#[test]
fn unknown_register_type_is_refused() {
    let mut properties = properties(Dialect::V2_3_0);
    properties.register_type = Some("eureka".into());
    let error = RegistrationPlan::full(&{
        properties.full = Some("true".into());
        properties
    })
    .unwrap_err();
    assert_eq!(error.java_message(), Some("name is error"));
    assert_eq!(error.problems()[0].field(), "registerType");
}

#[test]
fn later_declaration_overwrites_a_node() {
    let mut properties = properties(Dialect::V2_3_0);
    properties.register_type = Some("zookeeper".into());
    let mut again = Attributes::new("/a");
    again.desc = "later".into();
    let class = ClassDeclaration::new(Some(Attributes::new("")), vec![Attributes::new("/a"), again]);
    let plan = RegistrationPlan::new(&properties, &ClassDeclarations(vec![class])).unwrap();
    let layout = zookeeper::layout(&plan);
    let data: Vec<_> = layout.nodes.iter().filter_map(|node| node.data.as_deref()).collect();
    assert!(data[0].contains("\"pathDesc\":\"later\""), "{data:?}");
    assert_eq!(layout.nodes[1].path, "/soul/register/metadata/http/http/http--http-a");
    assert_eq!(layout.nodes[3].path, "/soul/register/uri/http/http/10.0.0.2:8188");
}
