use serde_json::json;

use super::*;

/// The bodies of the example service, Feb-2021: specification, section 13.1.
pub(super) const FEB: [&str; 5] = [
    r#"{"appName":"http","context":"/http","path":"/http/test/**","pathDesc":"","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/test/**","enabled":true,"registerMetaData":false}"#,
    r#"{"appName":"http","context":"/http","path":"/http/order/save","pathDesc":"Save order","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/order/save","enabled":true,"registerMetaData":false}"#,
    r#"{"appName":"http","context":"/http","path":"/http/order/findById","pathDesc":"Find by id","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/order/findById","enabled":true,"registerMetaData":false}"#,
    r#"{"appName":"http","context":"/http","path":"/http/order/path/**","pathDesc":"","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/order/path/**","enabled":true,"registerMetaData":false}"#,
    r#"{"appName":"http","context":"/http","path":"/http/order/path/**/name","pathDesc":"","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/order/path/**/name","enabled":true,"registerMetaData":false}"#,
];

/// The operators and values of the five rules.
const RULES: [(&str, &str); 5] = [
    ("/http/test/**", "match"),
    ("/http/order/save", "="),
    ("/http/order/findById", "="),
    ("/http/order/path/**", "match"),
    ("/http/order/path/**/name", "match"),
];

const UPSTREAM_8188: &str = r#"{"upstreamHost":"localhost","protocol":"http://","upstreamUrl":"10.0.0.2:8188","weight":50,"status":true,"timestamp":0,"warmup":0}"#;

/// The same body as a client of 2.3.0 sends it.
fn later(body: &str) -> String {
    body.replace("\"context\"", "\"contextPath\"")
}

fn selector(id: &Value, plugin: (&str, &str), name: &str, handle: Value, pattern: &str) -> Value {
    json!({
        "id": id, "pluginId": plugin.0, "pluginName": plugin.1, "name": name, "matchMode": 0, "type": 1, "sort": 1,
        "enabled": true, "loged": true, "logged": true, "continued": true, "handle": handle,
        "conditionList": [{"paramType": "uri", "operator": "match", "paramName": "/", "paramValue": pattern}],
    })
}

fn rule(
    id: &Value,
    plugin: &str,
    selector: &Value,
    name: &str,
    handle: &str,
    operator: &str,
    value: &str,
) -> Value {
    json!({
        "id": id, "name": name, "pluginName": plugin, "selectorId": selector, "matchMode": 0, "sort": 1,
        "enabled": true, "loged": true, "handle": handle,
        "conditionDataList": [{"paramType": "uri", "operator": operator, "paramName": "/", "paramValue": value}],
    })
}

#[tokio::test]
async fn example_service_of_feb_2021_makes_exactly_its_objects() {
    let running = Running::start(config()).await;
    for body in FEB {
        running.register(body).await;
    }
    let selectors = running.group("SELECTOR").await;
    let id = &selectors[0]["id"];
    let handle = format!("[{UPSTREAM_8188}]");
    assert_eq!(selectors, [selector(id, ("5", "divide"), "/http", json!(handle), "/http/**")]);
    let rules = running.group("RULE").await;
    let expected: Vec<Value> = RULES
        .iter()
        .zip(&rules)
        .map(|((path, operator), found)| {
            let handle = r#"{"loadBalance":"random","retry":0,"timeout":3000}"#;
            rule(&found["id"], "divide", id, path, handle, operator, path)
        })
        .collect();
    assert_eq!(rules, expected);
    assert_eq!(running.group("META_DATA").await, [] as [Value; 0]);
    running.admin.shutdown().await;
}

#[tokio::test]
async fn second_instance_is_appended_and_nothing_else_changes() {
    let running = Running::start(config()).await;
    for body in FEB {
        running.register(body).await;
    }
    let rules = running.group("RULE").await;
    for body in FEB {
        running.register(body.replace("8188", "8189")).await;
    }
    let handle = format!("[{UPSTREAM_8188},{}]", UPSTREAM_8188.replace("8188", "8189"));
    assert_eq!(running.group("SELECTOR").await[0]["handle"], json!(handle));
    assert_eq!(running.group("RULE").await, rules);
    let revision = running.admin.image().borrow().revision;
    running.register(FEB[0]).await;
    assert_eq!(running.admin.image().borrow().revision, revision, "a repeated registration is no change");
}

#[tokio::test]
async fn example_service_of_230_has_a_context_path_too() {
    let running = Running::start(config()).await;
    for body in FEB {
        running.register(later(body)).await;
    }
    let selectors = running.group("SELECTOR").await;
    assert_eq!(selectors.len(), 2);
    let id = &selectors[1]["id"];
    assert_eq!(
        selectors[1],
        selector(id, ("14", "context_path"), "/context-path/http", Value::Null, "/http/**")
    );
    let rules = running.group("RULE").await;
    let found = rules.iter().find(|rule| rule["pluginName"] == "context_path").unwrap();
    let handle = r#"{"contextPath":"/http"}"#;
    let expected = rule(&found["id"], "context_path", id, "/context-path/http", handle, "match", "/http/**");
    assert_eq!(*found, expected);
    assert_eq!(rules.len(), 6);
}

#[tokio::test]
async fn malformed_registrations_are_refused_and_change_nothing() {
    let running = Running::start(config()).await;
    let image = running.admin.image().borrow().clone();
    let path = "/soul-client/springmvc-register";
    let huge = format!("{{\"path\":\"{}\"}}", "x".repeat(super::super::BODY_LIMIT));
    for (body, status, named) in [
        (String::new(), 400, "body"),
        ("{".to_owned(), 400, "body"),
        (FEB[0].replace("8188", "\"many\""), 400, "port"),
        (FEB[0].replace("\"host\":\"10.0.0.2\",", ""), 400, "host"),
        (huge, 413, "larger"),
    ] {
        let (found, text) = running.post(path, body).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((found.as_u16(), &answer["code"]), (status, &json!(500)), "{text}");
        assert!(answer["message"].as_str().unwrap().contains(named), "{named}: {text}");
    }
    let form =
        running.client.post(running.url(path)).header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(form.body(FEB[0]).send().await.unwrap().status(), 415);
    assert_eq!(running.admin.image().borrow().revision, image.revision);
}

#[tokio::test]
async fn selector_of_another_plugin_refuses_an_upstream() {
    let running = Running::start(config()).await;
    let cloud = r#"{"appName":"a","context":"/http","path":"/http/x","rpcType":"springCloud","ruleName":"/http/x","enabled":true}"#;
    let answer = running.post("/soul-client/springcloud-register", cloud).await;
    assert_eq!(answer, (StatusCode::OK, "success".to_owned()));
    let (status, text) = running.post("/soul-client/springmvc-register", FEB[1]).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(text.contains("`/http`") && text.contains("no list of upstreams"), "{text}");
    assert_eq!(running.group("RULE").await.len(), 1, "the rule was not made either");
}

#[tokio::test]
async fn fifty_instances_at_once_end_as_one_selector_and_one_rule_a_path() {
    for round in 0..5 {
        let running = std::sync::Arc::new(Running::start(config()).await);
        let mut tasks = tokio::task::JoinSet::new();
        for instance in 0..50 {
            for body in FEB {
                let running = std::sync::Arc::clone(&running);
                let body = body.replace("8188", &(9000 + instance).to_string());
                tasks.spawn(async move { running.register(body).await });
            }
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        let selectors = running.group("SELECTOR").await;
        assert_eq!(selectors.len(), 1, "round {round}");
        let handle: Value = serde_json::from_str(selectors[0]["handle"].as_str().unwrap()).unwrap();
        let mut urls: Vec<&str> = handle
            .as_array()
            .unwrap()
            .iter()
            .map(|upstream| upstream["upstreamUrl"].as_str().unwrap())
            .collect();
        urls.sort_unstable();
        let expected: Vec<String> = (9000..9050).map(|port| format!("10.0.0.2:{port}")).collect();
        assert_eq!(urls, expected, "round {round}");
        assert_eq!(running.group("RULE").await.len(), 5, "round {round}");
    }
}
