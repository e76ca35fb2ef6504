//! Callers behind others.

use std::{sync::Arc, time::Duration};

use soul_client::wire::soul::ConditionData;

use super::{
    super::GatewayConfig,
    peers::{Upstream, Wire, ask, get},
    setup::{Running, config, handle, service},
};

fn from(address: &str) -> String {
    format!("GET /http/x HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6, {address}\r\n\r\n")
}

#[tokio::test]
async fn a_caller_behind_a_trusted_proxy_is_the_same_for_conditions_log_and_upstream() {
    let upstream = Upstream::named("one").await;
    let mut data = service(&[upstream.address], &handle("hash", 0, 3000));
    let text = |text: &str| Some(text.to_owned());
    Arc::make_mut(&mut data.rules[0]).condition_data_list = Some(vec![Some(ConditionData {
        param_type: text("ip"),
        operator: text("="),
        param_name: text("/"),
        param_value: text("203.0.113.7"),
    })]);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let trusting = GatewayConfig {
        trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
        access_log: Some(log.clone()),
        ..config()
    };
    let running = Running::with(trusting, &data).await;
    assert_eq!(ask(running.address(), from("203.0.113.7")).await.status(), 200);
    assert_eq!(upstream.last().values("x-forwarded-for"), ["6.6.6.6, 203.0.113.7, 127.0.0.1"]);
    assert_eq!(ask(running.address(), from("203.0.113.8")).await.status(), 404);
    assert_eq!(get(running.address(), "/http/x").await.status(), 404);
    super::peers::within(running.gateway.shutdown()).await;
    let peers: Vec<String> = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["peer"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(peers, ["203.0.113.7", "203.0.113.8", "127.0.0.1"]);

    let strange = GatewayConfig { trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()], ..config() };
    let running = Running::with(strange, &data).await;
    assert_eq!(ask(running.address(), from("203.0.113.7")).await.status(), 404, "nobody trusts this one");
}

#[tokio::test]
async fn the_proxy_protocol_says_who_calls_and_must_be_spoken_where_it_is_expected() {
    let upstream = Upstream::named("one").await;
    let config =
        GatewayConfig { proxy_protocol: true, header_read_timeout: Duration::from_millis(300), ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("PROXY TCP4 203.0.113.7 127.0.0.1 1234 80\r\n").await;
    for _ in 0..2 {
        wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(wire.response_to("GET").await.text(), "one");
        assert_eq!(upstream.last().values("x-forwarded-for"), ["203.0.113.7"]);
    }
    let mut wire = Wire::connect(running.address()).await;
    let address = [203, 0, 113, 9, 127, 0, 0, 1, 0, 1, 0, 80];
    wire.send([&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"[..], &address].concat()).await;
    wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(wire.response_to("GET").await.text(), "one");
    assert_eq!(upstream.last().values("x-forwarded-for"), ["203.0.113.9"]);

    for other in ["GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n", "", "PROXY TCP4 "] {
        let mut wire = Wire::connect(running.address()).await;
        wire.send(other).await;
        assert!(wire.is_closed().await, "{other:?}");
    }
    assert_eq!(upstream.seen().len(), 3);
}
