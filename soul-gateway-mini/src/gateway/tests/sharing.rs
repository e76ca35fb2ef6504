//! What lanes share is read by requests and not counted in and out: the number of holders of a thing is written memory, and
//! would go from core to core with every request.

use std::sync::Arc;

use soul_client::balance::Member;

use super::{
    peers::{Gate, Upstream, Wire, eventually, get, ok},
    setup::{Running, config, handle, service},
};
use crate::{gateway::GatewayConfig, sync::Snapshot};

fn member(snapshot: &Snapshot) -> &Arc<Member> {
    &snapshot.divide().unwrap().selectors().next().unwrap().payload().upstreams().members()[0]
}

/// How many hold what the requests of the one rule use: the configuration, its numbers, its upstream and where that is.
fn holders(snapshot: &Arc<Snapshot>) -> [usize; 7] {
    let selector = snapshot.divide().unwrap().selectors().next().unwrap();
    let of_selector = selector.payload();
    let member = member(snapshot);
    let destination = &of_selector.end(member).unwrap().destination;
    [
        Arc::strong_count(member),
        Arc::strong_count(member.state()),
        Arc::strong_count(snapshot),
        Arc::strong_count(of_selector.upstreams()),
        Arc::strong_count(of_selector.stats()),
        Arc::strong_count(destination),
        Arc::strong_count(destination.address()),
    ]
}

#[tokio::test]
async fn a_request_under_way_holds_nothing_that_lanes_share() {
    let gate = Gate::default();
    let held = gate.clone();
    let script = move |asked: &super::peers::Message| {
        if asked.target() == "/held" { held.then("late") } else { ok("soon") }
    };
    let upstream = Upstream::start(script).await;
    let settings = GatewayConfig { threads: 2, ..config() };
    let running =
        Running::with(settings, &service(&[upstream.address], &handle("roundRobin", 0, 3000))).await;
    let snapshot = running.gateway.sync.snapshot().unwrap();
    let state = member(&snapshot).state();
    // Each lane that has asked the upstream holds it once. From then on there also waits a connection, which knows whose it is.
    let (nobody, lanes) = (Arc::strong_count(state), if cfg!(target_os = "linux") { 2 } else { 1 });
    eventually("every lane has asked the upstream", async || {
        assert_eq!(get(running.address(), "/http/x").await.text(), "soon");
        Arc::strong_count(state) == nobody + lanes
    })
    .await;

    let before = holders(&snapshot);
    let asked = upstream.seen().len();
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /http/held HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually("the upstream is asked", async || upstream.seen().len() == asked + 1).await;
    // Those who look after the upstreams hold the configuration now and then.
    let no_more = async || holders(&snapshot).iter().zip(&before).all(|(now, before)| now <= before);
    eventually("nothing is held for it", no_more).await;
    assert_eq!((state.in_flight(), state.picks()), (1, asked as u64 + 1), "it is counted nonetheless");
    gate.open();
    assert_eq!(wire.response_to("GET").await.text(), "late");
    assert!(upstream.connections() <= lanes, "it went by a connection that waited");
}
