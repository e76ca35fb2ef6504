//! What a Java client sends, and what stands in the admin afterwards (Soul specification, sections 2 and 13).

use serde_json::{Value, json};
use soul_tests::harness::{AdminApi, DEADLINE, Part, eventually, registration};
use tokio::{task::JoinSet, time::timeout};

/// The five bodies of the Java example service of February 2021, as recorded, in the order they are sent.
const FEB_2021: [&str; 5] = [
    r#"{"appName":"http","context":"/http","path":"/http/test/**","pathDesc":"","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/test/**","enabled":true,"registerMetaData":false}"#,
    r#"{"appName":"http","context":"/http","path":"/http/order/save","pathDesc":"Save order","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/order/save","enabled":true,"registerMetaData":false}"#,
    r#"{"appName":"http","context":"/http","path":"/http/order/findById","pathDesc":"Find by id","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/order/findById","enabled":true,"registerMetaData":false}"#,
    r#"{"appName":"http","context":"/http","path":"/http/order/path/**","pathDesc":"","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/order/path/**","enabled":true,"registerMetaData":false}"#,
    r#"{"appName":"http","context":"/http","path":"/http/order/path/**/name","pathDesc":"","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/order/path/**/name","enabled":true,"registerMetaData":false}"#,
];

/// The same service with 2.3.0.
const V_2_3_0: [&str; 5] = [
    r#"{"appName":"http","contextPath":"/http","path":"/http/test/**","pathDesc":"","rpcType":"http","ruleName":"/http/test/**","enabled":true,"host":"10.0.0.2","port":8189,"registerMetaData":false}"#,
    r#"{"appName":"http","contextPath":"/http","path":"/http/order/save","pathDesc":"Save order","rpcType":"http","ruleName":"/http/order/save","enabled":true,"host":"10.0.0.2","port":8189,"registerMetaData":false}"#,
    r#"{"appName":"http","contextPath":"/http","path":"/http/order/findById","pathDesc":"Find by id","rpcType":"http","ruleName":"/http/order/findById","enabled":true,"host":"10.0.0.2","port":8189,"registerMetaData":false}"#,
    r#"{"appName":"http","contextPath":"/http","path":"/http/order/path/**","pathDesc":"","rpcType":"http","ruleName":"/http/order/path/**","enabled":true,"host":"10.0.0.2","port":8189,"registerMetaData":false}"#,
    r#"{"appName":"http","contextPath":"/http","path":"/http/order/path/**/name","pathDesc":"","rpcType":"http","ruleName":"/http/order/path/**/name","enabled":true,"host":"10.0.0.2","port":8189,"registerMetaData":false}"#,
];

/// Rules of the example: name, which is also the path, and operator.
const RULES: [(&str, &str); 5] = [
    ("/http/test/**", "match"),
    ("/http/order/save", "="),
    ("/http/order/findById", "="),
    ("/http/order/path/**", "match"),
    ("/http/order/path/**/name", "match"),
];

/// An admin that probes nothing: the recorded addresses are no machines of ours.
async fn admin() -> (Part, AdminApi) {
    let part = Part::start(&["admin", "--upstream-check-interval", "0"]).await;
    let api = part.admin();
    (part, api)
}

fn parsed(bodies: &[&str]) -> Vec<Value> {
    bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
}

/// Takes an id out of an object: it is a decimal text, new for every object.
fn take_id(object: &mut Value, key: &str) -> String {
    let id = object.as_object_mut().unwrap().remove(key).unwrap();
    let id = id.as_str().unwrap();
    assert!(!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()), "`{key}` is `{id}`");
    id.to_owned()
}

/// Takes out what says whether matches are logged: `loged` to the gateways of 2021, `logged` to those of 2.3.0.
fn take_logged(object: &mut Value) {
    let object = object.as_object_mut().unwrap();
    assert_eq!(object.remove("loged"), Some(json!(true)));
    assert!(matches!(object.remove("logged"), None | Some(Value::Bool(true))));
}

fn upstream(url: &str) -> String {
    format!(
        r#"{{"upstreamHost":"localhost","protocol":"http://","upstreamUrl":"{url}","weight":50,"status":true,"timestamp":0,"warmup":0}}"#
    )
}

fn uri(operator: &str, path: &str) -> Value {
    json!([{"paramType": "uri", "operator": operator, "paramName": "/", "paramValue": path}])
}

/// The admin holds exactly the selector and the rules of the example, and no metadata.
async fn assert_example(api: &AdminApi, upstreams: &[&str]) {
    let selectors = api.group("SELECTOR").await;
    let mut divide: Vec<_> = selectors.into_iter().filter(|s| s["pluginName"] == "divide").collect();
    assert_eq!(divide.len(), 1, "{divide:?}");
    let selector_id = take_id(&mut divide[0], "id");
    take_logged(&mut divide[0]);
    let handle = upstreams.iter().map(|url| upstream(url)).collect::<Vec<_>>().join(",");
    let expected = json!({
        "pluginId": "5", "pluginName": "divide", "name": "/http", "matchMode": 0, "type": 1, "sort": 1,
        "enabled": true, "continued": true, "handle": format!("[{handle}]"),
        "conditionList": uri("match", "/http/**"),
    });
    assert_eq!(divide[0], expected);

    let rules = api.group("RULE").await;
    let mut rules: Vec<_> = rules.into_iter().filter(|r| r["pluginName"] == "divide").collect();
    rules.sort_by_key(|rule| RULES.iter().position(|(name, _)| rule["name"] == *name));
    assert_eq!(rules.len(), RULES.len(), "{rules:?}");
    for (mut rule, (path, operator)) in rules.into_iter().zip(RULES) {
        take_id(&mut rule, "id");
        take_logged(&mut rule);
        let expected = json!({
            "name": path, "pluginName": "divide", "selectorId": selector_id, "matchMode": 0, "sort": 1,
            "enabled": true, "handle": r#"{"loadBalance":"random","retry":0,"timeout":3000}"#,
            "conditionDataList": uri(operator, path),
        });
        assert_eq!(rule, expected);
    }
    assert_eq!(api.group("META_DATA").await, Vec::<Value>::new());
}

#[tokio::test]
async fn recorded_bodies_of_february_2021_create_the_recorded_objects() {
    let (admin, api) = admin().await;
    for body in parsed(&FEB_2021) {
        assert_eq!(api.try_register(&body).await.unwrap(), "success");
    }
    assert_example(&api, &["10.0.0.2:8188"]).await;
    admin.stop().await;
}

#[tokio::test]
async fn recorded_bodies_of_2_3_0_create_the_recorded_objects() {
    let (admin, api) = admin().await;
    let mut sent = JoinSet::new();
    for body in parsed(&V_2_3_0) {
        let api = api.clone();
        sent.spawn(async move { api.try_register(&body).await.unwrap() });
    }
    assert!(sent.join_all().await.iter().all(|answer| answer == "success"));
    assert_example(&api, &["10.0.0.2:8189"]).await;

    // Of this version the context path gets a selector and a rule of its own.
    let name = "/context-path/http";
    let mut selectors = api.group("SELECTOR").await;
    selectors.retain(|s| s["pluginName"] == "context_path");
    assert_eq!(selectors.len(), 1, "{selectors:?}");
    assert_eq!(selectors[0]["name"], name);
    assert_eq!(selectors[0]["pluginId"], "14");
    assert_eq!(selectors[0]["handle"], Value::Null);
    assert_eq!(selectors[0]["conditionList"], uri("match", "/http/**"));
    let mut rules = api.group("RULE").await;
    rules.retain(|r| r["pluginName"] == "context_path");
    assert_eq!(rules.len(), 1, "{rules:?}");
    assert_eq!(rules[0]["name"], name);
    assert_eq!(rules[0]["selectorId"], selectors[0]["id"]);
    assert_eq!(rules[0]["handle"], r#"{"contextPath":"/http"}"#);
    admin.stop().await;
}

#[tokio::test]
async fn a_second_instance_is_one_more_upstream_and_a_repeat_is_nothing() {
    let (admin, api) = admin().await;
    let mut bodies = parsed(&FEB_2021);
    for port in [8188, 8189, 8188, 8189] {
        for body in &mut bodies {
            body["port"] = json!(port);
            assert_eq!(api.try_register(body).await.unwrap(), "success");
        }
    }
    assert_example(&api, &["10.0.0.2:8188", "10.0.0.2:8189"]).await;
    admin.stop().await;
}

#[tokio::test]
async fn fifty_instances_at_once_are_one_selector_with_fifty_upstreams() {
    for round in 0..4 {
        let (admin, api) = admin().await;
        let mut sent = JoinSet::new();
        for port in 8100..8150 {
            for body in parsed(&FEB_2021) {
                let (api, mut body) = (api.clone(), body);
                body["port"] = json!(port);
                sent.spawn(async move { api.try_register(&body).await.unwrap() });
            }
        }
        assert!(sent.join_all().await.iter().all(|answer| answer == "success"), "round {round}");
        let mut upstreams = api.upstreams("/http").await;
        upstreams.sort();
        let expected: Vec<_> = (8100..8150).map(|port| format!("10.0.0.2:{port}")).collect();
        assert_eq!(upstreams, expected, "round {round}");
        let mut rules: Vec<_> =
            api.group("RULE").await.iter().map(|r| r["name"].as_str().unwrap().to_owned()).collect();
        rules.sort();
        let mut expected: Vec<_> = RULES.iter().map(|(name, _)| *name).collect();
        expected.sort_unstable();
        assert_eq!(rules, expected, "round {round}");
        assert_eq!(api.group("SELECTOR").await.len(), 1, "round {round}");
        admin.stop().await;
    }
}

/// Soul's own admin holds 64 characters of a selector's name, 128 of a rule's, and seven upstreams.
#[tokio::test]
async fn long_names_are_kept_whole() {
    let (admin, api) = admin().await;
    let context = format!("/{}", "订单".repeat(100));
    let path = format!("{context}/{}", "save".repeat(500));
    api.register(&context, &path, ([10, 0, 0, 2], 8188).into()).await;
    let selectors = api.group("SELECTOR").await;
    assert_eq!(selectors.len(), 1, "{selectors:?}");
    assert_eq!(selectors[0]["name"], context);
    assert_eq!(selectors[0]["conditionList"], uri("match", &format!("{context}/**")));
    let rules = api.group("RULE").await;
    assert_eq!(rules.len(), 1, "{rules:?}");
    assert_eq!(rules[0]["name"], path);
    assert_eq!(rules[0]["conditionDataList"], uri("=", &path));
    admin.stop().await;
}

#[tokio::test]
async fn a_body_that_cannot_be_registered_is_named_and_changes_nothing() {
    let (admin, api) = admin().await;
    let good = registration("/http", "/http/order/save", ([10, 0, 0, 2], 8188).into());
    let with = |key: &str, value: Value| {
        let mut body = good.clone();
        body[key] = value;
        body
    };
    for (body, named) in [
        (with("port", json!(70000)), "port"),
        (with("port", json!("eighty")), "port"),
        (with("host", json!("")), "host"),
        (with("path", Value::Null), "path"),
        (json!([1, 2]), ""),
    ] {
        let answer = api.try_register(&body).await.unwrap();
        let error: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{body}: `{answer}`"));
        assert_ne!(error["code"], 200, "{body}: {error}");
        let message = error["message"].as_str().unwrap_or_else(|| panic!("no message in {error}"));
        assert!(message.contains(named), "{body}: {error}");
        assert!(error.as_object().unwrap().contains_key("data"), "{error}");
    }
    assert_eq!(api.group("SELECTOR").await, Vec::<Value>::new());
    assert_eq!(api.group("RULE").await, Vec::<Value>::new());
    admin.stop().await;
}

#[tokio::test]
async fn a_registration_wakes_the_polls_that_are_held() {
    let (admin, api) = admin().await;
    let known = api.known().await;
    let held = tokio::spawn({
        let api = api.clone();
        async move { api.poll(&known).await }
    });
    for body in parsed(&FEB_2021) {
        api.try_register(&body).await.unwrap();
    }
    let changed = timeout(DEADLINE, held).await.expect("the poll is answered").unwrap();
    assert!(changed.contains(&"SELECTOR".to_owned()) || changed.contains(&"RULE".to_owned()), "{changed:?}");
    admin.stop().await;
}

#[tokio::test]
async fn the_rust_example_service_registers_what_the_java_one_does() {
    let (admin, api) = admin().await;
    let config = soul_client::ClientConfig::builder()
        .admin_url(admin.admin_url())
        .context_path("/http")
        .app_name("http")
        .build()
        .unwrap();
    let service = http_service::Service::start("127.0.0.1:0".parse().unwrap(), config).await.unwrap();
    service.client().registered_within(DEADLINE).await.unwrap();
    let addr = service.local_addr().to_string();
    eventually("the upstream of the service", async || {
        (api.upstreams("/http").await == [addr.clone()]).then_some(())
    })
    .await;
    assert_example(&api, &[&addr]).await;
    service.shutdown().await;
    admin.stop().await;
}
