//! How long things may take, with small real values. Every other limit is too long for the test to wait for, so that what
//! ends in time ended by the limit it is about; how exactly it is kept is for `alarm` to show, whose clock stands still.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    time::{Instant, sleep, timeout},
};

use super::{
    super::GatewayConfig,
    peers::{Reply, Upstream, Wire, ask, get, within},
    setup::{Running, config, handle, service},
};

/// In the milliseconds of a rule.
const HOUR: u32 = 3_600_000;

const LATE: &str = r#"{"code":-104,"message":"Service call timeout!","data":null}"#;

#[tokio::test]
async fn the_time_of_the_rule_counts() {
    let silent = Upstream::start(|_| Reply::Hang).await;
    for allowed in [100, 400] {
        let running = Running::start(&service(&[silent.address], &handle("random", 0, allowed))).await;
        let asked = Instant::now();
        let answer = get(running.address(), "/http/x").await;
        let took = asked.elapsed();
        assert_eq!((answer.status(), answer.text().as_str()), (504, LATE));
        assert!(took >= Duration::from_millis(allowed.into()), "{took:?}");
    }
    let slow =
        Upstream::start(|_| Reply::Later(Duration::from_millis(150), b"HTTP/1.1 204 X\r\n\r\n".to_vec()))
            .await;
    let running = Running::start(&service(&[slow.address], &handle("random", 0, 2000))).await;
    assert_eq!(get(running.address(), "/http/x").await.status(), 204);
}

#[tokio::test]
async fn a_connection_that_is_never_made_ends_in_time_and_another_upstream_is_asked() {
    let hole = BlackHole::open().await;
    let config = || GatewayConfig { connect_timeout: Duration::from_millis(100), ..config() };
    let alone = Running::with(config(), &service(&[hole.address], &handle("random", 0, HOUR))).await;
    let answer = get(alone.address(), "/http/x").await;
    assert_eq!((answer.status(), answer.text().as_str()), (504, LATE));

    let fine = Upstream::named("fine").await;
    let two =
        Running::with(config(), &service(&[hole.address, fine.address], &handle("roundRobin", 0, HOUR)))
            .await;
    let post = "POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
    for _ in 0..4 {
        assert_eq!(ask(two.address(), post).await.text(), "fine");
    }
}

/// A listener whose queue is full: connections to it are neither made nor refused.
struct BlackHole {
    address: SocketAddr,
    _listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl BlackHole {
    async fn open() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut queued = Vec::new();
        while let Ok(Ok(stream)) = timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
            queued.push(stream);
            assert!(queued.len() < 100, "the queue never fills");
        }
        Self { address, _listener: listener, _queued: queued }
    }
}

#[tokio::test]
async fn the_time_a_caller_takes_to_send_is_not_the_upstreams() {
    let upstream = Upstream::named("one").await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 1000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n").await;
    for byte in ["a", "b", "c", "d", "e", "f"] {
        sleep(Duration::from_millis(300)).await;
        wire.send(byte).await;
    }
    let answer = wire.response_to("POST").await;
    assert_eq!(answer.text(), "one");
    assert_eq!(upstream.last().text(), "abcdef");
}

#[tokio::test]
async fn a_caller_that_stops_sending_is_not_waited_for() {
    let upstream = Upstream::named("one").await;
    let config = GatewayConfig { body_idle_timeout: Duration::from_millis(100), ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc").await;
    assert_eq!(wire.response_to("POST").await.status(), 408);
}

#[tokio::test]
async fn an_upstream_that_stops_inside_its_body_is_not_waited_for() {
    let upstream =
        Upstream::start(|_| Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc".to_vec())).await;
    let config = GatewayConfig { body_idle_timeout: Duration::from_millis(100), ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let answer = get(running.address(), "/http/x").await;
    assert_eq!((answer.status(), answer.text().as_str(), answer.whole), (200, "abc", false));
}

#[tokio::test]
async fn a_caller_that_never_ends_its_head_is_cut_off() {
    let upstream = Upstream::named("one").await;
    let config = GatewayConfig { header_read_timeout: Duration::from_millis(150), ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\nX: ").await;
    assert!(wire.is_closed().await, "it has asked nothing that could be answered");
    let mut idle = Wire::connect(running.address()).await;
    assert!(idle.is_closed().await, "one that sends nothing is cut off too");
}

#[tokio::test]
async fn the_whole_request_has_a_time_of_its_own() {
    let config = || GatewayConfig { request_timeout: Duration::from_millis(200), ..config() };
    let silent = Upstream::start(|_| Reply::Hang).await;
    let running = Running::with(config(), &service(&[silent.address], &handle("random", 3, HOUR))).await;
    assert_eq!(get(running.address(), "/http/x").await.status(), 504);
    assert_eq!(silent.seen().len(), 1, "there is no time for another");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let endless = tokio::spawn(async move {
        let mut wire = Wire::new(listener.accept().await.unwrap().0);
        wire.request().await.unwrap();
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        while wire.stream.try_write(b"1\r\nx\r\n").is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
    });
    let running = Running::with(config(), &service(&[address], &handle("random", 0, HOUR))).await;
    let mut wire = Wire::connect(running.address()).await;
    for _ in 0..2 {
        // A request that ends in time does not shorten the next one.
        wire.send("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(wire.response_to("GET").await.status(), 404);
        sleep(Duration::from_millis(120)).await;
    }
    wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = wire.response_to("GET").await;
    assert_eq!((answer.status(), answer.whole), (200, false));
    assert!(!answer.body.is_empty(), "the time began with this request");
    within(endless).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_drips_is_not_waited_for_and_a_slow_one_is() {
    let upstream = Upstream::named("one").await;
    // 100 bytes in every such time.
    let idle = Duration::from_millis(1000);
    let config = |min_body_rate| GatewayConfig { body_idle_timeout: idle, min_body_rate, ..config() };
    let data = service(&[upstream.address], &handle("random", 0, HOUR));
    let post = "POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
    let running = Running::with(config(100), &data).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send(post).await;
    let answer = within(async {
        loop {
            // Never a pause that would be too long, and always too little.
            wire.send("x").await;
            if timeout(idle / 50, wire.more()).await.is_ok() {
                break wire.response_to("POST").await;
            }
        }
    })
    .await;
    assert_eq!((answer.status(), answer.values("connection")), (408, vec!["close"]));

    for rate in [0, 100] {
        let running = Running::with(config(rate), &data).await;
        let mut wire = Wire::connect(running.address()).await;
        wire.send(post).await;
        let bytes = if rate == 0 { 1 } else { 50 };
        for _ in 0..20 {
            sleep(idle / 10).await;
            wire.send(vec![b'x'; bytes]).await;
        }
        wire.send(vec![b'x'; 1_000_000 - 20 * bytes]).await;
        assert_eq!(wire.response_to("POST").await.text(), "one", "{rate}");
    }
}
