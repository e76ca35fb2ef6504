//! Requests over HTTP/2 that would be others, or several, once they are written as HTTP/1.1 for an upstream.

use tokio::io::AsyncReadExt as _;

use super::{
    http2::over,
    http2_floods::{HEADERS, begun, frame},
    peers::{Upstream, Wire, within},
    setup::config,
};

const DATA: u8 = 0;
const END_OF_HEADERS: u8 = 0b100;
const END_OF_STREAM: u8 = 0b001;

/// A header that is in no table, as HPACK has it.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// The head of a request over `http`, with more headers.
fn head(method: &str, address: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [(":method", method), (":scheme", "http"), (":authority", address), (":path", path)];
    pseudo.iter().chain(more).flat_map(|(name, value)| literal(name, value)).collect()
}

/// How the answer to the first request begins; `None` if the request or its connection is cut instead.
async fn answer(wire: &mut Wire) -> Option<u8> {
    within(async {
        let mut start = [0; 9];
        loop {
            wire.stream.read_exact(&mut start).await.ok()?;
            let mut payload = vec![0; u32::from_be_bytes([0, start[0], start[1], start[2]]) as usize];
            wire.stream.read_exact(&mut payload).await.ok()?;
            if start[3] == HEADERS {
                // The status is the first header: a place in the static table, or a text behind the name from there.
                return payload.first().copied();
            }
            if [3, 7].contains(&start[3]) {
                return None;
            }
        }
    })
    .await
}

/// `:status: 200` and `400` in the static table.
const OK: u8 = 0x88;
const BAD: u8 = 0x8c;

#[tokio::test]
async fn no_part_of_a_head_can_hold_more_than_itself() {
    let upstream = Upstream::named("one").await;
    let running = over(config(), &upstream).await;
    let mut heads = vec![
        head("GET / HTTP/1.1\r\nX: y\r\n\r\nGET", "a", "/http/x", &[]),
        head("G T", "a", "/http/x", &[]),
        head("GET", "a\r\nx: y", "/http/x", &[]),
        head("GET", "u@a", "/http/x", &[]),
        head("GET", "a/b", "/http/x", &[]),
        head("GET", "a", "/http/x HTTP/1.1\r\nX: y", &[]),
        head("GET", "a", "/http/x y", &[]),
        head("GET", "a", "http/x", &[]),
        head("GET", "a", "", &[]),
    ];
    for more in [
        ("x", "a\r\ncontent-length: 5"),
        ("x", "a\nb"),
        ("x", "a\rb"),
        ("x", "a\0b"),
        ("x: y\r\nz", "1"),
        ("x y", "1"),
        ("X", "1"),
        ("", "1"),
        ("transfer-encoding", "chunked"),
        ("connection", "x-forwarded-for"),
        ("proxy-connection", "close"),
        ("keep-alive", "1"),
        ("upgrade", "websocket"),
        ("te", "chunked"),
        (":path", "/http/y"),
        (":status", "200"),
        ("content-length", "5"),
        ("content-length", "+0"),
    ] {
        heads.push(head("GET", "a", "/http/x", &[more]));
    }
    for head in heads {
        let mut wire = begun(running.address()).await;
        wire.send(frame(HEADERS, END_OF_HEADERS | END_OF_STREAM, 1, &head)).await;
        let text = String::from_utf8_lossy(&head).into_owned();
        assert_ne!(answer(&mut wire).await, Some(OK), "{text:?}");
        assert_eq!(upstream.seen().len(), 0, "{text:?}");
    }
    let mut wire = begun(running.address()).await;
    let head = head("GET", "a", "/http/x", &[("x", "y"), ("te", "trailers"), ("content-length", "0")]);
    wire.send(frame(HEADERS, END_OF_HEADERS | END_OF_STREAM, 1, &head)).await;
    assert_eq!(answer(&mut wire).await, Some(OK), "what is as it should be passes");
}

#[tokio::test]
async fn another_scheme_is_refused_as_over_http_1() {
    let upstream = Upstream::named("one").await;
    let running = over(config(), &upstream).await;
    for scheme in ["ftp", "ws", "x"] {
        let mut wire = begun(running.address()).await;
        let pseudo = [(":method", "GET"), (":scheme", scheme), (":authority", "a"), (":path", "/http/x")];
        let head: Vec<u8> = pseudo.iter().flat_map(|(name, value)| literal(name, value)).collect();
        wire.send(frame(HEADERS, END_OF_HEADERS | END_OF_STREAM, 1, &head)).await;
        assert_eq!(answer(&mut wire).await, Some(BAD), "{scheme}");
    }
    assert_eq!(upstream.seen().len(), 0);
}

#[tokio::test]
async fn what_speaks_of_a_request_and_stands_behind_its_body_changes_nothing() {
    let upstream = Upstream::named("one").await;
    let running = over(config(), &upstream).await;
    for (name, value) in
        [(":path", "/http/y"), (":method", "DELETE"), (":authority", "b"), (":status", "200")]
    {
        let mut wire = begun(running.address()).await;
        wire.send(frame(HEADERS, END_OF_HEADERS, 1, &head("POST", "a", "/http/x", &[]))).await;
        wire.send(frame(DATA, 0, 1, b"abc")).await;
        let trailers = [literal(name, value), literal("x-sum", "1")].concat();
        wire.send(frame(HEADERS, END_OF_HEADERS | END_OF_STREAM, 1, &trailers)).await;
        assert_eq!(answer(&mut wire).await, Some(OK), "h2 drops them without a word");
        let seen = upstream.last();
        assert_eq!((&*seen.start, seen.values("host")), ("POST /x HTTP/1.1", vec!["a"]), "{name}");
        assert_eq!((seen.text(), seen.trailers), ("abc".to_owned(), vec!["x-sum: 1".to_owned()]), "{name}");
    }
}

#[tokio::test]
async fn a_body_of_another_length_than_was_said_is_never_passed_for_a_whole_one() {
    let upstream = Upstream::named("one").await;
    let running = over(config(), &upstream).await;
    let smuggled = "abcGET /http/secret HTTP/1.1\r\nHost: a\r\n\r\n";
    for (length, body) in [("3", smuggled), ("0", smuggled), ("10", "abc"), ("3", "")] {
        let mut wire = begun(running.address()).await;
        let head = head("POST", "a", "/http/x", &[("content-length", length)]);
        wire.send(frame(HEADERS, END_OF_HEADERS, 1, &head)).await;
        wire.send(frame(DATA, END_OF_STREAM, 1, body.as_bytes())).await;
        assert_ne!(answer(&mut wire).await, Some(OK), "{length} {body:?}");
    }
    assert!(upstream.seen().iter().all(|message| !message.whole), "{:?}", upstream.seen());
    let mut wire = begun(running.address()).await;
    wire.send(frame(HEADERS, END_OF_HEADERS, 1, &head("POST", "a", "/http/x", &[("content-length", "3")])))
        .await;
    wire.send(frame(DATA, END_OF_STREAM, 1, b"abc")).await;
    assert_eq!(answer(&mut wire).await, Some(OK));
    assert_eq!(upstream.last().text(), "abc");
}
