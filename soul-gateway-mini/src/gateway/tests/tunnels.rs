//! Connections that change their protocol.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

use super::{
    super::{Drained, GatewayConfig},
    peers::{Message, Upstream, Wire, ask, eventually, within},
    setup::{Running, config, handle, service},
};

pub(super) const UPGRADE: &str = "GET /http/x HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Key: k\r\n\r\n";
pub(super) const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                        Sec-WebSocket-Accept: z\r\n\r\nhello";

/// An upstream that changes to an echo, with what it was asked.
async fn echo() -> (Running, JoinHandle<Message>) {
    echo_with(config()).await
}

async fn echo_with(config: GatewayConfig) -> (Running, JoinHandle<Message>) {
    let (address, upstream) = echoing().await;
    (Running::with(config, &service(&[address], &handle("random", 0, 3000))).await, upstream)
}

pub(super) async fn echoing() -> (SocketAddr, JoinHandle<Message>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let mut wire = Wire::new(listener.accept().await.unwrap().0);
        let asked = wire.head().await.unwrap();
        wire.send(SWITCHED).await;
        let (mut reader, mut writer) = wire.stream.split();
        // Until the other side ends, or is gone.
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
        let _ = writer.shutdown().await;
        asked
    });
    (address, upstream)
}

async fn reads(wire: &mut Wire, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    within(wire.stream.read_exact(&mut bytes)).await.expect("more bytes");
    assert_eq!(bytes, expected);
}

/// A connection that has changed; what the upstream said at once is read.
async fn changed(running: &Running) -> Wire {
    let mut wire = Wire::connect(running.address()).await;
    wire.send(UPGRADE).await;
    let answer = within(wire.head()).await.expect("an answer");
    assert_eq!(answer.status(), 101);
    assert_eq!((answer.values("connection"), answer.values("upgrade")), (vec!["upgrade"], vec!["websocket"]));
    assert_eq!(answer.values("sec-websocket-accept"), ["z"]);
    while !wire.has("hello") {
        assert!(within(wire.more()).await, "what the upstream said at once");
    }
    wire
}

#[tokio::test]
async fn bytes_go_both_ways_until_both_sides_have_ended() {
    let (running, upstream) = echo().await;
    let mut wire = changed(&running).await;
    for text in [&b"one"[..], b"\0\xff two"] {
        wire.send(text).await;
        reads(&mut wire, text).await;
    }
    let large = vec![7; 1_000_000];
    let (mut reader, mut writer) = wire.stream.split();
    let mut back = vec![0; large.len()];
    let (sent, read) =
        within(async { tokio::join!(writer.write_all(&large), reader.read_exact(&mut back)) }).await;
    assert!(sent.is_ok() && read.is_ok() && back == large);
    writer.shutdown().await.unwrap();
    assert_eq!(within(reader.read(&mut back)).await.unwrap(), 0, "the end passes too");
    let asked = within(upstream).await.unwrap();
    assert_eq!((asked.values("connection"), asked.values("upgrade")), (vec!["upgrade"], vec!["websocket"]));
    assert_eq!(asked.values("sec-websocket-key"), ["k"]);
    eventually("nothing is left open", async || {
        let status = running.status().await;
        status["connections"]["callers"] == 0 && status["connections"]["upstreams"] == 0
    })
    .await;
}

#[tokio::test]
async fn a_caller_that_leaves_ends_the_tunnel_and_so_does_silence() {
    // Long against what a busy machine adds to a pause.
    const IDLE: Duration = Duration::from_secs(2);

    let (running, upstream) = echo().await;
    drop(changed(&running).await);
    within(upstream).await.unwrap();

    let config = GatewayConfig { tunnel_idle_timeout: IDLE, ..config() };
    let (running, upstream) = echo_with(config).await;
    let mut wire = changed(&running).await;
    for _ in 0..25 {
        tokio::time::sleep(IDLE / 20).await;
        wire.send("x").await;
        reads(&mut wire, b"x").await;
    }
    let mut byte = [0];
    assert_eq!(within(wire.stream.read(&mut byte)).await.unwrap_or(0), 0, "it is silent now");
    within(upstream).await.unwrap();
}

#[tokio::test]
async fn shutdown_waits_for_tunnels_as_long_as_for_requests() {
    let (running, upstream) = echo().await;
    let mut wire = changed(&running).await;
    let status = running.gateway.status_addr();
    let ending = tokio::spawn(running.gateway.shutdown());
    eventually("it drains", async || super::peers::get(status, "/readyz").await.status() == 503).await;
    wire.send("still").await;
    reads(&mut wire, b"still").await;
    drop(wire);
    assert_eq!(within(ending).await.unwrap(), Drained::All);
    within(upstream).await.unwrap();

    let config = GatewayConfig { drain_timeout: Duration::from_millis(100), ..config() };
    let (running, upstream) = echo_with(config).await;
    let _wire = changed(&running).await;
    assert_eq!(within(running.gateway.shutdown()).await, Drained::CutOff { connections: 1 });
    within(upstream).await.unwrap();
}

#[tokio::test]
async fn an_upstream_that_does_not_change_answers_as_always_and_other_versions_of_http_are_not_asked_for() {
    let upstream = Upstream::named("one").await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    for _ in 0..2 {
        wire.send(UPGRADE).await;
        assert_eq!(wire.response_to("GET").await.text(), "one");
    }
    assert_eq!(upstream.last().values("upgrade"), ["websocket"]);
    assert_eq!(upstream.connections(), 1);
    let h2c = "GET /http/x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
               HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    assert_eq!(ask(running.address(), h2c).await.text(), "one");
    let seen = upstream.last();
    for gone in ["upgrade", "connection", "http2-settings"] {
        assert_eq!(seen.values(gone), Vec::<&str>::new(), "{gone}");
    }
}

#[tokio::test]
async fn what_a_caller_sends_right_behind_its_head_is_not_lost() {
    let (running, upstream) = echo().await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send(format!("{UPGRADE}early\0bytes")).await;
    assert_eq!(within(wire.head()).await.unwrap().status(), 101);
    while !wire.has("helloearly\0bytes") {
        assert!(within(wire.more()).await, "what the upstream said and what it was told");
    }
    drop(wire);
    within(upstream).await.unwrap();
}

#[tokio::test]
async fn either_side_may_end_first_and_hear_the_other_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let mut wire = Wire::new(listener.accept().await.unwrap().0);
        wire.head().await.unwrap();
        wire.send(SWITCHED).await;
        wire.stream.shutdown().await.unwrap();
        let mut said = Vec::new();
        wire.stream.read_to_end(&mut said).await.unwrap();
        said
    });
    let running = Running::start(&service(&[address], &handle("random", 0, 3000))).await;
    let mut wire = changed(&running).await;
    assert!(wire.is_closed().await, "the upstream has said all");
    for text in ["and", "still", "told"] {
        wire.send(text).await;
        tokio::task::yield_now().await;
    }
    wire.stream.shutdown().await.unwrap();
    assert_eq!(within(upstream).await.unwrap(), b"andstilltold");
    eventually("nothing is left open", async || {
        let status = running.status().await;
        let in_flight = status["config"]["selectors"][0]["upstreams"][0]["inFlight"].clone();
        status["connections"]["callers"] == 0 && status["connections"]["upstreams"] == 0 && in_flight == 0
    })
    .await;
}

#[tokio::test]
async fn a_side_that_takes_nothing_stops_the_other() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (wanted, want) = tokio::sync::oneshot::channel();
    let upstream = tokio::spawn(async move {
        let mut wire = Wire::new(listener.accept().await.unwrap().0);
        wire.head().await.unwrap();
        wire.send(SWITCHED).await;
        want.await.unwrap();
        let mut all = Vec::new();
        wire.stream.read_to_end(&mut all).await.unwrap();
        all.len()
    });
    let running = Running::start(&service(&[address], &handle("random", 0, 3000))).await;
    let mut wire = changed(&running).await;
    let piece = [7; 64 * 1024];
    let mut sent = 0;
    // The upstream reads nothing: at some point nothing can be written any more.
    while let Ok(written) = tokio::time::timeout(Duration::from_millis(500), wire.stream.write(&piece)).await
    {
        sent += written.unwrap();
        assert!(sent < 64 * 1024 * 1024, "somebody keeps it all");
    }
    wanted.send(()).unwrap();
    wire.stream.shutdown().await.unwrap();
    assert_eq!(within(upstream).await.unwrap(), sent);
}

#[tokio::test]
async fn what_cannot_change_its_protocol_is_not_asked_to() {
    let upstream = Upstream::named("one").await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    for request in [
        format!("GET /http/x HTTP/1.0\r\nHost: a\r\n{upgrade}\r\n"),
        format!("POST /http/x HTTP/1.1\r\nHost: a\r\n{upgrade}Content-Length: 2\r\n\r\nhi"),
        format!("GET /http/x HTTP/1.1\r\nHost: a\r\n{upgrade}Upgrade: other\r\n\r\n"),
        "GET /http/x HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n".to_owned(),
    ] {
        assert_eq!(ask(running.address(), &request).await.text(), "one", "{request}");
        let seen = upstream.last();
        assert_eq!((seen.values("upgrade").len(), seen.values("connection").len()), (0, 0), "{request}");
    }
}

#[tokio::test]
async fn a_tunnel_takes_no_place_of_a_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let mut wires = Vec::new();
        for answer in [SWITCHED, SWITCHED, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"] {
            let mut wire = Wire::new(listener.accept().await.unwrap().0);
            wire.head().await.unwrap();
            wire.send(answer).await;
            wires.push(wire);
        }
        wires
    });
    let config = GatewayConfig { upstream_max_requests: 1, ..config() };
    let running = Running::with(config, &service(&[address], &handle("random", 0, 3000))).await;
    let _tunnels = [changed(&running).await, changed(&running).await];
    let answer = ask(running.address(), "GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer.text(), "ok");
    let busy = &running.status().await["config"]["selectors"][0]["upstreams"][0]["inFlight"];
    assert!(busy.as_u64() >= Some(2), "they count for whoever chooses the least busy: {busy}");
    within(upstream).await.unwrap();
}
