//! Interim answers: whoever asked by HTTP/1.1 is told of them, before the answer and beside it.

use std::{future::Future, net::SocketAddr};

use bytes::Bytes;
use http::{Response, StatusCode};
use tokio::{net::TcpListener, task::JoinHandle};

use super::{
    http2::Caller,
    peers::{Wire, within},
    secure::{Authority, Dialer, Files},
    setup::{Running, config, handle, service},
    upstream_http2::Peer,
};

const GET: &str = "GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n";
const HINT: &str =
    "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nConnection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\r\n";
const TOLD: &str = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// An upstream with one connection.
async fn upstream<F>(story: impl FnOnce(Wire) -> F + Send + 'static) -> (SocketAddr, JoinHandle<F::Output>)
where
    F: Future<Output: Send> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let story = tokio::spawn(async move {
        let wire = Wire::new(listener.accept().await.unwrap().0);
        story(wire).await
    });
    (address, story)
}

/// One that says the same to whatever it is asked.
async fn saying(text: String) -> (SocketAddr, JoinHandle<()>) {
    upstream(async move |mut wire: Wire| {
        while wire.request().await.is_some() {
            wire.send(&text).await;
        }
    })
    .await
}

async fn before(address: SocketAddr) -> Running {
    Running::with(config(), &service(&[address], &handle("random", 0, 3000))).await
}

/// Waits until just this has come.
async fn read(wire: &mut Wire, text: &str) {
    within(async {
        while !wire.has(text) {
            assert!(wire.more().await, "the connection ended before {text:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_interim_answer_is_told_at_once_and_the_answer_follows() {
    let (go, mut going) = tokio::sync::mpsc::channel::<()>(1);
    let (address, story) = upstream(async move |mut wire: Wire| {
        for _ in 0..2 {
            wire.request().await.unwrap();
            for interim in ["HTTP/1.1 102 Processing\r\n\r\n", HINT] {
                wire.send(interim).await;
                going.recv().await.unwrap();
            }
            wire.send(OK).await;
        }
    })
    .await;
    let running = before(address).await;
    let mut wire = Wire::connect(running.address()).await;
    for _ in 0..2 {
        wire.send(GET).await;
        read(&mut wire, "HTTP/1.1 102 Processing\r\n\r\n").await;
        go.send(()).await.unwrap();
        read(&mut wire, TOLD).await;
        go.send(()).await.unwrap();
        let answer = wire.response_to("GET").await;
        assert_eq!((answer.status(), answer.text().as_str(), answer.values("link").len()), (200, "ok", 0));
    }
    within(story).await.unwrap();
}

#[tokio::test]
async fn what_comes_with_the_answer_stands_before_it_and_requests_sent_together_keep_their_order() {
    let (address, _story) = saying(format!("{HINT}HTTP/1.1 100 Continue\r\n\r\n{OK}")).await;
    let running = before(address).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send(GET.repeat(3)).await;
    for _ in 0..3 {
        let interim = [within(wire.head()).await.unwrap(), within(wire.head()).await.unwrap()];
        let answer = wire.response_to("GET").await;
        let statuses = interim.map(|head| head.status());
        assert_eq!((statuses, answer.text().as_str()), ([103, 100], "ok"), "nobody asked for the 100");
    }
}

#[tokio::test]
async fn a_caller_that_asked_whether_its_body_is_wanted_is_told_once() {
    let (address, story) = upstream(async move |mut wire: Wire| {
        wire.head().await.unwrap();
        wire.send(HINT).await;
        wire.send("HTTP/1.1 100 Continue\r\n\r\n").await;
        let body = within(wire.take(5)).await.unwrap();
        wire.send("HTTP/1.1 100 Continue\r\n\r\n").await;
        wire.send(OK).await;
        body
    })
    .await;
    let running = before(address).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").await;
    read(&mut wire, &format!("{TOLD}HTTP/1.1 100 Continue\r\n\r\n")).await;
    wire.send("hello").await;
    assert_eq!(wire.response_to("POST").await.text(), "ok");
    assert_eq!(within(story).await.unwrap(), b"hello");
}

#[tokio::test]
async fn who_cannot_be_told_gets_the_answer_alone() {
    let (address, _story) = saying(format!("{HINT}{OK}")).await;
    let running = before(address).await;
    let mut old = Wire::connect(running.address()).await;
    for _ in 0..2 {
        old.send("GET /http/x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n").await;
        let answer = old.response_to("GET").await;
        assert_eq!((answer.status(), answer.text().as_str()), (200, "ok"), "HTTP/1.0 has none");
    }
    // hyper has no way to send them over HTTP/2.
    let answer = Caller::connect(running.address()).await.get("/http/x").await;
    assert_eq!(answer, (StatusCode::OK, "ok".to_owned()));
}

#[tokio::test]
async fn a_flood_of_them_is_cut_and_the_answer_comes() {
    let long = format!("HTTP/1.1 103 Long\r\nLink: {}\r\n\r\n", "x".repeat(20_000));
    let (address, _story) = saying(format!("{long}{}{OK}", HINT.repeat(1000))).await;
    let running = before(address).await;
    let mut wire = Wire::connect(running.address()).await;
    for _ in 0..2 {
        wire.send(GET).await;
        for _ in 0..16 {
            assert_eq!(within(wire.head()).await.unwrap().values("link"), ["</x>"], "not the long one");
        }
        assert_eq!(wire.response_to("GET").await.text(), "ok");
    }
}

#[tokio::test]
async fn one_that_says_nothing_else_is_a_bad_gateway() {
    let (address, story) = upstream(async move |mut wire: Wire| {
        wire.request().await.unwrap();
        wire.send(HINT.repeat(1 + 1024 * 1024 / HINT.len())).await;
        // No answer, and no end of the connection: it is the gateway that ends it.
        while wire.more().await {}
    })
    .await;
    let running = before(address).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send(GET).await;
    for _ in 0..16 {
        assert_eq!(within(wire.head()).await.unwrap().status(), 103);
    }
    assert_eq!(wire.response_to("GET").await.status(), 502, "long before the rule's time");
    within(story).await.unwrap();
}

#[tokio::test]
async fn it_is_told_before_a_change_of_protocol_and_through_tls() {
    let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhi";
    let (address, _story) = saying(format!("{HINT}{switching}")).await;
    let (authority, files) = (Authority::new(), Files::new());
    let config = files.config(&[&authority.issue(&["shop.example"])]);
    let running = Running::with(config, &service(&[address], &handle("random", 0, 3000))).await;
    let dialer = Dialer { protocols: &["http/1.1"], ..Dialer::trusting(&authority) };
    let mut wire = dialer.dial(running.address(), "shop.example").await.unwrap();
    wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").await;
    assert_eq!(within(wire.head()).await.unwrap().values("link"), ["</x>"]);
    assert_eq!(within(wire.head()).await.unwrap().status(), 101);
    while !wire.has("hi") {
        assert!(within(wire.more()).await, "what is said in the other protocol");
    }
}

#[tokio::test]
async fn an_upstream_of_http_2_is_heard_as_well() {
    let (go, going) = tokio::sync::watch::channel(false);
    let upstream = Peer::start(move |_request, mut respond| {
        let mut going = going.clone();
        async move {
            let interim = Response::builder().status(103).header("link", "</x>").body(()).unwrap();
            respond.send_informational(interim).unwrap();
            let _ = going.wait_for(|go| *go).await;
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            body.send_data(Bytes::from_static(b"ok"), true).unwrap();
        }
    })
    .await;
    let running = upstream.behind(3000).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send(GET).await;
    read(&mut wire, TOLD).await;
    go.send(true).unwrap();
    assert_eq!(wire.response_to("GET").await.text(), "ok");
}
