//! The gateway's own probing.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use super::{
    super::GatewayConfig,
    peers::{Upstream, eventually, get, nobody, ok},
    setup::{Running, config, handle, service},
};

fn probing() -> GatewayConfig {
    GatewayConfig {
        check_interval: Duration::from_millis(30),
        check_timeout: Duration::from_millis(500),
        suspect_for: Duration::ZERO,
        ..config()
    }
}

async fn health(running: &Running, address: SocketAddr) -> String {
    let status = running.status().await;
    let selectors = status["config"]["selectors"].as_array().unwrap();
    let upstreams = selectors.iter().flat_map(|s| s["upstreams"].as_array().unwrap());
    let mut found =
        upstreams.filter(|u| u["url"] == address.to_string()).map(|u| u["health"].as_str().unwrap());
    found.next().expect("it is listed").to_owned()
}

#[tokio::test]
async fn a_dead_upstream_leaves_and_comes_back_by_itself() {
    let (one, two) = (Upstream::named("one").await, Upstream::named("two").await);
    let mut data = service(&[one.address, two.address], &handle("roundRobin", 0, 3000));
    let running = Running::with(probing(), &data).await;
    let both = async |expected: &str| health(&running, two.address).await == expected;
    eventually("it is found up", async || both("up").await).await;

    let address = one.address;
    one.stop().await;
    eventually("it is found down", async || health(&running, address).await == "down").await;
    for _ in 0..4 {
        assert_eq!(get(running.address(), "/http/x").await.text(), "two");
    }
    let attempts =
        |status: serde_json::Value| status["config"]["selectors"][0]["upstreams"][0]["attempts"].clone();
    assert_eq!(attempts(running.status().await), 0, "nobody had to find out by a failed request");

    // A push that lists it again, reordered and with a new node, does not make it alive.
    let three = Upstream::named("three").await;
    data = service(&[two.address, three.address, address], &handle("roundRobin", 0, 3000));
    running.publish(&data).await;
    assert_eq!(health(&running, address).await, "down");
    for _ in 0..6 {
        assert_ne!(get(running.address(), "/http/x").await.text(), "one");
    }

    let back = Upstream::start_at(address, |_| ok("one again")).await;
    eventually("it is back", async || health(&running, address).await == "up").await;
    let answers = [
        get(running.address(), "/http/x").await.text(),
        get(running.address(), "/http/x").await.text(),
        get(running.address(), "/http/x").await.text(),
    ];
    assert!(answers.iter().any(|a| a == "one again"), "{answers:?}");
    drop(back);
}

#[tokio::test]
async fn all_down_is_no_upstream_and_not_a_forgotten_one() {
    let address = nobody().await;
    let running = Running::with(probing(), &service(&[address], &handle("random", 0, 3000))).await;
    eventually("it is found down", async || health(&running, address).await == "down").await;
    assert_eq!(get(running.address(), "/http/x").await.status(), 503);
    let back = Upstream::start_at(address, |_| ok("back")).await;
    eventually("it is back", async || get(running.address(), "/http/x").await.status() == 200).await;
    drop(back);
}

#[tokio::test]
async fn names_and_ipv6_are_probed_and_what_is_switched_off_stays_off() {
    let by_name = Upstream::named("name").await;
    let by_v6 = Upstream::start_at("[::1]:0".parse().unwrap(), |_| ok("v6")).await;
    let off = Upstream::named("off").await;
    let mut data = service(&[], &handle("roundRobin", 0, 3000));
    let name = format!("localhost:{}", by_name.address.port());
    Arc::make_mut(&mut data.selectors[0]).handle = Some(format!(
        r#"[{{"upstreamUrl":"{name}","weight":1,"status":true}},{{"upstreamUrl":"{}","weight":1,"status":true}},
            {{"upstreamUrl":"{}","weight":1,"status":false}}]"#,
        by_v6.address, off.address
    ));
    let running = Running::with(probing(), &data).await;
    eventually("all are up", async || {
        let status = running.status().await;
        let upstreams = status["config"]["selectors"][0]["upstreams"].as_array().unwrap().clone();
        upstreams.iter().all(|u| u["health"] == "up")
    })
    .await;
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(get(running.address(), "/http/x").await.text());
    }
    answers.sort_unstable();
    assert_eq!(answers, ["name", "name", "v6", "v6"]);
}

#[tokio::test]
async fn without_an_interval_nobody_is_probed() {
    let address = nobody().await;
    let running = Running::start(&service(&[address], &handle("random", 0, 3000))).await;
    get(running.address(), "/http/x").await;
    assert_eq!(health(&running, address).await, "unknown");
}
