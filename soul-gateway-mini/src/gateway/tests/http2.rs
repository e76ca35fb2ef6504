//! Callers that speak HTTP/2.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use h2::{Reason, client};
use http::{HeaderMap, Request, Response, StatusCode, header::HOST};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    super::{Drained, GatewayConfig},
    peers::{Reply, Upstream, Wire, eventually, get, nobody, ok, within},
    secure::{Authority, Dialer, Files, shown},
    setup::{Running, config, handle, rule, service},
};

/// A caller's connection.
pub(super) struct Caller {
    pub(super) send: client::SendRequest<Bytes>,
    /// What came of the connection.
    pub(super) ended: AbortOnDropHandle<Result<(), h2::Error>>,
}

impl Caller {
    pub(super) async fn connect(gateway: SocketAddr) -> Self {
        let stream = within(TcpStream::connect(gateway)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream, &client::Builder::new()).await
    }

    pub(super) async fn over<S>(stream: S, builder: &client::Builder) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (send, connection) = within(builder.handshake(stream)).await.unwrap();
        Self { send, ended: AbortOnDropHandle::new(tokio::spawn(connection)) }
    }

    /// Sends a request without a body; the answer is still to come.
    pub(super) async fn ask(&mut self, request: Request<()>) -> client::ResponseFuture {
        let mut send = within(self.send.clone().ready()).await.unwrap();
        send.send_request(request, true).unwrap().0
    }

    pub(super) async fn get(&mut self, path: &str) -> (StatusCode, String) {
        let (head, body, _) = whole(self.ask(asking(path)).await).await.unwrap();
        (head.status(), body)
    }
}

pub(super) fn asking(path: &str) -> Request<()> {
    Request::get(format!("http://shop.example{path}")).body(()).unwrap()
}

/// All of an answer.
pub(super) async fn whole(
    answer: client::ResponseFuture,
) -> Result<(Response<()>, String, Option<HeaderMap>), h2::Error> {
    within(async {
        let (head, mut body) = answer.await?.into_parts();
        let mut bytes = Vec::new();
        while let Some(data) = body.data().await {
            let data = data?;
            let _ = body.flow_control().release_capacity(data.len());
            bytes.extend_from_slice(&data);
        }
        let trailers = body.trailers().await?;
        Ok((Response::from_parts(head, ()), String::from_utf8(bytes).unwrap(), trailers))
    })
    .await
}

pub(super) async fn over(config: GatewayConfig, upstream: &Upstream) -> Running {
    Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await
}

#[tokio::test]
async fn tls_chooses_http_2_and_the_upstream_sees_what_http_1_would_show() {
    let (authority, files) = (Authority::new(), Files::new());
    let upstream = Upstream::named("one").await;
    let running = over(files.config(&[&authority.issue(&["shop.example"])]), &upstream).await;
    let dialer = Dialer { protocols: &["http/1.1", "h2"], ..Dialer::trusting(&authority) };
    let wire = dialer.dial(running.address(), "shop.example").await.unwrap();
    assert_eq!(shown(&wire).1.as_deref(), Some("h2"));
    let mut caller = Caller::over(wire.stream, &client::Builder::new()).await;
    let request = Request::get("https://shop.example/http/a%2Fb?c=1")
        .header(HOST, "other.example")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .header("te", "trailers")
        .header("x-a", "1")
        .body(())
        .unwrap();
    let (head, body, _) = whole(caller.ask(request).await).await.unwrap();
    assert_eq!(
        (head.status(), &*body, &head.headers()["content-length"]),
        (StatusCode::OK, "one", &"3".parse().unwrap())
    );
    let seen = upstream.last();
    assert_eq!(seen.start, "GET /a%2Fb?c=1 HTTP/1.1");
    let expected = [
        ("host", "shop.example"),
        ("cookie", "a=1; b=2"),
        ("x-a", "1"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "shop.example"),
        ("x-forwarded-for", "127.0.0.1"),
    ];
    for (name, value) in expected {
        assert_eq!(seen.values(name), [value], "{seen:?}");
    }
    assert_eq!(seen.headers.len(), expected.len(), "{seen:?}");
}

#[tokio::test]
async fn http_2_is_told_by_its_first_words_in_whatever_pieces_they_come() {
    let upstream = Upstream::named("one").await;
    let running = over(config(), &upstream).await;
    assert_eq!(
        Caller::connect(running.address()).await.get("/http/x").await,
        (StatusCode::OK, "one".to_owned())
    );
    assert_eq!(upstream.last().values("x-forwarded-proto"), ["http"]);

    let mut wire = Wire::connect(running.address()).await;
    wire.stream.set_nodelay(true).unwrap();
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" {
        wire.send([*byte]).await;
        tokio::task::yield_now().await;
    }
    wire.send(b"\0\0\0\x04\0\0\0\0\0").await;
    let mut frame = [0; 9];
    within(wire.stream.read_exact(&mut frame)).await.unwrap();
    assert_eq!(frame[3], 4, "settings come first: {frame:?}");

    // What only begins alike is HTTP/1.1.
    let mut wire = Wire::connect(running.address()).await;
    wire.send("P").await;
    wire.send("RIM /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(wire.response_to("PRIM").await.status(), 200);
    let mut wire = Wire::connect(running.address()).await;
    wire.send("PRI * HTTP/1.1\r\n\r\n").await;
    assert_eq!(wire.response_to("PRI").await.status(), 400);
}

#[tokio::test]
async fn half_a_preface_does_not_wait_for_ever_and_none_is_understood_where_it_is_off() {
    let upstream = Upstream::named("one").await;
    let short = GatewayConfig { header_read_timeout: Duration::from_millis(200), ..config() };
    let running = over(short, &upstream).await;
    for begun in ["", "PRI * HTTP/2.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut wire = Wire::connect(running.address()).await;
        wire.send(begun).await;
        let mut bytes = Vec::new();
        let _ = within(wire.stream.read_to_end(&mut bytes)).await;
    }
    let off = over(GatewayConfig { http2_max_streams: 0, ..config() }, &upstream).await;
    let mut wire = Wire::connect(off.address()).await;
    wire.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(wire.is_closed().await);
    assert_eq!(get(off.address(), "/http/x").await.text(), "one");
}

#[tokio::test]
async fn a_hundred_requests_at_once_on_one_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let running = Running::with(config(), &service(&[address], &handle("random", 0, 9000))).await;
    let mut caller = Caller::connect(running.address()).await;
    let mut asked = JoinSet::new();
    for i in 0..100 {
        let answer = caller.ask(asking(&format!("/http/{i}"))).await;
        asked.spawn(async move {
            let (head, body, _) = whole(answer).await.unwrap();
            assert_eq!((head.status(), body), (StatusCode::OK, format!("/{i}")));
        });
    }
    // All of them are at the upstream before the first is answered.
    let mut wires = Vec::new();
    for _ in 0..100 {
        let mut wire = Wire::new(within(listener.accept()).await.unwrap().0);
        let request = within(wire.request()).await.unwrap();
        wires.push((wire, request.target().to_owned()));
    }
    for (wire, target) in wires.iter_mut().rev() {
        wire.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{target}", target.len())).await;
    }
    while let Some(ended) = within(asked.join_next()).await {
        ended.unwrap();
    }
    let asked = caller.send.clone();
    assert_eq!(asked.current_max_send_streams(), 128);
}

#[tokio::test]
async fn bodies_and_trailers_pass_both_ways() {
    let upstream = Upstream::start(|_| {
        Reply::Bytes(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"
                .to_vec(),
        )
    })
    .await;
    let running = over(config(), &upstream).await;
    let caller = Caller::connect(running.address()).await;
    let request = Request::post("http://shop.example/http/x").body(()).unwrap();
    let mut send = within(caller.send.clone().ready()).await.unwrap();
    let (answer, mut body) = send.send_request(request, false).unwrap();
    body.send_data("one".into(), false).unwrap();
    body.send_data("two".into(), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", "9".parse().unwrap());
    body.send_trailers(trailers).unwrap();
    let (head, text, trailers) = whole(answer).await.unwrap();
    assert_eq!((head.status(), &*text), (StatusCode::OK, "hello"));
    assert_eq!(trailers.unwrap()["x-sum"], "1");
    let seen = upstream.last();
    assert_eq!((seen.text(), seen.values("transfer-encoding")), ("onetwo".to_owned(), vec!["chunked"]));

    let request = Request::post("http://shop.example/http/x").header("content-length", "3").body(()).unwrap();
    let (answer, mut body) = send.send_request(request, false).unwrap();
    body.send_data("abc".into(), true).unwrap();
    whole(answer).await.unwrap();
    let seen = upstream.last();
    assert_eq!((seen.text(), seen.values("content-length")), ("abc".to_owned(), vec!["3"]));
}

#[tokio::test]
async fn each_request_has_its_own_time_and_a_reset_one_is_given_up_at_the_upstream() {
    let upstream = Upstream::start(|request| match request.target() {
        "/hang" => Reply::Hang,
        _ => ok("one"),
    })
    .await;
    // The one that hangs has little time, the other all that it may need on a busy machine.
    let mut data = service(&[upstream.address], &handle("random", 0, 60_000));
    data.rules = vec![
        rule("divide", "/http", "/http/hang", &handle("random", 0, 400)),
        rule("divide", "/http", "/http/x", &handle("random", 0, 60_000)),
    ];
    let running = Running::with(config(), &data).await;
    let mut caller = Caller::connect(running.address()).await;
    let late = caller.ask(asking("/http/hang")).await;
    assert_eq!(caller.get("/http/x").await, (StatusCode::OK, "one".to_owned()));
    assert_eq!(whole(late).await.unwrap().0.status(), StatusCode::GATEWAY_TIMEOUT);
    eventually("the late one is given up", async || upstream.abandoned() == 1).await;

    let patient = Running::with(config(), &service(&[upstream.address], &handle("random", 0, 60_000))).await;
    let mut caller = Caller::connect(patient.address()).await;
    let before = upstream.seen().len();
    let mut send = within(caller.send.clone().ready()).await.unwrap();
    let (answer, mut stream) = send.send_request(asking("/http/hang"), true).unwrap();
    eventually("it is at the upstream", async || upstream.seen().len() > before).await;
    stream.send_reset(Reason::CANCEL);
    drop(answer);
    eventually("the reset one is given up", async || upstream.abandoned() == 2).await;
    assert_eq!(caller.get("/http/x").await.0, StatusCode::OK, "the connection lives on");
}

#[tokio::test]
async fn at_the_end_of_the_gateway_requests_under_way_are_answered() {
    let upstream = Upstream::start(|_| {
        Reply::Later(Duration::from_millis(300), b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate".to_vec())
    })
    .await;
    let running = over(config(), &upstream).await;
    let mut caller = Caller::connect(running.address()).await;
    // One that has asked nothing and one that is done are no reason to wait.
    let idle = Caller::connect(running.address()).await;
    let mut done = Caller::connect(running.address()).await;
    assert_eq!(done.get("/http/x").await.0, StatusCode::OK);
    let answers = [caller.ask(asking("/http/a")).await, caller.ask(asking("/http/b")).await];
    eventually("they are at the upstream", async || upstream.seen().len() == 3).await;
    let (drained, ()) = tokio::join!(within(running.gateway.shutdown()), async {
        for answer in answers {
            assert_eq!(whole(answer).await.unwrap().1, "late");
        }
    });
    assert_eq!(drained, Drained::All);
    for ended in [caller.ended, idle.ended, done.ended] {
        // Said goodbye, not cut off.
        within(ended).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_connection_without_requests_is_told_goodbye() {
    let upstream = Upstream::named("one").await;
    let short = GatewayConfig { header_read_timeout: Duration::from_millis(300), ..config() };
    let running = over(short, &upstream).await;
    let mut caller = Caller::connect(running.address()).await;
    assert_eq!(caller.get("/http/x").await.0, StatusCode::OK);
    within(caller.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_slow_reader_stops_nobody_else_and_is_given_up_in_the_end() {
    let upstream = Upstream::start(|request| match request.target() {
        "/large" => {
            let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n".to_vec();
            answer.resize(answer.len() + 10_000_000, b'x');
            Reply::Last(answer)
        }
        _ => ok("one"),
    })
    .await;
    let config = GatewayConfig { body_idle_timeout: Duration::from_millis(700), ..config() };
    let running = over(config, &upstream).await;
    let mut builder = client::Builder::new();
    builder.initial_window_size(16 * 1024).initial_connection_window_size(1 << 20);
    let stream = within(TcpStream::connect(running.address())).await.unwrap();
    let mut caller = Caller::over(stream, &builder).await;
    let mut stalled = within(caller.ask(asking("/http/large")).await).await.unwrap().into_body();
    for _ in 0..20 {
        assert_eq!(caller.get("/http/x").await, (StatusCode::OK, "one".to_owned()));
    }
    // What fits into the window comes, and then the end of patience.
    let error = within(async {
        loop {
            match stalled.data().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error,
                None => panic!("the body ended"),
            }
        }
    })
    .await;
    assert!(error.is_reset(), "{error}");
    assert_eq!(caller.get("/http/x").await.0, StatusCode::OK);
}

#[tokio::test]
async fn too_large_heads_are_refused_and_the_connection_lives_on() {
    let upstream = Upstream::named("one").await;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let config =
        GatewayConfig { max_headers: 20, max_head_bytes: 8192, access_log: Some(log.clone()), ..config() };
    let running = over(config, &upstream).await;
    let mut caller = Caller::connect(running.address()).await;
    let mut many = Request::get("http://a/http/x");
    for i in 0..21 {
        many = many.header(format!("x-{i}"), "1");
    }
    let long = Request::get("http://a/http/x").header("x", "y".repeat(9000));
    for request in [many, long] {
        let (head, ..) = whole(caller.ask(request.body(()).unwrap()).await).await.unwrap();
        assert_eq!(head.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    // What is much longer is refused by h2, which tells the gateway nothing.
    let endless = Request::get("http://a/http/x").header("x", "y".repeat(20_000)).body(()).unwrap();
    let (head, ..) = whole(caller.ask(endless).await).await.unwrap();
    assert_eq!(head.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    let metrics = get(running.gateway.status_addr(), "/metrics").await.text();
    let count = r#"soul_gateway_requests_total{selector="",rule="",status="4xx"} 2"#;
    assert!(metrics.contains(count), "{metrics}");
    let bad = Request::get("http://a/http/x").header("host", "b").header("host", "c").body(()).unwrap();
    let (head, ..) = whole(caller.ask(bad).await).await.unwrap();
    assert_eq!(head.status(), StatusCode::OK, "the address counts, whatever `Host` says");
    assert_eq!(upstream.last().values("host"), ["a"]);
    let tunnel = Request::connect("a:80").body(()).unwrap();
    let (head, ..) = whole(caller.ask(tunnel).await).await.unwrap();
    assert_eq!(head.status(), StatusCode::NOT_IMPLEMENTED);
    assert_eq!(upstream.seen().len(), 1);
    drop(caller);
    within(running.gateway.shutdown()).await;
    let log = std::fs::read_to_string(&log).unwrap();
    let statuses: Vec<_> = log.lines().map(|line| line.contains(r#""status":431"#)).collect();
    assert_eq!(statuses, [true, true, false, false], "{log}");
}

#[tokio::test]
async fn what_fails_is_told_over_http_2_as_over_http_1() {
    let address = nobody().await;
    let running = Running::with(config(), &service(&[address], &handle("random", 0, 3000))).await;
    let mut caller = Caller::connect(running.address()).await;
    let (status, body) = caller.get("/http/x").await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    assert!(body.contains("-103"), "{body}");
    assert_eq!(caller.get("/unknown").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_and_the_connection_lives_on() {
    let upstream = Upstream::named("one").await;
    let running = over(GatewayConfig { max_body_bytes: 1000, ..config() }, &upstream).await;
    let mut caller = Caller::connect(running.address()).await;
    for length in [Some("5000"), None] {
        let mut request = Request::post("http://a/http/x").body(()).unwrap();
        if let Some(length) = length {
            request.headers_mut().insert("content-length", length.parse().unwrap());
        }
        let mut send = within(caller.send.clone().ready()).await.unwrap();
        let (answer, mut body) = send.send_request(request, false).unwrap();
        body.send_data(vec![b'x'; 1200].into(), false).unwrap();
        // Answered although the body goes on.
        assert_eq!(within(answer).await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(caller.get("/http/x").await.0, StatusCode::OK);
    }
}
