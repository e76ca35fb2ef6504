//! What upstreams may say, and what they may not: the caller gets a whole answer or knows that it is none, and nothing
//! that one answer leaves behind ever becomes part of another.

use tokio::{io::AsyncWriteExt, net::TcpListener};

use super::{
    super::GatewayConfig,
    peers::{Gate, Reply, Upstream, Wire, ask, eventually, get, within},
    setup::{Running, config, handle, service},
};

const GET: &str = "GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n";

async fn answering(reply: &'static str) -> (Upstream, Running) {
    let upstream = Upstream::start(move |_| Reply::Bytes(reply.as_bytes().to_vec())).await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    (upstream, running)
}

#[tokio::test]
async fn answers_in_every_framing_leave_both_connections_usable() {
    for (reply, body, connections) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", 1),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", 1),
        ("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "ok", 1),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\no\r\n01\r\nk\r\n0\r\n\r\n", "ok", 1),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", "ok", 1),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", 3),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", "ok", 3),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "ok",
            3,
        ),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "", 1),
    ] {
        let (upstream, running) = answering(reply).await;
        let mut wire = Wire::connect(running.address()).await;
        for _ in 0..3 {
            wire.send(GET).await;
            let answer = wire.response_to("GET").await;
            assert_eq!((answer.text().as_str(), answer.whole), (body, true), "{reply:?}");
        }
        assert_eq!(upstream.connections(), connections, "{reply:?}");
    }
}

#[tokio::test]
async fn an_answer_that_can_be_read_in_two_ways_is_a_bad_gateway_and_its_connection_ends() {
    for reply in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nokk",
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: 1\r\n folded\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\n: nameless\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 99 Low\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/3.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "ok",
        "\r\n\r\n\r\n\r\nok",
    ] {
        let upstream = Upstream::start(move |_| Reply::Last(reply.as_bytes().to_vec())).await;
        let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
        let mut wire = Wire::connect(running.address()).await;
        for _ in 0..2 {
            wire.send(GET).await;
            assert_eq!(wire.response_to("GET").await.status(), 502, "{reply:?}");
        }
        assert_eq!(upstream.connections(), 2, "{reply:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_none_is_never_passed_for_a_whole_one() {
    for reply in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokX\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000002\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nbad trailer\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
    ] {
        let upstream = Upstream::start(move |_| Reply::Last(reply.as_bytes().to_vec())).await;
        let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
        let answer = get(running.address(), "/http/x").await;
        assert_eq!((answer.status(), answer.whole), (200, false), "{reply:?}");
    }
}

#[tokio::test]
async fn what_stands_behind_an_answer_never_becomes_the_next_one() {
    const EVIL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    for (method, first) in [
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 44\r\n\r\n"),
    ] {
        let upstream = Upstream::start(move |_| Reply::Bytes(format!("{first}{EVIL}").into_bytes())).await;
        let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
        let mut wire = Wire::connect(running.address()).await;
        for _ in 0..3 {
            wire.send(format!("{method} /http/x HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            let answer = wire.response_to(method).await;
            assert_ne!(answer.text(), "evil", "{first:?}");
        }
        assert_eq!((upstream.connections(), upstream.seen().len()), (3, 3), "{first:?}");
    }
}

#[tokio::test]
async fn an_answer_may_come_byte_by_byte() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let mut wire = Wire::new(listener.accept().await.unwrap().0);
        wire.stream.set_nodelay(true).unwrap();
        wire.request().await.unwrap();
        let reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        for byte in reply {
            wire.stream.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        wire
    });
    let running = Running::start(&service(&[address], &handle("random", 0, 3000))).await;
    let answer = get(running.address(), "/http/x").await;
    assert_eq!((answer.text().as_str(), answer.values("x-a"), answer.whole), ("abcde", vec!["b"], true));
    within(upstream).await.unwrap();
}

#[tokio::test]
async fn an_upstream_that_does_not_want_a_body_never_gets_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let mut wire = Wire::new(listener.accept().await.unwrap().0);
        let head = wire.head().await.unwrap();
        wire.send("HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nno").await;
        (head.values("expect").len(), wire.is_closed().await)
    });
    let running = Running::start(&service(&[address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").await;
    let answer = wire.response_to("POST").await;
    assert_eq!((answer.status(), answer.text().as_str()), (417, "no"), "and no 100 before it");
    assert_eq!(within(upstream).await.unwrap(), (1, true));
}

#[tokio::test]
async fn a_caller_is_told_to_go_on_when_the_upstream_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let mut wire = Wire::new(listener.accept().await.unwrap().0);
        wire.head().await.unwrap();
        wire.send("HTTP/1.1 100 Continue\r\n\r\n").await;
        let mut body = [0; 5];
        tokio::io::AsyncReadExt::read_exact(&mut wire.stream, &mut body).await.unwrap();
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").await;
        body
    });
    let running = Running::start(&service(&[address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").await;
    assert_eq!(within(wire.head()).await.expect("an interim answer").status(), 100);
    wire.send("hello").await;
    assert_eq!(wire.response_to("POST").await.text(), "done");
    assert_eq!(&within(upstream).await.unwrap(), b"hello");
}

#[tokio::test]
async fn an_answer_flows_while_the_body_still_does() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let mut wire = Wire::new(listener.accept().await.unwrap().0);
        wire.head().await.unwrap();
        wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        // An echo: one line comes, one goes.
        for _ in 0..3 {
            let line = within(wire.line()).await.unwrap();
            let line = if line.is_empty() { within(wire.line()).await.unwrap() } else { line };
            assert_eq!(line, "4", "the size of a chunk");
            let line = within(wire.line()).await.unwrap();
            wire.send(format!("4\r\n{line}\r\n\r\n")).await;
        }
        wire.send("0\r\n\r\n").await;
    });
    let running = Running::start(&service(&[address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    assert_eq!(within(wire.head()).await.expect("an early head").status(), 200);
    for text in ["on", "tw", "th"] {
        wire.send(format!("4\r\n{text}\r\n\r\n")).await;
        assert_eq!(within(wire.line()).await.as_deref(), Some("4"));
        assert_eq!(within(wire.line()).await.as_deref(), Some(text));
        assert_eq!(within(wire.line()).await.as_deref(), Some(""));
    }
    within(upstream).await.unwrap();
}

#[tokio::test]
async fn trailers_pass_in_both_directions() {
    let (upstream, running) = answering(
        "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n",
    )
    .await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send(
        "POST /http/x HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\nhi\r\n0\r\nX-Check: 9\r\nContent-Length: 1\r\n\r\n",
    )
    .await;
    let answer = wire.response_to("POST").await;
    assert_eq!(
        (answer.values("trailer"), answer.trailers.clone()),
        (vec!["X-Sum"], vec!["x-sum: 7".to_owned()])
    );
    let asked = upstream.last();
    // What says how to read a message comes too late behind it.
    assert_eq!((asked.text().as_str(), asked.trailers.clone()), ("hi", vec!["x-check: 9".to_owned()]));
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_before_it_is_read_or_as_soon_as_it_is() {
    let upstream = Upstream::named("one").await;
    let config = GatewayConfig { max_body_bytes: 10, ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let fits = "POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789";
    assert_eq!(ask(running.address(), fits).await.status(), 200);
    let asked = upstream.seen().len();

    let mut wire = Wire::connect(running.address()).await;
    wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n").await;
    assert_eq!(wire.response_to("POST").await.status(), 413, "without any of it");
    assert_eq!(upstream.seen().len(), asked);

    let chunked =
        "POST /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n3\r\nabc\r\n";
    let answer = ask(running.address(), chunked).await;
    assert_eq!((answer.status(), answer.values("connection")), (413, vec!["close"]));
    assert!(
        upstream.seen()[asked..].iter().all(|message| !message.whole),
        "the upstream knows that it is not whole"
    );
}

#[tokio::test]
async fn more_requests_than_allowed_are_refused_at_once() {
    let gate = Gate::default();
    let held = gate.clone();
    let upstream = Upstream::start(move |_| held.then("slow")).await;
    let config = GatewayConfig { max_requests: 1, ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut first = Wire::connect(running.address()).await;
    first.send(GET).await;
    eventually("it is under way", async || upstream.seen().len() == 1).await;
    let refused = get(running.address(), "/http/x").await;
    assert_eq!((refused.status(), refused.values("retry-after")), (503, vec!["1"]));
    assert!(refused.text().contains(r#""code":429"#), "{refused:?}");
    gate.open();
    assert_eq!(first.response_to("GET").await.text(), "slow");
    assert_eq!(upstream.seen().len(), 1);
    first.send(GET).await;
    assert_eq!(first.response_to("GET").await.text(), "slow", "there is room again");
}

#[tokio::test]
async fn an_upstream_gets_no_more_requests_at_once_than_it_may() {
    let gate = Gate::default();
    let slow = async || {
        let held = gate.clone();
        Upstream::start(move |_| held.then("slow")).await
    };
    let (one, two) = (slow().await, slow().await);
    let config = GatewayConfig { upstream_max_requests: 1, ..config() };
    let data = service(&[one.address, two.address], &handle("random", 3, 3000));
    let running = Running::with(config, &data).await;
    let mut wires = Vec::new();
    for under_way in 1..=2 {
        let mut wire = Wire::connect(running.address()).await;
        wire.send(GET).await;
        wires.push(wire);
        eventually("it is under way", async || one.seen().len() + two.seen().len() == under_way).await;
    }
    let refused = get(running.address(), "/http/x").await;
    assert_eq!((refused.status(), refused.values("retry-after")), (503, vec!["1"]));
    gate.open();
    for wire in &mut wires {
        assert_eq!(wire.response_to("GET").await.text(), "slow");
    }
    assert_eq!((one.seen().len(), two.seen().len()), (1, 1));
    assert_eq!(get(running.address(), "/http/x").await.text(), "slow");
}
