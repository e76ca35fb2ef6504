//! What lanes share is read by requests and not counted in and out: the number of holders of a thing is written memory, and
//! would go from core to core with every request.

use std::sync::Arc;

use super::{
    peers::{Gate, Upstream, Wire, eventually, get, ok},
    setup::{Running, handle, service},
};
use crate::sync::Snapshot;

/// How many hold what the requests of the one rule use: the configuration, its numbers, and where its upstream is.
fn holders(snapshot: &Arc<Snapshot>) -> [usize; 5] {
    let selector = snapshot.divide().unwrap().selectors().next().unwrap();
    let of_selector = selector.payload();
    let destination = of_selector.destination(&of_selector.upstreams().members()[0]).unwrap();
    [
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
    let running = Running::start(&service(&[upstream.address], &handle("roundRobin", 0, 3000))).await;
    // From now on a connection to the upstream waits, which knows whose it is.
    assert_eq!(get(running.address(), "/http/x").await.text(), "soon");

    let snapshot = running.gateway.sync.snapshot().unwrap();
    let before = holders(&snapshot);
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /http/held HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually("the upstream is asked", async || upstream.seen().len() == 2).await;
    // Those who look after the upstreams hold the configuration now and then.
    let no_more = async || holders(&snapshot).iter().zip(&before).all(|(now, before)| now <= before);
    eventually("nothing is held for it", no_more).await;
    gate.open();
    assert_eq!((wire.response_to("GET").await.text().as_str(), upstream.connections()), ("late", 1));
}
