//! Headers that speak of one connection end at the gateway; all others pass, as often and in the order they came.

use super::{
    peers::{Message, Reply, Upstream, ask, get},
    setup::{Running, handle, service},
};

/// What came of a message's headers, but for what every message has.
fn rest(message: &Message) -> Vec<&str> {
    let usual = ["host: ", "x-forwarded-", "date: ", "content-length: "];
    let rest = message.headers.iter().filter(|line| !usual.iter().any(|name| line.starts_with(name)));
    rest.map(String::as_str).collect()
}

#[tokio::test]
async fn of_a_request() {
    let upstream = Upstream::named("one").await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    for (sent, passed) in [
        (
            "Keep-Alive: 5\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: x\r\nProxy-Authenticate: x\r\n",
            &[][..],
        ),
        ("TE: trailers\r\nUpgrade: websocket\r\nConnection: te\r\n", &[]),
        ("Connection: X-A\r\nX-A: 1\r\nX-B: 2\r\n", &["x-b: 2"]),
        (
            "connection: keep-alive ,\tx-a,,X-B\r\nCONNECTION: X-C\r\nX-a: 1\r\nx-B: 2\r\nX-C: 3\r\nX-D: 4\r\n",
            &["x-d: 4"],
        ),
        ("X-A: 1\r\nX-A: 2\r\nConnection: X-A\r\n", &[]),
        ("Connection: x y, \"X-A\", X-A;q=1\r\nX-A: 1\r\n", &["x-a: 1"]),
        // What says whom is asked and how long the message is stays, whatever is named.
        ("Connection: Host, Content-Length, Transfer-Encoding\r\n", &[]),
        (
            "Trailer: X-Sum\r\nVia: 1.1 x\r\nCache-Control: no-cache\r\nMax-Forwards: 1\r\n",
            &["trailer: X-Sum", "via: 1.1 x", "cache-control: no-cache", "max-forwards: 1"],
        ),
    ] {
        let request = format!("GET /http/x HTTP/1.1\r\nHost: a\r\n{sent}\r\n");
        assert_eq!(ask(running.address(), request).await.text(), "one", "{sent:?}");
        let seen = upstream.last();
        assert_eq!(rest(&seen), passed, "{sent:?}");
        assert_eq!(seen.values("host"), ["a"], "{sent:?}");
    }
    let named =
        "POST /http/x HTTP/1.1\r\nHost: a\r\nConnection: host, content-length\r\nContent-Length: 2\r\n\r\nhi";
    ask(running.address(), named).await;
    let seen = upstream.last();
    assert_eq!((seen.values("content-length"), seen.text().as_str()), (vec!["2"], "hi"));
    // Nobody makes himself unknown by naming what the gateway adds.
    let hiding = "GET /http/x HTTP/1.1\r\nHost: a\r\nConnection: X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host\r\n\
                  X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\n\r\n";
    ask(running.address(), hiding).await;
    let seen = upstream.last();
    assert!(seen.values("x-forwarded-for")[0].ends_with("127.0.0.1"), "{seen:?}");
    assert_eq!(
        (seen.values("x-forwarded-proto"), seen.values("x-forwarded-host")),
        (vec!["http"], vec!["a"])
    );
    assert_eq!(
        upstream.connections(),
        1,
        "what callers say of their connections is none of the upstream's business"
    );
}

#[tokio::test]
async fn of_an_answer() {
    for (sent, passed) in [
        (
            "Keep-Alive: timeout=5\r\nProxy-Connection: x\r\nProxy-Authenticate: x\r\nProxy-Authentication-Info: x\r\n",
            &[][..],
        ),
        ("Upgrade: h2c\r\nTE: x\r\n", &[]),
        ("Connection: X-A\r\nX-A: 1\r\nX-B: 2\r\n", &["x-b: 2"]),
        (
            "connection: Keep-Alive ,\tx-a,,X-B\r\nCONNECTION: X-C\r\nX-a: 1\r\nx-B: 2\r\nX-C: 3\r\nX-D: 4\r\n",
            &["x-d: 4"],
        ),
        ("X-A: 1\r\nX-A: 2\r\nConnection: X-A\r\n", &[]),
        ("Connection: Content-Length, Transfer-Encoding\r\n", &[]),
        (
            "Set-Cookie: a\r\nVary: A\r\nSet-Cookie: b\r\nVary: B\r\nSet-Cookie: a\r\n",
            &["set-cookie: a", "set-cookie: b", "set-cookie: a", "vary: A", "vary: B"],
        ),
        (
            "Server: x\r\nVia: 1.0 y\r\nAge: 1\r\nX-Frame-Options: DENY\r\n",
            &["server: x", "via: 1.0 y", "age: 1", "x-frame-options: DENY"],
        ),
    ] {
        let upstream = Upstream::start(move |_| {
            Reply::Bytes(format!("HTTP/1.1 200 OK\r\n{sent}Content-Length: 2\r\n\r\nok").into_bytes())
        })
        .await;
        let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
        for _ in 0..2 {
            let answer = get(running.address(), "/http/x").await;
            assert_eq!((rest(&answer), answer.text().as_str()), (passed.to_vec(), "ok"), "{sent:?}");
            assert_eq!(answer.values("content-length"), ["2"], "{sent:?}");
            assert_eq!(answer.values("date").len(), 1, "{sent:?}");
        }
        assert_eq!(upstream.connections(), 1, "{sent:?}");
    }
}

#[tokio::test]
async fn all_others_pass_as_often_and_in_the_order_they_came() {
    let upstream = Upstream::named("one").await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let request = b"GET /http/x HTTP/1.1\r\nHost: a\r\nX-One: b, a\r\nCookie: z=1\r\nX-One: \r\nX-Two:\t x  y \r\nCookie: a=2\r\n\
                    X-One: a\r\nX-Bytes: \xe4\xbd\r\nAuthorization: Basic eDp5\r\nRange: bytes=0-1\r\n\r\n";
    assert_eq!(ask(running.address(), request).await.text(), "one");
    let seen = upstream.last();
    assert_eq!(seen.values("x-one"), ["b, a", "", "a"]);
    assert_eq!(seen.values("cookie"), ["z=1", "a=2"], "nobody joins them");
    assert_eq!((seen.values("x-two"), seen.values("range")), (vec!["x  y"], vec!["bytes=0-1"]));
    assert_eq!(seen.values("authorization"), ["Basic eDp5"]);
    assert_eq!(seen.values("x-bytes"), [String::from_utf8_lossy(b"\xe4\xbd")]);
}

#[tokio::test]
async fn what_is_compressed_passes_untouched() {
    // Of gzip, and what it is not: the gateway does not look.
    let body: Vec<u8> = (0..70_000_usize).map(|i| u8::try_from(i * i % 256).unwrap()).collect();
    let sent = body.clone();
    let upstream = Upstream::start(move |request| {
        let coding = request.values("accept-encoding").join("; ");
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nX-Asked: {coding}\r\nETag: W/\"1\"\r\nContent-Length: {}\r\n\r\n",
            sent.len()
        );
        Reply::Bytes([head.as_bytes(), &sent].concat())
    })
    .await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    for (asked, seen) in [
        ("", ""),
        ("Accept-Encoding: gzip, br;q=0.5\r\nAccept-Encoding: zstd\r\n", "gzip, br;q=0.5; zstd"),
        ("Accept-Encoding: identity\r\n", "identity"),
    ] {
        let mut request = format!(
            "POST /http/x HTTP/1.1\r\nHost: a\r\n{asked}Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(&body);
        let answer = ask(running.address(), &request).await;
        assert_eq!((answer.values("x-asked"), answer.values("etag")), (vec![seen], vec!["W/\"1\""]));
        assert_eq!(answer.values("content-encoding"), ["gzip"]);
        assert!(answer.body == body && upstream.last().body == body, "the bytes differ");
        assert_eq!(upstream.last().values("content-encoding"), ["gzip"]);
    }
}
