//! Who ends first: callers that leave, that end their side and wait, that are answered before they have sent it all.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{
    super::GatewayConfig,
    peers::{Reply, Upstream, Wire, eventually, get, ok, within},
    setup::{Running, config, handle, service},
};

const GET: &str = "GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n";

/// More than all buffers between two ends of a connection hold.
const LARGE: usize = 24 * 1024 * 1024;

async fn in_flight(running: &Running) -> serde_json::Value {
    running.status().await["config"]["selectors"][0]["upstreams"][0]["inFlight"].clone()
}

#[tokio::test]
async fn a_caller_that_has_ended_its_side_gets_its_answer() {
    let upstream = Upstream::start(|request| match request.target() {
        "/late" => Reply::Later(
            Duration::from_millis(200),
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate".to_vec(),
        ),
        "/large" => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n");
            Reply::Bytes([head.as_bytes(), &vec![b'x'; LARGE]].concat())
        }
        _ => ok(&request.text()),
    })
    .await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 5000))).await;
    for (request, length) in [
        ("GET /http/late HTTP/1.1\r\nHost: a\r\n\r\n", 4),
        ("GET /http/large HTTP/1.1\r\nHost: a\r\n\r\n", LARGE),
        ("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 5),
        ("POST /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 2),
    ] {
        let mut wire = Wire::connect(running.address()).await;
        wire.send(request).await;
        wire.stream.shutdown().await.unwrap();
        let answer = wire.response_to("GET").await;
        assert_eq!((answer.status(), answer.body.len(), answer.whole), (200, length, true), "{request}");
        assert!(wire.is_closed().await, "nothing more can be asked");
    }
    assert_eq!(upstream.connections(), 1, "the upstream's connection is kept");
    // Of several requests, too.
    let mut wire = Wire::connect(running.address()).await;
    wire.send(format!("{GET}GET /http/late HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    wire.stream.shutdown().await.unwrap();
    assert_eq!(wire.response_to("GET").await.text(), "");
    assert_eq!(wire.response_to("GET").await.text(), "late");
    assert!(wire.is_closed().await);
}

#[tokio::test]
async fn a_caller_that_left_is_not_answered_for_long_and_nothing_stays_in_flight() {
    let upstream = Upstream::start(|_| Reply::Hang).await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 3, 600_000))).await;
    let mut waiting = Vec::new();
    for count in 1..=4 {
        let mut wire = Wire::connect(running.address()).await;
        wire.send(GET).await;
        eventually("the request arrives", async || upstream.seen().len() == count).await;
        waiting.push(wire);
    }
    assert_eq!(in_flight(&running).await, 4);
    waiting.truncate(2);
    eventually("two are given up", async || in_flight(&running).await == 2).await;
    eventually("and the upstream knows", async || upstream.abandoned() == 2).await;
    // A reset says at once that nobody is there.
    for wire in &waiting {
        wire.stream.set_zero_linger().unwrap();
    }
    drop(waiting);
    eventually("all are given up", async || in_flight(&running).await == 0).await;
    eventually("and their connections", async || {
        let open = running.status().await["connections"].clone();
        open["callers"] == 0 && open["upstreams"] == 0
    })
    .await;
    assert_eq!(upstream.seen().len(), 4, "nobody was asked again");
}

#[tokio::test]
async fn a_caller_that_leaves_inside_an_answer_frees_the_upstream() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let mut wire = Wire::new(listener.accept().await.unwrap().0);
        wire.request().await.unwrap();
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin").await;
        wire.is_closed().await
    });
    let running = Running::start(&service(&[address], &handle("random", 0, 5000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send(GET).await;
    assert_eq!(within(wire.head()).await.unwrap().status(), 200);
    drop(wire);
    assert!(within(upstream).await.unwrap());
    eventually("nothing is in flight", async || in_flight(&running).await == 0).await;
}

#[tokio::test]
async fn a_caller_that_sends_all_before_it_reads_sees_an_early_refusal() {
    let upstream = Upstream::named("one").await;
    let config = GatewayConfig { max_body_bytes: 1000, ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 5000))).await;
    let long = vec![b'x'; LARGE];
    let head = format!("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE}\r\n\r\n");
    let chunk =
        format!("POST /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{LARGE:x}\r\n");
    let endless = "GET /http/x HTTP/1.1\r\nHost: a\r\nX: ".to_owned();
    for (start, status) in [(head, 413), (chunk, 413), (endless, 431)] {
        let mut wire = Wire::connect(running.address()).await;
        wire.send(&start).await;
        wire.send(&long).await;
        let answer = wire.response_to("POST").await;
        assert_eq!((answer.status(), answer.values("connection")), (status, vec!["close"]), "{start:?}");
    }
    assert!(upstream.seen().iter().all(|message| !message.whole), "{:?}", upstream.seen().len());
    assert_eq!(get(running.address(), "/http/x").await.text(), "one");
}

#[tokio::test]
async fn an_upstreams_early_refusal_reaches_a_caller_that_goes_on_sending() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut piece = vec![0; 64 * 1024];
        assert!(stream.read(&mut piece).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\nno").await.unwrap();
        // What it took no part of: the connection is not used for another request.
        let mut more = 0;
        while let Ok(read @ 1..) = stream.read(&mut piece).await {
            more += read;
        }
        more
    });
    let running = Running::start(&service(&[address], &handle("random", 0, 5000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send(format!("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE}\r\n\r\n")).await;
    wire.send(vec![b'x'; LARGE]).await;
    let answer = wire.response_to("POST").await;
    assert_eq!((answer.status(), answer.text().as_str()), (422, "no"));
    assert!(wire.is_closed().await, "nobody could tell where the next request begins");
    assert!(within(upstream).await.unwrap() < LARGE, "the body broke off");
}

#[tokio::test]
async fn an_early_answer_to_a_body_that_ends_in_time_leaves_both_connections_usable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let mut wire = Wire::new(listener.accept().await.unwrap().0);
        for _ in 0..2 {
            wire.head().await.unwrap();
            wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n").await;
            let mut body = [0; 5];
            wire.stream.read_exact(&mut body).await.unwrap();
            wire.send("0\r\n\r\n").await;
        }
    });
    let running = Running::start(&service(&[address], &handle("random", 0, 5000))).await;
    let mut wire = Wire::connect(running.address()).await;
    for _ in 0..2 {
        wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n").await;
        let head = within(wire.head()).await.unwrap();
        assert_eq!((head.status(), head.values("connection")), (200, vec![]), "before the body");
        wire.send("hello").await;
        for line in ["2", "ok", "0", ""] {
            assert_eq!(within(wire.line()).await.as_deref(), Some(line));
        }
    }
    within(upstream).await.unwrap();
}

#[tokio::test]
async fn a_body_that_was_asked_about_and_refused_is_never_sent() {
    let upstream = Upstream::named("one").await;
    let config = GatewayConfig { max_body_bytes: 10, ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    for (path, length, status) in [("/http/x", 11, 413), ("/none", 5, 404)] {
        let mut wire = Wire::connect(running.address()).await;
        wire.send(format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        ))
        .await;
        assert_eq!(wire.response_to("POST").await.status(), status, "and no 100 before it");
        assert!(wire.is_closed().await, "whether the body comes all the same cannot be known");
    }
    assert_eq!(upstream.seen().len(), 0);
    // What else is expected is for the upstream to judge.
    let other = "POST /http/x HTTP/1.1\r\nHost: a\r\nExpect: a-miracle\r\nContent-Length: 2\r\n\r\nhi";
    assert_eq!(super::peers::ask(running.address(), other).await.text(), "one");
    assert_eq!(upstream.last().values("expect"), ["a-miracle"]);
}
