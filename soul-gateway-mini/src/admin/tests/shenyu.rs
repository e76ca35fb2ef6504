//! Clients of ShenYu: the answers and effects of the worked example (ShenYu specification, section 9), and what
//! goes wrong.

use serde_json::json;

use super::*;
use crate::admin::{Password, ShenyuLogin};

const METADATA: &str = "/shenyu-client/register-metadata";
const URI: &str = "/shenyu-client/register-uri";
const OFFLINE: &str = "/shenyu-client/offline";

/// The first body of step 3.
const LIST: &str = r#"{"appName":"orders","contextPath":"/orders","path":"/orders/list","pathDesc":"list orders","rpcType":"http","serviceName":"orders::api","methodName":"list","ruleName":"/orders/list","parameterTypes":"","enabled":true,"registerMetaData":false,"pluginNames":[],"host":"192.168.1.20","port":3000,"timeMillis":1752000000000,"addPrefixed":false,"namespaceId":"649330b6-c2d7-4edc-be8e-8a54df9eb385"}"#;

/// The body of steps 4, 7 and 8.
const INSTANCE: &str = r#"{"protocol":"http://","appName":"orders","contextPath":"/orders","rpcType":"http","host":"192.168.1.20","port":3000,"eventType":"REGISTER","namespaceId":"649330b6-c2d7-4edc-be8e-8a54df9eb385"}"#;

const UPSTREAM: &str = r#"{"upstreamHost":"localhost","protocol":"http://","upstreamUrl":"192.168.1.20:3000","weight":50,"status":true,"timestamp":0,"warmup":0}"#;

const HANDLE: &str = r#"{"loadBalance":"random","retryStrategy":"current","retry":3,"timeout":3000,"headerMaxSize":0,"requestMaxSize":0}"#;

/// The second body of step 3.
fn item() -> String {
    LIST.replace(r#""path":"/orders/list""#, r#""path":"/orders/item/*""#)
        .replace(r#""ruleName":"/orders/list""#, r#""ruleName":"/orders/item/{id}""#)
        .replace(r#""methodName":"list""#, r#""methodName":"item""#)
}

fn event(event: &str) -> String {
    INSTANCE.replace("REGISTER", event)
}

fn success() -> (StatusCode, String) {
    (StatusCode::OK, "success".to_owned())
}

/// The error of an answer, which has status 200 in any case.
fn error((status, text): (StatusCode, String)) -> String {
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!((status, &answer["code"], &answer["data"]), (StatusCode::OK, &json!(500), &Value::Null));
    answer["message"].as_str().unwrap().to_owned()
}

fn uri(operator: &str, value: &str) -> Value {
    json!([{"paramType": "uri", "operator": operator, "paramName": "/", "paramValue": value}])
}

/// What a gateway is told, without ids: plugin, name, handle, conditions.
async fn told(running: &Running) -> Vec<Value> {
    let of = |rows: Vec<Value>, conditions: &str| -> Vec<Value> {
        rows.iter()
            .map(|row| json!([row["pluginName"], row["name"], row["handle"], row[conditions]]))
            .collect()
    };
    let mut told = of(running.group("SELECTOR").await, "conditionList");
    told.extend(of(running.group("RULE").await, "conditionDataList"));
    told
}

/// The same in Soul's words: `match` for ShenYu's `startsWith` and `pathPattern`, the plugin by its name there.
/// An empty handle is null there: Soul's sync writes an empty text so.
fn expected(handle: &str) -> Vec<Value> {
    let handle = (!handle.is_empty()).then_some(handle);
    vec![
        json!(["divide", "/orders", handle, uri("match", "/orders/**")]),
        json!(["context_path", "/context-path/orders", null, uri("match", "/orders/**")]),
        json!(["divide", "/orders/list", HANDLE, uri("=", "/orders/list")]),
        json!([
            "context_path",
            "/context-path/orders",
            r#"{"contextPath":"/orders"}"#,
            uri("match", "/orders/**")
        ]),
        json!(["divide", "/orders/item/{id}", HANDLE, uri("match", "/orders/item/*")]),
    ]
}

async fn token(running: &Running, user: &str, password: &str) -> Value {
    running.get_json(&format!("/platform/login?userName={user}&password={password}")).await
}

#[tokio::test]
async fn worked_example_makes_its_objects() {
    let running = Running::start(config()).await;
    let answer = token(&running, "admin", "123456").await;
    assert_eq!((&answer["code"], &answer["message"]), (&json!(200), &json!("login dashboard user success")));
    let data = answer["data"].as_object().unwrap();
    for (key, value) in
        [("userName", json!("admin")), ("clientId", Value::Null), ("expiredTime", json!(86_400_000))]
    {
        assert_eq!(data.get(key), Some(&value), "{key}");
    }
    assert!(!data.contains_key("password") && data["token"].as_str().unwrap().split('.').count() == 3);

    for body in [LIST.to_owned(), item()] {
        assert_eq!(running.post(METADATA, body).await, success());
    }
    assert_eq!(told(&running).await, expected(""), "routes alone have no upstream");
    assert_eq!(running.post(URI, INSTANCE).await, success());
    let all = expected(&format!("[{UPSTREAM}]"));
    assert_eq!(told(&running).await, all);

    let revision = running.admin.image().borrow().revision;
    let info = r#""HEARTBEAT","instanceInfo":"{\"arch\":\"x86_64\"}""#;
    for (path, body) in
        [(METADATA, item()), (URI, INSTANCE.to_owned()), (URI, INSTANCE.replace("\"REGISTER\"", info))]
    {
        assert_eq!(running.post(path, body).await, success());
    }
    assert_eq!(running.admin.image().borrow().revision, revision, "nothing new was said");

    assert_eq!(running.post(OFFLINE, event("OFFLINE")).await, success());
    assert_eq!(told(&running).await, expected(""), "selector and rules remain");
    assert_eq!(running.post(OFFLINE, event("OFFLINE")).await, success(), "and may be said again");
    assert_eq!(running.group("META_DATA").await, [] as [Value; 0]);
    running.admin.shutdown().await;
}

#[tokio::test]
async fn order_of_the_calls_does_not_matter() {
    let running = Running::start(config()).await;
    for body in [INSTANCE.to_owned(), INSTANCE.replace("3000", "3001")] {
        assert_eq!(running.post(URI, body).await, success());
    }
    for body in [LIST.to_owned(), item()] {
        assert_eq!(running.post(METADATA, body).await, success());
    }
    let handle = format!("[{UPSTREAM},{}]", UPSTREAM.replace("3000", "3001"));
    assert_eq!(told(&running).await, expected(&handle));
}

#[tokio::test]
async fn racing_services_end_as_one_selector_with_all_of_them() {
    for round in 0..5 {
        let running = std::sync::Arc::new(Running::start(config()).await);
        let mut tasks = tokio::task::JoinSet::new();
        for instance in 0..50 {
            let own = INSTANCE.replace("3000", &(9000 + instance).to_string());
            for (path, body) in
                [(METADATA, LIST.to_owned()), (URI, own.clone()), (METADATA, item()), (URI, own)]
            {
                let running = std::sync::Arc::clone(&running);
                tasks.spawn(async move { assert_eq!(running.post(path, body).await, success()) });
            }
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        let selectors = running.group("SELECTOR").await;
        let divide: Vec<_> = selectors.iter().filter(|row| row["pluginName"] == "divide").collect();
        assert_eq!((divide.len(), selectors.len()), (1, 2), "round {round}");
        let handle: Vec<Value> = serde_json::from_str(divide[0]["handle"].as_str().unwrap()).unwrap();
        let mut urls: Vec<_> = handle.iter().map(|upstream| upstream["upstreamUrl"].to_string()).collect();
        urls.sort_unstable();
        let all: Vec<_> = (9000..9050).map(|port| format!("\"192.168.1.20:{port}\"")).collect();
        assert_eq!(urls, all, "round {round}");
        assert_eq!(running.group("RULE").await.len(), 3, "round {round}");
    }
}

#[tokio::test]
async fn metadata_is_kept_if_it_is_asked_for_and_replaced_by_the_next() {
    let running = Running::start(config()).await;
    let asked = LIST.replace("\"registerMetaData\":false", "\"registerMetaData\":true");
    for body in [asked.clone(), asked.replace("\"methodName\":\"list\"", "\"methodName\":\"all\"")] {
        assert_eq!(running.post(METADATA, body).await, success());
    }
    let rows = running.group("META_DATA").await;
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["path"], &rows[0]["methodName"]), (&json!("/orders/list"), &json!("all")));
}

#[tokio::test]
async fn what_cannot_be_kept_is_an_error_with_a_reason_and_changes_nothing() {
    let running = Running::start(config()).await;
    assert_eq!(running.post(METADATA, LIST).await, success());
    assert_eq!(running.post(URI, INSTANCE).await, success());
    let revision = running.admin.image().borrow().revision;
    let other_namespace = LIST.replace("649330b6-c2d7-4edc-be8e-8a54df9eb385", "mine");
    for (path, body, named) in [
        (METADATA, String::new(), "no JSON"),
        (METADATA, LIST.replace("\"/orders/list\"", "\"\""), "`path`"),
        (METADATA, other_namespace, "`mine` is not served here"),
        (URI, INSTANCE.replace("\"port\":3000", "\"port\":0"), "`port`"),
        (METADATA, LIST.replace("\"/orders\"", "\"/**\""), "`contextPath`"),
        (URI, INSTANCE.replace("http://", "http://elsewhere/#"), "`protocol`"),
        (URI, INSTANCE.replace("/orders", "/context-path/orders"), "belongs to the plugin `context_path`"),
        (URI, event("HEARTBEAT").replace("3000", "3001"), "no upstream `192.168.1.20:3001`"),
        (OFFLINE, event("OFFLINE").replace("/orders", ""), "`contextPath`"),
        ("/shenyu-client/register-mcp", "{}".to_owned(), "MCP"),
    ] {
        let message = error(running.post(path, body).await);
        assert!(message.contains(named), "{named}: {message}");
    }
    let form = running.client.post(running.url(URI)).header("content-type", "text/plain").body(INSTANCE);
    let answer = form.send().await.unwrap();
    assert!(error((answer.status(), answer.text().await.unwrap())).contains("application/json"));
    assert_eq!(running.admin.image().borrow().revision, revision);
}

#[tokio::test]
async fn what_nothing_follows_from_is_taken() {
    let running = Running::start(config()).await;
    let revision = running.admin.image().borrow().revision;
    for (path, body) in [
        ("/shenyu-client/register-apiDoc", "{}".to_owned()),
        ("/shenyu-client/register-discoveryConfig", "{}".to_owned()),
        ("/instance/beat", "{}".to_owned()),
        (URI, event("UPDATED")),
        (URI, event("IGNORED")),
        (METADATA, LIST.replace("\"http\"", "\"websocket\"")),
        (URI, INSTANCE.replace("\"http\"", "\"dubbo\"")),
    ] {
        assert_eq!(running.post(path, body).await, success(), "{path}");
    }
    assert_eq!(running.admin.image().borrow().revision, revision);
}

#[tokio::test]
async fn other_kinds_are_registered_as_for_soul() {
    let running = Running::start(config()).await;
    let dubbo = LIST.replace("\"http\"", "\"dubbo\"").replace("/orders", "/dubbo");
    assert_eq!(running.post(METADATA, dubbo).await, success());
    let grpc = LIST.replace("\"http\"", "\"grpc\"").replace("/orders", "/grpc");
    assert_eq!(running.post(METADATA, grpc).await, success());
    let node = INSTANCE.replace("\"http\"", "\"grpc\"").replace("/orders", "/grpc");
    assert_eq!(running.post(URI, node).await, success());
    let selectors = running.group("SELECTOR").await;
    let rows: Vec<_> =
        selectors.iter().map(|row| json!([row["pluginName"], row["name"], row["handle"]])).collect();
    assert_eq!(rows, [json!(["dubbo", "/dubbo", null]), json!(["grpc", "/grpc", format!("[{UPSTREAM}]")])]);
    assert_eq!(running.group("META_DATA").await.len(), 2);
}

#[tokio::test]
async fn one_message_of_2_4_0_is_souls() {
    let running = Running::start(config()).await;
    assert_eq!(running.post("/shenyu-client/springmvc-register", LIST).await, success());
    let selectors = running.group("SELECTOR").await;
    assert_eq!(selectors[0]["handle"], json!(format!("[{UPSTREAM}]")));
}

#[tokio::test]
async fn detection_finds_the_latest_release_and_registers_nothing() {
    let running = Running::start(config()).await;
    let revision = running.admin.image().borrow().revision;
    for path in [METADATA, URI, OFFLINE, "/shenyu-client/springmvc-register", "/shenyu-client/register-mcp"] {
        assert!(error(running.get(path).await).contains("GET method is not supported"), "{path}");
    }
    assert_eq!(running.get("/soul-client/offline").await.0, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(running.get("/shenyu-client/register-nothing").await.0, StatusCode::NOT_FOUND);
    assert_eq!(running.admin.image().borrow().revision, revision);
}

/// An admin that asks for a login.
async fn guarded(token_life: Duration) -> Running {
    let login = ShenyuLogin { user: "admin".to_owned(), password: Password::new("a&b c") };
    Running::start(AdminConfig { shenyu_login: Some(login), shenyu_token_life: token_life, ..config() }).await
}

#[tokio::test]
async fn with_a_login_every_call_needs_a_token() {
    let running = guarded(Duration::from_secs(3600)).await;
    for (user, password) in [("admin", "a"), ("root", "a%26b%20c"), ("", "")] {
        let query = format!("/platform/login?userName={user}&password={password}");
        assert_eq!(error(running.get(&query).await), "username or password error");
    }
    let body = r#"{"userName":"admin","password":"a&b c","clientId":"c"}"#;
    let (_, text) = running.post("/platform/login", body).await;
    let posted: Value = serde_json::from_str(&text).unwrap();
    let got = token(&running, "admin", "a%26b%20c").await;
    assert_eq!(got["data"]["expiredTime"], 3_600_000);
    let got = got["data"]["token"].as_str().unwrap();

    for path in [METADATA, URI, OFFLINE, "/instance/beat", "/shenyu-client/springmvc-register"] {
        let answer = running.client.post(running.url(path)).header("X-Access-Token", "T").body(INSTANCE);
        let answer = answer.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(answer.headers()["content-type"], "application/json;charset=utf-8");
        assert_eq!(answer.text().await.unwrap(), "{\"code\":600,\"message\":\"token is error\"}\n");
        assert_eq!(running.get(path).await.0, StatusCode::UNAUTHORIZED, "{path}");
    }
    let call =
        || running.client.post(running.url(URI)).header("content-type", "application/json").body(INSTANCE);
    let in_query = running.client.post(running.url(&format!("{URI}?X-Access-Token={got}"))).body(INSTANCE);
    for request in [
        call().header("X-Access-Token", got),
        call().header("X-Access-Token", posted["data"]["token"].as_str().unwrap()),
        call().header("Cookie", format!("a=b; X-Access-Token={got}")),
        in_query,
    ] {
        assert_eq!(request.send().await.unwrap().text().await.unwrap(), "success");
    }
    running.register(super::registration::FEB[0]).await; // Soul's clients know no login
}

#[tokio::test]
async fn a_token_ends() {
    let running = guarded(Duration::from_millis(1)).await;
    let got = token(&running, "admin", "a%26b%20c").await;
    let got = got["data"]["token"].as_str().unwrap();
    let answer = running.client.post(running.url(URI)).header("X-Access-Token", got).body(INSTANCE);
    assert_eq!(answer.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn instances_of_soul_leave_by_the_extension() {
    let running = Running::start(config()).await;
    for body in super::registration::FEB {
        running.register(body).await;
    }
    let path = "/soul-client/springmvc-register";
    let answer =
        running.client.post(running.url(path)).body(super::registration::FEB[0]).send().await.unwrap();
    assert_eq!(answer.headers()["soul-extensions"], "offline");

    let handle = async || running.group("SELECTOR").await[0]["handle"].clone();
    let other = super::registration::FEB[0].replace("8188", "8189");
    assert_eq!(running.post("/soul-client/offline", other).await, success());
    assert!(handle().await.as_str().unwrap().contains("8188"), "another instance leaves this one alone");
    for _ in 0..2 {
        assert_eq!(running.post("/soul-client/offline", super::registration::FEB[0]).await, success());
        assert_eq!(handle().await, Value::Null);
    }
    assert_eq!(running.group("RULE").await.len(), 5);
    let (status, text) = running.post("/soul-client/offline", "{}").await;
    assert!(status == StatusCode::BAD_REQUEST && text.contains("`host`"), "{text}");
    running.register(super::registration::FEB[0]).await;
    assert!(handle().await.as_str().unwrap().contains("8188"), "one that registers again is back");
}
