//! What callers are told when nothing can be forwarded.

use std::{sync::Arc, time::Duration};

use soul_client::{balance::Choice, wire::soul::MetaData};
use tokio::net::TcpStream;

use super::{
    super::{ErrorStatus, Gateway, GatewayConfig, GatewayError, GatewaySource},
    peers::{Upstream, eventually, get, nobody, within},
    setup::{ConfigData, Running, config, handle, plugin, rule, selector, service, uri},
};

const NO_URL: &str =
    r#"{"code":-106,"message":"Can not find url, please check your configuration!","data":null}"#;
const NO_SELECTOR: &str =
    r#"{"code":-107,"message":"Can not find selector, please check your configuration!","data":null}"#;
const NO_RULE: &str = r#"{"code":-102,"message":"Rule not found!","data":null}"#;
const FAILED: &str =
    r#"{"code":-103,"message":"Service invocation exception, or no result is returned!","data":null}"#;

/// What a path is answered with by status and body.
async fn told(config: GatewayConfig, data: &ConfigData, path: &str) -> (u16, String) {
    let running = Running::with(config, data).await;
    let answer = get(running.address(), path).await;
    assert_eq!(answer.values("content-type"), ["application/json"]);
    (answer.status(), answer.text())
}

#[tokio::test]
async fn a_request_that_finds_no_way_is_told_so_in_souls_words() {
    let some = service(&[nobody().await], &handle("random", 0, 3000));
    assert_eq!(told(config(), &some, "/none/x").await, (404, NO_SELECTOR.to_owned()));

    let mut other_rule = some.clone();
    Arc::make_mut(&mut other_rule.rules[0]).condition_data_list = Some(vec![Some(uri("/http/other"))]);
    assert_eq!(told(config(), &other_rule, "/http/x").await, (404, NO_RULE.to_owned()));

    let none = service(&[], &handle("random", 0, 3000));
    assert_eq!(told(config(), &none, "/http/x").await, (503, NO_URL.to_owned()));

    let mut off = some.clone();
    off.plugins = vec![plugin("divide", false)];
    assert_eq!(told(config(), &off, "/http/x").await, (503, NO_URL.to_owned()));
    off.plugins = Vec::new();
    assert_eq!(told(config(), &off, "/http/x").await, (503, NO_URL.to_owned()));

    assert_eq!(told(config(), &some, "/http/x").await, (502, FAILED.to_owned()));
}

#[tokio::test]
async fn souls_own_statuses_are_a_setting() {
    let soul = || GatewayConfig { error_status: ErrorStatus::Soul, ..config() };
    let dead = nobody().await;
    let some = service(&[dead], &handle("random", 0, 3000));
    assert_eq!(told(soul(), &some, "/none/x").await, (200, NO_SELECTOR.to_owned()));
    let none = service(&[], &handle("random", 0, 3000));
    assert_eq!(told(soul(), &none, "/http/x").await, (200, NO_URL.to_owned()));
    let failed =
        format!(r#"{{"code":500,"message":"Internal Server Error","data":"Connection refused: /{dead}"}}"#);
    assert_eq!(told(soul(), &some, "/http/x").await, (500, failed));
}

#[tokio::test]
async fn paths_of_other_kinds_of_services_are_not_divided() {
    let upstream = Upstream::named("one").await;
    let mut data = service(&[upstream.address], &handle("random", 0, 3000));
    data.meta_data = vec![Arc::new(MetaData {
        path: Some("/http/rpc/**".to_owned()),
        rpc_type: Some("dubbo".to_owned()),
        enabled: Some(true),
        ..MetaData::default()
    })];
    let running = Running::start(&data).await;
    assert_eq!(get(running.address(), "/http/rpc/x").await.text(), NO_URL);
    assert_eq!(get(running.address(), "/http/x").await.text(), "one");
}

#[tokio::test]
async fn a_path_outside_its_rules_context_path_is_refused() {
    let mut data = service(&[nobody().await], &handle("random", 0, 3000));
    data.plugins.push(plugin("context_path", true));
    data.selectors.push(selector("context_path", "/http", ""));
    data.rules.push(rule("context_path", "/http", "/http/**", r#"{"contextPath":"/other"}"#));
    let (status, body) = told(config(), &data, "/http/x").await;
    assert_eq!(status, 404);
    assert!(body.starts_with(r#"{"code":-111,"#), "{body}");
}

#[tokio::test]
async fn an_upstream_without_weight_or_switched_off_is_chosen_only_as_soul_does() {
    let upstream = Upstream::named("one").await;
    for off in [r#""weight":0,"status":true"#, r#""weight":50,"status":false"#, r#""weight":50"#] {
        let mut data = service(&[], &handle("random", 0, 3000));
        Arc::make_mut(&mut data.selectors[0]).handle =
            Some(format!(r#"[{{"upstreamUrl":"{}",{off}}}]"#, upstream.address));
        assert_eq!(told(config(), &data, "/http/x").await, (503, NO_URL.to_owned()), "{off}");
        let soul = GatewayConfig { upstream_choice: Choice::Soul, ..config() };
        let running = Running::with(soul, &data).await;
        assert_eq!(get(running.address(), "/http/x").await.text(), "one", "{off}");
    }
}

#[tokio::test]
async fn entries_that_cannot_be_used_are_listed_and_the_rest_serves() {
    let upstream = Upstream::named("one").await;
    let mut data = service(&[upstream.address], &handle("random", 0, 3000));
    Arc::make_mut(&mut data.selectors[0]).handle = Some(format!(
        r#"[{{"upstreamUrl":"{}","weight":50,"status":true}},
            {{"upstreamUrl":"a:1","protocol":"ws://","weight":50,"status":true}},
            {{"upstreamUrl":"a:b","weight":50,"status":true}}]"#,
        upstream.address
    ));
    data.rules.insert(0, rule("divide", "/http", "/http/unknown", &handle("fastest", 0, 3000)));
    data.rules.insert(0, rule("divide", "/http", "/http/blank", ""));
    let running = Running::start(&data).await;
    assert_eq!(get(running.address(), "/http/unknown").await.text(), "one", "the next rule takes it");

    let status = running.status().await;
    let refused = status["config"]["refused"].as_array().unwrap();
    let reason = |part: &str| refused.iter().any(|r| r["reason"].as_str().unwrap().contains(part));
    assert_eq!(refused.len(), 4, "{status}");
    assert!(reason("upstream `ws://a:1`: the protocol `ws://` is not spoken to upstreams"), "{status}");
    assert!(reason("upstream `http://a:b`: `b` is not a port"), "{status}");
    assert!(reason("unknown load balance `fastest`, expected one of `random`"), "{status}");
    assert!(reason("`handle`: is blank"), "{status}");
    assert_eq!(status["config"]["selectors"][0]["upstreams"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn before_the_first_configuration_the_port_is_closed_and_readiness_says_why() {
    let source = GatewaySource::Admins(vec![format!("http://{}", nobody().await).parse().unwrap()]);
    let gateway = Gateway::start(config(), source).await.unwrap();
    let refused = TcpStream::connect(gateway.local_addr()).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(get(gateway.status_addr(), "/healthz").await.status(), 200);
    eventually("the reason shows", async || {
        let ready = get(gateway.status_addr(), "/readyz").await;
        assert_eq!(ready.status(), 503);
        ready.text().starts_with("no configuration yet: fetch the configuration at")
    })
    .await;
    assert!(tokio::time::timeout(Duration::from_millis(50), gateway.ready()).await.is_err());
    within(gateway.shutdown()).await;
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let start = async |config: GatewayConfig, admins: &[&str]| {
        let admins = admins.iter().map(|a| a.parse().unwrap()).collect();
        Gateway::start(config, GatewaySource::Admins(admins)).await.unwrap_err()
    };
    assert!(matches!(start(config(), &[]).await, GatewayError::NoAdmin));
    let error = start(config(), &["https://admin:9095"]).await.to_string();
    assert_eq!(
        error,
        "`https://admin:9095/` is not the address of an admin: `https` is not spoken yet, use `http`"
    );
    let error = start(GatewayConfig { max_connections: 0, ..config() }, &["http://a"]).await.to_string();
    assert!(error.contains("`max_connections` is 0"), "{error}");

    let taken = Upstream::named("one").await;
    let error = start(GatewayConfig { listen: taken.address, ..config() }, &["http://a"]).await;
    assert!(matches!(error, GatewayError::Listen { address, .. } if address == taken.address), "{error}");
}

#[tokio::test]
async fn the_status_listener_takes_no_path_of_a_service_and_the_gateway_none_of_its() {
    let upstream = Upstream::named("one").await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    for path in ["/healthz", "/readyz", "/metrics", "/status"] {
        assert_eq!(get(running.address(), path).await.text(), NO_SELECTOR, "{path}");
        assert_eq!(get(running.gateway.status_addr(), path).await.status(), 200, "{path}");
    }
}
