//! Rounds, waits and states, with the clock paused.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    LISTENER, ROUTES, builder, config,
    scripted::{Call, Reply, Scripted},
    until,
};
use crate::{
    AdminsRule, Dialect, RouteState, ShenyuVersion, SoulClient,
    config::{ClientConfig, ClientConfigBuilder},
};

const SECOND: Duration = Duration::from_secs(1);

fn start(config: ClientConfigBuilder, transport: &Scripted) -> SoulClient {
    builder(config).start_over(transport.clone(), fastrand::Rng::with_seed(7), LISTENER).unwrap()
}

fn one_admin() -> ClientConfigBuilder {
    config().admin_url("http://one")
}

fn two_admins() -> ClientConfigBuilder {
    config().admin_url("http://one,http://two")
}

/// With a limit of paused time, for a test that fails.
async fn registered(client: &SoulClient) {
    client.registered_within(20_000 * SECOND).await.unwrap_or_else(|error| panic!("{}", error.chain()));
}

fn accept(_: &Call) -> Reply {
    Reply::Accept
}

#[tokio::test(start_paused = true)]
async fn first_route_goes_alone_and_the_others_together() {
    let transport = Scripted::new(|_| Reply::AcceptAfter(SECOND));
    let client = start(one_admin(), &transport);
    registered(&client).await;

    let calls = transport.calls();
    assert_eq!(calls.len(), ROUTES.len());
    assert_eq!(calls[0].path, "/a");
    for call in &calls[1..] {
        assert_eq!(Some(call.began), calls[0].ended, "together, after the first");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_are_under_way() {
    let transport = Scripted::new(|_| Reply::AcceptAfter(SECOND));
    let client = start(one_admin().concurrency(2), &transport);
    registered(&client).await;

    let calls = transport.calls();
    for call in &calls {
        let at_once =
            calls.iter().filter(|other| other.began <= call.began && other.ended > Some(call.began));
        assert!(at_once.count() <= 2, "{calls:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_is_repeated_about_every_half_minute() {
    let transport = Scripted::new(accept);
    let begin = Instant::now();
    let client = start(one_admin(), &transport);
    registered(&client).await;
    tokio::time::sleep(Duration::from_secs(301)).await;

    let starts: Vec<_> =
        transport.calls().iter().filter(|call| call.path == "/a").map(|call| call.began).collect();
    assert!((10..=12).contains(&starts.len()), "{}", starts.len());
    assert_eq!(transport.calls().len(), starts.len() * ROUTES.len());
    assert_eq!(starts[0], begin, "at once");
    for pair in starts.windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap >= 27 * SECOND && gap <= 34 * SECOND, "{gap:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_repeated_when_that_is_off() {
    let transport = Scripted::new(accept);
    let client = start(one_admin().refresh_interval(Duration::ZERO), &transport);
    registered(&client).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(transport.calls().len(), ROUTES.len());
    client.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_hour_without_an_admin_is_waited_through() {
    let begin = Instant::now();
    let transport =
        Scripted::new(move |_| if begin.elapsed() < 3600 * SECOND { Reply::Silence } else { Reply::Accept });
    let client = start(one_admin(), &transport);
    registered(&client).await;
    assert!(begin.elapsed() >= 3600 * SECOND && begin.elapsed() <= 3631 * SECOND, "{:?}", begin.elapsed());

    let calls = transport.calls();
    let (tries, accepted) = calls.split_at(calls.len() - ROUTES.len());
    assert!(tries.iter().all(|call| call.path == "/a"), "one route asks for all while nobody answers");
    let gaps: Vec<_> = tries.windows(2).map(|pair| pair[1].began - pair[0].began).collect();
    assert!(gaps[0] <= SECOND && gaps[1] <= 2 * SECOND && gaps[2] <= 4 * SECOND, "{:?}", &gaps[..3]);
    for gap in &gaps[6..] {
        assert!(*gap >= 15 * SECOND && *gap <= 30 * SECOND + Duration::from_millis(2), "{gap:?}");
    }
    assert_eq!(accepted.len(), ROUTES.len());
}

#[tokio::test(start_paused = true)]
async fn an_hour_without_an_admin_of_shenyu_is_waited_through() {
    let begin = Instant::now();
    let transport =
        Scripted::new(move |_| if begin.elapsed() < 3600 * SECOND { Reply::Silence } else { Reply::Accept });
    let config = one_admin().dialect(Dialect::Shenyu(ShenyuVersion::V2_7)).username("u").password("p");
    let client = start(config.refresh_interval(Duration::ZERO), &transport);
    registered(&client).await;
    let back = begin.elapsed();
    assert!(back >= 3600 * SECOND && back <= 3631 * SECOND, "{back:?}");

    let calls = transport.take();
    let (tries, accepted) = calls.split_at(calls.len() - ROUTES.len() - 1);
    assert!(tries.iter().all(|call| call.path == "/a"), "no instance and no heartbeat while nobody answers");
    for pair in tries[6..].windows(2) {
        let gap = pair[1].began - pair[0].began;
        assert!(gap >= 15 * SECOND && gap <= 30 * SECOND + Duration::from_millis(2), "{gap:?}");
    }
    let mut names: Vec<_> = accepted.iter().map(|call| call.path.as_str()).collect();
    names[1..4].sort_unstable();
    assert_eq!(names, ["/a", "/b", "/c", "/d", "REGISTER"]);

    // The first heartbeat after 30 s, and then one every 10 s.
    tokio::time::sleep(55 * SECOND).await;
    let beats: Vec<_> = transport.take().iter().map(|call| (call.path.clone(), call.began)).collect();
    let times: Vec<_> = beats.iter().map(|(_, at)| (*at - begin - back).as_secs()).collect();
    assert!(beats.iter().all(|(path, _)| path == "HEARTBEAT"), "{beats:?}");
    assert_eq!(times, [30, 40, 50]);
    client.offline().await.unwrap();
    assert_eq!(transport.take_names(), ["oneOFFLINE"]);
}

#[tokio::test(start_paused = true)]
async fn only_what_was_refused_is_sent_again() {
    let mut refusals = 3;
    let transport = Scripted::new(move |call| match call.path.as_str() {
        "/c" if refusals > 0 => {
            refusals -= 1;
            Reply::Refuse
        }
        _ => Reply::Accept,
    });
    let client = start(one_admin(), &transport);
    until(&client, "the first refusal", |status| {
        matches!(&status.admins[0].routes[2].state, RouteState::Failed { failures: 1, next_try: Some(_), .. })
    })
    .await;
    let status = client.status();
    assert!(!status.is_registered());
    assert!(status.admins[0].routes[1].state.is_registered());
    let RouteState::Failed { cause, .. } = &status.admins[0].routes[2].state else { panic!("{status:#?}") };
    assert!(cause.is_rejected());

    registered(&client).await;
    let mut names = transport.take_names();
    names[1..4].sort();
    assert_eq!(names, ["one/a", "one/b", "one/c", "one/d", "one/c", "one/c", "one/c"]);
}

#[tokio::test(start_paused = true)]
async fn silent_admin_is_passed_over_and_asked_first_again_in_the_next_round() {
    let transport = Scripted::new(|call| if call.admin == "one" { Reply::Silence } else { Reply::Accept });
    let client = start(two_admins(), &transport);
    registered(&client).await;
    let mut names = transport.take_names();
    names[2..].sort();
    assert_eq!(names, ["one/a", "two/a", "two/b", "two/c", "two/d"]);
    let status = client.status();
    assert!(status.admins[0].last_error.is_some() && !status.admins[0].is_registered());
    assert!(status.admins[1].is_registered());

    transport.play(accept);
    tokio::time::sleep(34 * SECOND).await;
    let mut names = transport.take_names();
    names.sort();
    assert_eq!(names, ["one/a", "one/b", "one/c", "one/d"]);
    assert!(client.status().admins[0].is_registered());
}

#[tokio::test(start_paused = true)]
async fn refusal_is_an_answer_and_no_other_admin_is_asked() {
    let transport = Scripted::new(|_| Reply::Refuse);
    let client = start(two_admins(), &transport);
    until(&client, "refusals", |status| {
        status.admins[0].routes.iter().all(|route| matches!(&route.state, RouteState::Failed { .. }))
    })
    .await;
    assert!(transport.calls().iter().all(|call| call.admin == "one"));
}

#[tokio::test(start_paused = true)]
async fn admins_that_share_nothing_are_told_each_in_its_own_time() {
    let begin = Instant::now();
    let transport = Scripted::new(move |call| match call.admin.as_str() {
        "one" if begin.elapsed() < 60 * SECOND => Reply::Silence,
        _ => Reply::Accept,
    });
    let client = start(two_admins().admins_rule(AdminsRule::Each), &transport);
    until(&client, "the second admin", |status| status.admins[1].is_registered()).await;
    assert_eq!(begin.elapsed(), Duration::ZERO, "the first one being down stops nothing");
    assert!(!client.status().is_registered());
    registered(&client).await;
    assert!(begin.elapsed() >= 60 * SECOND && client.status().admins[0].is_registered());
}

#[tokio::test(start_paused = true)]
async fn panic_is_counted_and_the_next_round_comes() {
    let mut panics = 3;
    let transport = Scripted::new(move |call| match call.path.as_str() {
        "/a" | "/b" if panics > 0 => {
            panics -= 1;
            Reply::Panic
        }
        _ => Reply::Accept,
    });
    let client = start(one_admin(), &transport);
    registered(&client).await;
    assert_eq!(client.status().panics, 3);
    assert_eq!(transport.calls().len(), 3 + ROUTES.len());
}

#[tokio::test(start_paused = true)]
async fn failure_of_a_repetition_is_seen_and_healed() {
    let transport = Scripted::new(accept);
    let client = start(one_admin(), &transport);
    registered(&client).await;
    transport.play(|_| Reply::Silence);
    until(&client, "a failure", |status| !status.is_registered()).await;
    assert!(client.status().admins[0].routes.iter().all(|route| !route.state.is_registered()));
    transport.play(accept);
    registered(&client).await;
    assert!(client.status().admins[0].last_error.is_none());
}

#[tokio::test(start_paused = true)]
async fn deadline_names_the_cause_and_registering_goes_on() {
    let transport = Scripted::new(|_| Reply::Silence);
    let client = start(one_admin(), &transport);
    let error = client.registered_within(5 * SECOND).await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!(error.chain(), "register within 5s: 4 of 4 messages are left: scripted");
    transport.play(accept);
    client.registered_within(60 * SECOND).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_lets_what_is_under_way_end_and_begins_nothing() {
    let transport = Scripted::new(|_| Reply::AcceptAfter(SECOND / 2));
    let client = start(one_admin().concurrency(1), &transport);
    until(&client, "the first route", |status| status.admins[0].routes[0].state.is_registered()).await;
    // Lets the next one begin.
    tokio::time::sleep(SECOND / 4).await;
    let begin = Instant::now();
    client.shutdown().await;
    assert_eq!(begin.elapsed(), SECOND / 4);
    assert!(client.status().is_stopped());
    assert_eq!(transport.take_names(), ["one/a", "one/b"]);
    assert!(client.status().admins[0].routes[1].state.is_registered());

    tokio::time::sleep(600 * SECOND).await;
    assert!(transport.calls().is_empty());
    assert!(client.registered().await.unwrap_err().is_stopped());
}

#[tokio::test(start_paused = true)]
async fn shutdown_gives_up_what_hangs() {
    let transport = Scripted::new(|_| Reply::Hang);
    let client = start(one_admin(), &transport);
    until(&client, "an address", |status| status.admins[0].announced.is_some()).await;
    tokio::task::yield_now().await;
    let begin = Instant::now();
    let stopped = async {
        client.shutdown().await;
        client.shutdown().await;
    };
    tokio::time::timeout(20_000 * SECOND, stopped).await.unwrap();
    assert!(begin.elapsed() <= ClientConfig::DEFAULT_SHUTDOWN_TIMEOUT, "{:?}", begin.elapsed());
    tokio::time::sleep(600 * SECOND).await;
    assert_eq!(transport.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_other_admin_is_asked_after_the_shutdown_began() {
    let transport = Scripted::new(|_| Reply::SilenceAfter(SECOND / 2));
    let client = start(two_admins(), &transport);
    until(&client, "an address", |status| status.admins[0].announced.is_some()).await;
    tokio::time::sleep(SECOND / 4).await;
    client.shutdown().await;
    assert_eq!(transport.take_names(), ["one/a"]);
}

#[tokio::test(start_paused = true)]
async fn waits_begin_short_again_after_a_success() {
    let transport = Scripted::new(|_| Reply::Silence);
    let client = start(one_admin(), &transport);
    tokio::time::sleep(600 * SECOND).await;
    transport.play(accept);
    registered(&client).await;
    transport.play(|_| Reply::Silence);
    until(&client, "a failure", |status| !status.is_registered()).await;
    transport.take();
    let begin = Instant::now();
    tokio::time::sleep(60 * SECOND).await;
    let wait = transport.calls()[0].began - begin;
    assert!(wait <= SECOND + Duration::from_millis(1), "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_the_next_round() {
    let transport = Scripted::new(|_| Reply::Silence);
    let client = start(one_admin(), &transport);
    tokio::time::sleep(300 * SECOND).await;
    let begin = Instant::now();
    client.shutdown().await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn dropping_stops_too() {
    let transport = Scripted::new(accept);
    let client = start(one_admin(), &transport);
    registered(&client).await;
    let mut status = client.watch();
    drop(client);
    status.wait_for(super::Status::is_stopped).await.unwrap();
    transport.take();
    tokio::time::sleep(600 * SECOND).await;
    assert!(transport.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_clients_of_one_process_know_nothing_of_each_other() {
    let (first, second) = (Scripted::new(accept), Scripted::new(|_| Reply::Refuse));
    let one = start(one_admin(), &first);
    let two = start(one_admin().context_path("/other"), &second);
    registered(&one).await;
    assert!(!two.status().is_registered());
    one.shutdown().await;
    first.take();
    second.play(accept);
    registered(&two).await;
    assert!(first.calls().is_empty());
    assert!(!two.status().is_stopped());
}
