//! What the plan says of paths, names, namespaces and limits.

use crate::{
    plan::{ClassDeclarations, Dialect, Properties, RegistrationPlan, ShenyuVersion},
    route::{Annotation, Class, Collected, Route},
    wire::shenyu::{InstanceInfo, MetaDataRegisterDto},
};

fn properties(version: ShenyuVersion) -> Properties {
    let mut properties = Properties::new(Dialect::Shenyu(version), "10.0.0.2");
    properties.server_lists = Some("http://a:1/, http://b:2".into());
    properties.context_path = Some("/orders".into());
    properties.app_name = Some("orders".into());
    properties.port = Some("3000".into());
    properties
}

fn route(path: &'static str) -> Route {
    Route::new(Annotation::new(path)).module("m")
}

fn plan(properties: &Properties, routes: &[Route]) -> RegistrationPlan {
    let declarations = ClassDeclarations::from(&Collected::group([], routes.iter().copied()));
    RegistrationPlan::new(properties, &declarations).unwrap()
}

fn bodies(plan: &RegistrationPlan) -> Vec<MetaDataRegisterDto> {
    assert_eq!(plan.failures(), []);
    plan.registrations().iter().map(|one| serde_json::from_str(one.body()).unwrap()).collect()
}

#[test]
fn pieces_of_a_path_are_joined_and_the_template_names_the_rule() {
    let collected = Collected::group(
        [Class::new("m::order", Annotation::new("order/"))],
        [Route::new(Annotation::new("find/{id}")).module("m::order").handler("find"), route("/:a/x/{*rest}")],
    );
    let plan = RegistrationPlan::new(&properties(ShenyuVersion::V2_7), &(&collected).into()).unwrap();
    let said: Vec<_> = bodies(&plan)
        .into_iter()
        .map(|dto| {
            (dto.path.unwrap(), dto.rule_name.unwrap(), dto.service_name.unwrap(), dto.method_name.unwrap())
        })
        .collect();
    let text = |a: &str, b: &str, c: &str, d: &str| (a.to_owned(), b.to_owned(), c.to_owned(), d.to_owned());
    assert_eq!(
        said,
        [
            text("/orders/*/x/**", "/orders/:a/x/{*rest}", "m", ""),
            text("/orders/order/find/*", "/orders/order/find/{id}", "m::order", "find"),
        ]
    );
}

#[test]
fn path_that_ends_with_a_slash_is_pointed_out() {
    let routes = [route("/list/"), route("/list"), route("/item/{*rest}"), route("/")];
    let paths = |plan: &RegistrationPlan| {
        plan.open_ended().map(|registration| registration.path().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(paths(&plan(&properties(ShenyuVersion::V2_7), &routes)), ["/orders/", "/orders/list/"]);
    // Soul compares such a path as it is.
    let mut soul = properties(ShenyuVersion::V2_7);
    soul.dialect = Dialect::Any;
    assert!(paths(&plan(&soul, &routes)).is_empty());
}

#[test]
fn context_path_is_normalised() {
    for context_path in ["/orders", "orders", "/orders/", "//orders//"] {
        let mut properties = properties(ShenyuVersion::V2_6);
        properties.context_path = Some(context_path.into());
        let plan = plan(&properties, &[route("/list")]);
        let body = &bodies(&plan)[0];
        assert_eq!(body.context_path.as_deref(), Some("/orders"), "{context_path}");
        assert_eq!(body.path.as_deref(), Some("/orders/list"), "{context_path}");
        assert!(plan.instances()[0].register().contains(r#""contextPath":"/orders","#));
    }
}

#[test]
fn methods_of_one_path_are_one_record() {
    let plan = plan(
        &properties(ShenyuVersion::V2_7),
        &[route("/list").handler("get"), route("/list").handler("post")],
    );
    assert_eq!((plan.registrations().len(), plan.repeats().len()), (1, 1));
}

#[test]
fn every_namespace_is_told_where_there_are_some() {
    for (version, count) in [(ShenyuVersion::V2_6, 1), (ShenyuVersion::V2_7_0, 2), (ShenyuVersion::V2_7, 2)] {
        let mut properties = properties(version);
        properties.namespaces = vec!["n1".into(), "n2".into()];
        let plan = plan(&properties, &[route("/a"), route("/b")]);
        assert_eq!((plan.registrations().len(), plan.instances().len()), (2 * count, count));
        assert!(plan.repeats().is_empty() && plan.shared_rule_names().is_empty());
        assert_eq!(plan.registrations()[0].namespace(), Some("n1"));
        assert!(
            plan.instances().last().unwrap().register().contains(&format!("\"namespaceId\":\"n{count}\""))
        );
    }
}

#[test]
fn full_mode_is_one_record() {
    let mut properties = properties(ShenyuVersion::V2_7);
    properties.full = Some("true".into());
    let plan = plan(&properties, &[]);
    let body = &bodies(&plan)[0];
    assert_eq!(
        (body.path.as_deref(), body.rule_name.as_deref(), body.enabled, body.register_meta_data),
        (Some("/orders/**"), Some("/orders"), true, false)
    );
    assert_eq!(plan.instances().len(), 1);
}

#[test]
fn path_is_written_as_the_gateway_compares_it() {
    for (version, path) in [(ShenyuVersion::V2_5, "/订/a b"), (ShenyuVersion::V2_6, "/%E8%AE%A2/a%20b")] {
        let mut properties = properties(version);
        properties.context_path = Some("/订".into());
        let plan = plan(&properties, &[route("/a b")]);
        let body = &bodies(&plan)[0];
        assert_eq!(body.path.as_deref(), Some(path));
        assert_eq!(body.rule_name.as_deref(), Some("/订/a b"));
        assert!(path.starts_with(body.context_path.as_deref().unwrap()));
    }
}

#[test]
fn what_an_admin_would_cut_or_drop_is_refused_by_field() {
    const LONG: &str = "/0123456789012345678901234567890123456789012345678901234567890123456789";
    const NAME: &str = concat!(
        "01234567890123456789012345678901234567890123456789012345678901234567890123456789",
        "0123456789012345678901234567890123456789012345678901234567890"
    );
    for (route, field, part) in [
        (route(LONG), "path", "has 78 characters and an admin of ShenYu stores 64"),
        (Route::new(Annotation::new("/a").rule_name(NAME)), "rule_name", "stores 128"),
        (route("/{a"), "path", "without its partner"),
        (
            Route::new(Annotation::new("/a").rpc_type(crate::route::RpcType::SpringCloud)),
            "rpc_type",
            "not for ShenYu",
        ),
    ] {
        let plan = plan(&properties(ShenyuVersion::V2_7), &[route]);
        let problem = &plan.failures()[0].problems()[0];
        assert!(problem.field() == field && problem.text().contains(part), "{problem}");
        assert!(problem.text().contains("tests.rs:"), "{problem}");
    }
    type Change = fn(&mut Properties);
    let changes: [(&str, Change); 6] = [
        ("contextPath", |p| p.context_path = Some("/".into())),
        ("contextPath", |p| p.context_path = Some(LONG.into())),
        ("appName", |p| p.app_name = None),
        ("port", |p| p.port = Some("0".into())),
        ("protocol", |p| p.protocol = "http".into()),
        ("namespace", |p| p.namespaces = vec![" ".into()]),
    ];
    for (field, change) in changes {
        let mut properties = properties(ShenyuVersion::V2_7);
        change(&mut properties);
        let error = RegistrationPlan::new(&properties, &ClassDeclarations::default()).unwrap_err();
        assert_eq!(error.problems()[0].field(), field);
    }
    // One less is fine.
    let plan = plan(&properties(ShenyuVersion::V2_7), &[route(&LONG[..57])]);
    assert_eq!(plan.registrations()[0].path().len(), 64);
}

#[test]
fn slashes_at_the_end_of_an_admin_are_dropped() {
    assert_eq!(
        plan(&properties(ShenyuVersion::V2_7), &[route("/a")]).servers(),
        ["http://a:1", "http://b:2"]
    );
}

#[test]
fn heartbeats_of_2_7_tell_of_the_machine_they_are_given() {
    for (version, told) in [(ShenyuVersion::V2_7_0, false), (ShenyuVersion::V2_7, true)] {
        let mut properties = properties(version);
        let beat = |properties: &Properties| {
            let plan = plan(properties, &[route("/x")]);
            plan.instances()[0].heartbeat().map(str::to_owned)
        };
        assert!(beat(&properties).is_none_or(|body| !body.contains("instanceInfo")), "{version:?}");
        properties.instance_info = Some(InstanceInfo { available_processors: Some(4), ..Default::default() });
        let info = r#""instanceInfo":"{\"availableProcessors\":4}"}"#;
        assert_eq!(beat(&properties).is_some_and(|body| body.ends_with(info)), told, "{version:?}");
    }
}
