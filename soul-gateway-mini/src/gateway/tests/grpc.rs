//! Calls of gRPC: through, and refused.

use std::future::poll_fn;

use h2::Reason;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::sync::mpsc;

use super::{
    super::GatewayConfig,
    http2::{Caller, whole},
    peers::{Upstream, nobody, within},
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
