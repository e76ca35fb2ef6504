//! How many requests an upstream gets at once, as far as it is found out. What is seen of an upstream over seconds is told to its
//! [`Flow`] here; how limits follow from that is tested beside it.

use std::{sync::Arc, time::Duration};

use super::{
    super::{GatewayConfig, UpstreamLimit},
    peers::{Gate, Upstream, Wire, eventually, get},
    setup::{Running, config, handle, service},
};
use crate::{clock::now_ms, sync::Flow};

/// Requests under way when the upstream was found to be slow: half of them are what it gets then.
const UNDER_WAY: u32 = 40;

/// An upstream that answers when the gate opens, behind a gateway.
struct World {
    gate: Gate,
    upstream: Upstream,
    running: Running,
    flow: Arc<Flow>,
    /// What is seen of it is seen in time to come, so that no look of the gateway itself comes in between.
    at_ms: i64,
    wires: Vec<Wire>,
}

impl World {
    async fn new() -> Self {
        let gate = Gate::default();
        let held = gate.clone();
        let upstream = Upstream::start(move |_| held.then("done")).await;
        let data = service(&[upstream.address], &handle("random", 0, 60_000));
        let running = Running::with(config(), &data).await;
        let snapshot = running.gateway.sync.snapshot().unwrap();
        let selector = snapshot.divide().unwrap().selectors().next().unwrap().payload();
        let flow = Arc::clone(selector.end(&selector.upstreams().members()[0]).unwrap().flow());
        Self { gate, upstream, running, flow, at_ms: now_ms(), wires: Vec::new() }
    }

    /// Some seconds in which a hundred answers a second come after this time.
    fn seen(&mut self, took: Duration, in_flight: u32) {
        for _ in 0..200 {
            self.at_ms += 10;
            self.flow.answered(took, self.at_ms, || in_flight, 1024, || false);
        }
    }

    /// It was fast, and now it is slow.
    fn slows_down(&mut self) {
        self.seen(Duration::from_millis(300), 30);
        while !self.flow.is_trial() {
            self.seen(Duration::from_millis(1500), UNDER_WAY);
        }
        assert_eq!(self.flow.limit(), UNDER_WAY / 2);
    }

    /// As many requests as it may get are under way.
    async fn fill(&mut self) {
        for _ in 0..UNDER_WAY / 2 {
            self.ask().await;
        }
        eventually("all are under way", async || self.upstream.seen().len() == 20).await;
    }

    async fn ask(&mut self) {
        let mut wire = Wire::connect(self.running.address()).await;
        wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        self.wires.push(wire);
    }

    async fn selector(&self) -> serde_json::Value {
        self.running.status().await["config"]["selectors"][0].clone()
    }

    async fn all_are_served(mut self) {
        self.gate.open();
        for wire in &mut self.wires {
            assert_eq!(wire.response_to("GET").await.text(), "done");
        }
    }
}

#[tokio::test]
async fn an_upstream_that_serves_as_many_with_fewer_at_once_gets_no_more_than_those() {
    let mut world = World::new().await;
    world.slows_down();
    while world.flow.is_trial() {
        world.seen(Duration::from_millis(750), UNDER_WAY / 2);
    }
    world.fill().await;
    let refused = get(world.running.address(), "/http/x").await;
    assert_eq!((refused.status(), refused.values("retry-after")), (503, vec!["1"]));
    assert_eq!(world.upstream.seen().len(), 20);
    assert_eq!(world.selector().await["upstreams"][0]["limit"], 20);
    let metrics = get(world.running.gateway.status_addr(), "/metrics").await.text();
    let line = format!(
        r#"soul_gateway_upstream_requests_limit{{selector="/http",upstream="{}"}} 20"#,
        world.upstream.address
    );
    assert!(metrics.contains(&line), "{metrics}");
    world.all_are_served().await;
}

#[tokio::test]
async fn as_long_as_it_is_not_known_whether_an_upstream_can_do_with_more_they_wait() {
    let mut world = World::new().await;
    world.slows_down();
    world.fill().await;
    for waiting in 1..=5 {
        world.ask().await;
        eventually("it waits", async || world.selector().await["waiting"] == waiting).await;
    }
    assert_eq!(world.upstream.seen().len(), 20);
    // Nothing has become faster.
    while world.flow.is_trial() {
        world.at_ms += 60_000;
        world.flow.met(world.at_ms, 20, 1024);
    }
    eventually("it gets all of them", async || world.upstream.seen().len() == 25).await;
    assert_eq!(world.selector().await["upstreams"][0]["limit"], serde_json::Value::Null);
    world.all_are_served().await;
}

#[tokio::test]
async fn a_fixed_limit_asks_nobody() {
    let upstream = Upstream::named("a").await;
    let settings = GatewayConfig { upstream_limit: UpstreamLimit::Fixed, ..config() };
    let data = service(&[upstream.address], &handle("random", 0, 3000));
    let running = Running::with(settings, &data).await;
    let snapshot = running.gateway.sync.snapshot().unwrap();
    let selector = snapshot.divide().unwrap().selectors().next().unwrap().payload();
    let flow = selector.end(&selector.upstreams().members()[0]).unwrap().flow();
    let mut at_ms = now_ms();
    for (took, in_flight) in [(300, 30), (1500, UNDER_WAY), (1500, UNDER_WAY)] {
        for _ in 0..200 {
            at_ms += 10;
            flow.answered(Duration::from_millis(took), at_ms, || in_flight, 1024, || false);
        }
    }
    assert!(flow.is_trial());
    let answers = flow.answers();
    assert_eq!(get(running.address(), "/http/x").await.text(), "a");
    assert_eq!(flow.answers(), answers, "nothing is watched");
}
