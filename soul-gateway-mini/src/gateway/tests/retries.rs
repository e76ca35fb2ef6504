//! Who sees a request again, and who must not.

use std::time::Duration;

use soul_client::balance::Way;

use super::{
    super::GatewayConfig,
    peers::{Reply, Upstream, Wire, ask, eventually, get, nobody, ok},
    setup::{Running, config, handle, service},
};

const GET: &str = "GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n";
const POST: &str = "POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
const PUT: &str = "PUT /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";

/// One that reads a request and closes without an answer.
async fn broken() -> Upstream {
    Upstream::start(|_| Reply::Last(Vec::new())).await
}

#[tokio::test]
async fn a_dead_upstream_costs_no_request_not_even_a_post() {
    let (alive, dead) = (Upstream::named("alive").await, nobody().await);
    for balance in Way::NAMES {
        let config = GatewayConfig { suspect_for: Duration::ZERO, ..config() };
        let running =
            Running::with(config, &service(&[dead, alive.address], &handle(balance, 0, 3000))).await;
        let before = alive.seen().len();
        for request in [POST, PUT, GET].iter().cycle().take(30) {
            let answer = ask(running.address(), request).await;
            assert_eq!((answer.status(), answer.text().as_str()), (200, "alive"), "{balance}");
        }
        assert_eq!(alive.seen().len() - before, 30, "each of them came once");
    }
}

#[tokio::test]
async fn a_dead_upstream_is_passed_over_for_a_while() {
    let (alive, dead) = (Upstream::named("alive").await, nobody().await);
    let config = GatewayConfig { suspect_for: Duration::from_secs(3600), ..config() };
    let running =
        Running::with(config, &service(&[dead, alive.address], &handle("roundRobin", 0, 3000))).await;
    for _ in 0..20 {
        assert_eq!(get(running.address(), "/http/x").await.status(), 200);
    }
    let status = running.status().await;
    let upstream = &status["config"]["selectors"][0]["upstreams"][0];
    assert_eq!((&upstream["attempts"], &upstream["suspect"]), (&1.into(), &true.into()), "{status}");

    // It is still asked when nobody else is left.
    alive.stop().await;
    let answer = get(running.address(), "/http/x").await;
    assert_eq!(answer.status(), 502);
    let status = running.status().await;
    assert_eq!(status["config"]["selectors"][0]["upstreams"][0]["attempts"], 2, "{status}");
}

#[tokio::test]
async fn an_upstream_that_was_passed_over_comes_back_by_one_request() {
    let (alive, dead) = (Upstream::named("alive").await, nobody().await);
    for balance in ["roundRobin", "random", "leastActive"] {
        let config = GatewayConfig { suspect_for: Duration::from_millis(50), ..config() };
        let running =
            Running::with(config, &service(&[dead, alive.address], &handle(balance, 0, 3000))).await;
        let status = async || running.status().await["config"]["selectors"][0]["upstreams"][0].clone();
        eventually("a request found it dead", async || {
            assert_eq!(get(running.address(), "/http/x").await.status(), 200);
            status().await["failures"] != 0
        })
        .await;
        let back = Upstream::start_at(dead, |_| ok("back")).await;
        eventually("it serves again", async || get(running.address(), "/http/x").await.text() == "back")
            .await;
        assert_eq!(status().await["suspect"], false, "{balance}");
        back.stop().await;
    }
}

#[tokio::test]
async fn a_rule_may_choose_by_what_its_upstreams_are_busy_with() {
    for balance in ["leastActive", "leastRequest", "BestAvailableRule"] {
        let (stuck, fine) = (Upstream::start(|_| Reply::Hang).await, Upstream::named("fine").await);
        let data = service(&[stuck.address, fine.address], &handle(balance, 0, 60_000));
        let running = Running::start(&data).await;
        let address = running.address();
        // Whoever meets the one that never answers waits for it; everybody else is served.
        let waiting = tokio::spawn(async move {
            loop {
                ask(address, GET).await;
            }
        });
        eventually("one request waits", async || stuck.seen().len() == 1).await;
        let in_flight = async || {
            let upstreams = running.status().await["config"]["selectors"][0]["upstreams"].clone();
            (upstreams[0]["inFlight"].clone(), upstreams[1]["inFlight"].clone())
        };
        for _ in 0..5 {
            // A request is over for the gateway a moment after it is for its caller.
            eventually("one is busy", async || in_flight().await == (1.into(), 0.into())).await;
            assert_eq!(ask(address, GET).await.text(), "fine", "{balance}");
        }
        assert_eq!(stuck.seen().len(), 1, "{balance}");
        waiting.abort();
    }
}

#[tokio::test]
async fn without_failover_a_dead_upstream_fails_its_requests_as_in_soul() {
    let (alive, dead) = (Upstream::named("alive").await, nobody().await);
    let config = GatewayConfig { failover_limit: 0, suspect_for: Duration::ZERO, ..config() };
    let running =
        Running::with(config, &service(&[dead, alive.address], &handle("roundRobin", 0, 3000))).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(get(running.address(), "/http/x").await.status());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 502, 502]);
}

#[tokio::test]
async fn a_post_reaches_one_upstream_once_whatever_becomes_of_it() {
    let broken = broken().await;
    let fine = Upstream::named("fine").await;
    let running =
        Running::start(&service(&[broken.address, fine.address], &handle("roundRobin", 3, 3000))).await;
    let mut statuses = Vec::new();
    for request in [POST; 4] {
        let answer = ask(running.address(), request).await;
        statuses.push(answer.status());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 502, 502]);
    assert_eq!((broken.seen().len(), fine.seen().len()), (2, 2));
}

#[tokio::test]
async fn a_post_is_not_repeated_after_a_timeout() {
    let slow = Upstream::start(|_| Reply::Hang).await;
    let fine = Upstream::named("fine").await;
    let running =
        Running::start(&service(&[slow.address, fine.address], &handle("roundRobin", 5, 400))).await;
    let mut statuses =
        [ask(running.address(), POST).await.status(), ask(running.address(), POST).await.status()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 504]);
    assert_eq!((slow.seen().len(), fine.seen().len()), (1, 1));
}

#[tokio::test]
async fn a_get_goes_to_another_upstream_as_often_as_its_rule_says() {
    let (first, second, fine) = (broken().await, broken().await, Upstream::named("fine").await);
    let addresses = [first.address, second.address, fine.address];
    let none = Running::start(&service(&addresses, &handle("roundRobin", 0, 3000))).await;
    let answers = [get(none.address(), "/http/x").await, get(none.address(), "/http/x").await];
    assert!(answers.iter().any(|a| a.status() == 502), "without retries a failure shows");

    let two = Running::start(&service(&addresses, &handle("roundRobin", 2, 3000))).await;
    for _ in 0..6 {
        assert_eq!(get(two.address(), "/http/x").await.text(), "fine");
    }
    let slow = Upstream::start(|_| Reply::Hang).await;
    let late = Running::start(&service(&[slow.address, fine.address], &handle("roundRobin", 1, 400))).await;
    for _ in 0..2 {
        assert_eq!(get(late.address(), "/http/x").await.text(), "fine", "also after a timeout");
    }
}

#[tokio::test]
async fn nobody_is_asked_twice_by_retries() {
    let broken = broken().await;
    let running = Running::start(&service(&[broken.address], &handle("random", 5, 3000))).await;
    let answer = get(running.address(), "/http/x").await;
    assert_eq!(answer.status(), 502);
    assert!(answer.text().contains(r#""code":-103"#), "{answer:?}");
    assert_eq!(broken.seen().len(), 1);
}

#[tokio::test]
async fn an_upstreams_own_errors_pass_and_are_not_retried() {
    let upstream =
        Upstream::start(|_| Reply::Bytes(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy".to_vec()))
            .await;
    let other = Upstream::named("other").await;
    let running =
        Running::start(&service(&[upstream.address, other.address], &handle("roundRobin", 3, 3000))).await;
    let mut texts =
        [get(running.address(), "/http/x").await.text(), get(running.address(), "/http/x").await.text()];
    texts.sort_unstable();
    assert_eq!(texts, ["busy", "other"]);
}

/// Answers the first request of a connection and closes it at the second, as one does that took it for idle.
async fn forgetful() -> Upstream {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    Upstream::start(move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        1 => Reply::Last(Vec::new()),
        _ => ok("here"),
    })
    .await
}

#[tokio::test]
async fn a_connection_that_was_just_closed_does_not_show_to_a_get() {
    let upstream = forgetful().await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let mut wire = Wire::connect(running.address()).await;
    for _ in 0..3 {
        wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(wire.response_to("GET").await.text(), "here");
    }
    assert_eq!((upstream.connections(), upstream.seen().len()), (2, 4));

    let upstream = forgetful().await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 3, 3000))).await;
    assert_eq!(ask(running.address(), POST).await.status(), 200);
    assert_eq!(ask(running.address(), POST).await.status(), 502, "a POST may have been done");
    assert_eq!(upstream.seen().len(), 2);
}

#[tokio::test]
async fn an_upstream_that_goes_away_while_it_is_asked_does_not_show_to_a_get() {
    // As one that is killed: what it has breaks off, and what it still takes does too.
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let dying = Upstream::start(move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => ok("dying"),
        _ => Reply::Last(Vec::new()),
    })
    .await;
    let fine = Upstream::named("fine").await;
    let addresses = [dying.address, fine.address];
    let running = Running::start(&service(&addresses, &handle("roundRobin", 0, 3000))).await;
    for _ in 0..10 {
        assert_eq!(get(running.address(), "/http/x").await.status(), 200);
        if dying.seen().len() == 3 {
            break;
        }
    }
    assert_eq!((dying.seen().len(), dying.connections()), (3, 2), "the second time on a new connection");
}

#[tokio::test]
async fn one_other_is_asked_when_an_upstream_goes_away_whatever_retry_says() {
    for (limit, retry, fine_answers) in [(3, 0, true), (1, 0, true), (0, 0, false), (0, 1, true)] {
        let (dying, fine) = (broken().await, Upstream::named("fine").await);
        let config = GatewayConfig { failover_limit: limit, suspect_for: Duration::ZERO, ..config() };
        let data = service(&[dying.address, fine.address], &handle("roundRobin", retry, 3000));
        let running = Running::with(config, &data).await;
        for request in [GET, PUT, GET, PUT] {
            let before = dying.seen().len();
            let answer = ask(running.address(), request).await;
            let fails = !fine_answers && dying.seen().len() > before;
            assert_eq!(answer.status(), if fails { 502 } else { 200 }, "{limit} {retry} {request}");
        }
        assert!(!dying.seen().is_empty(), "{limit} {retry}");
    }
}

#[tokio::test]
async fn a_request_that_ends_whoever_reads_it_does_not_go_through_all() {
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(broken().await);
    }
    let addresses: Vec<_> = all.iter().map(|upstream| upstream.address).collect();
    for (retry, times) in [(0, 2), (1, 3)] {
        let running = Running::start(&service(&addresses, &handle("roundRobin", retry, 3000))).await;
        let seen = || all.iter().map(|upstream| upstream.seen().len()).sum::<usize>();
        let before = seen();
        assert_eq!(ask(running.address(), GET).await.status(), 502);
        assert_eq!(seen() - before, times, "{retry}");
    }
}

#[tokio::test]
async fn connections_that_the_upstream_closed_while_idle_are_not_used() {
    let upstream =
        Upstream::start(|_| Reply::Last(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec())).await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    for _ in 0..5 {
        assert_eq!(ask(running.address(), POST).await.status(), 200);
        eventually("the close is noticed", async || running.status().await["connections"]["upstreams"] == 0)
            .await;
    }
}

#[tokio::test]
async fn what_came_back_as_another_protocol_is_not_sent_again_without_its_body() {
    let switch = || Upstream::start(|_| Reply::Bytes(b"HTTP/1.1 101 Switching Protocols\r\n\r\n".to_vec()));
    let (one, other) = (switch().await, switch().await);
    let data = service(&[one.address, other.address], &handle("random", 3, 3000));
    let running = Running::start(&data).await;
    for (request, asked) in [(POST, 1), (PUT, 1), (GET, 2)] {
        let before = one.seen().len() + other.seen().len();
        assert_eq!(ask(running.address(), request).await.status(), 502);
        assert_eq!(one.seen().len() + other.seen().len() - before, asked, "{request}");
    }
}
