//! Upstreams that speak HTTP/2.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use bytes::Bytes;
use h2::{
    Reason, RecvStream,
    server::{self, SendResponse},
};
use http::{HeaderMap, Request, Response};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::Barrier,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use super::{
    super::GatewayConfig,
    http2::{Caller, asking, whole},
    peers::{Wire, ask, eventually, get, within},
    secure::{Authority, Files, Identity},
    setup::{Running, config},
    upstream_tls::{believing, spoken},
};

/// A request as it came.
pub(super) type Asked = Request<RecvStream>;

/// An upstream that speaks HTTP/2.
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _accepting: AbortOnDropHandle<()>,
}

impl Peer {
    pub(super) async fn start<F>(
        answer: impl Fn(Asked, SendResponse<Bytes>) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::with(None, answer).await
    }

    async fn with<F>(
        identity: Option<&Identity>,
        answer: impl Fn(Asked, SendResponse<Bytes>) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let acceptor = identity.map(|identity| {
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let mut config = ServerConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![identity.certificate.clone()], identity.key_der())
                .unwrap();
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            TlsAcceptor::from(Arc::new(config))
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let accepting = tokio::spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, SeqCst);
                // Else each window full of a large body waits for the other side's late acknowledgement.
                stream.set_nodelay(true).unwrap();
                let (answer, acceptor) = (answer.clone(), acceptor.clone());
                open.spawn(async move {
                    match acceptor {
                        None => serve(stream, answer).await,
                        Some(acceptor) => serve(acceptor.accept(stream).await.unwrap(), answer).await,
                    }
                });
            }
        });
        Self { address, connections, _accepting: AbortOnDropHandle::new(accepting) }
    }

    fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    pub(super) async fn behind(&self, timeout_ms: u32) -> Running {
        Running::with(config(), &spoken("h2c://", self.address, timeout_ms)).await
    }
}

async fn serve<S, F>(stream: S, answer: impl Fn(Asked, SendResponse<Bytes>) -> F)
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = ()> + Send + 'static,
{
    let Ok(mut connection) = server::handshake(stream).await else { return };
    let mut requests = JoinSet::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (path, leaving) = (request.uri().path().to_owned(), "/leave");
        requests.spawn(answer(request, respond));
        if path == leaving {
            connection.graceful_shutdown();
        }
    }
}

/// Answers with a text.
fn say(respond: &mut SendResponse<Bytes>, text: impl Into<Bytes>) {
    respond.send_response(Response::new(()), false).unwrap().send_data(text.into(), true).unwrap();
}

/// All of a body, and its trailers.
pub(super) async fn read(mut body: RecvStream) -> (Vec<u8>, Option<HeaderMap>) {
    let mut bytes = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        bytes.extend_from_slice(&data);
    }
    (bytes, body.trailers().await.ok().flatten())
}

/// Sends bytes as the other side takes them.
pub(super) async fn send(stream: &mut h2::SendStream<Bytes>, mut bytes: Bytes) {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let Some(Ok(room)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await else { return };
        let _ = stream.send_data(bytes.split_to(room.min(bytes.len())), false);
    }
    let _ = stream.send_data(Bytes::new(), true);
}

#[tokio::test]
async fn requests_share_one_connection_whatever_the_callers_speak() {
    let (barrier, asked) = (Arc::new(Barrier::new(60)), Arc::new(Mutex::new(Vec::new())));
    let (meet, keep) = (Arc::clone(&barrier), Arc::clone(&asked));
    let peer = Peer::start(move |request, mut respond| {
        let (barrier, asked) = (Arc::clone(&meet), Arc::clone(&keep));
        async move {
            let (head, _) = request.into_parts();
            let path = head.uri.path().to_owned();
            asked.lock().unwrap().push(head);
            if path != "/alone" {
                barrier.wait().await;
            }
            say(&mut respond, path);
        }
    })
    .await;
    let running = peer.behind(9000).await;
    let alone = ask(
        running.address(),
        "GET /http/alone?x=%2F HTTP/1.1\r\nHost: shop.example\r\nConnection: keep-alive, x-b\r\nX-A: 1\r\nX-B: 2\r\n\
         Te: trailers, gzip\r\n\r\n",
    )
    .await;
    assert_eq!(alone.text(), "/alone");
    let first = asked.lock().unwrap().pop().unwrap();
    assert_eq!(first.uri, "http://shop.example/alone?x=%2F");
    let mut names: Vec<_> = first.headers.keys().map(|name| name.as_str().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["te", "x-a", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"]);
    assert_eq!(
        (&first.headers["te"], &first.headers["x-forwarded-for"]),
        (&"trailers".parse().unwrap(), &"127.0.0.1".parse().unwrap())
    );

    let mut caller = Caller::connect(running.address()).await;
    let mut all = JoinSet::new();
    for i in 0..30 {
        let address = running.address();
        all.spawn(
            async move { assert_eq!(get(address, &format!("/http/{i}")).await.text(), format!("/{i}")) },
        );
        let answer = caller.ask(asking(&format!("/http/{i}"))).await;
        all.spawn(async move { assert_eq!(whole(answer).await.unwrap().1, format!("/{i}")) });
    }
    while let Some(ended) = within(all.join_next()).await {
        ended.unwrap();
    }
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn the_head_of_an_answer_is_passed_but_for_what_is_of_one_hop() {
    let peer = Peer::start(|_, mut respond| async move {
        let head = Response::builder()
            .status(401)
            .header("x-a", "1")
            .header("proxy-authenticate", "Basic")
            .header("x-a", "2")
            .header("content-length", "3");
        let mut stream = respond.send_response(head.body(()).unwrap(), false).unwrap();
        stream.send_data("one".into(), true).unwrap();
    })
    .await;
    let running = peer.behind(3000).await;
    let answer = get(running.address(), "/http/x").await;
    assert_eq!((answer.status(), answer.text()), (401, "one".to_owned()));
    assert_eq!((answer.values("x-a"), answer.values("content-length")), (vec!["1", "2"], vec!["3"]));
    assert!(answer.values("proxy-authenticate").is_empty() && answer.values("transfer-encoding").is_empty());
}

#[tokio::test]
async fn what_an_upstream_refused_is_sent_again_with_its_body() {
    let times = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&times);
    let peer = Peer::start(move |request, mut respond| {
        let time = counted.fetch_add(1, SeqCst);
        async move {
            let read_first = request.method() == "PUT";
            if time == 0 && !read_first {
                respond.send_reset(Reason::REFUSED_STREAM);
                return;
            }
            let (body, _) = read(request.into_body()).await;
            if time == 2 {
                respond.send_reset(Reason::REFUSED_STREAM);
                return;
            }
            say(&mut respond, body);
        }
    })
    .await;
    let running = peer.behind(3000).await;
    let answer =
        ask(running.address(), "POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!((answer.status(), answer.text()), (200, "hello".to_owned()));
    assert_eq!((times.load(SeqCst), peer.connections()), (2, 1));

    // One of several parts, of which all were sent, is kept.
    let parts = "PUT /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                 3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n";
    let answer = ask(running.address(), parts).await;
    assert_eq!((answer.status(), answer.text()), (200, "onetwothree".to_owned()));
    assert_eq!(times.load(SeqCst), 4);
}

#[tokio::test]
async fn a_body_that_was_kept_is_sent_again_from_its_beginning_or_not_at_all() {
    let (read_all, mut told) = tokio::sync::mpsc::unbounded_channel();
    let times = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&times);
    let peer = Peer::start(move |request, mut respond| {
        let (time, read_all) = (counted.fetch_add(1, SeqCst), read_all.clone());
        async move {
            let mut body = request.into_body();
            let mut bytes = body.data().await.unwrap().unwrap().to_vec();
            read_all.send(()).unwrap();
            bytes.extend(read(body).await.0);
            if time % 2 == 0 {
                respond.send_reset(Reason::REFUSED_STREAM);
            } else {
                say(&mut respond, bytes);
            }
        }
    })
    .await;
    let running = peer.behind(3000).await;
    // Of a POST nothing is kept, and what came in two pieces is not whole any more.
    for (method, status, body, asked) in [("PUT", 200, "hello", 2), ("POST", 502, "", 1)] {
        times.store(0, SeqCst);
        let mut wire = Wire::connect(running.address()).await;
        wire.send(format!(
            "{method} /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n"
        ))
        .await;
        within(told.recv()).await.unwrap();
        wire.send("3\r\nllo\r\n0\r\n\r\n").await;
        let answer = wire.response_to(method).await;
        assert_eq!((answer.status(), times.load(SeqCst)), (status, asked), "{method}");
        assert!(status != 200 || answer.text() == body, "{answer:?}");
        while told.try_recv().is_ok() {}
    }
}

#[tokio::test]
async fn other_resets_of_a_post_are_not_repeated() {
    let times = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&times);
    let peer = Peer::start(move |_, mut respond| {
        counted.fetch_add(1, SeqCst);
        async move { respond.send_reset(Reason::INTERNAL_ERROR) }
    })
    .await;
    let running = peer.behind(3000).await;
    let answer =
        ask(running.address(), "POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!((answer.status(), times.load(SeqCst)), (502, 1));
}

#[tokio::test]
async fn a_reset_of_one_request_is_not_an_idle_connection_that_was_closed() {
    let times = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&times);
    let peer = Peer::start(move |request, mut respond| {
        let fails = request.uri().path() == "/fails";
        counted.fetch_add(usize::from(fails), SeqCst);
        async move {
            if fails {
                respond.send_reset(Reason::INTERNAL_ERROR);
            } else {
                say(&mut respond, "well");
            }
        }
    })
    .await;
    let running = peer.behind(3000).await;
    assert_eq!(get(running.address(), "/http/x").await.text(), "well");
    assert_eq!(get(running.address(), "/http/fails").await.status(), 502);
    assert_eq!(
        (times.load(SeqCst), peer.connections()),
        (1, 1),
        "it is asked once, however harmless that is"
    );
}

#[tokio::test]
async fn an_upstream_that_says_goodbye_is_asked_on_a_new_connection() {
    let peer = Peer::start(|request, mut respond| async move {
        let path = request.uri().path().to_owned();
        say(&mut respond, path);
    })
    .await;
    let running = peer.behind(3000).await;
    for _ in 0..5 {
        assert_eq!(get(running.address(), "/http/leave").await.text(), "/leave");
        assert_eq!(get(running.address(), "/http/x").await.text(), "/x");
    }
    assert!(peer.connections() >= 5, "{}", peer.connections());
}

#[tokio::test]
async fn a_caller_that_leaves_takes_its_request_along() {
    let (reset, told) = tokio::sync::mpsc::unbounded_channel();
    let mut told = told;
    let peer = Peer::start(move |request, mut respond| {
        let reset = reset.clone();
        async move {
            drop(request);
            let reason = std::future::poll_fn(|cx| respond.poll_reset(cx)).await;
            reset.send(reason.unwrap()).unwrap();
        }
    })
    .await;
    let running = peer.behind(60_000).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually("it is connected", async || peer.connections() == 1).await;
    drop(wire);
    assert_eq!(within(told.recv()).await, Some(Reason::CANCEL));
}

#[tokio::test]
async fn large_bodies_pass_and_a_caller_that_does_not_read_holds_up_nobody() {
    let peer = Peer::start(|request, mut respond| async move {
        let path = request.uri().path().to_owned();
        let body = match &*path {
            "/large" => vec![b'x'; 5_000_000],
            _ => read(request.into_body()).await.0,
        };
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        send(&mut stream, body.into()).await;
    })
    .await;
    let running = peer.behind(9000).await;
    let mut stalled = Vec::new();
    for _ in 0..30 {
        let mut wire = Wire::connect(running.address()).await;
        wire.send("GET /http/large HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(within(wire.head()).await.unwrap().status(), 200);
        stalled.push(wire);
    }
    let body: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let head = format!("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    for _ in 0..2 {
        let answer = ask(running.address(), [head.as_bytes(), &body].concat()).await;
        assert!(answer.body == body && answer.whole, "{} bytes", answer.body.len());
    }
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn http_2_is_chosen_in_tls_where_it_is_allowed() {
    let (authority, files) = (Authority::new(), Files::new());
    let peer = Peer::with(Some(&authority.issue(&["127.0.0.1"])), |request, mut respond| async move {
        let uri = request.uri().to_string();
        say(&mut respond, uri);
    })
    .await;
    let allowed = GatewayConfig { upstream_http2: true, ..believing(&files, &authority) };
    let running = Running::with(allowed, &spoken("https://", peer.address, 3000)).await;
    for _ in 0..3 {
        assert_eq!(get(running.address(), "/http/x?y").await.text(), "https://shop.example/x?y");
    }
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn one_that_speaks_only_http_1_is_502_when_asked_in_http_2() {
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let running = Running::with(config(), &spoken("h2c://", plain.local_addr().unwrap(), 3000)).await;
    let answering = async {
        let mut wire = Wire::new(plain.accept().await.unwrap().0);
        wire.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
        while wire.more().await {}
    };
    let (answer, ()) = tokio::join!(get(running.address(), "/http/x"), answering);
    assert_eq!(answer.status(), 502);
}

#[tokio::test]
async fn a_request_that_is_late_is_reset_and_those_beside_it_go_on() {
    let (reset, mut told) = tokio::sync::mpsc::unbounded_channel();
    let gate = tokio::sync::watch::Sender::new(false);
    let opened = gate.subscribe();
    let peer = Peer::start(move |request, mut respond| {
        let (reset, mut opened) = (reset.clone(), opened.clone());
        async move {
            if request.uri().path() == "/late" {
                let reason = std::future::poll_fn(|cx| respond.poll_reset(cx)).await;
                reset.send(reason.unwrap()).unwrap();
                return;
            }
            let head = Response::builder().header("content-length", 2).body(()).unwrap();
            let mut body = respond.send_response(head, false).unwrap();
            opened.wait_for(|open| *open).await.unwrap();
            body.send_data("ok".into(), true).unwrap();
        }
    })
    .await;
    let running = peer.behind(1500).await;
    let mut beside = Wire::connect(running.address()).await;
    beside.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = within(beside.head()).await.unwrap();
    assert_eq!((head.status(), peer.connections()), (200, 1));
    assert_eq!(get(running.address(), "/http/late").await.status(), 504);
    assert_eq!(within(told.recv()).await, Some(Reason::CANCEL));
    assert_eq!(peer.connections(), 1, "it was the same one");
    gate.send_replace(true);
    while !beside.has("ok") {
        assert!(within(beside.more()).await, "the other answer goes on");
    }
}

#[tokio::test]
async fn an_upstream_that_has_vanished_is_asked_on_another_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let _vanished = AbortOnDropHandle::new(tokio::spawn(async move {
        let mut wires = Vec::new();
        loop {
            let mut wire = Wire::new(listener.accept().await.unwrap().0);
            count.fetch_add(1, SeqCst);
            // Settings; from then on nothing.
            wire.send(b"\0\0\0\x04\0\0\0\0\0").await;
            wires.push(wire);
        }
    }));
    let running = Running::with(config(), &spoken("h2c://", address, 200)).await;
    for times in 1..4 {
        assert_eq!(get(running.address(), "/http/x").await.status(), 504);
        assert_eq!(connections.load(SeqCst), times, "nobody has said that the last one is alive");
    }
}
