//! What RFC 9110 asks of whoever stands between two ends, besides framing.

use http::{Request, Response};
use tokio::sync::mpsc;

use super::{
    super::GatewayConfig,
    http2::{Caller, whole},
    peers::{Reply, Upstream, Wire, ask, within},
    setup::{Running, config, handle, service},
    upstream_http2::Peer,
    upstream_tls::spoken,
};

async fn before(config: GatewayConfig, upstream: &Upstream) -> Running {
    Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await
}

#[tokio::test]
async fn hops_are_counted_down_and_the_last_one_answers_itself() {
    let upstream = Upstream::named("one").await;
    let running = before(config(), &upstream).await;
    let send = async |method: &str, lines: &str| {
        ask(running.address(), format!("{method} /http/x HTTP/1.1\r\nHost: a\r\n{lines}\r\n")).await
    };
    for (method, sent, seen) in
        [("OPTIONS", "7", "6"), ("TRACE", "1", "0"), ("GET", "0", "0"), ("OPTIONS", "x", "x")]
    {
        let answer = send(method, &format!("Max-Forwards: {sent}\r\n")).await;
        assert_eq!((answer.status(), answer.text().as_str()), (200, "one"), "{method} {sent}");
        assert_eq!(upstream.last().values("max-forwards"), [seen], "{method} {sent}");
    }
    assert_eq!(send("OPTIONS", "").await.text(), "one");
    assert!(upstream.last().values("max-forwards").is_empty());

    let asked = upstream.seen().len();
    let answer = send("OPTIONS", "Max-Forwards: 0\r\n").await;
    assert_eq!((answer.status(), answer.values("content-length")), (200, vec!["0"]));
    let answer = send("TRACE", "Max-Forwards: 0\r\nCookie: secret\r\n").await;
    assert_eq!((answer.status(), answer.text().contains("secret")), (501, false));
    assert_eq!(upstream.seen().len(), asked);
}

#[tokio::test]
async fn a_gateway_with_a_name_says_through_whom_a_request_went() {
    let upstream = Upstream::named("one").await;
    let named = || GatewayConfig { via: Some("gateway".to_owned()), ..config() };
    let running = before(named(), &upstream).await;
    ask(running.address(), "GET /http/x HTTP/1.1\r\nHost: a\r\nVia: 1.0 fred, 1.1 nowhere\r\n\r\n").await;
    assert_eq!(upstream.last().values("via"), ["1.0 fred, 1.1 nowhere", "1.1 gateway"]);
    ask(running.address(), "GET /http/x HTTP/1.0\r\n\r\n").await;
    assert_eq!(upstream.last().values("via"), ["1.0 gateway"]);
    let mut caller = Caller::connect(running.address()).await;
    caller.get("/http/x").await;
    assert_eq!(upstream.last().values("via"), ["2 gateway"]);
    let running = before(config(), &upstream).await;
    ask(running.address(), "GET /http/x HTTP/1.1\r\nHost: a\r\nVia: 1.0 fred\r\n\r\n").await;
    assert_eq!(upstream.last().values("via"), ["1.0 fred"], "one without a name adds nothing");

    let (told, mut seen) = mpsc::unbounded_channel();
    let peer = Peer::start(move |request, mut respond| {
        let (head, _) = request.into_parts();
        told.send(head.headers).unwrap();
        async move {
            respond.send_response(Response::new(()), true).unwrap();
        }
    })
    .await;
    let running = Running::with(named(), &spoken("h2c://", peer.address, 3000)).await;
    let request = Request::options("http://a/http/x")
        .header("via", "1.0 fred")
        .header("max-forwards", "7")
        .body(())
        .unwrap();
    let mut caller = Caller::connect(running.address()).await;
    whole(caller.ask(request).await).await.unwrap();
    let headers = within(seen.recv()).await.unwrap();
    let via: Vec<_> = headers.get_all("via").iter().map(|value| value.to_str().unwrap()).collect();
    assert_eq!((via, &headers["max-forwards"]), (vec!["1.0 fred", "2 gateway"], &"6".parse().unwrap()));
}

#[tokio::test]
async fn an_answer_has_a_date_and_it_is_the_upstreams_if_that_gave_one() {
    let upstream = Upstream::start(|request| {
        let date = if request.target() == "/dated" { "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n" } else { "" };
        Reply::Bytes(format!("HTTP/1.1 200 OK\r\n{date}Content-Length: 2\r\n\r\nok").into_bytes())
    })
    .await;
    let running = before(config(), &upstream).await;
    let get =
        async |path: &str| ask(running.address(), format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    assert_eq!(get("/http/dated").await.values("date"), ["Thu, 01 Jan 2026 00:00:00 GMT"]);
    for path in ["/http/x", "/nowhere"] {
        assert_eq!(get(path).await.values("date").len(), 1, "{path}");
    }
}

#[tokio::test]
async fn what_is_between_the_two_ends_passes_untouched() {
    const ASKED: [&str; 9] = [
        "range: bytes=0-1",
        "if-range: \"e\"",
        "if-match: \"e\", *",
        "if-none-match: W/\"e\"",
        "if-modified-since: Thu, 01 Jan 2026 00:00:00 GMT",
        "cache-control: no-cache",
        "authorization: Basic eDp5",
        "forwarded: for=10.0.0.1",
        "cookie: a=1; b=2",
    ];
    const TOLD: [&str; 9] = [
        "etag: \"e\"",
        "content-range: bytes 0-1/5",
        "vary: Accept",
        "age: 5",
        "location: http://10.0.0.2:8189/there",
        "www-authenticate: Basic realm=\"a\"",
        "set-cookie: a=1; Path=/",
        "set-cookie: b=2",
        "retry-after: 7",
    ];
    let upstream = Upstream::start(|request| {
        let (start, body) = match request.target() {
            "/reset" => ("205 Reset Content", ""),
            "/same" => ("304 Not Modified", ""),
            "/refused" => ("416 Range Not Satisfiable", "no"),
            _ => ("206 Partial Content", "ok"),
        };
        let length = if request.target() == "/same" { 5 } else { body.len() };
        let lines = TOLD.join("\r\n");
        Reply::Bytes(
            format!("HTTP/1.1 {start}\r\n{lines}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes(),
        )
    })
    .await;
    let running = before(config(), &upstream).await;
    let mut wire = Wire::connect(running.address()).await;
    for (path, status, body) in
        [("/some", 206, "ok"), ("/reset", 205, ""), ("/same", 304, ""), ("/refused", 416, "no")]
    {
        let lines = ASKED.join("\r\n");
        wire.send(format!("GET /http{path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n")).await;
        let answer = wire.response_to("GET").await;
        assert_eq!((answer.status(), answer.text().as_str()), (status, body), "{path}");
        let count = |headers: &[String], line: &str| headers.iter().filter(|header| *header == line).count();
        assert!(TOLD.iter().all(|line| count(&answer.headers, line) == 1), "{answer:?}");
        // Of a body that is not there hyper tells no length.
        assert_eq!(answer.values("content-length").len(), usize::from(status != 304), "{answer:?}");
        let seen = upstream.last();
        assert!(ASKED.iter().all(|line| count(&seen.headers, line) == 1), "{seen:?}");
    }
    assert_eq!(upstream.connections(), 1);

    // A body where none is usual is one.
    for method in ["HEAD", "GET", "DELETE", "OPTIONS"] {
        let request = format!("{method} /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        wire.send(request).await;
        let answer = wire.response_to(method).await;
        assert_eq!(answer.status(), 206, "{method}");
        assert_eq!(
            (upstream.last().text().as_str(), upstream.last().start.split(' ').next()),
            ("hi", Some(method))
        );
    }
}
