//! TLS towards upstreams.

use std::{sync::Arc, time::Duration};

use rustls::HandshakeKind;
use soul_client::wire::soul::DivideUpstream;
use tokio::net::TcpListener;

use super::{
    super::{Gateway, GatewayConfig, GatewaySource},
    peers::{Reply, Wire, ask, eventually, get, ok, within},
    secure::{Authority, Files, SecureUpstream},
    setup::{ConfigData, Running, config, handle, service},
};

/// One service whose upstream is spoken to by this protocol.
pub(super) fn spoken(protocol: &str, address: impl ToString, timeout_ms: u32) -> ConfigData {
    let mut data = service(&[], &handle("random", 0, timeout_ms));
    let upstream = DivideUpstream {
        protocol: Some(protocol.to_owned()),
        ..DivideUpstream::registered(address.to_string())
    };
    Arc::make_mut(&mut data.selectors[0]).handle = Some(DivideUpstream::write_handle(&[upstream]));
    data
}

/// A gateway that believes an authority.
pub(super) fn believing(files: &Files, authority: &Authority) -> GatewayConfig {
    GatewayConfig { upstream_ca: Some(files.write("ca.pem", &authority.pem())), ..config() }
}

#[tokio::test]
async fn an_upstream_is_asked_over_tls_and_its_connections_are_kept() {
    let (authority, files) = (Authority::new(), Files::new());
    let upstream = SecureUpstream::start(&authority.issue(&["127.0.0.1"]), |request| {
        if request.target() == "/last" {
            Reply::Last(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nby".to_vec())
        } else {
            ok("one")
        }
    })
    .await;
    let running =
        Running::with(believing(&files, &authority), &spoken("https://", upstream.address, 3000)).await;
    for _ in 0..3 {
        assert_eq!(get(running.address(), "/http/x").await.text(), "one");
    }
    let whole = Ok(Some(HandshakeKind::Full));
    assert_eq!(*upstream.shaken.lock().unwrap(), std::slice::from_ref(&whole), "one connection");
    assert_eq!(upstream.seen.lock().unwrap()[0].values("x-forwarded-proto"), ["http"]);

    // The next connection takes up what the first one agreed on.
    assert_eq!(get(running.address(), "/http/last").await.text(), "by");
    eventually("it closes", async || get(running.address(), "/http/x").await.text() == "one").await;
    assert_eq!(*upstream.shaken.lock().unwrap(), [whole, Ok(Some(HandshakeKind::Resumed))]);
}

#[tokio::test]
async fn large_bodies_pass_both_ways_through_tls() {
    let (authority, files) = (Authority::new(), Files::new());
    let upstream = SecureUpstream::start(&authority.issue(&["127.0.0.1"]), |request| {
        let mut answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len()).into_bytes();
        answer.extend_from_slice(&request.body);
        Reply::Bytes(answer)
    })
    .await;
    let running =
        Running::with(believing(&files, &authority), &spoken("https://", upstream.address, 9000)).await;
    let body: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let head = format!("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    for _ in 0..2 {
        let answer = ask(running.address(), [head.as_bytes(), &body].concat()).await;
        assert!(answer.body == body, "{} bytes", answer.body.len());
    }
    assert_eq!(upstream.shaken.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_upstream_that_is_not_believed_is_502_and_learns_nothing() {
    let (authority, files) = (Authority::new(), Files::new());
    let known = authority.issue(&["other.internal"]);
    let unknown = Authority::new().issue(&["127.0.0.1"]);
    for (identity, why) in [(&known, "not valid for name"), (&unknown, "UnknownIssuer")] {
        let upstream = SecureUpstream::start(identity, |_| ok("one")).await;
        let data = spoken("https://", upstream.address, 3000);
        let running = Running::with(believing(&files, &authority), &data).await;
        let answer = get(running.address(), "/http/x").await;
        assert_eq!(answer.status(), 502, "{why}");
        assert!(answer.text().contains("-103"), "{answer:?}");
        eventually("its side fails too", async || upstream.shaken.lock().unwrap().iter().any(Result::is_err))
            .await;
        assert_eq!(upstream.seen.lock().unwrap().len(), 0);
        let soul = GatewayConfig {
            error_status: crate::gateway::ErrorStatus::Soul,
            ..believing(&files, &authority)
        };
        let running = Running::with(soul, &data).await;
        let told = get(running.address(), "/http/x").await.text();
        assert!(told.contains(why), "{told}");

        let careless = GatewayConfig { upstream_tls_insecure: true, ..config() };
        let running = Running::with(careless, &data).await;
        assert_eq!(get(running.address(), "/http/x").await.text(), "one");
    }
}

#[tokio::test]
async fn one_that_speaks_no_tls_is_502_and_a_silent_one_504() {
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let running = Running::with(config(), &spoken("https://", plain.local_addr().unwrap(), 3000)).await;
    let answering = async {
        Wire::new(plain.accept().await.unwrap().0).send("HTTP/1.1 400 Bad Request\r\n\r\n").await;
    };
    let (answer, ()) = tokio::join!(get(running.address(), "/http/x"), answering);
    assert_eq!(answer.status(), 502);

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let short = GatewayConfig { connect_timeout: Duration::from_millis(200), ..config() };
    let running = Running::with(short, &spoken("https://", silent.local_addr().unwrap(), 3000)).await;
    assert_eq!(get(running.address(), "/http/x").await.status(), 504);
}

#[tokio::test]
async fn websockets_go_on_through_tls() {
    let (authority, files) = (Authority::new(), Files::new());
    let upstream = SecureUpstream::start(&authority.issue(&["127.0.0.1"]), |_| {
        Reply::Last(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello"
                .to_vec(),
        )
    })
    .await;
    let running =
        Running::with(believing(&files, &authority), &spoken("https://", upstream.address, 3000)).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    assert_eq!(within(wire.head()).await.unwrap().status(), 101);
    eventually("what the upstream said", async || {
        wire.has("hello") || {
            wire.more().await;
            wire.has("hello")
        }
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_asks_who_calls_is_shown_the_certificate_in_the_file_and_the_renewed_one() {
    let (authority, gateways, files) = (Authority::new(), Authority::new(), Files::new());
    let upstream = SecureUpstream::asking(&authority.issue(&["127.0.0.1"]), &gateways).await;
    let data = spoken("https://", upstream.address, 3000);
    let nameless = Running::with(believing(&files, &authority), &data).await;
    assert_eq!(get(nameless.address(), "/http/x").await.status(), 502, "without one");

    let own = gateways.issue(&["gateway.internal"]);
    let (certificate, key) = files.identity("own", &own);
    let known = GatewayConfig {
        upstream_certificate: Some(certificate),
        upstream_key: Some(key),
        pool_max_idle: 0,
        ..believing(&files, &authority)
    };
    let running = Running::with(known.clone(), &data).await;
    for _ in 0..2 {
        assert_eq!(get(running.address(), "/http/x").await.text(), "one");
    }
    let shown = || upstream.shown.lock().unwrap().last().cloned();
    assert_eq!(shown(), Some(own.certificate));

    let new = gateways.issue(&["gateway.internal"]);
    files.identity("own", &new);
    running.gateway.reload(&known).unwrap();
    assert_eq!(get(running.address(), "/http/x").await.text(), "one");
    assert_eq!(shown(), Some(new.certificate));

    // What cannot be used changes nothing.
    files.write("own.key", "no key");
    let refused = running.gateway.reload(&known).unwrap_err().to_string();
    assert!(refused.contains("own.key` (`--upstream-key`)"), "{refused}");
    assert_eq!(get(running.address(), "/http/x").await.text(), "one");
}

#[tokio::test]
async fn a_gateway_does_not_start_by_files_for_upstreams_that_it_cannot_use() {
    let (authority, files) = (Authority::new(), Files::new());
    let (certificate, key) = files.identity("own", &authority.issue(&["a"]));
    let (_, other) = files.identity("other", &authority.issue(&["b"]));
    let with = |ca, certificate, key| GatewayConfig {
        upstream_ca: ca,
        upstream_certificate: certificate,
        upstream_key: key,
        ..config()
    };
    let empty = files.write("empty.pem", "");
    for (config, said) in [
        (with(Some(empty.clone()), None, None), "empty.pem` (`--upstream-ca`) holds no certificate"),
        (with(Some("/nowhere/ca.pem".into()), None, None), "read `/nowhere/ca.pem` (`--upstream-ca`)"),
        (
            with(None, Some(empty), Some(key.clone())),
            "empty.pem` (`--upstream-certificate`) holds no certificate",
        ),
        (with(None, Some(certificate.clone()), Some(other)), "other.key` (`--upstream-key`) is not that of"),
        (with(None, Some(certificate), None), "`upstream_certificate` and `upstream_key` go together"),
        (with(None, None, Some(key)), "`upstream_certificate` and `upstream_key` go together"),
    ] {
        let source = GatewaySource::Admins(vec!["http://127.0.0.1:1".parse().unwrap()]);
        let error = Gateway::start(config, source).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
