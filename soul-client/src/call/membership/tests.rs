use std::{
    collections::HashMap,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};

use tokio::time::{Instant, advance, sleep};

use super::*;
use crate::{
    balance::{PickContext, Settings, Upstream},
    call::{
        DiscoverError, MemberEvent, Refresh,
        discover::{BoxFuture, Publisher, StaticList, discover_fn, feed},
        filter::{ZoneAffinity, filter_fn},
        probe::{Checked, HealthCheck, Probers, Probing},
    },
};

mod probed;
mod random;
mod refreshed;

fn pushed() -> (Publisher, MembershipBuilder) {
    let (publisher, feed) = feed();
    (publisher, Membership::builder("orders").source(feed).probing(Probing::none()))
}

fn list(addresses: &[&str]) -> Vec<Upstream> {
    addresses.iter().map(|address| Upstream::new(*address)).collect()
}

/// Addresses of all members.
fn all(members: &Membership) -> Vec<String> {
    members.balancer().snapshot().all().iter().map(|m| m.upstream().address().to_owned()).collect()
}

/// Addresses of those that may serve.
fn up(members: &Membership) -> Vec<String> {
    members.balancer().snapshot().up().map(|m| m.upstream().address().to_owned()).collect()
}

/// Events as one word each, in the order they came.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn listener(&self) -> impl Fn(&str, &MemberEvent) + Send + Sync + 'static {
        let heard = Arc::clone(&self.0);
        move |service, event| {
            assert_eq!(service, "orders");
            let text = match event {
                MemberEvent::ListChanged { added, removed, total, .. } => {
                    format!("list +{} -{} ={total}", added.len(), removed.len())
                }
                MemberEvent::StatusChanged { upstream, health } => format!("{upstream} {health:?}"),
                MemberEvent::Ejected { upstream, until_ms } => {
                    assert!(*until_ms > 1_600_000_000_000);
                    format!("{upstream} ejected")
                }
                MemberEvent::Restored { upstream } => format!("{upstream} restored"),
                MemberEvent::Panic { on } => format!("panic {on}"),
                MemberEvent::SourceFailed { error } => format!("failed: {error}"),
                MemberEvent::SourceRecovered { failures } => format!("recovered after {failures}"),
            };
            heard.lock().unwrap().push(text);
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Lets the tasks do what there is to do, without the time going on.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_change_is_published_at_once_and_further_ones_together() {
    let (publisher, builder) = pushed();
    let heard = Heard::default();
    let members = builder.listener(heard.listener()).spawn().unwrap();
    settle().await;
    publisher.publish(list(&["a:1"]));
    settle().await;
    assert_eq!(all(&members), ["a:1"], "the time stands still");
    for addresses in [&["a:1", "b:1"][..], &["a:1", "b:1", "c:1"], &["b:1", "c:1"]] {
        publisher.publish(list(addresses));
        settle().await;
    }
    assert_eq!(all(&members), ["a:1"], "the rest waits");
    advance(Duration::from_millis(95)).await;
    settle().await;
    assert_eq!(all(&members), ["a:1"]);
    advance(Duration::from_millis(10)).await;
    settle().await;
    assert_eq!(all(&members), ["b:1", "c:1"]);
    assert_eq!(heard.take(), ["list +1 -0 =1", "list +2 -1 =2"]);
}

#[tokio::test(start_paused = true)]
async fn ready_waits_for_the_first_list_up_to_a_deadline() {
    let (publisher, builder) = pushed();
    let members = Arc::new(builder.spawn().unwrap());
    let error = members.ready(Duration::from_secs(2)).await.unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(
        error.to_string(),
        "find the upstreams of `orders` by what the program pushes: there was not a list within 2 s"
    );
    publisher.fail(DiscoverError::new("ask the registry").with_source("gone"));
    let error = members.ready(Duration::from_secs(2)).await.unwrap_err();
    assert!(error.chain().ends_with("within 2 s: ask the registry: gone"), "{}", error.chain());

    let waiting = tokio::spawn({
        let members = Arc::clone(&members);
        async move { members.ready(Duration::from_secs(60)).await }
    });
    sleep(Duration::from_secs(1)).await;
    let published = Instant::now();
    // Nobody is there, which is a list as well.
    publisher.publish(Vec::new());
    waiting.await.unwrap().unwrap();
    assert!(published.elapsed() <= Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn health_outlives_a_refresh_and_the_list_in_another_order_is_the_same() {
    let (publisher, builder) = pushed();
    let members = builder.settings(Settings { panic_threshold: 0.0, ..Settings::default() }).spawn().unwrap();
    publisher.publish(list(&["a:1", "b:1", "c:1"]));
    members.ready(Duration::from_secs(1)).await.unwrap();
    assert!(members.mark_down("b:1") && !members.mark_down("b:1"));
    sleep(Duration::from_secs(1)).await;
    let generation = members.status().generation;
    for addresses in [["c:1", "b:1", "a:1"], ["b:1", "a:1", "c:1"], ["a:1", "b:1", "c:1"]] {
        publisher.publish(list(&addresses));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(up(&members), ["a:1", "c:1"], "dead ones are not resurrected");
        assert_eq!(members.status().generation, generation);
    }
    publisher.publish(list(&["a:1", "b:1", "b:1", "d:1"]));
    sleep(Duration::from_secs(1)).await;
    assert_eq!((all(&members).len(), up(&members)), (3, vec!["a:1".to_owned(), "d:1".to_owned()]));
    assert!(members.mark_up("b:1"));
    assert_eq!(up(&members), ["a:1", "b:1", "d:1"]);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_left_and_came_back_is_new() {
    let (publisher, builder) = pushed();
    let members = builder.spawn().unwrap();
    publisher.publish(list(&["a:1", "b:1"]));
    members.ready(Duration::from_secs(1)).await.unwrap();
    members.mark_down("b:1");
    let before = Arc::clone(members.balancer().snapshot().all()[1].state());
    publisher.publish(list(&["a:1"]));
    sleep(Duration::from_secs(1)).await;
    publisher.publish(list(&["a:1", "b:1"]));
    sleep(Duration::from_secs(1)).await;
    let now = Arc::clone(members.balancer().snapshot().all()[1].state());
    assert!(!Arc::ptr_eq(&before, &now));
    assert_eq!((before.health(), now.health()), (Health::Down, Health::Unknown));
}

#[tokio::test(start_paused = true)]
async fn a_disabled_upstream_gets_no_traffic_and_keeps_its_state() {
    let (publisher, builder) = pushed();
    let members = builder.spawn().unwrap();
    publisher.publish(list(&["a:1", "b:1"]));
    members.ready(Duration::from_secs(1)).await.unwrap();
    let state = Arc::clone(members.balancer().snapshot().all()[0].state());
    members.disable("a:1");
    sleep(Duration::from_millis(101)).await;
    assert_eq!(up(&members), ["b:1"]);
    publisher.publish(list(&["a:1", "b:1", "c:1"]));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(up(&members), ["b:1", "c:1"]);
    members.enable("a:1");
    sleep(Duration::from_millis(101)).await;
    assert_eq!(up(&members), ["a:1", "b:1", "c:1"]);
    assert!(Arc::ptr_eq(&state, members.balancer().snapshot().all()[0].state()));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_a_balancer_has_is_kept_until_there_is_another() {
    let (publisher, builder) = pushed();
    let balancer = Arc::new(Balancer::new(list(&["a:1", "b:1"]), Settings::default(), 0));
    let members = builder.balancer(balancer).spawn().unwrap();
    members.disable("b:1");
    publisher.fail(DiscoverError::new("ask"));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(all(&members), ["a:1", "b:1"]);
    publisher.publish(list(&["b:1", "c:1"]));
    sleep(Duration::from_secs(1)).await;
    assert_eq!((all(&members).len(), up(&members)), (2, vec!["c:1".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn ejections_and_panic_are_told() {
    let (publisher, builder) = pushed();
    let heard = Heard::default();
    let members = builder.listener(heard.listener()).spawn().unwrap();
    publisher.publish(list(&["a:1", "b:1", "c:1"]));
    members.ready(Duration::from_secs(1)).await.unwrap();
    heard.take();
    let refuse = |address: &str| {
        let snapshot = members.balancer().snapshot();
        let member = snapshot.all().iter().find(|m| m.upstream().address() == address).unwrap();
        for _ in 0..3 {
            let now_ms = members.clock().now_ms();
            member.begin(now_ms).complete(crate::balance::Outcome::Refused, Duration::ZERO, now_ms);
        }
    };
    refuse("a:1");
    sleep(Duration::from_millis(201)).await;
    assert_eq!(heard.take(), ["http://a:1 ejected"]);
    let status = members.status();
    assert_eq!((status.all, status.up, status.ejected, status.panic), (3, 2, 1, false));

    members.mark_down("b:1");
    sleep(Duration::from_millis(201)).await;
    assert_eq!(heard.take(), ["http://b:1 Down", "panic true"]);
    assert!(members.status().panic);
    members.mark_up("b:1");
    // After the ejection the first request proves it.
    sleep(Duration::from_secs(2)).await;
    let choose = || {
        let now_ms = members.clock().now_ms();
        members.balancer().choose(&PickContext::at(now_ms)).unwrap()
    };
    let proving = choose();
    assert_eq!(proving.upstream().address(), "a:1");
    proving.complete(crate::balance::Outcome::Success, Duration::from_millis(1), members.clock().now_ms());
    sleep(Duration::from_millis(201)).await;
    assert_eq!(heard.take(), ["http://b:1 Up", "panic false", "http://a:1 restored"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_listener_or_a_filter_stops_nothing() {
    let (publisher, builder) = pushed();
    let heard = Heard::default();
    let members = builder
        .listener(|_: &str, _: &MemberEvent| panic!("by design"))
        .listener(heard.listener())
        .filter(filter_fn(|_, _| panic!("by design")))
        .filter(filter_fn(|mut listed, _| {
            listed.retain(|upstream| upstream.address() != "b:1");
            listed
        }))
        .spawn()
        .unwrap();
    for addresses in [&["a:1", "b:1"][..], &["a:1", "b:1", "c:1"]] {
        publisher.publish(list(addresses));
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(all(&members), ["a:1", "c:1"]);
    assert_eq!(heard.take(), ["list +1 -0 =1", "list +1 -0 =2"]);
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_dies_is_helped_without_a_new_list() {
    let (publisher, builder) = pushed();
    let members = builder.filter(ZoneAffinity::new("own")).spawn().unwrap();
    let zoned = |address: &str, zone: &str| Upstream::new(address).with_zone(zone);
    publisher.publish(vec![
        zoned("a:1", "own"),
        zoned("b:1", "own"),
        zoned("c:1", "far"),
        zoned("d:1", "far"),
    ]);
    members.ready(Duration::from_secs(1)).await.unwrap();
    assert_eq!(all(&members), ["a:1", "b:1"]);
    members.mark_down("b:1");
    sleep(Duration::from_millis(301)).await;
    assert_eq!(up(&members), ["a:1", "c:1", "d:1"]);
    members.mark_up("b:1");
    sleep(Duration::from_millis(301)).await;
    assert_eq!(all(&members), ["a:1", "b:1"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_as_long_as_can_be_is_built_elsewhere_and_published_whole() {
    let (publisher, builder) = pushed();
    let members = builder.spawn().unwrap();
    let many: Vec<_> =
        (0..3_000).map(|i| Upstream::new(format!("10.0.{}.{}:80", i / 250, i % 250))).collect();
    publisher.publish(many.clone());
    members.ready(Duration::from_secs(600)).await.unwrap();
    // The thread works in real time, and the writer's event comes after it.
    let mut generations = 0;
    while members.status().all != 3_000 {
        sleep(Duration::from_millis(100)).await;
        generations += 1;
        assert!(generations < 10_000, "{:?}", members.status());
    }
    for upstream in &many[..2_000] {
        members.mark_down(upstream.address());
    }
    sleep(Duration::from_secs(1)).await;
    assert!(members.status().panic);
}

#[tokio::test(start_paused = true)]
async fn dropping_it_ends_its_tasks() {
    let (publisher, builder) = pushed();
    let members = builder.spawn().unwrap();
    publisher.publish(list(&["a:1"]));
    members.ready(Duration::from_secs(1)).await.unwrap();
    assert!(!publisher.is_closed());
    let balancer = Arc::clone(members.balancer());
    drop(members);
    settle().await;
    assert!(publisher.is_closed());
    assert_eq!(Arc::strong_count(&balancer), 1);
}

#[test]
fn outside_of_a_runtime_it_does_not_start() {
    let error = Membership::builder("orders").spawn().unwrap_err();
    assert!(error.is_config() && error.to_string().contains("outside of a Tokio runtime"), "{error}");
}
