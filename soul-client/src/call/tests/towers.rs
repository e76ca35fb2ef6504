//! The layer of tower, around the client of hyper-util.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tower::{Layer, Service, ServiceExt};

use super::{
    orders,
    scripted::{Does, Scripted, nobody},
    until,
};
use crate::call::{ByClone, CallErrorKind, CallOptions, HostHeader, LbLayer, LbService, ServedBy};

type Hyper<B> = Client<HttpConnector, B>;

fn hyper<B: ::hyper::body::Body<Data: Send> + Send>() -> Hyper<B> {
    Client::builder(TokioExecutor::new()).build_http()
}

fn full(method: &str, uri: &str, body: &'static str) -> http::Request<Full<Bytes>> {
    http::Request::builder().method(method).uri(uri).body(Full::from(body)).unwrap()
}

#[tokio::test]
async fn hypers_client_is_balanced_and_repeated() {
    let (dead, living) = (nobody().await, Scripted::doing(Does::ok("hello")).await);
    let client = orders(&[&dead, &living.address], |c| c);
    let service: LbService<Hyper<Full<Bytes>>, _> = LbLayer::new(&client).replay(ByClone).layer(hyper());
    for (method, uri) in [("GET", "/api?x"), ("POST", "lb://orders/api?x"), ("PUT", "http://orders/api?x")] {
        for (first, attempts) in [(&dead, 2), (&living.address, 1)] {
            let mut request = full(method, uri, "order");
            request.extensions_mut().insert(CallOptions::new().same_instance(first));
            let answer = service.clone().oneshot(request).await.unwrap();
            let by = answer.extensions().get::<ServedBy>().unwrap().clone();
            assert_eq!((&by.upstream, by.attempts), (&living.address, attempts));
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "hello");
        }
        let seen = living.seen();
        let last = seen.last().unwrap();
        assert!(
            last.starts_with(&format!("{method} /api?x HTTP/1.1\r\n")) && last.ends_with("order"),
            "{last}"
        );
        assert!(last.contains(&format!("host: {}\r\n", living.address)), "{last}");
    }
}

#[tokio::test]
async fn only_an_empty_body_is_sent_again_unless_said_otherwise() {
    let (a, b) = (Scripted::doing(Does::Close).await, Scripted::doing(Does::Close).await);
    let client = orders(&[&a.address, &b.address], |c| c);
    let service = LbLayer::new(&client).layer(hyper::<Full<Bytes>>());
    let error = service.clone().oneshot(full("PUT", "/", "order")).await.unwrap_err();
    assert_eq!((error.kind(), a.count() + b.count()), (CallErrorKind::BodyNotReplayable, 1));
    let error = service.oneshot(full("PUT", "/", "")).await.unwrap_err();
    assert_eq!((error.kind(), a.count() + b.count()), (CallErrorKind::AllTried, 3));

    let service = LbLayer::new(&client).layer(hyper::<Empty<Bytes>>());
    let error = service.oneshot(http::Request::new(Empty::new())).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::AllTried);
}

#[tokio::test]
async fn options_and_host_come_with_the_request() {
    let (a, b) = (Scripted::doing(Does::ok("")).await, Scripted::doing(Does::ok("")).await);
    let client = orders(&[&a.address, &b.address], |c| c.host_header(HostHeader::Service));
    let mut service = LbLayer::new(&client).layer(hyper::<Full<Bytes>>());
    for _ in 0..4 {
        let mut request = full("GET", "/", "");
        request.extensions_mut().insert(CallOptions::new().same_instance(&*b.address));
        let answer = service.ready().await.unwrap().call(request).await.unwrap();
        assert_eq!(answer.extensions().get::<ServedBy>().unwrap().upstream, b.address);
    }
    assert_eq!((a.count(), b.count()), (0, 4));
    assert!(b.seen()[0].contains("host: orders\r\n"), "{:?}", b.seen());
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing_in_flight_there_either() {
    let hangs = Scripted::doing(Does::Hang).await;
    let client = orders(&[&hangs.address], |c| c);
    let service = LbLayer::new(&client).layer(hyper::<Full<Bytes>>());
    let in_flight = || client.balancer().snapshot().all().iter().map(|m| m.state().in_flight()).sum::<u32>();
    let calls: Vec<_> = (0..8).map(|_| tokio::spawn(service.clone().oneshot(full("GET", "/", "")))).collect();
    until("eight in flight", || in_flight() == 8).await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    until("none in flight", || in_flight() == 0).await;
}
