use reqwest::Method;
use serde_json::json;

use super::{registration::FEB, *};
use crate::admin::ApiToken;

impl Running {
    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = self.client.request(method, self.url(path));
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")))
    }

    /// Changes something, and expects it to be taken; returns the row.
    async fn change(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, answer) = self.send(method, path, Some(body)).await;
        assert!(status < 300 && answer["data"]["changed"] == json!(true), "{answer}");
        assert_eq!(answer["data"]["revision"], json!(self.admin.image().borrow().revision));
        answer["data"]["item"].clone()
    }

    async fn items(&self, path: &str) -> Vec<Value> {
        let (status, answer) = self.send(Method::GET, path, None).await;
        assert_eq!((status, &answer["code"], &answer["message"]), (200, &json!(200), &json!("success")));
        answer["data"]["items"].as_array().unwrap().clone()
    }

    async fn with_service() -> Self {
        let running = Self::start(config()).await;
        for body in FEB {
            running.register(body).await;
        }
        running
    }

    async fn selector_path(&self) -> String {
        format!("/api/v1/selectors/{}", self.items("/api/v1/selectors").await[0]["id"].as_str().unwrap())
    }

    async fn rule_path(&self) -> String {
        format!("/api/v1/rules/{}", self.items("/api/v1/rules").await[0]["id"].as_str().unwrap())
    }
}

#[tokio::test]
async fn everything_is_listed() {
    let running = Running::with_service().await;
    let plugins = running.items("/api/v1/plugins").await;
    assert_eq!(plugins.len(), 16);
    let selectors = running.items("/api/v1/selectors").await;
    let expected = json!({
        "id": selectors[0]["id"], "name": "/http", "pluginId": "5", "pluginName": "divide", "type": "custom",
        "matchMode": "and", "sort": 1, "enabled": true, "logged": true,
        "conditions": [{"paramType": "uri", "operator": "match", "paramName": "/", "paramValue": "/http/**"}],
        "upstreams": [{
            "url": "10.0.0.2:8188", "protocol": "http://", "weight": 50, "status": true, "warmup": 0, "timestamp": 0,
            "check": true, "healthy": true, "deadSince": null, "lastProbe": null,
        }],
        "handle": null,
    });
    assert_eq!(selectors, [expected]);
    let rules = running.items("/api/v1/rules?limit=2&offset=1").await;
    assert_eq!(rules.len(), 2);
    assert_eq!(
        (&rules[0]["name"], &rules[0]["loadBalance"], &rules[0]["timeout"]),
        (&json!("/http/order/save"), &json!("random"), &json!(3000))
    );
    assert_eq!(running.items("/api/v1/rules?name=%2Fhttp%2Forder%2Fsave").await.len(), 1);
    assert_eq!(running.items("/api/v1/rules?plugin=waf").await.len(), 0);
    assert_eq!(running.items("/api/v1/meta-data").await.len(), 0);
    let (_, overview) = running.send(Method::GET, "/api/v1", None).await;
    assert_eq!((&overview["data"]["rules"], &overview["data"]["plugins"]), (&json!(5), &json!(16)));
}

#[tokio::test]
async fn changes_reach_the_gateways() {
    let running = Running::with_service().await;
    let (selector, rule) = (running.selector_path().await, running.rule_path().await);

    let item = running.change(Method::PATCH, "/api/v1/plugins/divide", json!({"enabled": false})).await;
    assert_eq!(item["enabled"], json!(false));
    let plugins = running.group("PLUGIN").await;
    assert!(plugins.iter().any(|plugin| plugin["name"] == "divide" && plugin["enabled"] == json!(false)));

    let upstream = format!("{selector}/upstreams/10.0.0.2:8188");
    running.change(Method::PATCH, &upstream, json!({"weight": 7, "status": false, "warmup": 1000})).await;
    let handle = running.group("SELECTOR").await[0]["handle"].as_str().unwrap().to_owned();
    assert!(handle.contains(r#""weight":7,"status":false,"timestamp":0,"warmup":1000"#), "{handle}");

    let patch = json!({"loadBalance": "hash", "timeout": 500, "retry": 2, "enabled": false, "sort": 3,
        "conditions": [{"paramType": "header", "operator": "=", "paramName": "X", "paramValue": "1"}]});
    let item = running.change(Method::PATCH, &rule, patch).await;
    assert_eq!((&item["loadBalance"], &item["sort"]), (&json!("hash"), &json!(3)));
    let found = &running.group("RULE").await[0];
    assert_eq!(found["handle"], json!(r#"{"loadBalance":"hash","retry":2,"timeout":500}"#));
    assert_eq!(found["conditionDataList"][0]["paramName"], json!("X"));

    let item =
        running.change(Method::PATCH, &selector, json!({"matchMode": "or", "sort": 9, "type": "full"})).await;
    assert_eq!((&item["matchMode"], &item["type"]), (&json!("or"), &json!("full")));
    let (_, again) = running.send(Method::PATCH, &selector, Some(json!({"sort": 9}))).await;
    assert_eq!(again["data"]["changed"], json!(false));
}

#[tokio::test]
async fn rows_are_made_and_deleted() {
    let running = Running::start(config()).await;
    let new = json!({"pluginName": "divide", "name": "/new",
        "conditions": [{"paramType": "uri", "operator": "match", "paramValue": "/new/**"}],
        "upstreams": [{"url": "orders:80", "weight": 5}, {"url": "[::1]:81", "check": false}]});
    let item = running.change(Method::POST, "/api/v1/selectors", new.clone()).await;
    assert_eq!(
        (&item["upstreams"][0]["weight"], &item["upstreams"][1]["url"]),
        (&json!(5), &json!("[::1]:81"))
    );
    let checked = [0, 1].map(|place| &item["upstreams"][place]["check"]);
    assert_eq!(checked, [&json!(true), &json!(false)]);
    assert_eq!(running.send(Method::POST, "/api/v1/selectors", Some(new)).await.0, 409);

    let selector = running.selector_path().await;
    let rule = json!({"selectorId": item["id"], "name": "all", "loadBalance": "roundRobin",
        "conditions": [{"paramType": "uri", "operator": "match", "paramValue": "/new/**"}]});
    let item = running.change(Method::POST, "/api/v1/rules", rule).await;
    assert_eq!(item["handle"], json!(r#"{"loadBalance":"roundRobin","retry":0,"timeout":3000}"#));

    running.change(Method::POST, &format!("{selector}/upstreams"), json!({"url": "10.0.0.9:1"})).await;
    assert_eq!(running.items(&format!("{selector}/upstreams")).await.len(), 3);
    let (status, _) = running.send(Method::DELETE, &format!("{selector}/upstreams/orders:80"), None).await;
    assert_eq!((status, running.items(&format!("{selector}/upstreams")).await.len()), (200, 2));

    let (status, answer) = running.send(Method::DELETE, &selector, None).await;
    assert_eq!((status, &answer["data"]["item"]), (200, &Value::Null));
    assert!(running.items("/api/v1/rules").await.is_empty());
    assert_eq!(running.send(Method::GET, &selector, None).await.0, 404);
}

#[tokio::test]
async fn metadata_is_switched_and_deleted() {
    let running = Running::start(config()).await;
    running.register(FEB[1].replace("\"registerMetaData\":false", "\"registerMetaData\":true")).await;
    let items = running.items("/api/v1/meta-data?path=%2Fhttp%2Forder%2Fsave").await;
    assert_eq!(items[0]["pathDesc"], json!("Save order"));
    let path = format!("/api/v1/meta-data/{}", items[0]["id"].as_str().unwrap());
    running.change(Method::PATCH, &path, json!({"enabled": false})).await;
    assert_eq!(running.group("META_DATA").await[0]["enabled"], json!(false));
    assert_eq!(running.send(Method::DELETE, &path, None).await.0, 200);
    assert!(running.group("META_DATA").await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_is_refused_by_field() {
    let running = Running::with_service().await;
    let (selector, rule) = (running.selector_path().await, running.rule_path().await);
    let before = running.admin.image().borrow().revision;
    let condition = |key: &str, value: &str| {
        let mut condition = json!({"paramType": "uri", "operator": "match", "paramValue": "/a"});
        condition[key] = json!(value);
        json!({"conditions": [condition]})
    };
    for (path, body, field) in [
        ("/api/v1/plugins/5", json!({"enabled": "yes"}), "enabled"),
        ("/api/v1/plugins/5", json!({"enable": true}), "enable"),
        ("/api/v1/plugins/5", json!({}), "body"),
        (rule.as_str(), json!({"loadBalance": "fastest"}), "loadBalance"),
        (rule.as_str(), json!({"loadBalance": ""}), "loadBalance"),
        (rule.as_str(), json!({"timeout": 0}), "timeout"),
        (rule.as_str(), json!({"retry": -1}), "retry"),
        (rule.as_str(), json!({"handle": "{", }), "handle"),
        (rule.as_str(), json!({"matchMode": "xor"}), "matchMode"),
        (rule.as_str(), condition("operator", ">"), "conditions[0].operator"),
        (rule.as_str(), condition("paramType", "cookie"), "conditions[0].paramType"),
        (rule.as_str(), condition("paramValue", "/a/{x:[}"), "conditions[0].paramValue"),
        (rule.as_str(), condition("extra", ""), "conditions[0].extra"),
        (selector.as_str(), json!({"handle": "[]"}), "handle"),
        (selector.as_str(), json!({"name": " "}), "name"),
        (selector.as_str(), json!({"type": 7}), "type"),
    ] {
        let (status, answer) = running.send(Method::PATCH, path, Some(body.clone())).await;
        assert_eq!((status, &answer["code"]), (400, &json!(400)), "{body}: {answer}");
        assert_eq!(answer["data"][0]["field"], json!(field), "{body}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains(field), "{answer}");
    }
    let (_, answer) = running.send(Method::PATCH, &rule, Some(json!({"loadBalance": "fastest"}))).await;
    assert_eq!(answer["data"][0]["allowed"], json!(soul_client::balance::Way::NAMES));
    let bad_regex = json!({"conditions": [{"paramType": "uri", "operator": "regEx", "paramValue": "("}]});
    assert_eq!(running.send(Method::PATCH, &rule, Some(bad_regex)).await.0, 400);
    for url in ["10.0.0.2:99999", "10.0.0.2", "[::1]", "::1:80", "http://10.0.0.2:80", "10.0.0.2:80/x"] {
        let bad_url = json!({"url": url});
        let (status, answer) =
            running.send(Method::POST, &format!("{selector}/upstreams"), Some(bad_url)).await;
        assert_eq!((status, &answer["data"][0]["field"]), (400, &json!("url")), "{url}");
    }
    let twice = json!({
        "pluginName": "divide", "name": "/twice", "upstreams": [{"url": "10.0.0.2:80"}, {"url": " 10.0.0.2:80"}],
    });
    let (status, answer) = running.send(Method::POST, "/api/v1/selectors", Some(twice)).await;
    assert_eq!((status, &answer["message"]), (409, &json!("upstream `10.0.0.2:80` exists already")));
    let (status, answer) = running.send(Method::GET, "/api/v1/rules/%FF", None).await;
    assert_eq!((status, &answer["data"][0]["field"]), (400, &json!("path")));
    assert_eq!(running.send(Method::GET, "/api/v1/rules?limits=1", None).await.0, 400);
    for path in ["/api/v1/rules/none", "/api/v1/selectors/none", "/api/v1/none"] {
        assert_eq!(running.send(Method::GET, path, None).await.0, 404, "{path}");
    }
    assert_eq!(running.send(Method::PUT, &rule, Some(json!({}))).await.0, 405);
    assert_eq!(running.admin.image().borrow().revision, before);
}

#[tokio::test]
async fn change_from_an_old_revision_is_refused() {
    let running = Running::with_service().await;
    let rule = running.rule_path().await;
    let response = running.client.get(running.url(&rule)).send().await.unwrap();
    let tag = response.headers()["etag"].to_str().unwrap().to_owned();
    let patch = |tag: String, sort: i32| {
        let request = running.client.patch(running.url(&rule)).header("if-match", tag);
        request.header("content-type", "application/json").body(json!({"sort": sort}).to_string()).send()
    };
    assert_eq!(patch(tag.clone(), 2).await.unwrap().status(), 200);
    let refused = patch(tag, 3).await.unwrap();
    assert_eq!(refused.status(), 412);
    assert!(refused.text().await.unwrap().contains("read again"));
}

#[tokio::test]
async fn change_that_a_web_page_could_send_is_refused() {
    let running = Running::with_service().await;
    let rule = running.rule_path().await;
    let request = running.client.patch(running.url(&rule)).header("content-type", "text/plain");
    assert_eq!(request.body("{\"sort\":2}").send().await.unwrap().status(), 415);
    let request = running.client.get(running.url(&rule)).header("host", "evil.example");
    assert_eq!(request.send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn token_opens_the_api_and_nothing_else_needs_it() {
    let config = AdminConfig { api_token: Some(ApiToken::new("secret")), ..config() };
    let running = Running::start(config).await;
    for path in ["/api/v1", "/api/v1/plugins", "/api/v1/rules/1", "/api/v1/anything"] {
        let response = running.client.get(running.url(path)).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["www-authenticate"]),
            (401, &"Bearer".parse().unwrap())
        );
    }
    let request = running.client.get(running.url("/api/v1/plugins")).bearer_auth("secret");
    assert_eq!(request.send().await.unwrap().status(), 200);
    running.register(FEB[0]).await;
    for path in ["/healthz", "/readyz", "/metrics", "/status", "/configs/fetch?groupKeys=RULE"] {
        assert_eq!(running.get(path).await.0, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn another_token_counts_from_the_next_request_on() {
    let with = |token| AdminConfig { api_token: Some(ApiToken::new(token)), ..config() };
    let running = Running::start(with("first")).await;
    let status = async |token| {
        let request = running.client.get(running.url("/api/v1/plugins")).bearer_auth(token);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!((status("first").await, status("second").await), (200, 401));
    running.admin.reload(&AdminConfig { body_limit: 0, ..with("second") }).unwrap_err();
    assert_eq!(
        (status("first").await, status("second").await),
        (200, 401),
        "not by settings that cannot work"
    );
    running.admin.reload(&with("second")).unwrap();
    assert_eq!((status("first").await, status("second").await), (401, 200));
}
