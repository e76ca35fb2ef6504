//! When a call is repeated, where, and what it ends with.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::{Method, StatusCode};

use super::{
    orders,
    scripted::{Does, Scripted, nobody},
    until,
};
use crate::call::{
    Answer, AttemptError, BudgetSettings, CallErrorKind, CallOptions, Destination, Failed, LbClient, Methods,
    Retry, ServiceConfig, Statuses, Transport,
};

const MS: Duration = Duration::from_millis(1);

fn in_flight(client: &LbClient) -> u32 {
    client.balancer().snapshot().all().iter().map(|m| m.state().in_flight()).sum()
}

#[tokio::test]
async fn a_refused_call_goes_to_another_upstream() {
    let (dead, living) = (nobody().await, Scripted::doing(Does::ok("hello")).await);
    let client = orders(&[&dead, &living.address], |c| c);
    for (first, attempts) in [(&dead, 2), (&living.address, 1)] {
        let answer = client.get("/api").same_instance(first).send().await.unwrap();
        assert_eq!((answer.upstream_address(), answer.attempts()), (&*living.address, attempts));
        assert_eq!(answer.text().await.unwrap(), "hello");
    }
    assert_eq!(in_flight(&client), 0);
}

#[tokio::test]
async fn statuses_are_repeated_elsewhere_and_the_last_one_is_the_answer() {
    let (a, b) = (Scripted::doing(Does::status(503)).await, Scripted::doing(Does::status(502)).await);
    let client = orders(&[&a.address, &b.address], |c| c);
    let answer = client.get("/api").send().await.unwrap();
    assert!(matches!(answer.status().as_u16(), 502 | 503));
    assert_eq!((answer.attempts(), a.count(), b.count()), (2, 1, 1));

    // 500 is the application's own.
    let c = Scripted::doing(Does::status(500)).await;
    let client = orders(&[&c.address], |c| c.retries_same(3));
    assert_eq!(client.get("/api").send().await.unwrap().attempts(), 1);

    let client = orders(&[&c.address], |c| {
        c.retries_same(3).retries_next(0).retry_statuses(Statuses::only([StatusCode::INTERNAL_SERVER_ERROR]))
    });
    assert_eq!(client.get("/api").send().await.unwrap().attempts(), 4);
}

#[tokio::test]
async fn by_method_a_call_is_repeated_only_if_it_was_surely_not_sent() {
    // Nobody there: nothing was sent, so even a POST goes on.
    let (dead, living) = (nobody().await, Scripted::doing(Does::ok("saved")).await);
    let client = orders(&[&dead, &living.address], |c| c);
    let answer = client.post("/save").same_instance(&dead).body("order").send().await.unwrap();
    assert_eq!((answer.attempts(), answer.text().await.unwrap().as_str()), (2, "saved"));
    assert!(living.seen().iter().all(|request| request.ends_with("\r\n\r\norder")), "{:?}", living.seen());

    // The connection broke behind the request: it may have been acted on.
    for (method, times) in [
        (Method::GET, 2),
        (Method::HEAD, 2),
        (Method::OPTIONS, 2),
        (Method::TRACE, 2),
        (Method::PUT, 2),
        (Method::DELETE, 2),
        (Method::POST, 1),
        (Method::PATCH, 1),
    ] {
        let (a, b) = (Scripted::doing(Does::Close).await, Scripted::doing(Does::Close).await);
        let client = orders(&[&a.address, &b.address], |c| c);
        let error = client.request(method.clone(), "/save").send().await.unwrap_err();
        assert_eq!(a.count() + b.count(), times, "{method}");
        let kind = if times == 1 { CallErrorKind::NotRepeatable } else { CallErrorKind::AllTried };
        assert_eq!((error.kind(), error.may_have_been_sent()), (kind, true), "{method}: {}", error.chain());
        assert_eq!(error.situation().tried, times, "{method}");
    }

    // An answer of 503 to a POST is the answer, unless every method may be repeated.
    let a = Scripted::start(|n| if n == 0 { Does::status(503) } else { Does::ok("") }).await;
    let client = orders(&[&a.address], |c| c.retries_same(1).retries_next(0));
    assert_eq!(client.post("/save").send().await.unwrap().status(), 503);
    let a = Scripted::start(|n| if n == 0 { Does::status(503) } else { Does::ok("") }).await;
    let client = orders(&[&a.address], |c| c.retries_same(1).retries_next(0).retry_all_methods(true));
    assert_eq!(client.post("/save").send().await.unwrap().status(), 200);

    // As with Ribbon only GET.
    let (a, b) = (Scripted::doing(Does::Close).await, Scripted::doing(Does::Close).await);
    let get = Methods::only([Method::GET]);
    let client = orders(&[&a.address, &b.address], |c| c.retry_methods(get));
    client.put("/save").send().await.unwrap_err();
    assert_eq!(a.count() + b.count(), 1);
}

#[tokio::test]
async fn an_upstream_that_hangs_is_left_for_another() {
    let (hangs, living) = (Scripted::doing(Does::Hang).await, Scripted::doing(Does::ok("hello")).await);
    let client =
        orders(&[&hangs.address, &living.address], |c| c.read_timeout(20 * MS).connect_timeout(20 * MS));
    let answer = client.get("/api").same_instance(&hangs.address).send().await.unwrap();
    assert_eq!((answer.upstream_address(), answer.attempts()), (&*living.address, 2));
    assert_eq!((hangs.count(), living.count()), (1, 1));
    // It is charged with it.
    let snapshot = client.balancer().snapshot();
    let failed = |address: &str| {
        snapshot.all().iter().find(|m| m.upstream().address() == address).unwrap().state().failed()
    };
    assert_eq!((failed(&hangs.address), failed(&living.address)), (1, 0));
}

#[tokio::test]
async fn attempts_are_at_most_the_product_and_at_different_upstreams() {
    for (same, next) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (0, 3), (1, 3), (2, 5)] {
        let servers = [
            Scripted::doing(Does::Close).await,
            Scripted::doing(Does::Close).await,
            Scripted::doing(Does::Close).await,
            Scripted::doing(Does::Close).await,
        ];
        let addresses: Vec<_> = servers.iter().map(|s| s.address.as_str()).collect();
        let client = orders(&addresses, |c| c.retries_same(same).retries_next(next));
        let error = client.get("/api").send().await.unwrap_err();
        let attempts = (u64::from(same) + 1) * (u64::from(next) + 1);
        assert_eq!(error.situation().attempts, attempts, "{same} {next}");
        assert_eq!(servers.iter().map(Scripted::count).sum::<usize>() as u64, attempts);
        let different = servers.iter().filter(|s| s.count() > 0).count();
        assert_eq!(different, (next as usize + 1).min(4), "{same} {next}");
        assert_eq!(error.situation().tried, different);
        if next < 4 {
            assert!(servers.iter().all(|s| s.count() == 0 || s.count() == same as usize + 1));
        }
        assert_eq!(error.kind(), CallErrorKind::AllTried);
    }
}

#[tokio::test]
async fn a_tried_upstream_is_tried_again_only_if_that_is_wanted() {
    let only = Scripted::start(|n| if n == 0 { Does::Close } else { Does::ok("") }).await;
    let client = orders(&[&only.address], |c| c.tried_again(false));
    let error = client.get("/api").send().await.unwrap_err();
    assert_eq!((error.kind(), error.situation().attempts), (CallErrorKind::AllTried, 1));
    assert_eq!(client.get("/api").send().await.unwrap().attempts(), 1);

    let only = Scripted::start(|n| if n == 0 { Does::Close } else { Does::ok("") }).await;
    let client = orders(&[&only.address], |c| c);
    assert_eq!(client.get("/api").send().await.unwrap().attempts(), 2);
}

#[tokio::test]
async fn nobody_there_is_not_the_same_as_all_tried() {
    let client = orders(&[], |c| c);
    let error = client.get("/api").send().await.unwrap_err();
    assert!(error.is_no_instance() && !error.may_have_been_sent());
    assert_eq!(error.situation().known, 0);

    let dead = nobody().await;
    let client = orders(&[&dead], |c| c);
    let error = client.get("/api").send().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::AllTried);
    let situation = error.situation();
    assert_eq!((situation.known, situation.up, situation.tried, situation.attempts), (1, 1, 1, 2));
    assert!(situation.generation > 0 && situation.age.is_some(), "{situation:?}");
    let text = error.chain();
    assert!(
        text.contains("call `orders`: every attempt failed (1 known, 1 up, 1 tried in 2 attempts"),
        "{text}"
    );
    assert!(text.contains(&format!("`http://{dead}` cannot be connected to")), "{text}");

    client.membership().mark_down(&dead);
    let error = client.get("/api").send().await.unwrap_err();
    assert_eq!((error.kind(), error.situation().up), (CallErrorKind::NoInstance, 0));
}

#[tokio::test]
async fn a_stream_is_sent_once() {
    struct Stream;
    impl hyper::body::Body for Stream {
        type Data = bytes::Bytes;
        type Error = std::convert::Infallible;
        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<bytes::Bytes>, Self::Error>>> {
            std::task::Poll::Ready(None)
        }
    }
    let dead = nobody().await;
    let client = orders(&[&dead, &dead], |c| c);
    let error = client.put("/save").body(reqwest::Body::wrap(Stream)).send().await.unwrap_err();
    assert_eq!((error.kind(), error.situation().attempts), (CallErrorKind::BodyNotReplayable, 1));

    // It arrives, all the same.
    let living = Scripted::doing(Does::ok("")).await;
    let client = orders(&[&living.address], |c| c);
    client.put("/save").body(reqwest::Body::wrap(Stream)).send().await.unwrap();
    assert!(living.seen()[0].to_lowercase().contains("transfer-encoding: chunked"), "{:?}", living.seen());
}

#[tokio::test]
async fn without_budget_there_is_no_repeat() {
    let none = BudgetSettings { ratio: 0.0, min_per_second: 0, ..BudgetSettings::default() };
    let a = Scripted::doing(Does::Close).await;
    let client = orders(&[&a.address], |c| c.budget(Some(none)).retries_same(5));
    let error = client.get("/api").send().await.unwrap_err();
    assert_eq!((error.kind(), a.count()), (CallErrorKind::BudgetExhausted, 1));

    let a = Scripted::doing(Does::status(503)).await;
    let client = orders(&[&a.address], |c| c.budget(Some(none)).retries_same(5));
    assert_eq!((client.get("/api").send().await.unwrap().status().as_u16(), a.count()), (503, 1));
}

/// Fails every request, without a socket.
struct Failing(Failed);

impl Transport for Failing {
    type Request = ();
    type Response = ();

    async fn send(&self, (): (), _: Destination<'_>) -> Result<(), AttemptError> {
        Err(AttemptError::new(self.0, "by design"))
    }

    fn replay(&self, (): &()) -> Option<()> {
        Some(())
    }

    fn answer(&self, (): &()) -> Answer {
        Answer::default()
    }
}

#[tokio::test(start_paused = true)]
async fn all_calls_to_a_service_share_a_budget_that_fills_again() {
    let budget = BudgetSettings { ratio: 0.2, min_per_second: 1, window: Duration::from_secs(10) };
    let client = orders(&["a:1", "b:1", "c:1"], |c| c.budget(Some(budget)).retries_next(2));
    let call = |client: LbClient| async move {
        let error = client.execute_with(&Failing(Failed::Broken), (), &CallOptions::new()).await.unwrap_err();
        (error.kind(), error.situation().attempts)
    };
    let mut kinds = BTreeMap::new();
    let mut attempts = 0;
    let mut calls = tokio::task::JoinSet::new();
    (0..100).for_each(|_| drop(calls.spawn(call(client.clone()))));
    while let Some(ended) = calls.join_next().await {
        let (kind, made) = ended.unwrap();
        *kinds.entry(format!("{kind:?}")).or_insert(0) += 1;
        attempts += made;
    }
    // A fifth of a hundred, and ten for ten seconds.
    assert_eq!(attempts, 100 + 20 + 10);
    assert_eq!(kinds.keys().collect::<Vec<_>>(), ["AllTried", "BudgetExhausted"], "{kinds:?}");

    tokio::time::advance(Duration::from_secs(11)).await;
    assert_eq!(call(client.clone()).await, (CallErrorKind::AllTried, 3));
}

#[tokio::test(start_paused = true)]
async fn pauses_are_within_the_back_off_and_the_deadline_bounds_them() {
    let client = orders(&["a:1"], |c| {
        c.retry(Retry { same: 1000, next: 0, ..Retry::default() })
            .backoff(100 * MS, 100 * MS)
            .total_timeout(Duration::from_secs(1))
            .budget(None)
    });
    let started = tokio::time::Instant::now();
    let error = client.execute_with(&Failing(Failed::Refused), (), &CallOptions::new()).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::DeadlineExceeded);
    // The clock is paused: only pauses take time. It stops as soon as the next pause would end too late.
    let took = started.elapsed();
    assert!(took <= Duration::from_secs(1) && took >= 900 * MS, "{took:?}");
    // Each is 50 ms in the middle.
    assert!((10..=60).contains(&error.situation().attempts), "{error}");
}

#[tokio::test]
async fn the_time_of_the_whole_call_bounds_all_attempts() {
    let (a, b) = (Scripted::doing(Does::Hang).await, Scripted::doing(Does::Hang).await);
    let client = orders(&[&a.address, &b.address], |c| {
        c.retries_next(1000).budget(None).connect_timeout(MS).read_timeout(60 * MS).total_timeout(200 * MS)
    });
    let error = client.get("/api").send().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::DeadlineExceeded);
    assert!(error.is_timeout());
    assert!((1..=4).contains(&error.situation().attempts), "{error}");
}

#[tokio::test]
async fn retry_after_is_respected() {
    // Another upstream is asked at once.
    let spared = Scripted::doing(Does::Answer(503, "retry-after: 60\r\n", String::new())).await;
    let living = Scripted::doing(Does::ok("hello")).await;
    let client = orders(&[&spared.address, &living.address], |c| c.retries_same(3));
    let answer = client.get("/api").same_instance(&spared.address).send().await.unwrap();
    assert_eq!((answer.upstream_address(), answer.attempts()), (&*living.address, 2));
    assert_eq!(spared.count(), 1, "one that asks to be spared is not asked again by the same call");

    // There is no other, and a minute is too long: the answer as it is.
    let client = orders(&[&spared.address], |c| c.retries_same(3).retries_next(3));
    let answer = client.get("/api").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.attempts(), spared.count()), (503, 1, 2));

    // A time that can be waited for is.
    let again = Scripted::start(|n| {
        if n == 0 { Does::Answer(503, "retry-after: 1\r\n", String::new()) } else { Does::ok("hello") }
    })
    .await;
    let client = orders(&[&again.address], |c| c);
    let started = std::time::Instant::now();
    assert_eq!(client.get("/api").send().await.unwrap().attempts(), 2);
    assert!(started.elapsed() >= Duration::from_secs(1));

    // 429 is not repeated unless set, but raises the cost.
    let busy = Scripted::doing(Does::Answer(429, "retry-after: 60\r\n", String::new())).await;
    let client = orders(&[&busy.address], |c| c);
    assert_eq!(client.get("/api").send().await.unwrap().attempts(), 1);
    assert_eq!(client.balancer().snapshot().all()[0].state().failed(), 0);
}

#[tokio::test]
async fn half_an_answer_is_an_error_of_its_reader_and_not_repeated() {
    for (does, is_timeout) in [(Does::Half, false), (Does::Stall, true)] {
        let a = Scripted::doing(does).await;
        let client = orders(&[&a.address, &a.address], |c| c.read_timeout(60 * MS).connect_timeout(MS));
        let answer = client.get("/api").read_timeout(if is_timeout { 60 * MS } else { 20_000 * MS }).send();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), 200);
        let error = answer.text().await.unwrap_err();
        assert_eq!((error.kind(), error.is_timeout(), a.count()), (CallErrorKind::Body, is_timeout, 1));
        assert_eq!(in_flight(&client), 0);
    }
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing_in_flight() {
    let hangs = Scripted::doing(Does::Hang).await;
    let client = orders(&[&hangs.address], |c| c);
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.get("/api").send().await })
        })
        .collect();
    until("twenty in flight", || in_flight(&client) == 20 && hangs.count() == 20).await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    until("none in flight", || in_flight(&client) == 0).await;
    let snapshot = client.balancer().snapshot();
    let state = snapshot.all()[0].state();
    assert_eq!((state.given_up(), state.failed()), (20, 0), "nobody is charged with it");

    // At whichever moment it is dropped.
    for polls in 0..6 {
        let mut call = Box::pin(client.get("/api").send());
        for _ in 0..polls {
            let waker = std::task::Waker::noop();
            let _ = call.as_mut().poll(&mut std::task::Context::from_waker(waker));
            tokio::task::yield_now().await;
        }
        drop(call);
        assert_eq!(in_flight(&client), 0, "after {polls} polls");
    }
}

#[tokio::test]
async fn a_wrong_request_is_nobodys_fault_and_not_repeated() {
    let a = Scripted::doing(Does::ok("")).await;
    let client = orders(&[&a.address], |c| c);
    for (request, kind) in [
        (client.get("lb://stock/api"), CallErrorKind::InvalidUri),
        (client.get("api"), CallErrorKind::InvalidUri),
        (client.get("/a b"), CallErrorKind::InvalidRequest),
        (client.get("/api").header("a b", "c"), CallErrorKind::InvalidRequest),
        (client.get("/api").header("a", "b\n"), CallErrorKind::InvalidRequest),
        (client.get("/api").config(&ServiceConfig::ribbon()), CallErrorKind::Config),
    ] {
        let error = request.send().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{}", error.chain());
    }
    assert_eq!(a.count(), 0);
    assert_eq!(client.balancer().snapshot().all()[0].state().failed(), 0);
}

#[tokio::test]
async fn failures_eject_and_the_call_does_not_notice() {
    let (bad, good) = (Scripted::doing(Does::status(502)).await, Scripted::doing(Does::ok("")).await);
    let client = orders(&[&bad.address, &good.address], |c| {
        c.outliers(Some(crate::balance::OutlierDetector::default())).panic_threshold(0.5)
    });
    for _ in 0..40 {
        assert_eq!(client.get("/api").send().await.unwrap().status(), 200);
    }
    assert_eq!(bad.count(), 5, "left out after five in a row");
    let shared = Arc::clone(client.balancer());
    assert_eq!(shared.snapshot().all().iter().filter(|m| m.state().ejections() > 0).count(), 1);
}
