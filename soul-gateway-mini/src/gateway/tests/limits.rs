//! How many requests an upstream gets at once, as far as it is found out. What is seen of an upstream over seconds is told to its
//! [`Flow`] here; how limits follow from that is tested beside it.

use std::{pin::pin, sync::Arc, time::Duration};

use soul_client::balance::Member;

use super::{
    super::{GatewayConfig, UpstreamLimit},
    peers::{Gate, Upstream, Wire, eventually, get, within},
    setup::{Running, config, handle, service},
};
use crate::{
    clock::now_ms,
    sync::{Flow, SelectorStats},
};

/// Requests under way when the upstream was found to be slow: half of them are what it gets then.
const UNDER_WAY: u32 = 40;

/// An upstream that answers when the gate opens, behind a gateway.
struct World {
    gate: Gate,
    upstream: Upstream,
    running: Running,
    member: Arc<Member>,
    flow: Arc<Flow>,
    stats: Arc<SelectorStats>,
    /// What is seen of it is seen in time to come, so that no look of the gateway itself comes in between.
    at_ms: i64,
    wires: Vec<Wire>,
}

impl World {
    async fn new() -> Self {
        Self::with(config(), 60_000).await
    }

    async fn with(settings: GatewayConfig, timeout_ms: u32) -> Self {
        let gate = Gate::default();
        let held = gate.clone();
        let upstream = Upstream::start(move |_| held.then("done")).await;
        let data = service(&[upstream.address], &handle("random", 0, timeout_ms));
        let running = Running::with(settings, &data).await;
        let snapshot = running.gateway.sync.snapshot().unwrap();
        let selector = snapshot.divide().unwrap().selectors().next().unwrap().payload();
        let member = Arc::clone(&selector.upstreams().members()[0]);
        let flow = Arc::clone(selector.end(&member).unwrap().flow());
        let stats = Arc::clone(selector.stats());
        Self { gate, upstream, running, member, flow, stats, at_ms: now_ms() + 3_600_000, wires: Vec::new() }
    }

    /// One of a hundred answers a second that come after this time.
    fn seen(&mut self, took_ms: u64, in_flight: u32) {
        self.at_ms += 10;
        self.flow.answered(Duration::from_millis(took_ms), self.at_ms, || in_flight, 1024, || false);
    }

    /// It was fast, and now it is slow.
    fn slows_down(&mut self) {
        (0..200).for_each(|_| self.seen(80, 10));
        while self.flow.most_waiting() == 0 {
            self.seen(500, UNDER_WAY);
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
    while world.flow.most_waiting() > 0 {
        world.seen(200, UNDER_WAY / 2);
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
    while world.flow.most_waiting() > 0 {
        world.at_ms += 60_000;
        world.flow.met(world.at_ms, 20, 1024);
    }
    eventually("it gets all of them", async || world.upstream.seen().len() == 25).await;
    assert_eq!(world.selector().await["upstreams"][0]["limit"], serde_json::Value::Null);
    world.all_are_served().await;
}

#[tokio::test]
async fn where_there_is_a_queue_whoever_waits_goes_on_after_a_trial() {
    let settings =
        GatewayConfig { upstream_queue: 6, upstream_queue_timeout: Duration::from_secs(60), ..config() };
    let mut world = World::with(settings, 60_000).await;
    world.slows_down();
    world.fill().await;
    world.ask().await;
    eventually("it waits", async || world.selector().await["waiting"] == 1).await;
    while world.flow.most_waiting() > 0 {
        world.seen(200, UNDER_WAY / 2);
    }
    assert_eq!(world.flow.limit(), UNDER_WAY / 2);
    // Time to look for the one that waits.
    for waiting in 2..=6 {
        world.ask().await;
        eventually("they wait", async || world.selector().await["waiting"] == waiting).await;
    }
    world.all_are_served().await;
}

#[tokio::test]
async fn whoever_waits_in_a_trial_is_answered_when_the_time_of_the_rule_is_over() {
    let mut world = World::with(config(), 300).await;
    world.slows_down();
    let _busy: Vec<_> = (0..UNDER_WAY).map(|_| world.member.state().begin()).collect();
    let late = get(world.running.address(), "/http/x").await;
    assert_eq!(late.status(), 504, "{late:?}");
    assert!(world.flow.most_waiting() > 0 && world.upstream.seen().is_empty());
    assert_eq!(world.selector().await["waiting"], 0);
}

#[tokio::test]
async fn a_request_that_takes_too_long_as_a_whole_waits_no_longer() {
    for upstream_queue in [0, 1] {
        let settings = GatewayConfig {
            request_timeout: Duration::from_millis(200),
            upstream_queue,
            upstream_queue_timeout: Duration::from_secs(3600),
            upstream_max_requests: 20,
            ..config()
        };
        let mut world = World::with(settings, 3_600_000).await;
        if upstream_queue == 0 {
            world.slows_down();
        }
        let _busy: Vec<_> = (0..UNDER_WAY).map(|_| world.member.state().begin()).collect();
        let late = get(world.running.address(), "/http/x").await;
        assert_eq!(late.status(), 504, "with a queue of {upstream_queue}: {late:?}");
    }
}

#[tokio::test]
async fn whoever_comes_while_others_wait_does_not_pass_them_by() {
    let mut world = World::new().await;
    let stats = Arc::clone(&world.stats);
    let before = stats.queue.enter(1).unwrap();
    let mut woken = pin!(before.room());
    woken.as_mut().enable();
    world.ask().await;
    // It has waited, found room, and says so to the next one, before any request has ended.
    within(woken).await;
    drop(before);
    world.all_are_served().await;
    assert_eq!(stats.queue.waiting(), 0);
}

#[tokio::test]
async fn tunnels_neither_count_in_a_trial_nor_make_it_wider() {
    let mut world = World::new().await;
    let tunnels: Vec<_> = (0..100).map(|_| (world.flow.tunnel(), world.member.state().begin())).collect();
    world.slows_down();
    world.fill().await;
    world.ask().await;
    eventually("it waits", async || world.selector().await["waiting"] == 1).await;
    assert_eq!(world.upstream.seen().len(), 20);
    drop(tunnels);
    world.all_are_served().await;
}

#[tokio::test]
async fn a_fixed_limit_asks_nobody() {
    let settings = GatewayConfig { upstream_limit: UpstreamLimit::Fixed, ..config() };
    let mut world = World::with(settings, 60_000).await;
    world.slows_down();
    let answers = world.flow.answers();
    world.gate.open();
    assert_eq!(get(world.running.address(), "/http/x").await.text(), "done");
    assert_eq!(world.flow.answers(), answers, "nothing is watched");
}
