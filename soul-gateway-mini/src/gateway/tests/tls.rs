//! TLS towards callers.

use std::{fs, time::Duration};

use tokio::io::AsyncReadExt as _;

use super::{
    super::{Gateway, GatewayConfig, GatewaySource},
    peers::{Upstream, Wire, eventually, get, within},
    secure::{Authority, Dialer, Files, shown},
    setup::{Running, config, handle, service},
    tunnels::{SWITCHED, UPGRADE, echoing},
};

const GET: &str = "GET /http/x HTTP/1.1\r\nHost: shop.example\r\n\r\n";

async fn over(config: GatewayConfig) -> (Running, Upstream) {
    let upstream = Upstream::named("one").await;
    (Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await, upstream)
}

#[tokio::test]
async fn a_caller_asks_over_tls_and_the_upstream_is_told() {
    let (authority, files) = (Authority::new(), Files::new());
    let identity = authority.issue(&["shop.example"]);
    let (running, upstream) = over(files.config(&[&identity])).await;
    let mut wire = Dialer { protocols: &["http/1.1"], ..Dialer::trusting(&authority) }
        .dial(running.address(), "shop.example")
        .await
        .unwrap();
    assert_eq!(shown(&wire), (identity.certificate.clone(), Some("http/1.1".to_owned())));
    for _ in 0..2 {
        wire.send(GET).await;
        assert_eq!(wire.response_to("GET").await.text(), "one");
        assert_eq!(upstream.last().values("x-forwarded-proto"), ["https"]);
    }
    // Without a word about protocols it is HTTP/1.1 too.
    let mut wire = Dialer::trusting(&authority).dial(running.address(), "shop.example").await.unwrap();
    wire.send(GET).await;
    assert_eq!((wire.response_to("GET").await.text(), shown(&wire).1), ("one".to_owned(), None));
}

#[tokio::test]
async fn each_host_has_its_certificate_and_unknown_ones_the_first() {
    let (authority, files) = (Authority::new(), Files::new());
    let identities =
        [authority.issue(&["shop.example", "127.0.0.1"]), authority.issue(&["*.api.example", "api.example"])];
    let (running, _upstream) = over(files.config(&[&identities[0], &identities[1]])).await;
    let dialer = Dialer::trusting(&authority);
    for (name, index) in [("shop.example", 0), ("api.example", 1), ("v1.api.example", 1), ("127.0.0.1", 0)] {
        let wire = dialer.dial(running.address(), name).await.unwrap();
        assert_eq!(shown(&wire).0, identities[index].certificate, "{name}");
    }
    let error = dialer.dial(running.address(), "else.example").await.err().unwrap().to_string();
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn new_certificates_are_shown_to_new_connections_and_old_ones_live_on() {
    let (authority, files) = (Authority::new(), Files::new());
    let (old, new) = (authority.issue(&["shop.example"]), authority.issue(&["shop.example"]));
    let config = files.config(&[&old]);
    let (certificate, key) = (config.tls_certificates[0].clone(), config.tls_keys[0].clone());
    let (running, _upstream) = over(config).await;
    let dialer = Dialer::trusting(&authority);
    let dial = async || dialer.dial(running.address(), "shop.example").await.unwrap();
    let mut before = dial().await;
    assert_eq!(shown(&before).0, old.certificate);

    // A certificate without its key, as in the middle of a renewal.
    fs::write(&certificate, &new.pem).unwrap();
    let error = running.gateway.reload_certificates().unwrap_err().to_string();
    let [key_text, certificate_text] = [&key, &certificate].map(|path| path.display().to_string());
    assert!(error.contains(&key_text) && error.contains(&certificate_text), "{error}");
    assert_eq!(shown(&dial().await).0, old.certificate, "what cannot be served changes nothing");

    fs::write(&key, new.key.serialize_pem()).unwrap();
    running.gateway.reload_certificates().unwrap();
    assert_eq!(shown(&dial().await).0, new.certificate);
    before.send(GET).await;
    assert_eq!(before.response_to("GET").await.text(), "one", "an open connection lives on");

    fs::remove_file(&key).unwrap();
    assert!(running.gateway.reload_certificates().unwrap_err().to_string().contains(&key_text));
    assert_eq!(shown(&dial().await).0, new.certificate);
}

#[tokio::test]
async fn what_is_no_tls_harms_nobody_else() {
    let (authority, files) = (Authority::new(), Files::new());
    let config = GatewayConfig {
        header_read_timeout: Duration::from_millis(300),
        ..files.config(&[&authority.issue(&["shop.example"])])
    };
    let (running, upstream) = over(config).await;
    let mut plain = Wire::connect(running.address()).await;
    plain.send(GET).await;
    let mut bytes = Vec::new();
    // An alert and the end, or a reset: no answer in clear text in any case.
    let _ = within(plain.stream.read_to_end(&mut bytes)).await;
    assert!(!String::from_utf8_lossy(&bytes).contains("HTTP"), "{bytes:?}");
    // One that says nothing, and one that stops in the middle of a hello.
    for part in [&b""[..], b"\x16\x03\x01\x02\x00\x01\x00"] {
        let mut silent = Wire::connect(running.address()).await;
        silent.send(part).await;
        assert!(silent.is_closed().await);
    }
    let stranger = Dialer::trusting(&Authority::new()).dial(running.address(), "shop.example").await;
    assert!(stranger.is_err());
    let other = Dialer { protocols: &["spdy/3"], ..Dialer::trusting(&authority) };
    assert!(other.dial(running.address(), "shop.example").await.is_err(), "no protocol in common");
    let mut wire = Dialer::trusting(&authority).dial(running.address(), "shop.example").await.unwrap();
    wire.send(GET).await;
    assert_eq!(wire.response_to("GET").await.text(), "one");
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn callers_show_a_certificate_where_one_is_asked_for() {
    let (authority, others, files) = (Authority::new(), Authority::new(), Files::new());
    let server = authority.issue(&["shop.example"]);
    let config = GatewayConfig {
        tls_client_ca: Some(files.write("ca.pem", &others.pem())),
        ..files.config(&[&server])
    };
    let (running, upstream) = over(config).await;
    let (known, unknown) = (others.issue(&["orders"]), authority.issue(&["orders"]));
    for (identity, let_in) in [(Some(&known), true), (Some(&unknown), false), (None, false)] {
        let dialer = Dialer { identity, ..Dialer::trusting(&authority) };
        // In TLS 1.3 the caller learns that it is refused from the first bytes it reads.
        if let Ok(mut wire) = dialer.dial(running.address(), "shop.example").await {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut wire.stream, GET.as_bytes()).await;
            let answered = within(wire.head()).await.is_some();
            assert_eq!(answered, let_in);
        } else {
            assert!(!let_in);
        }
    }
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn the_proxy_protocol_comes_before_tls() {
    let (authority, files) = (Authority::new(), Files::new());
    let config =
        GatewayConfig { proxy_protocol: true, ..files.config(&[&authority.issue(&["shop.example"])]) };
    let (running, upstream) = over(config).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("PROXY TCP4 203.0.113.7 127.0.0.1 1234 443\r\n").await;
    let mut wire = Dialer::trusting(&authority).over(wire.stream, "shop.example").await.unwrap();
    wire.send(GET).await;
    assert_eq!(wire.response_to("GET").await.text(), "one");
    assert_eq!(upstream.last().values("x-forwarded-for"), ["203.0.113.7"]);
}

#[tokio::test]
async fn websockets_go_through_tls() {
    let (authority, files) = (Authority::new(), Files::new());
    let (address, upstream) = echoing().await;
    let config = files.config(&[&authority.issue(&["shop.example"])]);
    let running = Running::with(config, &service(&[address], &handle("random", 0, 3000))).await;
    let mut wire = Dialer::trusting(&authority).dial(running.address(), "shop.example").await.unwrap();
    wire.send(UPGRADE).await;
    assert_eq!(within(wire.head()).await.unwrap().status(), 101);
    assert!(SWITCHED.ends_with("hello"));
    eventually("what the upstream said at once", async || {
        wire.has("hello") || {
            wire.more().await;
            wire.has("hello")
        }
    })
    .await;
    wire.send("ping").await;
    let mut bytes = [0; 4];
    within(wire.stream.read_exact(&mut bytes)).await.unwrap();
    assert_eq!(&bytes, b"ping");
    drop(wire);
    within(upstream).await.unwrap();
}

#[tokio::test]
async fn a_gateway_does_not_start_by_files_it_cannot_serve() {
    let (authority, files) = (Authority::new(), Files::new());
    let (one, other) = (authority.issue(&["a"]), authority.issue(&["b"]));
    let (certificate, key) = files.identity("one", &one);
    let (_, other_key) = files.identity("other", &other);
    let missing = files.write("x", "").with_file_name("missing.pem");
    let empty = files.write("empty.pem", "nothing\n");
    let broken = files.write("broken.pem", "-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n");
    for (pair, said) in [
        ([&missing, &key], "missing.pem` (`--tls-certificate`)"),
        ([&certificate, &missing], "missing.pem` (`--tls-key`)"),
        ([&empty, &key], "empty.pem` (`--tls-certificate`) holds no certificate"),
        ([&certificate, &empty], "empty.pem` (`--tls-key`) holds no private key"),
        ([&key, &key], "one.key` (`--tls-certificate`) holds no certificate"),
        ([&broken, &key], "broken.pem` (`--tls-certificate`) cannot be read as PEM"),
        ([&certificate, &other_key], "other.key` (`--tls-key`) is not that of the first certificate in"),
    ] {
        let [certificate, key] = pair.map(|path| vec![path.clone()]);
        let config = GatewayConfig { tls_certificates: certificate, tls_keys: key, ..config() };
        let source = GatewaySource::Admins(vec!["http://127.0.0.1:1".parse().unwrap()]);
        let error = Gateway::start(config, source).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let half = GatewayConfig { tls_certificates: vec![certificate], ..config() };
    assert!(
        half.problems()[0].contains("`tls_certificates` has 1 files and `tls_keys` 0"),
        "{:?}",
        half.problems()
    );
    let (plain, _upstream) = over(config()).await;
    plain.gateway.reload_certificates().unwrap();
    assert_eq!(get(plain.address(), "/http/x").await.text(), "one");
}
