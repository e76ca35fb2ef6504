//! What reaches the other side, byte by byte.

use std::{sync::Arc, time::Duration};

use super::{
    super::{Forwarded, GatewayConfig, HostHeader},
    peers::{Message, Reply, Upstream, Wire, ask, get, ok, within},
    setup::{Running, config, handle, plugin, rule, selector, service},
};

async fn pair() -> (Upstream, Running) {
    let upstream = Upstream::named("one").await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    (upstream, running)
}

#[tokio::test]
async fn the_target_reaches_the_upstream_as_sent_but_for_the_context_path() {
    let (upstream, running) = pair().await;
    let long = format!("/{}", "x".repeat(8000));
    let mut wire = Wire::connect(running.address()).await;
    for rest in [
        "/order/findById?id=95",
        "/a[b]|c^d{e}\\f",
        "/m?k=%E4%BD%95",
        "/何?何=何",
        "/abc%20def/",
        "/a%2Fb%3Fc%25",
        "/a+b?c+d",
        "//x//y/",
        "/x?",
        "/x??x=1",
        "/x?a",
        "/x?a=",
        "/x?=x",
        "/x?a=%00&&b",
        "/x/../y/./z",
        "/%ff%fe?%c3%28",
        "/x%2e%2e%2fy?a/b?c:@",
        "/*",
        "/x?filter[a]=1&b=%27&c='|^`",
        "/x;jsessionid=1;v=2",
        "/%zz?%",
        &long,
    ] {
        wire.send(format!("GET /http{rest} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let answer = wire.response_to("GET").await;
        assert_eq!(answer.status(), 200, "{rest}");
        assert_eq!(upstream.last().target(), rest);
    }
    wire.send("GET /http HTTP/1.1\r\nHost: a\r\n\r\n").await;
    wire.response_to("GET").await;
    assert_eq!(upstream.last().target(), "/");
    wire.send("GET /http?x=1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    wire.response_to("GET").await;
    assert_eq!(upstream.last().target(), "/?x=1");
    assert_eq!(upstream.connections(), 1, "one connection served them all");
}

#[tokio::test]
async fn a_context_path_rule_takes_its_prefix_off() {
    let upstream = Upstream::named("one").await;
    let mut data = service(&[upstream.address], &handle("random", 0, 3000));
    data.plugins.push(plugin("context_path", true));
    data.selectors.push(selector("context_path", "/http/v1", ""));
    data.rules.push(rule("context_path", "/http/v1", "/http/v1/**", r#"{"contextPath":"/http/v1"}"#));
    let running = Running::start(&data).await;
    get(running.address(), "/http/v1/order%20x?y=1").await;
    assert_eq!(upstream.last().target(), "/order%20x?y=1");
    get(running.address(), "/http/v2/order").await;
    assert_eq!(upstream.last().target(), "/v2/order", "without a rule the first segment goes");
}

#[tokio::test]
async fn an_upstream_may_have_a_path_of_its_own() {
    let upstream = Upstream::named("one").await;
    let mut data = service(&[], &handle("random", 0, 3000));
    let url = format!("{}/nested/", upstream.address);
    Arc::make_mut(&mut data.selectors[0]).handle =
        Some(format!(r#"[{{"upstreamUrl":"{url}","weight":"1","status":"true"}}]"#));
    let running = Running::start(&data).await;
    assert_eq!(get(running.address(), "/http/x?y").await.text(), "one");
    assert_eq!(upstream.last().target(), "/nested/x?y");
}

#[tokio::test]
async fn headers_of_one_connection_end_at_the_gateway_in_both_directions() {
    let upstream = Upstream::start(|_| {
        Reply::Bytes(
            b"HTTP/1.1 200 Fine\r\nSet-Cookie: a=1\r\nVary: A\r\nSet-Cookie: b=2\r\nVary: B\r\nConnection: keep-alive, X-Hop\r\n\
              Keep-Alive: timeout=5\r\nX-Hop: 1\r\nX-Frame-Options: DENY\r\nContent-Length: 2\r\n\r\nok"
                .to_vec(),
        )
    })
    .await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let request = "GET /http/x HTTP/1.1\r\nHost: shop.example\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\n\
                   TE: trailers\r\nProxy-Authorization: x\r\nUpgrade: h2c\r\nKeep-Alive: 1\r\nAccept: a\r\nAccept: b\r\nX-B\u{e9}: 1\r\n\r\n"
        .replace("X-B\u{e9}: 1\r\n", "");
    let answer = ask(running.address(), &request).await;
    let seen = upstream.last();
    assert_eq!(seen.values("accept"), ["a", "b"]);
    for gone in [
        "connection",
        "x-secret",
        "te",
        "proxy-authorization",
        "upgrade",
        "keep-alive",
        "content-type",
        "transfer-encoding",
    ] {
        assert_eq!(seen.values(gone), Vec::<&str>::new(), "{gone} in {seen:?}");
    }
    assert_eq!(answer.start, "HTTP/1.1 200 Fine");
    assert_eq!(answer.values("set-cookie"), ["a=1", "b=2"]);
    assert_eq!(answer.values("vary"), ["A", "B"]);
    assert_eq!(answer.values("x-frame-options"), ["DENY"]);
    assert_eq!(answer.values("content-length"), ["2"]);
    for gone in ["x-hop", "keep-alive", "transfer-encoding"] {
        assert_eq!(answer.values(gone), Vec::<&str>::new(), "{gone} in {answer:?}");
    }
    // The caller's `close` did not reach the upstream's connection.
    get(running.address(), "/http/x").await;
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn the_upstreams_close_does_not_close_the_caller() {
    let upstream = Upstream::start(|_| {
        Reply::Last(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_vec())
    })
    .await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    for _ in 0..3 {
        wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(wire.response_to("GET").await.text(), "ok");
    }
    assert_eq!(upstream.connections(), 3);
}

async fn told(change: impl FnOnce(&mut GatewayConfig), request: &str) -> Message {
    let upstream = Upstream::named("one").await;
    let mut config = config();
    change(&mut config);
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    assert_eq!(ask(running.address(), request).await.status(), 200);
    upstream.last()
}

#[tokio::test]
async fn host_and_forwarded_headers_follow_their_settings() {
    let request = "GET /http/x HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n";
    let seen = told(|_| {}, request).await;
    assert_eq!(seen.values("host"), ["shop.example"]);
    assert_eq!(seen.values("x-forwarded-for"), ["1.2.3.4, 127.0.0.1"]);
    assert_eq!(seen.values("x-forwarded-proto"), ["http"]);
    assert_eq!(seen.values("x-forwarded-host"), ["shop.example"]);

    let seen = told(
        |config| {
            config.host_header = HostHeader::Upstream;
            config.forwarded = Forwarded::Replace;
        },
        request,
    )
    .await;
    assert!(seen.values("host")[0].starts_with("127.0.0.1:"), "{seen:?}");
    assert_eq!(seen.values("x-forwarded-for"), ["127.0.0.1"]);

    let seen = told(|config| config.forwarded = Forwarded::Off, request).await;
    assert_eq!(seen.values("x-forwarded-for"), ["1.2.3.4"]);
    assert_eq!(seen.values("x-forwarded-host"), Vec::<&str>::new());
}

#[tokio::test]
async fn the_address_in_the_request_line_counts_more_than_host() {
    let seen = told(|_| {}, "GET http://real.example/http/x?y HTTP/1.1\r\nHost: other.example\r\n\r\n").await;
    assert_eq!((seen.target(), seen.values("host")), ("/x?y", vec!["real.example"]));
}

#[tokio::test]
async fn http_1_0_is_served_and_closed() {
    let (upstream, running) = pair().await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /http/x HTTP/1.0\r\n\r\n").await;
    let answer = wire.response_to("GET").await;
    assert_eq!((answer.status(), answer.text().as_str()), (200, "one"));
    assert!(wire.is_closed().await);
    let seen = upstream.last();
    assert!(seen.start.ends_with("HTTP/1.1"), "{seen:?}");
    assert_eq!(seen.values("host"), [upstream.address.to_string()]);
}

#[tokio::test]
async fn a_chunked_answer_reaches_http_1_0_without_chunks() {
    let upstream = Upstream::start(|_| {
        Reply::Bytes(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".to_vec(),
        )
    })
    .await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let answer = ask(running.address(), "GET /http/x HTTP/1.0\r\n\r\n").await;
    assert_eq!(answer.text(), "abcde");
    assert_eq!(answer.values("transfer-encoding"), Vec::<&str>::new());
    let answer = get(running.address(), "/http/x").await;
    assert_eq!((answer.text().as_str(), answer.whole), ("abcde", true));
    assert_eq!(answer.values("transfer-encoding"), ["chunked"]);
}

#[tokio::test]
async fn one_request_has_one_framing() {
    let (upstream, running) = pair().await;
    for both in
        ["Content-Length: 3\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 3"]
    {
        let request = format!("POST /http/x HTTP/1.1\r\nHost: a\r\n{both}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        assert_eq!(ask(running.address(), request).await.status(), 200);
        let seen = upstream.last();
        assert_eq!(seen.text(), "hello");
        assert_eq!(seen.values("content-length"), Vec::<&str>::new());
        assert_eq!(seen.values("transfer-encoding"), ["chunked"]);
    }
    let asked = upstream.seen().len();
    for bad in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: -1",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: xchunked",
        "X: 1\r\n folded: 2",
    ] {
        let request = format!("POST /http/x HTTP/1.1\r\nHost: a\r\n{bad}\r\n\r\nhello");
        let answer = ask(running.address(), request).await;
        assert_eq!(answer.status(), 400, "{bad}");
    }
    assert_eq!(upstream.seen().len(), asked, "none of them reached the upstream");
}

#[tokio::test]
async fn a_host_is_there_once() {
    let (upstream, running) = pair().await;
    for (request, code) in [
        ("GET /http/x HTTP/1.1\r\n\r\n", 400),
        ("GET /http/x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501),
        ("GET /http/x HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        ("GET /http/x HTTP/1.1\r\nHost: u:p@a\r\n\r\n", 400),
        ("GET http://u:p@a/http/x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ] {
        let answer = ask(running.address(), request).await;
        assert_eq!(answer.status(), code, "{request}");
        assert!(answer.text().contains(r#""code":-100"#), "{answer:?}");
    }
    assert_eq!(upstream.seen().len(), 0);
}

#[tokio::test]
async fn nothing_is_read_behind_a_malformed_request() {
    let (upstream, running) = pair().await;
    for bad in [
        "POST /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n",
        "GET /http/x HTTP/1.1\r\n\r\n",
        "GET /http/x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhiX\r\n0\r\n\r\n",
        "POST /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nhi\r\n0\r\n\r\n",
    ] {
        let mut wire = Wire::connect(running.address()).await;
        wire.send(format!("{bad}GET /http/behind HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let answer = wire.response_to("POST").await;
        assert_eq!((answer.status(), answer.values("connection")), (400, vec!["close"]), "{bad}");
        assert!(answer.text().contains(r#""code":-100"#), "{bad}: {answer:?}");
        assert!(wire.is_closed().await, "{bad}");
    }
    let seen = upstream.seen();
    assert!(seen.iter().all(|m| !m.whole && m.target() == "/x"), "what came of a body at most: {seen:?}");
    // Which the upstream cannot be blamed for.
    let known = &running.status().await["config"]["selectors"][0]["upstreams"][0];
    assert_eq!(known["failures"], 0, "{known}");
}

#[tokio::test]
async fn a_length_given_twice_goes_on_once() {
    for twice in ["Content-Length: 2, 2", "Content-Length: 2\r\nContent-Length: 2"] {
        let reply = format!("HTTP/1.1 200 OK\r\n{twice}\r\n\r\nok");
        let upstream = Upstream::start(move |_| Reply::Bytes(reply.clone().into_bytes())).await;
        let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
        let answer = get(running.address(), "/http/x").await;
        assert_eq!((answer.values("content-length"), answer.text().as_str()), (vec!["2"], "ok"), "{twice}");
    }
}

#[tokio::test]
async fn answers_without_a_body_keep_their_headers() {
    let upstream = Upstream::start(|request| match request.target() {
        "/head" => Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec()),
        "/204" => Reply::Bytes(b"HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n".to_vec()),
        _ => Reply::Bytes(b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n".to_vec()),
    })
    .await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("HEAD /http/head HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(wire.response_to("HEAD").await.values("content-length"), ["5"]);
    wire.send("GET /http/204 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = wire.response_to("GET").await;
    assert_eq!((answer.status(), answer.values("x")), (204, vec!["1"]));
    assert_eq!(answer.values("content-length"), Vec::<&str>::new());
    wire.send("GET /http/304 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = wire.response_to("GET").await;
    assert_eq!((answer.status(), answer.values("etag")), (304, vec!["\"1\""]));
    assert_eq!((upstream.connections(), upstream.seen().len()), (1, 3), "both connections stay usable");
}

#[tokio::test]
async fn a_body_without_length_goes_on_in_chunks() {
    let (upstream, running) = pair().await;
    for method in ["GET", "POST", "DELETE"] {
        let request = format!(
            "{method} /http/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        );
        assert_eq!(ask(running.address(), request).await.status(), 200);
        let seen = upstream.last();
        assert_eq!(
            (seen.text().as_str(), seen.values("transfer-encoding")),
            ("abc", vec!["chunked"]),
            "{method}"
        );
    }
    let empty = ask(running.address(), "POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(empty.status(), 200);
    assert_eq!(upstream.last().values("content-length"), ["0"]);
}

#[tokio::test]
async fn a_caller_that_waits_for_100_gets_it() {
    let (upstream, running) = pair().await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n").await;
    let interim = within(wire.head()).await.expect("an interim answer");
    assert_eq!(interim.status(), 100);
    wire.send("hello").await;
    assert_eq!(wire.response_to("POST").await.text(), "one");
    assert_eq!(upstream.last().text(), "hello");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let upstream = Upstream::start(|request| match request.target() {
        "/slow" => Reply::Later(
            Duration::from_millis(50),
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow".to_vec(),
        ),
        _ => ok("fast"),
    })
    .await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /http/slow HTTP/1.1\r\nHost: a\r\n\r\nGET /http/fast HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(wire.response_to("GET").await.text(), "slow");
    assert_eq!(wire.response_to("GET").await.text(), "fast");
}

#[tokio::test]
async fn heads_have_limits() {
    let upstream = Upstream::named("one").await;
    let config = GatewayConfig { max_headers: 20, max_head_bytes: 8192, ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let many = "X: 1\r\n".repeat(30);
    let answer = ask(running.address(), format!("GET /http/x HTTP/1.1\r\nHost: a\r\n{many}\r\n")).await;
    assert_eq!(answer.status(), 431);
    let long = "x".repeat(9000);
    let answer =
        ask(running.address(), format!("GET /http/x HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n")).await;
    assert_eq!(answer.status(), 431);
    assert_eq!(upstream.seen().len(), 0);
}
