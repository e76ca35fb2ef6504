//! Callers behind others.

use std::{sync::Arc, time::Duration};

use soul_client::wire::soul::ConditionData;

use super::{
    super::GatewayConfig,
    peers::{Upstream, Wire, ask, get},
    setup::{Running, config, handle, service},
};

fn from(address: &str) -> String {
    format!("GET /http/x HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6, {address}\r\n\r\n")
}

#[tokio::test]
async fn a_caller_behind_a_trusted_proxy_is_the_same_for_conditions_log_and_upstream() {
    let upstream = Upstream::named("one").await;
    let mut data = service(&[upstream.address], &handle("hash", 0, 3000));
    let text = |text: &str| Some(text.to_owned());
    Arc::make_mut(&mut data.rules[0]).condition_data_list = Some(vec![Some(ConditionData {
        param_type: text("ip"),
        operator: text("="),
        param_name: text("/"),
        param_value: text("203.0.113.7"),
    })]);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let trusting = GatewayConfig {
        trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
        access_log: Some(log.clone()),
        ..config()
    };
    let running = Running::with(trusting, &data).await;
    assert_eq!(ask(running.address(), from("203.0.113.7")).await.status(), 200);
    assert_eq!(upstream.last().values("x-forwarded-for"), ["6.6.6.6, 203.0.113.7, 127.0.0.1"]);
    assert_eq!(ask(running.address(), from("203.0.113.8")).await.status(), 404);
    assert_eq!(get(running.address(), "/http/x").await.status(), 404);
    super::peers::within(running.gateway.shutdown()).await;
    let peers: Vec<String> = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["peer"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(peers, ["203.0.113.7", "203.0.113.8", "127.0.0.1"]);

    let strange = GatewayConfig { trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()], ..config() };
    let running = Running::with(strange, &data).await;
    assert_eq!(ask(running.address(), from("203.0.113.7")).await.status(), 404, "nobody trusts this one");
}

#[tokio::test]
async fn the_proxy_protocol_says_who_calls_and_must_be_spoken_where_it_is_expected() {
    let upstream = Upstream::named("one").await;
    let config =
        GatewayConfig { proxy_protocol: true, header_read_timeout: Duration::from_millis(300), ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("PROXY TCP4 203.0.113.7 127.0.0.1 1234 80\r\n").await;
    for _ in 0..2 {
        wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(wire.response_to("GET").await.text(), "one");
        assert_eq!(upstream.last().values("x-forwarded-for"), ["203.0.113.7"]);
    }
    let mut wire = Wire::connect(running.address()).await;
    let address = [203, 0, 113, 9, 127, 0, 0, 1, 0, 1, 0, 80];
    wire.send([&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"[..], &address].concat()).await;
    wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(wire.response_to("GET").await.text(), "one");
    assert_eq!(upstream.last().values("x-forwarded-for"), ["203.0.113.9"]);

    for other in ["GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n", "", "PROXY TCP4 "] {
        let mut wire = Wire::connect(running.address()).await;
        wire.send(other).await;
        assert!(wire.is_closed().await, "{other:?}");
    }
    assert_eq!(upstream.seen().len(), 3);
}

/// Connects from an address of this machine.
#[cfg(target_os = "linux")]
async fn connect_from(address: std::net::IpAddr, gateway: std::net::SocketAddr) -> Wire {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((address, 0).into()).unwrap();
    Wire::new(super::peers::within(socket.connect(gateway)).await.unwrap())
}

/// Everything that goes by the caller's address goes by the same one, whoever says it: the connection, a trusted proxy or
/// the PROXY protocol. Which upstream `hash` takes, which rule a condition on `ip` gives, what the upstream and the log
/// are told.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn hash_conditions_log_and_upstream_agree_on_one_address_however_it_is_known() {
    use super::setup::{rule, uri};

    const PROXY: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 200));
    let upstreams =
        [Upstream::named("one").await, Upstream::named("two").await, Upstream::named("three").await];
    let addresses = upstreams.each_ref().map(|upstream| upstream.address);
    let mut data = service(&addresses, &handle("hash", 0, 3000));
    let mut seven = rule("divide", "/http", "/http/**", &handle("hash", 0, 3000));
    let text = |text: &str| Some(text.to_owned());
    let from_seven = ConditionData {
        param_type: text("ip"),
        operator: text("="),
        param_name: text("/"),
        param_value: text("127.0.0.7"),
    };
    let changed = Arc::make_mut(&mut seven);
    (changed.id, changed.name, changed.sort) = (text("seven"), text("seven"), Some(0));
    changed.condition_data_list = Some(vec![Some(uri("/http/**")), Some(from_seven)]);
    data.rules.push(seven);

    let folder = tempfile::tempdir().unwrap();
    let log = |name: &str| folder.path().join(name);
    let told = |name: &str| GatewayConfig {
        trusted_proxies: vec!["127.0.0.200".parse().unwrap()],
        access_log: Some(log(name)),
        ..config()
    };
    let plain = Running::with(told("plain"), &data).await;
    let proxy = Running::with(GatewayConfig { proxy_protocol: true, ..told("proxy") }, &data).await;
    let mut expected = Vec::new();
    for last in 2..14 {
        let caller = std::net::IpAddr::from([127, 0, 0, last]);
        let ask = |line: String| format!("GET /http/x HTTP/1.1\r\nHost: a\r\n{line}\r\n");
        let seen = |name: &str| {
            let upstream = upstreams.iter().zip(["one", "two", "three"]).find(|(_, called)| *called == name);
            upstream.unwrap().0.last().values("x-forwarded-for")[0].to_owned()
        };
        let mut wire = connect_from(caller, plain.address()).await;
        wire.send(ask(String::new())).await;
        let direct = wire.response_to("GET").await.text();
        assert_eq!(seen(&direct), caller.to_string());

        let mut wire = connect_from(PROXY, plain.address()).await;
        wire.send(ask(format!("X-Forwarded-For: 6.6.6.6, {caller}\r\n"))).await;
        assert_eq!(wire.response_to("GET").await.text(), direct, "by a trusted proxy: {caller}");
        assert_eq!(seen(&direct), format!("6.6.6.6, {caller}, {PROXY}"));

        let mut wire = Wire::connect(proxy.address()).await;
        wire.send(format!("PROXY TCP4 {caller} 127.0.0.1 1 2\r\n{}", ask(String::new()))).await;
        assert_eq!(wire.response_to("GET").await.text(), direct, "by the PROXY protocol: {caller}");
        assert_eq!(seen(&direct), caller.to_string());

        // Both: a trusted proxy of which a load balancer speaks.
        let mut wire = Wire::connect(proxy.address()).await;
        wire.send(format!(
            "PROXY TCP4 {PROXY} 127.0.0.1 1 2\r\n{}",
            ask(format!("X-Forwarded-For: {caller}\r\n"))
        ))
        .await;
        assert_eq!(wire.response_to("GET").await.text(), direct, "by both: {caller}");
        let rule = if last == 7 { "seven" } else { "/http/**" };
        expected.push((caller.to_string(), rule.to_owned()));
    }
    super::peers::within(plain.gateway.shutdown()).await;
    super::peers::within(proxy.gateway.shutdown()).await;
    for name in ["plain", "proxy"] {
        let lines = std::fs::read_to_string(log(name)).unwrap();
        let logged: Vec<_> = lines
            .lines()
            .map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                (line["peer"].as_str().unwrap().to_owned(), line["rule"].as_str().unwrap().to_owned())
            })
            .collect();
        let twice: Vec<_> = expected.iter().flat_map(|entry| [entry.clone(), entry.clone()]).collect();
        assert_eq!(logged, twice, "{name}");
    }
    let busy = upstreams.iter().filter(|upstream| !upstream.seen().is_empty()).count();
    assert!(busy > 1, "the addresses tell nothing if one upstream takes all");
}

#[tokio::test]
async fn what_a_load_balancer_says_may_come_in_pieces_and_must_be_whole() {
    let upstream = Upstream::named("one").await;
    let config = GatewayConfig { proxy_protocol: true, ..config() };
    let running = Running::with(config, &service(&[upstream.address], &handle("random", 0, 3000))).await;
    let request = b"GET /http/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let version_2 = |command: u8, family: u8, rest: &[u8]| {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[0x20 | command, family], &length, rest].concat()
    };
    let tcp4 = [203, 0, 113, 9, 127, 0, 0, 1, 0, 1, 0, 80];
    // The name the caller asked for, and a checksum nobody checks.
    let with_more = [&tcp4[..], &[2, 0, 4], b"shop", &[3, 0, 4, 1, 2, 3, 4]].concat();
    for (start, caller) in [
        (b"PROXY TCP4 203.0.113.7 127.0.0.1 1234 80\r\n".to_vec(), "203.0.113.7"),
        (b"PROXY TCP6 2001:db8::7 ::1 1234 80\r\n".to_vec(), "2001:db8::7"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
        (version_2(1, 0x11, &tcp4), "203.0.113.9"),
        (version_2(1, 0x11, &with_more), "203.0.113.9"),
        (version_2(0, 0x11, &tcp4), "127.0.0.1"),
        (version_2(0, 0, &[]), "127.0.0.1"),
        (version_2(1, 0, &[1, 2, 3]), "127.0.0.1"),
        (version_2(1, 0x31, &[0; 216]), "127.0.0.1"),
    ] {
        let mut wire = Wire::connect(running.address()).await;
        wire.stream.set_nodelay(true).unwrap();
        for byte in start.iter().chain(request) {
            wire.send([*byte]).await;
            tokio::task::yield_now().await;
        }
        assert_eq!(wire.response_to("GET").await.text(), "one", "{start:?}");
        assert_eq!(upstream.last().values("x-forwarded-for"), [caller], "{start:?}");
    }
    let asked = upstream.seen().len();
    for start in [
        b"PROXY TCP4 203.0.113.7 127.0.0.1 1234\r\n".to_vec(),
        b"PROXY TCP4 203.0.113.7 127.0.0.1 1234 80\n".to_vec(),
        b"PROXY TCP5 203.0.113.7 127.0.0.1 1234 80\r\n".to_vec(),
        b"PROXY TCP4 203.0.113.777 127.0.0.1 1234 80\r\n".to_vec(),
        b"PROXY TCP4 203.0.113.7 nobody 1234 80\r\n".to_vec(),
        b"PROXY TCP4 203.0.113.7 ::1 1234 80\r\n".to_vec(),
        b"PROXY TCP4 203.0.113.7 127.0.0.1 +1 80\r\n".to_vec(),
        b"PROXY \xff\r\n0123456789".to_vec(),
        version_2(1, 0x11, &tcp4[..11]),
        version_2(1, 0x21, &tcp4),
        version_2(2, 0x11, &tcp4),
        version_2(0x10, 0x11, &tcp4),
        version_2(1, 0x11, &[0; 5000]),
    ] {
        let mut wire = Wire::connect(running.address()).await;
        wire.send([&start[..], request].concat()).await;
        assert!(wire.is_closed().await, "{start:?}");
    }
    assert_eq!(upstream.seen().len(), asked);
}
