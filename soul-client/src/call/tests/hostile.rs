//! What nobody means to happen, and happens.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{
    orders, plain,
    scripted::{Does, Scripted, nobody},
    until,
};
use crate::{
    balance::{
        OutlierDetector, PickContext, Upstream,
        policy::{BuildContext, LeastRequest, Members, PeakEwma, Picker, Policy, Random},
    },
    call::{
        Answer, AttemptError, CallErrorKind, CallEvent, CallOptions, ClientFactory, Destination, LbClient,
        MemberEvent, Retry, ServiceConfig, Statuses, Transport, discover::feed, filter::filter_fn,
    },
};

const MS: Duration = Duration::from_millis(1);

fn in_flight(client: &LbClient) -> u32 {
    client.balancer().snapshot().all().iter().map(|m| m.state().in_flight()).sum()
}

async fn upstreams(count: usize, does: Does) -> Vec<Scripted> {
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.push(Scripted::doing(does.clone()).await);
    }
    servers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_at_once_do_not_notice_that_half_of_the_upstreams_die() {
    let mut servers = upstreams(8, Does::ok("hello")).await;
    let addresses: Vec<_> = servers.iter().map(|s| s.address.clone()).collect();
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    let client = orders(&addresses, |c| {
        c.policy(PeakEwma::default())
            .outliers(Some(OutlierDetector::default()))
            .panic_threshold(0.5)
            .retries_next(7)
            .budget(None)
            .connect_timeout(Duration::from_secs(20))
            .read_timeout(Duration::from_secs(20))
    });
    let mut calls = JoinSet::new();
    for i in 0..1_000 {
        let client = client.clone();
        calls.spawn(async move {
            let answer = client.get(format!("/{i}")).send().await;
            answer.map(|answer| answer.status().as_u16()).map_err(|error| error.chain())
        });
        if i == 500 {
            servers.truncate(4);
        }
    }
    let ended = calls.join_all().await;
    let failed: Vec<_> = ended.iter().filter(|ended| **ended != Ok(200)).collect();
    assert!(failed.is_empty(), "{} failed, the first: {:?}", failed.len(), failed.first());
    assert_eq!(in_flight(&client), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_given_up_by_the_thousand_leave_nothing_in_flight() {
    let (hangs, answers) = (Scripted::doing(Does::Hang).await, Scripted::doing(Does::status(503)).await);
    let dead = nobody().await;
    let client = orders(&[&hangs.address, &answers.address, &dead], |c| {
        c.policy(LeastRequest).retries_next(5).retries_same(2).backoff(MS, 3 * MS).budget(None)
    });
    client.ready(Duration::from_secs(20)).await.unwrap();
    for round in 0..10 {
        let mut calls = JoinSet::new();
        for _ in 0..200 {
            let client = client.clone();
            calls.spawn(async move { client.get("/").send().await.map(drop) });
        }
        // Each round is given up at another stage.
        for _ in 0..round * 30 {
            tokio::task::yield_now().await;
        }
        calls.shutdown().await;
        assert_eq!(in_flight(&client), 0, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_changes_every_millisecond_loses_no_call_and_is_not_built_as_often() {
    let servers = upstreams(4, Does::ok("")).await;
    let (publisher, lists) = feed();
    let (changes, told) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let hears = Arc::clone(&told);
    let factory = ClientFactory::builder()
        .service("orders", |_| plain().policy(PeakEwma::default()).discover(lists))
        .member_listener(move |_: &str, event: &MemberEvent| {
            hears.fetch_add(u64::from(matches!(event, MemberEvent::ListChanged { .. })), SeqCst);
        })
        .build()
        .unwrap();
    let client = factory.client("orders").unwrap();
    let addresses: Vec<_> = servers.iter().map(|s| s.address.clone()).collect();
    let all: Vec<_> = addresses.iter().map(|a| Upstream::new(&**a)).collect();
    publisher.publish(all.clone());
    client.ready(Duration::from_secs(20)).await.unwrap();

    let (over, flaps) = (Arc::<AtomicBool>::default(), Arc::clone(&changes));
    let (ends, list) = (Arc::clone(&over), all.clone());
    let flapping = tokio::spawn(async move {
        for turn in 0.. {
            if ends.load(SeqCst) {
                return publisher;
            }
            let some = list.iter().enumerate().filter(|(i, _)| (turn + i) % 4 != 0).map(|(_, u)| u.clone());
            publisher.publish(some.collect());
            flaps.fetch_add(1, SeqCst);
            tokio::time::sleep(MS).await;
        }
        publisher
    });
    let started = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let client = client.clone();
        callers.spawn(async move {
            for _ in 0..50 {
                assert_eq!(client.get("/").send().await.map_err(|e| e.chain()).unwrap().status(), 200);
            }
        });
    }
    callers.join_all().await;
    until("some hundred changes", || changes.load(SeqCst) > 300).await;
    over.store(true, SeqCst);
    let publisher = flapping.await.unwrap();
    // Changes within 100 ms are one.
    let most = started.elapsed().as_millis() as u64 / 100 + 2;
    assert!(told.load(SeqCst) <= most, "{} lists, at most {most}", told.load(SeqCst));
    publisher.publish(all[..1].to_vec());
    until("the last list", || client.balancer().snapshot().all().len() == 1).await;
    assert_eq!(in_flight(&client), 0);
}

#[tokio::test]
async fn settings_that_change_in_the_middle_of_retries_lose_no_call() {
    let (bad, good) = (Scripted::doing(Does::Close).await, Scripted::doing(Does::ok("")).await);
    let list = |addresses: &[&str]| {
        let servers: Vec<_> = addresses.iter().map(|a| Upstream::new(*a)).collect();
        plain().servers(servers).backoff(2 * MS, 2 * MS).retries_next(3).budget(None)
    };
    let both = || list(&[&bad.address, &good.address]);
    let factory = ClientFactory::builder().service("orders", |_| both()).build().unwrap();
    let client = factory.client("orders").unwrap();
    client.ready(Duration::from_secs(20)).await.unwrap();
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let client = client.clone();
        callers.spawn(async move {
            for _ in 0..25 {
                assert_eq!(client.get("/").send().await.map_err(|e| e.chain()).unwrap().status(), 200);
            }
        });
    }
    let mut changes = 0;
    while !callers.is_empty() {
        let config = match changes % 3 {
            0 => list(&[&good.address]).policy(Random),
            1 => both().policy(LeastRequest).retries_same(1),
            _ => list(&[&good.address, &bad.address]).tried_again(false),
        };
        factory.configure("orders", config).unwrap();
        changes += 1;
        tokio::time::sleep(MS).await;
        while let Some(ended) = callers.try_join_next() {
            ended.unwrap();
        }
    }
    assert!(changes > 3);
    assert_eq!(in_flight(&client), 0);
}

#[tokio::test]
async fn a_reset_in_the_middle_of_a_body_is_an_error_of_its_reader() {
    let a = Scripted::doing(Does::Reset).await;
    let client = orders(&[&a.address], |c| c.retries_same(3));
    match client.get("/").send().await {
        Ok(answer) => {
            let error = answer.bytes().await.unwrap_err();
            assert_eq!((error.kind(), a.count()), (CallErrorKind::Body, 1));
        }
        // The reset was there before the head was read; then it is an attempt that failed.
        Err(error) => assert_eq!((error.kind(), a.count()), (CallErrorKind::AllTried, 4)),
    }
    assert_eq!(in_flight(&client), 0);
}

#[tokio::test]
async fn absurd_retry_after_values_hold_nobody_up_and_break_nothing() {
    for said in [
        "-5",
        "1e12",
        "1000000000000",
        "18446744073709551615",
        "99999999999999999999999999",
        "Wed, 21 Oct 2065 07:28:00 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Fri, 99 Feb 9999 99:99:99 GMT",
        "\u{fffd}",
        "",
    ] {
        let header: &'static str = format!("retry-after: {said}\r\n").leak();
        for status in [429, 503] {
            let busy = Scripted::doing(Does::Answer(status, header, String::new())).await;
            let living = Scripted::doing(Does::ok("hello")).await;
            let codes = [http::StatusCode::TOO_MANY_REQUESTS, http::StatusCode::SERVICE_UNAVAILABLE];
            let settings = |c: ServiceConfig| {
                let endless = Retry { longest_retry_after: Duration::MAX, ..Retry::default() };
                c.retry(Retry { statuses: Statuses::only(codes), next: 1, ..endless }).backoff(MS, MS)
            };
            let client = orders(&[&busy.address, &living.address], settings);
            for _ in 0..3 {
                let answer = client.get("/").same_instance(&busy.address).send().await.unwrap();
                assert_eq!((answer.status().as_u16(), answer.attempts()), (200, 2), "{said}");
            }
            // Alone: the answer as it is; or, of a time that is over or says nothing, the same once more.
            let client = orders(&[&busy.address], settings);
            let answer = client.get("/").send().await.unwrap();
            assert_eq!(answer.status().as_u16(), status, "{said}");
            assert!(answer.attempts() <= 2, "{said}");
            assert_eq!(in_flight(&client), 0);
        }
    }
}

#[tokio::test]
async fn times_without_end_are_no_panic() {
    let a = Scripted::start(|n| if n == 0 { Does::Close } else { Does::ok("hello") }).await;
    let endless = |c: ServiceConfig| {
        c.total_timeout(Duration::MAX)
            .read_timeout(Duration::MAX)
            .connect_timeout(Duration::MAX)
            .idle_timeout(Duration::MAX)
    };
    let client = orders(&[&a.address], endless);
    client.ready(Duration::MAX).await.unwrap();
    let answer = client.get("/").send().await.unwrap();
    assert_eq!((answer.attempts(), answer.text().await.unwrap().as_str()), (2, "hello"));
    // Over a connection that has been idle.
    for _ in 0..20 {
        tokio::time::sleep(MS).await;
        assert_eq!(client.get("/").send().await.unwrap().text().await.unwrap(), "hello");
    }
    let none = |c: ServiceConfig| c.total_timeout(Duration::ZERO);
    let error = orders(&[&a.address], none).get("/").send().await.unwrap_err();
    assert!(error.is_timeout() || error.is_no_instance(), "{}", error.chain());
    // Pauses without end, and a deadline that is sooner.
    let dead = nobody().await;
    let client = orders(&[&dead], |c| c.backoff(Duration::MAX, Duration::MAX));
    let error = client.get("/").send().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::DeadlineExceeded);
}

/// Panics when it is built, or when it chooses.
#[derive(Debug)]
struct Broken {
    when_built: bool,
}

struct BrokenPicker;

impl Policy for Broken {
    fn build(&self, _: Members<'_>, _: &BuildContext<'_>) -> Box<dyn Picker> {
        assert!(!self.when_built, "by design");
        Box::new(BrokenPicker)
    }
}

impl Picker for BrokenPicker {
    fn pick(&self, _: Members<'_>, _: &PickContext<'_>) -> Option<usize> {
        panic!("by design")
    }
}

struct PanickingTransport;

impl Transport for PanickingTransport {
    type Request = ();
    type Response = ();

    async fn send(&self, (): (), _: Destination<'_>) -> Result<(), AttemptError> {
        tokio::task::yield_now().await;
        panic!("by design")
    }

    fn replay(&self, (): &()) -> Option<()> {
        Some(())
    }

    fn answer(&self, (): &()) -> Answer {
        Answer::default()
    }
}

#[tokio::test]
async fn a_policy_that_panics_ends_no_service() {
    let a = Scripted::doing(Does::ok("")).await;
    let list = || plain().servers([Upstream::new(&*a.address)]);
    let broken = |when_built| list().policy(Broken { when_built });
    let factory = ClientFactory::builder()
        .service("orders", |_| list())
        .service("never", |_| broken(true))
        .service("chooses", |_| broken(false))
        .build()
        .unwrap();
    let client = factory.client("orders").unwrap();
    assert_eq!(client.get("/").send().await.unwrap().status(), 200);
    for _ in 0..2 {
        let error = factory.configure("orders", broken(true)).unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Config);
        assert!(
            error.chain().contains("`policy` could not be made ready: it panicked: `by design`"),
            "{}",
            error.chain()
        );
        assert_eq!(client.get("/").send().await.unwrap().status(), 200, "what was before holds");
    }
    let error = factory.get("lb://never/").send().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Config, "{}", error.chain());
    let error = factory.get("lb://chooses/").send().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoInstance, "{}", error.chain());
    assert_eq!(client.get("/").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn listeners_filters_and_transports_that_panic_leave_nothing_behind() {
    let a = Scripted::doing(Does::ok("")).await;
    let factory = ClientFactory::builder()
        .service("orders", |_| {
            plain().servers([Upstream::new(&*a.address)]).filter(filter_fn(|_, _| panic!("by design")))
        })
        .listener(|_: &str, _: &CallEvent<'_>| panic!("by design"))
        .member_listener(|_: &str, _: &MemberEvent| panic!("by design"))
        .build()
        .unwrap();
    let client = factory.client("orders").unwrap();
    assert_eq!(client.get("/").send().await.unwrap().status(), 200);
    let calling = client.clone();
    let call = tokio::spawn(async move {
        calling.execute_with(&PanickingTransport, (), &CallOptions::new()).await.map(drop)
    });
    assert!(call.await.unwrap_err().is_panic(), "whoever brings a transport gets its panic");
    assert_eq!(in_flight(&client), 0);
    assert_eq!(client.get("/").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn with_nobody_one_or_ten_thousand_a_preference_finds_its_own() {
    let living = Scripted::doing(Does::ok("blue")).await;
    for count in [0_u16, 1, 10_000] {
        let others = (0..count).map(|i| Upstream::new(format!("127.1.{}.{}:9", i / 250, i % 250 + 1)));
        let blue = Upstream::new(&*living.address).with_metadata("hint", "blue").with_zone("eu");
        let list: Vec<_> = others.chain([blue]).collect();
        let factory = ClientFactory::builder()
            .service("orders", |_| plain().policy(PeakEwma::default()).servers(list))
            .build()
            .unwrap();
        let client = factory.client("orders").unwrap();
        client.ready(Duration::from_secs(60)).await.unwrap();
        for options in [
            CallOptions::new().hint("blue"),
            CallOptions::new().zone("eu"),
            CallOptions::new().same_instance(&*living.address),
        ] {
            let answer = client.get("/").options(options).send().await.unwrap();
            assert_eq!((answer.upstream_address(), answer.attempts()), (&*living.address, 1));
        }
        assert_eq!(in_flight(&client), 0);
    }
    let error = orders(&[], |c| c).get("/").send().await.unwrap_err();
    assert!(error.is_no_instance());
}

#[tokio::test]
async fn odd_addresses_reach_nobody_but_the_service() {
    let a = Scripted::doing(Does::ok("")).await;
    let factory = ClientFactory::builder()
        .service("orders", |_| plain().servers([Upstream::new(&*a.address)]))
        .build()
        .unwrap();
    for address in [
        "",
        "lb://",
        "lb:///",
        "lb://@/",
        "lb://orders:/",
        "lb://orders:80/",
        "lb://[::1]/",
        "lb://ord\u{e9}rs/",
        "lb://or%64ers/",
        "lb://orders%2fa/",
        r"lb://orders\@else/",
        r"lb://else\@orders/",
        r"lb:\\orders/",
        "lb://orders /",
        "lb://orders\t/",
        "lb://orders/a\r\nhost: else",
        "LB:orders",
        "ftp://orders/",
        "//orders/",
        "@orders",
        "lb://or,ders/",
        "lb://or$ders/",
    ] {
        let error = factory.get(address).send().await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::InvalidUri, "{address}: {}", error.chain());
    }
    assert_eq!(a.count(), 0);
    for address in ["lb://orders", "LB://orders?", "lb://a:b@orders#x", "lb://a@b@orders/", "http://orders//"]
    {
        assert_eq!(factory.get(address).send().await.unwrap().status(), 200, "{address}");
    }
    // Of reqwest, which writes hosts in small letters.
    let shop = ClientFactory::builder()
        .service("Orders_v2", |_| plain().servers([Upstream::new(&*a.address)]))
        .build()
        .unwrap();
    let request = reqwest::Client::new().get("http://Orders_v2/").build().unwrap();
    assert_eq!(shop.client("Orders_v2").unwrap().execute(request).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_query_longer_than_can_be_sent_is_nobodys_fault() {
    let a = Scripted::doing(Does::ok("")).await;
    let client = orders(&[&a.address], |c| c.retries_same(3));
    let long = format!("/?{}", "x".repeat(60_000));
    assert_eq!(client.get(&*long).send().await.unwrap().status(), 200);
    let too_long = format!("/?{}", "x".repeat(100_000));
    let error = client.get(too_long).send().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::InvalidRequest, "{}", error.chain());
    assert_eq!((a.count(), client.balancer().snapshot().all()[0].state().failed()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_of_a_dead_service_stay_within_the_budget_over_sockets() {
    for (does, kind) in [(Does::status(503), None), (Does::Close, Some(CallErrorKind::BudgetExhausted))] {
        let servers = upstreams(3, does).await;
        let addresses: Vec<_> = servers.iter().map(|s| s.address.as_str()).collect();
        // The built-in budget: a fifth, and ten for each second of ten.
        let client = orders(&addresses, |c| c.retries_next(2).retries_same(1));
        client.ready(Duration::from_secs(20)).await.unwrap();
        let started = Instant::now();
        let mut callers = JoinSet::new();
        for _ in 0..20 {
            let client = client.clone();
            callers.spawn(async move {
                let mut kinds = BTreeMap::<_, u32>::new();
                for _ in 0..100 {
                    let ended = client.get("/").send().await.map(drop).map_err(|error| error.kind());
                    *kinds.entry(format!("{:?}", ended.err())).or_default() += 1;
                }
                kinds
            });
        }
        let mut kinds = BTreeMap::<_, u32>::new();
        for (kind, count) in callers.join_all().await.into_iter().flatten() {
            *kinds.entry(kind).or_default() += count;
        }
        let seconds = started.elapsed().as_secs() + 1;
        let requests: usize = servers.iter().map(Scripted::count).sum();
        // What was saved up for one window may be spent at once, and what is spent in one is not owed in the next.
        let most = 2_000 * 12 / 10 + 10 * (seconds + 10) as usize;
        assert!((2_100..=most).contains(&requests), "{requests} requests for 2000 calls, at most {most}");
        assert!(kinds.contains_key(&format!("{kind:?}")), "{kinds:?}");
        assert_eq!(in_flight(&client), 0);
    }
}

#[tokio::test]
async fn connect_times_of_single_calls_do_not_pile_up_clients() {
    let a = Scripted::doing(Does::ok("")).await;
    let client = orders(&[&a.address], |c| c);
    for i in 0..1_100 {
        client.get("/").connect_timeout(Duration::from_millis(5_000 + i)).send().await.unwrap();
    }
    assert!(client.context.clients().len() <= 1_024, "{}", client.context.clients().len());
}

#[tokio::test]
async fn upstreams_may_be_reached_by_ipv6() {
    let Ok(listener) = tokio::net::TcpListener::bind("[::1]:0").await else {
        // A machine without it.
        return;
    };
    let address = listener.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let read = stream.read(&mut request).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&request[..read]).to_lowercase()
    });
    let client = orders(&[&address], |c| c);
    assert_eq!(client.get("/api").send().await.unwrap().upstream_address(), address);
    assert!(serving.await.unwrap().contains(&format!("host: {address}\r\n")));
}
