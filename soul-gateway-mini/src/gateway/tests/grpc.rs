//! Calls of gRPC: through, and refused.

use std::{future::poll_fn, sync::Arc, time::Duration};

use h2::Reason;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use soul_client::wire::soul::DivideUpstream;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::task::AbortOnDropHandle;

use super::{
    super::GatewayConfig,
    http2::{Caller, whole},
    peers::{Upstream, Wire, nobody, within},
    setup::{Running, config, handle, service},
    upstream_http2::{Peer, read},
    upstream_tls::spoken,
};

/// A call of gRPC, with a message and trailers; gives status, body and the outcome, wherever it stands.
async fn call(caller: &Caller, path: &str) -> (StatusCode, String, HeaderMap) {
    let request = Request::post(format!("http://shop.example{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let mut sender = within(caller.send.clone().ready()).await.unwrap();
    let (answer, mut body) = sender.send_request(request, false).unwrap();
    body.send_data("\0\0\0\0\x05hello".into(), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "5".parse().unwrap());
    // A refusal may come before that.
    let _ = body.send_trailers(trailers);
    let (head, body, trailers) = whole(answer).await.unwrap();
    (head.status(), body, trailers.unwrap_or_else(|| head.headers().clone()))
}

#[tokio::test]
async fn a_call_of_grpc_passes_with_its_trailers() {
    let peer = Peer::start(|request, mut respond| async move {
        assert_eq!(request.headers()["te"], "trailers");
        assert_eq!(request.headers()["content-type"], "application/grpc");
        assert_eq!((request.method(), request.uri().path()), (&Method::POST, "/shop.Orders/Save"));
        let (body, trailers) = read(request.into_body()).await;
        assert_eq!(
            (&body[..], &trailers.unwrap()["x-sum"]),
            (&b"\0\0\0\0\x05hello"[..], &"5".parse().unwrap())
        );
        let head = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
        let mut stream = respond.send_response(head, false).unwrap();
        stream.send_data(body.into(), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        stream.send_trailers(trailers).unwrap();
    })
    .await;
    for protocol in ["h2c://", "grpc://"] {
        let running = Running::with(config(), &spoken(protocol, peer.address, 3000)).await;
        let caller = Caller::connect(running.address()).await;
        let (status, body, outcome) = call(&caller, "/http/shop.Orders/Save").await;
        assert_eq!(
            (status, &*body, &outcome["grpc-status"]),
            (StatusCode::OK, "\0\0\0\0\x05hello", &"0".parse().unwrap())
        );
    }
}

#[tokio::test]
async fn callers_of_grpc_are_told_what_failed_in_their_own_way() {
    let silent = Peer::start(|request, respond| async move {
        let _ = read(request.into_body()).await;
        std::future::pending::<()>().await;
        drop(respond);
    })
    .await;
    let plain = Upstream::named("one").await;
    let told = async |data, path| {
        let running = Running::with(config(), &data).await;
        let caller = Caller::connect(running.address()).await;
        let (status, body, outcome) = call(&caller, path).await;
        assert_eq!(
            (status, &*body, &outcome["content-type"]),
            (StatusCode::OK, "", &"application/grpc".parse().unwrap())
        );
        let failed = running.status().await;
        (
            outcome["grpc-status"].to_str().unwrap().to_owned(),
            outcome["grpc-message"].to_str().unwrap().to_owned(),
            failed,
        )
    };
    let (code, words, _) = told(spoken("h2c://", nobody().await, 3000), "/http/x").await;
    assert_eq!((&*code, &*words), ("14", "Service invocation exception, or no result is returned!"));
    let (code, words, _) = told(spoken("h2c://", silent.address, 300), "/http/x").await;
    assert_eq!((&*code, &*words), ("4", "Service call timeout!"));
    let (code, words, _) = told(service(&[plain.address], &handle("random", 0, 3000)), "/http/x").await;
    assert_eq!((&*code, &*words), ("12", "gRPC needs HTTP/2, which the service is not registered for"));
    assert_eq!(plain.seen().len(), 0);
    let (code, ..) = told(spoken("h2c://", silent.address, 300), "/unknown/x").await;
    assert_eq!(code, "12");
}

#[tokio::test]
async fn both_sides_of_a_call_go_on_at_the_same_time() {
    let peer = Peer::start(|request, mut respond| async move {
        let mut asked = request.into_body();
        let mut answer = respond.send_response(Response::new(()), false).unwrap();
        while let Some(Ok(message)) = asked.data().await {
            let _ = asked.flow_control().release_capacity(message.len());
            answer.send_data(message, false).unwrap();
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        answer.send_trailers(trailers).unwrap();
    })
    .await;
    let running = Running::with(config(), &spoken("grpc://", peer.address, 3000)).await;
    let caller = Caller::connect(running.address()).await;
    let request =
        Request::post("http://a/http/x").header("content-type", "application/grpc").body(()).unwrap();
    let mut sender = within(caller.send.clone().ready()).await.unwrap();
    let (answer, mut asked) = sender.send_request(request, false).unwrap();
    let mut answer = within(answer).await.unwrap().into_body();
    for i in 0..20 {
        let message = format!("message {i}");
        asked.send_data(message.clone().into(), false).unwrap();
        // The next one only after this one came back.
        assert_eq!(within(answer.data()).await.unwrap().unwrap(), message);
    }
    asked.send_data("".into(), true).unwrap();
    assert!(within(answer.data()).await.is_none());
    assert_eq!(within(answer.trailers()).await.unwrap().unwrap()["grpc-status"], "0");
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused_as_such() {
    let peer = Peer::start(|request, respond| async move {
        let _ = read(request.into_body()).await;
        drop(respond);
    })
    .await;
    let small = GatewayConfig { max_body_bytes: 4, ..config() };
    let running = Running::with(small, &spoken("grpc://", peer.address, 3000)).await;
    let caller = Caller::connect(running.address()).await;
    let (status, _, outcome) = call(&caller, "/http/x").await;
    assert_eq!((status, &outcome["grpc-status"]), (StatusCode::OK, &"8".parse().unwrap()));
}

#[tokio::test]
async fn the_time_of_a_caller_counts_as_that_of_the_rule_and_is_passed_on() {
    let (told, mut seen) = mpsc::unbounded_channel();
    let peer = Peer::start(move |request, mut respond| {
        let told = told.clone();
        async move {
            let timeout = request.headers()["grpc-timeout"].to_str().unwrap().to_owned();
            if request.uri().path() == "/begins" {
                let mut answer = respond.send_response(Response::new(()), false).unwrap();
                answer.send_data("\0\0\0\0\x02hi".into(), false).unwrap();
                let reset = poll_fn(|cx| answer.poll_reset(cx)).await;
                told.send((timeout, reset.unwrap())).unwrap();
            } else {
                let reset = poll_fn(|cx| respond.poll_reset(cx)).await;
                told.send((timeout, reset.unwrap())).unwrap();
            }
        }
    })
    .await;
    let ask = async |rule_ms, path: &str, timeout| {
        let running = Running::with(config(), &spoken("grpc://", peer.address, rule_ms)).await;
        let mut caller = Caller::connect(running.address()).await;
        let request = Request::post(format!("http://shop.example{path}"))
            .header("content-type", "application/grpc")
            .header("grpc-timeout", timeout)
            .body(())
            .unwrap();
        whole(caller.ask(request).await).await
    };
    for (rule_ms, timeout) in [(3_600_000, "300m"), (300, "50S"), (3_600_000, "0n")] {
        let (head, body, _) = ask(rule_ms, "/http/silent", timeout).await.unwrap();
        let outcome = (head.status(), &*body, head.headers()["grpc-status"].to_str().unwrap());
        assert_eq!(outcome, (StatusCode::OK, "", "4"), "{timeout}");
        // One that has no time may not get there at all.
        if timeout != "0n" {
            assert_eq!(within(seen.recv()).await, Some((timeout.to_owned(), Reason::CANCEL)));
        }
    }
    while seen.try_recv().is_ok() {}
    ask(3_600_000, "/http/begins", "300m").await.expect_err("an answer that has begun breaks off in time");
    let (timeout, reason) = within(seen.recv()).await.unwrap();
    assert_eq!((&*timeout, reason), ("300m", Reason::CANCEL));
}

#[tokio::test]
async fn who_gives_its_call_too_little_time_makes_no_upstream_suspect() {
    const RULE_MS: u32 = 3_600_000;

    // Whoever connects gets these bytes and nothing more: by none TLS waits for its handshake, by settings HTTP/2 for an answer.
    let mute = async |says: &'static [u8]| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (told, connections) = mpsc::unbounded_channel();
        let accepting = tokio::spawn(async move {
            let mut wires = Vec::new();
            loop {
                let mut wire = Wire::new(listener.accept().await.unwrap().0);
                let _ = told.send(());
                wire.send(says).await;
                wires.push(wire);
            }
        });
        (address, connections, AbortOnDropHandle::new(accepting))
    };
    let call = async |running: &Running, timeout| {
        let mut caller = Caller::connect(running.address()).await;
        let request = Request::put("http://shop.example/http/x")
            .header("content-type", "application/grpc")
            .header("grpc-timeout", timeout)
            .body(())
            .unwrap();
        let (head, ..) = whole(caller.ask(request).await).await.unwrap();
        let upstreams = running.status().await["config"]["selectors"][0]["upstreams"].clone();
        let upstreams = upstreams.as_array().unwrap();
        let suspect = upstreams.iter().any(|upstream| upstream["suspect"] == true);
        let failures = upstreams.iter().map(|upstream| upstream["failures"].as_u64().unwrap());
        (head.headers()["grpc-status"].to_str().unwrap().to_owned(), suspect, failures.sum::<u64>())
    };
    // The only one there is would never be passed over.
    let two = [mute(b"").await, mute(b"").await];
    let silent = {
        let mut data = spoken("https://", nobody().await, RULE_MS);
        let upstreams = [&two[0].0, &two[1].0].map(|address| DivideUpstream {
            protocol: Some("https://".to_owned()),
            ..DivideUpstream::registered(address.to_string())
        });
        Arc::make_mut(&mut data.selectors[0]).handle = Some(DivideUpstream::write_handle(&upstreams));
        data
    };
    let hour = Duration::from_secs(3600);
    let patient = || GatewayConfig { connect_timeout: hour, suspect_for: hour, ..config() };
    let blameless = ("4".to_owned(), false, 0);

    let running = Running::with(patient(), &silent).await;
    for _ in 0..3 {
        assert_eq!(call(&running, "200m").await, blameless);
    }
    let hasty = GatewayConfig { connect_timeout: Duration::from_millis(100), ..patient() };
    let running = Running::with(hasty, &silent).await;
    let blamed = call(&running, "50S").await;
    assert_eq!((blamed.1, blamed.2), (true, 2), "it is late by the gateway's own measure");

    let (address, connections, _accepting) = mute(b"\0\0\0\x04\0\0\0\0\0").await;
    let running = Running::with(patient(), &spoken("h2c://", address, RULE_MS)).await;
    for _ in 0..3 {
        assert_eq!(call(&running, "200m").await, blameless);
    }
    assert_eq!(connections.len(), 1, "and the connection is no less trusted");
    let running = Running::with(config(), &spoken("h2c://", address, 200)).await;
    assert_eq!(call(&running, "50S").await.2, 1, "the time of the rule is for the upstream to keep");
}
