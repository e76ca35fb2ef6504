//! Upstreams that fail or are busy: budgets, queues, and bodies that are sent once more.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use h2::Reason;
use soul_client::balance::BudgetSettings;

use super::{
    super::GatewayConfig,
    peers::{Gate, Reply, Upstream, Wire, ask, eventually, get, nobody, ok, within},
    setup::{Running, config, handle, service},
    upstream_http2::Peer,
    upstream_tls::spoken,
};

/// Closes without an answer to anything.
async fn broken() -> Upstream {
    Upstream::start(|_| Reply::Last(Vec::new())).await
}

fn put(body: &str) -> String {
    format!("PUT /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// What `/status` says of the one selector.
async fn selector(running: &Running) -> serde_json::Value {
    running.status().await["config"]["selectors"][0].clone()
}

async fn attempts(running: &Running) -> u64 {
    let selector = selector(running).await;
    let upstreams = selector["upstreams"].as_array().unwrap();
    upstreams.iter().map(|upstream| upstream["attempts"].as_u64().unwrap()).sum()
}

#[tokio::test]
async fn a_service_that_fails_is_asked_little_more_than_its_callers_ask() {
    let upstreams = [broken().await, broken().await, broken().await];
    let addresses = upstreams.each_ref().map(|upstream| upstream.address);
    let budget = BudgetSettings { min_per_second: 1, ..BudgetSettings::default() };
    let started = Instant::now();
    let running = Running::with(
        GatewayConfig { retry_budget: Some(budget), ..config() },
        &service(&addresses, &handle("roundRobin", 2, 3000)),
    )
    .await;
    for _ in 0..400 {
        assert_eq!(get(running.address(), "/http/x").await.status(), 502);
    }
    let asked: usize = upstreams.iter().map(|upstream| upstream.seen().len()).sum();
    // A window of ten seconds has a retry for each, from the first moment.
    let more = 10 + started.elapsed().as_secs() as usize;
    assert!((401..=400 + 80 + more).contains(&asked), "{asked} requests for 400, {more} more for the time");
    let selector = selector(&running).await;
    assert_eq!(selector["retries"], asked as u64 - 400, "{selector}");
    assert!(selector["retriesDenied"].as_u64().unwrap() > 0, "{selector}");
    let metrics = get(running.gateway.status_addr(), "/metrics").await.text();
    let line = format!(r#"soul_gateway_retries_total{{selector="/http"}} {}"#, asked - 400);
    assert!(metrics.contains(&line), "{metrics}");
}

#[tokio::test]
async fn what_an_upstream_of_http_2_refuses_is_repeated_little_more_than_its_callers_ask() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let peer = Peer::start(move |_, mut respond| {
        count.fetch_add(1, SeqCst);
        async move { respond.send_reset(Reason::REFUSED_STREAM) }
    })
    .await;
    let budget = BudgetSettings { min_per_second: 1, ..BudgetSettings::default() };
    let started = Instant::now();
    let settings = GatewayConfig { retry_budget: Some(budget), ..config() };
    let running = Running::with(settings, &spoken("h2c://", peer.address, 3000)).await;
    for _ in 0..200 {
        assert_eq!(get(running.address(), "/http/x").await.status(), 502);
    }
    let (asked, more) = (asked.load(SeqCst), 10 + started.elapsed().as_secs() as usize);
    assert!((201..=200 + 40 + more).contains(&asked), "{asked} requests for 200, {more} more for the time");
    assert_eq!(selector(&running).await["retries"], asked as u64 - 200);
}

#[tokio::test]
async fn a_dead_service_is_knocked_at_little_more_than_its_callers_ask() {
    let addresses = [nobody().await, nobody().await, nobody().await];
    let budget = BudgetSettings { min_per_second: 0, ..BudgetSettings::default() };
    let settings = GatewayConfig { retry_budget: Some(budget), suspect_for: Duration::ZERO, ..config() };
    let running = Running::with(settings, &service(&addresses, &handle("random", 0, 3000))).await;
    for _ in 0..300 {
        assert_eq!(get(running.address(), "/http/x").await.status(), 502);
    }
    let knocked = attempts(&running).await;
    assert!((300..=360).contains(&knocked), "{knocked}");

    let settings = GatewayConfig { retry_budget: None, suspect_for: Duration::ZERO, ..config() };
    let without = Running::with(settings, &service(&addresses, &handle("random", 0, 3000))).await;
    for _ in 0..100 {
        assert_eq!(get(without.address(), "/http/x").await.status(), 502);
    }
    assert_eq!(attempts(&without).await, 300, "every request tries all three");
}

#[tokio::test]
async fn a_put_is_sent_once_more_with_its_whole_body() {
    let chunked = "PUT /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    let large = "x".repeat(40_000);
    for (request, body) in
        [(put("hello"), "hello"), (chunked.to_owned(), "hello world"), (put(&large), &large)]
    {
        let (broken, fine) = (broken().await, Upstream::named("fine").await);
        let addresses = [broken.address, fine.address];
        let running = Running::start(&service(&addresses, &handle("roundRobin", 1, 3000))).await;
        for _ in 0..2 {
            let answer = ask(running.address(), &request).await;
            assert_eq!((answer.status(), answer.text().as_str()), (200, "fine"));
        }
        assert_eq!((broken.seen().is_empty(), fine.seen().len()), (false, 2));
        for seen in fine.seen().iter().chain(&broken.seen()) {
            assert!(seen.text() == body && seen.whole, "{} bytes of {}", seen.body.len(), body.len());
        }
    }
}

#[tokio::test]
async fn a_body_that_is_not_kept_is_sent_once() {
    for (settings, request) in [
        (GatewayConfig { replay_body_bytes: 4, ..config() }, put("hello")),
        (GatewayConfig { replay_body_bytes: 0, ..config() }, put("hello")),
        (config(), put(&"x".repeat(100_000))),
        (config(), put("hello").replace("PUT", "POST")),
    ] {
        let (broken, fine) = (broken().await, Upstream::named("fine").await);
        let data = service(&[broken.address, fine.address], &handle("roundRobin", 3, 3000));
        let running = Running::with(settings, &data).await;
        let mut statuses = [
            ask(running.address(), &request).await.status(),
            ask(running.address(), &request).await.status(),
        ];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 502]);
        assert_eq!((broken.seen().len(), fine.seen().len()), (1, 1));
    }
}

#[tokio::test]
async fn a_put_that_is_answered_after_a_new_start_leaves_both_connections_usable() {
    let (hangs, fine) = (Upstream::start(|_| Reply::Hang).await, Upstream::named("fine").await);
    let data = service(&[hangs.address, fine.address], &handle("roundRobin", 1, 300));
    let running = Running::start(&data).await;
    let mut wire = Wire::connect(running.address()).await;
    for _ in 0..4 {
        wire.send(put("hello")).await;
        assert_eq!(wire.response_to("PUT").await.text(), "fine", "also after a timeout");
    }
    assert!(fine.seen().iter().all(|seen| seen.text() == "hello"));
    assert_eq!(fine.connections(), 1);
}

/// Gateway and upstream of which one request is under way, which ends when the gate opens.
async fn busy(queue: usize, patience: Duration) -> (Gate, Upstream, Running, Wire) {
    let gate = Gate::default();
    let held = gate.clone();
    let upstream = Upstream::start(move |_| held.then("done")).await;
    let settings = GatewayConfig {
        upstream_max_requests: 1,
        upstream_queue: queue,
        upstream_queue_timeout: patience,
        ..config()
    };
    let running = Running::with(settings, &service(&[upstream.address], &handle("random", 0, 60_000))).await;
    let first = asking(running.address(), 0).await;
    eventually("one is under way", async || upstream.seen().len() == 1).await;
    (gate, upstream, running, first)
}

async fn asking(gateway: SocketAddr, number: usize) -> Wire {
    let mut wire = Wire::connect(gateway).await;
    wire.send(format!("GET /http/{number} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    wire
}

#[tokio::test]
async fn requests_wait_for_a_busy_upstream_in_order_and_only_so_many() {
    let (gate, upstream, running, first) = busy(3, Duration::from_secs(60)).await;
    let mut wires = vec![first];
    for number in 1..=3 {
        wires.push(asking(running.address(), number).await);
        eventually("it waits", async || selector(&running).await["waiting"] == number).await;
    }
    let refused = get(running.address(), "/http/4").await;
    assert_eq!((refused.status(), refused.values("retry-after")), (503, vec!["1"]));
    assert_eq!(upstream.seen().len(), 1, "nobody else was let through");
    gate.open();
    for wire in &mut wires {
        assert_eq!(wire.response_to("GET").await.text(), "done");
    }
    let order: Vec<_> = upstream.seen().iter().map(|seen| seen.target().to_owned()).collect();
    assert_eq!(order, ["/0", "/1", "/2", "/3"]);
    assert_eq!(selector(&running).await["waiting"], 0);
    assert_eq!(get(running.address(), "/http/5").await.text(), "done");
}

#[tokio::test]
async fn a_request_waits_no_longer_than_it_may() {
    let (_gate, upstream, running, _first) = busy(1, Duration::from_millis(100)).await;
    let late = get(running.address(), "/http/1").await;
    assert_eq!((late.status(), late.values("retry-after")), (503, vec!["1"]));
    eventually("its place is free", async || selector(&running).await["waiting"] == 0).await;
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn a_request_whose_caller_left_waits_no_more() {
    let (gate, upstream, running, mut first) = busy(1, Duration::from_secs(3600)).await;
    let waits = asking(running.address(), 1).await;
    eventually("it waits", async || selector(&running).await["waiting"] == 1).await;
    drop(waits);
    eventually("its place is free", async || selector(&running).await["waiting"] == 0).await;
    gate.open();
    assert_eq!(first.response_to("GET").await.text(), "done");
    assert_eq!(get(running.address(), "/http/3").await.text(), "done", "there is room again");
    assert_eq!(upstream.seen().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_before_few_upstreams_lets_everybody_through_in_the_end() {
    let (one, two) = (Upstream::named("one").await, Upstream::named("two").await);
    let settings = GatewayConfig {
        threads: 3,
        upstream_max_requests: 1,
        upstream_queue: 100,
        upstream_queue_timeout: Duration::from_secs(60),
        ..config()
    };
    let data = service(&[one.address, two.address], &handle("random", 0, 60_000));
    let running = Running::with(settings, &data).await;
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..24 {
        let address = running.address();
        callers.spawn(async move {
            let mut wire = Wire::connect(address).await;
            for _ in 0..50 {
                wire.send(format!("GET /http/{number} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
                assert_eq!(wire.response_to("GET").await.status(), 200);
            }
        });
    }
    while let Some(caller) = within(callers.join_next()).await {
        caller.expect("nobody was forgotten or refused");
    }
    assert_eq!(one.seen().len() + two.seen().len(), 24 * 50);
    assert_eq!(selector(&running).await["waiting"], 0);
}

#[tokio::test]
async fn when_every_upstream_is_out_nobody_is_asked_and_nothing_waited_for() {
    let addresses = [nobody().await, nobody().await];
    let settings = GatewayConfig {
        check_interval: Duration::from_millis(30),
        upstream_max_requests: 1,
        upstream_queue: 10,
        upstream_queue_timeout: Duration::from_secs(3600),
        ..config()
    };
    let running = Running::with(settings, &service(&addresses, &handle("random", 3, 60_000))).await;
    eventually("both are found down", async || {
        selector(&running).await["upstreams"].as_array().unwrap().iter().all(|up| up["health"] == "down")
    })
    .await;
    for _ in 0..20 {
        let answer = get(running.address(), "/http/x").await;
        assert!(answer.status() == 503 && answer.text().contains(r#""code":-106"#), "{answer:?}");
    }
    assert_eq!((attempts(&running).await, selector(&running).await["waiting"].as_u64()), (0, Some(0)));
}

#[tokio::test]
async fn upstreams_that_come_and_go_leave_the_connections_of_the_others() {
    let (stays, goes) = (Upstream::named("stays").await, Upstream::named("goes").await);
    let data = |addresses: &[SocketAddr]| service(addresses, &handle("roundRobin", 0, 3000));
    let settings = GatewayConfig { pool_idle_timeout: Duration::from_secs(3600), ..config() };
    let running = Running::with(settings, &data(&[stays.address, goes.address])).await;
    let mut wire = Wire::connect(running.address()).await;
    let mut asked = async |times: usize| {
        for _ in 0..times {
            wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(wire.response_to("GET").await.status(), 200);
        }
    };
    asked(4).await;
    running.publish(&data(&[stays.address])).await;
    asked(4).await;
    let comes = Upstream::start(|_| ok("comes")).await;
    running.publish(&data(&[comes.address, stays.address])).await;
    asked(4).await;
    assert_eq!((stays.connections(), comes.connections(), goes.connections()), (1, 1, 1));
    assert!(stays.seen().len() >= 6 && comes.seen().len() == 2);
}
