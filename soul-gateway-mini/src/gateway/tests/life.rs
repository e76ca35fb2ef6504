//! Start, change and end of a gateway under load.

use std::{
    io::{self, Write},
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::{net::TcpStream, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    super::{Drained, GatewayConfig},
    peers::{Reply, Upstream, Wire, ask, eventually, get, within},
    setup::{Running, config, handle, rule, selector, service, upstreams},
};
use crate::exposition;

const POST: &str = "POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";

#[tokio::test]
async fn requests_in_flight_end_before_the_gateway_does() {
    let upstream = Upstream::start(|_| {
        Reply::Later(Duration::from_millis(300), b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone".to_vec())
    })
    .await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let address = running.address();
    let mut idle = Wire::connect(address).await;
    let mut half = Wire::connect(address).await;
    half.send("GET /http/x HTTP/1.1\r\nHo").await;
    let mut busy = Wire::connect(address).await;
    busy.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually("the request arrives", async || upstream.seen().len() == 1).await;

    let status = running.gateway.status_addr();
    let ending = tokio::spawn(running.gateway.shutdown());
    eventually("it says so", async || get(status, "/readyz").await.text() == "draining\n").await;
    assert!(idle.is_closed().await, "an idle connection is closed at once");
    assert!(half.is_closed().await, "half a head is not waited for");
    let answer = busy.response_to("GET").await;
    assert_eq!((answer.text().as_str(), answer.values("connection")), ("done", vec!["close"]));
    assert_eq!(within(ending).await.unwrap(), Drained::All);
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_request_that_does_not_end_is_cut_off() {
    let upstream = Upstream::start(|_| Reply::Hang).await;
    let config = GatewayConfig { drain_timeout: Duration::from_millis(100), ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 60_000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually("the request arrives", async || upstream.seen().len() == 1).await;
    assert_eq!(within(running.gateway.shutdown()).await, Drained::CutOff { connections: 1 });
    assert!(wire.is_closed().await);
    eventually("the upstream is left", async || upstream.abandoned() == 1).await;
}

#[tokio::test]
async fn with_nobody_there_nothing_is_cut_off_however_short_the_drain() {
    for drain_timeout in [1, 100].map(Duration::from_millis) {
        let running = Running::with(
            GatewayConfig { drain_timeout, ..config() },
            &service(&[], &handle("random", 0, 3000)),
        )
        .await;
        assert_eq!(within(running.gateway.shutdown()).await, Drained::All);
    }
}

#[tokio::test]
async fn a_dropped_gateway_stops() {
    let upstream = Upstream::named("one").await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let address = running.address();
    drop(running);
    eventually("nobody listens", async || TcpStream::connect(address).await.is_err()).await;
}

#[tokio::test]
async fn as_many_connections_as_allowed_and_the_next_waits_for_its_turn() {
    let upstream = Upstream::named("one").await;
    let config = GatewayConfig { max_connections: 1, ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut first = Wire::connect(running.address()).await;
    first.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(first.response_to("GET").await.text(), "one");
    let mut second = Wire::connect(running.address()).await;
    second.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(tokio::time::timeout(Duration::from_millis(100), second.head()).await.is_err());
    drop(first);
    assert_eq!(second.response_to("GET").await.text(), "one");
}

#[tokio::test]
async fn connections_are_spread_evenly_over_lanes_and_none_is_lost_at_the_end() {
    let upstream = Upstream::named("one").await;
    let data = service(&[upstream.address], &handle("roundRobin", 0, 3000));
    let running = Running::with(GatewayConfig { threads: 4, ..config() }, &data).await;
    let request = "GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut wires = Vec::new();
    for _ in 0..40 {
        let mut wire = Wire::connect(running.address()).await;
        wire.send(request).await;
        assert_eq!(wire.response_to("GET").await.text(), "one");
        wires.push(wire);
    }
    assert_eq!(running.status().await["connections"]["callersByLane"], json!([10, 10, 10, 10]));

    // All at once, and before the last of them has arrived where it is served, the gateway is told to stop.
    for _ in 0..40 {
        let mut wire = Wire::connect(running.address()).await;
        wire.send(request).await;
        wires.push(wire);
    }
    let last = wires.split_off(40);
    drop(wires);
    let stopping = tokio::spawn(running.gateway.shutdown());
    for mut wire in last {
        assert_eq!(wire.response_to("GET").await.text(), "one");
    }
    assert_eq!(within(stopping).await.unwrap(), Drained::All);
}

/// Asks without a pause until told to stop, and gives how often; every answer must be `one` or `two`.
async fn load(gateway: SocketAddr, stop: CancellationToken) -> usize {
    let mut wire = Wire::connect(gateway).await;
    let mut asked = 0;
    while !stop.is_cancelled() {
        wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let answer = wire.response_to("GET").await;
        assert_eq!(answer.status(), 200, "{answer:?}");
        asked += 1;
    }
    asked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_under_load_lose_no_request() {
    let (one, two) = (Upstream::named("one").await, Upstream::named("two").await);
    let old = service(&[one.address], &handle("random", 0, 3000));
    let running = Running::start(&old).await;
    let stop = CancellationToken::new();
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        callers.spawn(load(running.address(), stop.clone()));
    }
    for change in 0..50 {
        let mut new = service(&[one.address, two.address], &handle("roundRobin", 0, 3000));
        if change % 2 == 0 {
            new = service(&[two.address], &handle("hash", 0, 3000));
            new.selectors.push(selector("divide", "/other", &upstreams(&[])));
            new.rules.push(rule("divide", "/other", "/other/**", &handle("random", 0, 3000)));
        }
        running.publish(&new).await;
    }
    stop.cancel();
    let mut asked = 0;
    while let Some(count) = callers.join_next().await {
        asked += count.expect("no request was lost");
    }
    assert_eq!(asked, one.seen().len() + two.seen().len());
    assert!(!two.seen().is_empty() && asked > 50, "{asked}");
}

#[tokio::test]
async fn a_change_serves_at_once_and_what_is_gone_is_gone() {
    let upstream = Upstream::named("one").await;
    let mut data = service(&[upstream.address], &handle("random", 0, 3000));
    let running = Running::start(&data).await;
    data.rules = vec![rule("divide", "/http", "/http/b", &handle("random", 0, 3000))];
    running.publish(&data).await;
    assert_eq!(get(running.address(), "/http/a").await.status(), 404);
    assert_eq!(get(running.address(), "/http/b").await.status(), 200);
    Arc::make_mut(&mut data.rules[0]).enabled = Some(false);
    running.publish(&data).await;
    assert_eq!(get(running.address(), "/http/b").await.status(), 404);
    Arc::make_mut(&mut data.rules[0]).enabled = Some(true);
    running.publish(&data).await;
    assert_eq!(get(running.address(), "/http/b").await.status(), 200);
}

#[tokio::test]
async fn counters_and_turns_outlive_changes() {
    let (one, two) = (Upstream::named("one").await, Upstream::named("two").await);
    let mut data = service(&[one.address, two.address], &handle("roundRobin", 0, 3000));
    let running = Running::start(&data).await;
    let mut answers = Vec::new();
    for timeout in 1..=6 {
        Arc::make_mut(&mut data.rules[0]).handle = Some(handle("roundRobin", 0, 3000 + timeout));
        running.publish(&data).await;
        answers.push(get(running.address(), "/http/x").await.text());
    }
    assert_eq!(answers, ["one", "two", "one", "two", "one", "two"]);
    let response = get(running.gateway.status_addr(), "/metrics").await;
    assert_eq!(response.values("content-type"), [exposition::CONTENT_TYPE]);
    let metrics = response.text();
    exposition::check(&metrics);
    let count = r#"soul_gateway_requests_total{selector="/http",rule="/http/**",status="200"} 6"#;
    assert!(metrics.contains(count), "{metrics}");
    assert!(
        metrics.contains(r#"soul_gateway_request_duration_seconds_count{selector="/http"} 6"#),
        "{metrics}"
    );
    assert!(metrics.contains("soul_gateway_config_revision 7"), "{metrics}");
}

#[tokio::test]
async fn connections_to_upstreams_are_few_and_idle_ones_are_closed() {
    let upstream = Upstream::named("one").await;
    let config = GatewayConfig { pool_idle_timeout: Duration::from_millis(200), ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut callers = JoinSet::new();
    for _ in 0..16 {
        let address = running.address();
        callers.spawn(async move {
            for request in ["GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n", POST].iter().cycle().take(100) {
                assert_eq!(ask(address, request).await.text(), "one");
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    assert_eq!(upstream.seen().len(), 1600);
    assert!(upstream.connections() <= 64, "{} connections for 16 callers", upstream.connections());
    let open = async || running.status().await["connections"].clone();
    eventually("idle ones are closed", async || open().await["upstreams"] == 0).await;
    eventually("no caller is left", async || open().await["callers"] == 0).await;
    assert_eq!(get(running.address(), "/http/x").await.text(), "one");
}

/// Log lines as they are written.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_tells_of_a_request_in_souls_words() {
    let upstream = Upstream::named("one").await;
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // While there is one subscriber alone, tracing asks the thread on which a line is first reached whether anybody wants
    // it, for all threads: that of another test does not.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _guard = tracing::subscriber::set_default(subscriber);
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    get(running.address(), "/http/order/findById?id=95").await;
    get(running.address(), "/none").await;
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let forwarded =
        format!("The request urlPath is http://{}/order/findById?id=95, retryTimes is 0", upstream.address);
    for line in [
        "divide selector success match , selector name :/http",
        "divide rule success match , rule name :/http/**",
        &forwarded,
        "The request was not forwarded",
    ] {
        assert_eq!(text.matches(line).count(), 1, "{line} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_access_log_has_a_line_for_every_request_of_all_threads() {
    let upstream = Upstream::named("one").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let config = GatewayConfig { threads: 3, access_log: Some(path.clone()), ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut callers = JoinSet::new();
    for _ in 0..16 {
        let address = running.address();
        callers.spawn(async move {
            let mut wire = Wire::connect(address).await;
            for _ in 0..20 {
                wire.send("GET /http/x?secret HTTP/1.1\r\nHost: a\r\n\r\n").await;
                assert_eq!(wire.response_to("GET").await.status(), 200);
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    let metrics = get(running.gateway.status_addr(), "/metrics").await.text();
    let count = r#"soul_gateway_requests_total{selector="/http",rule="/http/**",status="200"} 320"#;
    assert!(metrics.contains(count), "the counts of all threads are summed: {metrics}");
    within(running.gateway.shutdown()).await;
    let log = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!(lines.len(), 320);
    let expected = [("path", "/http/x"), ("rule", "/http/**"), ("upstream", &upstream.address.to_string())];
    assert!(
        expected.iter().all(|(name, value)| lines.iter().all(|line| line[*name] == *value)),
        "{}",
        lines[0]
    );
}
