//! Bodies of any size, streamed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::{sleep, timeout},
};

use super::{
    super::GatewayConfig,
    peers::{Reply, Upstream, Wire, ask, eventually, get, within},
    setup::{Running, config, handle, service},
};

/// More than all buffers between two ends of a connection hold.
const LARGE: usize = 24 * 1024 * 1024;

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| u8::try_from(i * 31 % 251).unwrap()).collect()
}

#[tokio::test]
async fn large_bodies_arrive_whole_in_both_directions() {
    let echo = Upstream::start(|request| {
        let mut answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len()).into_bytes();
        answer.extend_from_slice(&request.body);
        Reply::Bytes(answer)
    })
    .await;
    let running = Running::start(&service(&[echo.address], &handle("random", 0, 5000))).await;
    let body = pattern(LARGE);
    let mut request =
        format!("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE}\r\n\r\n").into_bytes();
    request.extend_from_slice(&body);
    let answer = ask(running.address(), &request).await;
    assert!(answer.body == body, "the bytes differ");

    let mut chunked = b"POST /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in body[..100_000].chunks(777) {
        chunked.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert!(ask(running.address(), &chunked).await.body == body[..100_000], "the bytes differ");
}

#[tokio::test]
async fn a_slow_reader_slows_the_upstream() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let written = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&written);
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await.unwrap();
        let piece = pattern(64 * 1024);
        // Without end, until the other side has gone.
        while stream.write_all(&piece).await.is_ok() {
            counter.fetch_add(piece.len(), SeqCst);
        }
    });
    let running = Running::start(&service(&[address], &handle("random", 0, 5000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;

    // The caller reads nothing: at some point nothing is written any more.
    let stands_still = async || {
        let before = written.load(SeqCst);
        sleep(Duration::from_millis(200)).await;
        before > 0 && written.load(SeqCst) == before
    };
    eventually("the upstream is stopped", stands_still).await;
    assert!(written.load(SeqCst) < LARGE, "{} bytes were taken from it", written.load(SeqCst));

    // And when the caller has gone, so is the upstream's connection.
    drop(wire);
    within(upstream).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_stops_reading_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await.unwrap();
        let piece = pattern(64 * 1024);
        while stream.write_all(&piece).await.is_ok() {}
    });
    let config = GatewayConfig { body_idle_timeout: Duration::from_millis(200), ..config() };
    let running = Running::with(config, &service(&[address], &handle("random", 0, 5000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    // The caller stays and reads nothing, so it is the gateway that ends both connections.
    within(upstream).await.unwrap();
    drop(wire);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_passed_for_a_whole_one() {
    for half in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
    ] {
        let upstream = Upstream::start(move |_| Reply::Last(half.as_bytes().to_vec())).await;
        let running = Running::start(&service(&[upstream.address], &handle("random", 3, 3000))).await;
        let answer = get(running.address(), "/http/x").await;
        assert_eq!((answer.status(), answer.whole), (200, false), "{half:?}");
        assert_eq!(upstream.seen().len(), 1);
    }
}

#[tokio::test]
async fn an_upstream_that_speaks_no_http_is_a_bad_gateway() {
    for nonsense in [
        "SSH-2.0-OpenSSH_9\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
        "",
    ] {
        let upstream = Upstream::start(move |_| Reply::Last(nonsense.as_bytes().to_vec())).await;
        let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
        assert_eq!(get(running.address(), "/http/x").await.status(), 502, "{nonsense:?}");
    }
}

#[tokio::test]
async fn a_caller_that_leaves_ends_the_request_at_the_upstream() {
    let upstream = Upstream::start(|_| Reply::Hang).await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 60_000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually("the request arrives", async || upstream.seen().len() == 1).await;
    drop(wire);
    eventually("the upstream is left", async || upstream.abandoned() == 1).await;
    let metrics = get(running.gateway.status_addr(), "/metrics").await.text();
    let left = r#"soul_gateway_requests_total{selector="/http",rule="/http/**",status="499"} 1"#;
    assert!(metrics.contains(left), "{metrics}");
}

#[tokio::test]
async fn an_answer_may_come_before_the_body_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig").await.unwrap();
        // It goes on reading for a while, as good servers do.
        while timeout(Duration::from_millis(200), stream.read(&mut request))
            .await
            .is_ok_and(|r| r.is_ok_and(|n| n > 0))
        {}
    });
    let running = Running::start(&service(&[address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegin").await;
    let answer = wire.response_to("POST").await;
    assert_eq!((answer.status(), answer.text().as_str()), (413, "big"));
    drop(wire);
    within(upstream).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_leaves_inside_its_body_is_counted_as_one_that_left() {
    let upstream = Upstream::named("one").await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf").await;
    eventually("the body is under way", async || upstream.connections() == 1).await;
    wire.stream.shutdown().await.unwrap();
    assert_eq!(wire.response_to("POST").await.status(), 400);
    let metrics = get(running.gateway.status_addr(), "/metrics").await.text();
    let left = r#"soul_gateway_requests_total{selector="/http",rule="/http/**",status="499"} 1"#;
    assert!(metrics.contains(left), "{metrics}");
    let known = &running.status().await["config"]["selectors"][0]["upstreams"][0];
    assert_eq!(known["failures"], 0, "{known}");
}

#[tokio::test]
async fn the_head_of_an_answer_has_a_limit() {
    let upstream = Upstream::start(|_| {
        Reply::Last(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(200_000)).into_bytes())
    })
    .await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    assert_eq!(get(running.address(), "/http/x").await.status(), 502);
}
