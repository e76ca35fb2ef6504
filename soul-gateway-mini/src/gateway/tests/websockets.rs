//! WebSockets over HTTP/2, as browsers open them on a connection that they have.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use h2::{RecvStream, SendStream, client, ext::Protocol};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::task::JoinHandle;

use super::{
    super::{Drained, GatewayConfig},
    http2::{Caller, whole},
    peers::{self, Message, Reply, Upstream, eventually, nobody, within},
    secure::{Authority, Dialer, Files},
    setup::{Running, config, handle, service},
    tunnels::echoing,
    upstream_http2::Peer,
};

fn asking(scheme: &str, protocol: &'static str) -> Request<()> {
    Request::builder()
        .method(Method::CONNECT)
        .uri(format!("{scheme}://shop.example/http/x?y"))
        .extension(Protocol::from_static(protocol))
        .header("sec-websocket-version", "13")
        .header("origin", "https://shop.example")
        .body(())
        .unwrap()
}

/// Asks for a tunnel.
async fn open(caller: &Caller, request: Request<()>) -> (client::ResponseFuture, SendStream<Bytes>) {
    let mut send = within(caller.send.clone().ready()).await.unwrap();
    eventually("the gateway allows it", async || send.is_extended_connect_protocol_enabled()).await;
    send.send_request(request, false).unwrap()
}

/// A tunnel to an upstream that echoes, and what that has said at once.
async fn opened(caller: &Caller, scheme: &str) -> (HeaderMap, RecvStream, SendStream<Bytes>) {
    let (answer, up) = open(caller, asking(scheme, "websocket")).await;
    let (head, mut down) = within(answer).await.unwrap().into_parts();
    assert_eq!(head.status, StatusCode::OK);
    reads(&mut down, b"hello").await;
    (head.headers, down, up)
}

async fn reads(down: &mut RecvStream, expected: &[u8]) {
    let mut came = Vec::new();
    while came.len() < expected.len() {
        let data = within(down.data()).await.expect("more").unwrap();
        down.flow_control().release_capacity(data.len()).unwrap();
        came.extend_from_slice(&data);
    }
    assert!(came == expected, "{} bytes", came.len());
}

/// Whether nothing more comes. (The end may come with an empty frame.)
async fn ends(down: &mut RecvStream) -> bool {
    loop {
        match within(down.data()).await {
            Some(Ok(data)) if data.is_empty() => {}
            more => return more.is_none(),
        }
    }
}

async fn echo(config: GatewayConfig) -> (Running, JoinHandle<Message>) {
    let (address, upstream) = echoing().await;
    (Running::with(config, &service(&[address], &handle("random", 0, 3000))).await, upstream)
}

async fn nothing_is_left(running: &Running) {
    eventually("nothing is left open", async || {
        let status = running.status().await;
        let in_flight = &status["config"]["selectors"][0]["upstreams"][0]["inFlight"];
        status["connections"]["upstreams"] == 0 && in_flight == 0
    })
    .await;
}

#[tokio::test]
async fn a_stream_becomes_the_tunnel_and_the_upstream_sees_a_handshake_of_http_1() {
    let (authority, files) = (Authority::new(), Files::new());
    let (running, upstream) = echo(files.config(&[&authority.issue(&["shop.example"])])).await;
    let dialer = Dialer { protocols: &["h2"], ..Dialer::trusting(&authority) };
    let wire = dialer.dial(running.address(), "shop.example").await.unwrap();
    let mut caller = Caller::over(wire.stream, &client::Builder::new()).await;
    let (told, mut down, mut up) = opened(&caller, "https").await;
    for gone in ["connection", "upgrade", "sec-websocket-accept"] {
        assert!(!told.contains_key(gone), "{told:?}");
    }
    for text in [&b"one"[..], b"\0\xff two", &[7; 50_000]] {
        up.send_data(text.to_vec().into(), false).unwrap();
        reads(&mut down, text).await;
    }
    assert_eq!(caller.get("/none").await.0, StatusCode::NOT_FOUND, "others go on beside it");
    up.send_data(Bytes::new(), true).unwrap();
    assert!(ends(&mut down).await, "the end passes, and comes back");

    let asked = within(upstream).await.unwrap();
    assert_eq!(asked.start, "GET /x?y HTTP/1.1");
    for (name, value) in [
        ("host", "shop.example"),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("origin", "https://shop.example"),
        ("x-forwarded-proto", "https"),
    ] {
        assert_eq!(asked.values(name), [value], "{asked:?}");
    }
    assert_eq!(asked.values("sec-websocket-key").iter().map(|key| key.len()).collect::<Vec<_>>(), [24]);
    nothing_is_left(&running).await;
}

#[tokio::test]
async fn what_is_no_tunnel_is_never_passed_for_one() {
    let told = async |address: SocketAddr, protocol| {
        let running = Running::with(config(), &service(&[address], &handle("random", 0, 3000))).await;
        let caller = Caller::connect(running.address()).await;
        let (answer, _up) = open(&caller, asking("http", protocol)).await;
        let (head, body, _) = whole(answer).await.unwrap();
        (head.status().as_u16(), body)
    };
    let refusing =
        Upstream::start(|_| Reply::Bytes(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno".to_vec()))
            .await;
    assert_eq!(told(refusing.address, "websocket").await, (403, "no".to_owned()), "its word passes");
    assert_eq!(refusing.last().values("upgrade"), ["websocket"]);
    assert_eq!(told(refusing.address, "connect-udp").await.0, 501);
    assert_eq!(refusing.seen().len(), 1);
    let plain = Upstream::named("one").await;
    assert_eq!(told(plain.address, "websocket").await.0, 502, "a page is no tunnel");
    assert_eq!(told(nobody().await, "websocket").await.0, 502);

    let peer = Peer::start(|_, mut respond| async move {
        respond.send_response(Response::new(()), true).unwrap();
    })
    .await;
    let running = peer.behind(3000).await;
    let caller = Caller::connect(running.address()).await;
    let (answer, _up) = open(&caller, asking("http", "websocket")).await;
    assert_eq!(
        within(answer).await.unwrap().status(),
        StatusCode::BAD_GATEWAY,
        "it is asked in HTTP/1.1 only"
    );
}

#[tokio::test]
async fn a_tunnel_ends_with_its_caller_with_silence_and_with_its_stream() {
    let (running, upstream) = echo(config()).await;
    let caller = Caller::connect(running.address()).await;
    let (_, _down, mut up) = opened(&caller, "http").await;
    up.send_reset(h2::Reason::CANCEL);
    within(upstream).await.unwrap();
    nothing_is_left(&running).await;

    let (running, upstream) = echo(config()).await;
    let caller = Caller::connect(running.address()).await;
    let tunnel = opened(&caller, "http").await;
    drop(caller);
    drop(tunnel);
    within(upstream).await.unwrap();
    nothing_is_left(&running).await;

    let short = GatewayConfig { tunnel_idle_timeout: Duration::from_millis(300), ..config() };
    let (running, upstream) = echo(short).await;
    let mut caller = Caller::connect(running.address()).await;
    let (_, mut down, _up) = opened(&caller, "http").await;
    assert!(ends(&mut down).await, "it is silent");
    within(upstream).await.unwrap();
    assert_eq!(caller.get("/none").await.0, StatusCode::NOT_FOUND, "the connection lives on");
}

#[tokio::test]
async fn shutdown_waits_for_streams_that_are_tunnels() {
    let (running, upstream) = echo(config()).await;
    let caller = Caller::connect(running.address()).await;
    let (_, mut down, mut up) = opened(&caller, "http").await;
    let status = running.gateway.status_addr();
    let ending = tokio::spawn(running.gateway.shutdown());
    eventually("it drains", async || peers::get(status, "/readyz").await.status() == 503).await;
    up.send_data("still".into(), false).unwrap();
    reads(&mut down, b"still").await;
    up.send_data(Bytes::new(), true).unwrap();
    assert!(ends(&mut down).await);
    assert_eq!(within(ending).await.unwrap(), Drained::All);
    within(upstream).await.unwrap();

    let config = GatewayConfig { drain_timeout: Duration::from_millis(100), ..config() };
    let (running, upstream) = echo(config).await;
    let caller = Caller::connect(running.address()).await;
    let _tunnel = opened(&caller, "http").await;
    assert_eq!(within(running.gateway.shutdown()).await, Drained::CutOff { connections: 1 });
    within(upstream).await.unwrap();
}

#[tokio::test]
async fn what_a_handshake_gets_on_its_way_does_not_count_among_its_callers_lines() {
    let asked = asking("http", "websocket");
    let lines = asked.headers().len();
    for (max_headers, expected) in
        [(lines, StatusCode::OK), (lines - 1, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)]
    {
        let (running, _upstream) = echo(GatewayConfig { max_headers, ..config() }).await;
        let caller = Caller::connect(running.address()).await;
        let (answer, _up) = open(&caller, asking("http", "websocket")).await;
        assert_eq!(within(answer).await.unwrap().status(), expected);
    }
}
