use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::*;
use crate::balance::Health;

/// Answers as told, after a while, and counts.
#[derive(Clone, Default)]
struct Scripted(Arc<Script>);

#[derive(Default)]
struct Script {
    /// Addresses that do not answer.
    dead: Mutex<Vec<String>>,
    takes: Duration,
    at: Mutex<Vec<(String, Instant)>>,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

impl Scripted {
    fn taking(takes: Duration) -> Self {
        Self(Arc::new(Script { takes, ..Script::default() }))
    }

    fn kill(&self, address: &str) {
        self.0.dead.lock().unwrap().push(address.to_owned());
    }

    fn revive(&self) {
        self.0.dead.lock().unwrap().clear();
    }

    fn times(&self, address: &str) -> Vec<Instant> {
        let at = self.0.at.lock().unwrap();
        at.iter().filter(|(asked, _)| asked == address).map(|(_, at)| *at).collect()
    }
}

impl HealthCheck for Scripted {
    fn check<'a>(&'a self, upstream: &'a Upstream) -> BoxFuture<'a, Checked> {
        Box::pin(async move {
            let script = &self.0;
            script.at.lock().unwrap().push((upstream.address().to_owned(), Instant::now()));
            let under_way = script.under_way.fetch_add(1, SeqCst) + 1;
            script.most.fetch_max(under_way, SeqCst);
            sleep(script.takes).await;
            script.under_way.fetch_sub(1, SeqCst);
            let is_dead = script.dead.lock().unwrap().iter().any(|dead| dead == upstream.address());
            if is_dead { Err("told to be dead".into()) } else { Ok(()) }
        })
    }

    fn key(&self) -> Option<String> {
        Some("scripted".to_owned())
    }
}

fn hearer() -> (Arc<Findings>, Arc<Notify>) {
    let wake = Arc::new(Notify::new());
    (Arc::new(Findings::new(Arc::clone(&wake))), wake)
}

fn subscribe(probers: &Probers, address: &str, probing: &Probing, findings: &Arc<Findings>) -> Subscription {
    probers.subscribe(&Upstream::new(address), &probing.active().unwrap(), probing, findings)
}

/// The next finding, and when.
async fn found(findings: &Findings, wake: &Notify) -> (HashMap<Arc<str>, Health>, Instant) {
    loop {
        let found = findings.take();
        if !found.is_empty() {
            return (found, Instant::now());
        }
        wake.notified().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_is_found_in_time_and_a_return_too() {
    let check = Scripted::default();
    let probing = Probing::custom(check.clone());
    let probers = Probers::default();
    let (findings, wake) = hearer();
    let began = Instant::now();
    let _subscription = subscribe(&probers, "a:1", &probing, &findings);
    let (first, at) = found(&findings, &wake).await;
    assert_eq!(first[&Arc::from("a:1")], Health::Up);
    assert!(at - began <= probing.settings.every, "the first check is within the interval");

    for _ in 0..20 {
        check.kill("a:1");
        let died = Instant::now();
        let (down, at) = found(&findings, &wake).await;
        assert_eq!(down[&Arc::from("a:1")], Health::Down);
        assert!(at - died <= Duration::from_secs(9), "{:?}", at - died);
        check.revive();
        let returned = Instant::now();
        let (up, at) = found(&findings, &wake).await;
        assert_eq!(up[&Arc::from("a:1")], Health::Up);
        // To the millisecond, which is what Tokio's timers round up to.
        assert!(at - returned <= Duration::from_millis(3_002), "{:?}", at - returned);
    }
}

#[tokio::test(start_paused = true)]
async fn ten_services_share_one_probe_and_each_hears_of_it() {
    let check = Scripted::default();
    let probers = Probers::default();
    let hearers: Vec<_> = (0..10).map(|_| hearer()).collect();
    // Ten settings, made apart.
    let probings: Vec<_> = (0..10).map(|_| Probing::custom(check.clone())).collect();
    let subscriptions: Vec<_> = hearers
        .iter()
        .zip(&probings)
        .map(|((findings, _), probing)| subscribe(&probers, "a:1", probing, findings))
        .collect();
    assert_eq!(probers.addresses(), 1);
    for (findings, wake) in &hearers {
        assert_eq!(found(findings, wake).await.0[&Arc::from("a:1")], Health::Up);
    }
    sleep(Duration::from_secs(60)).await;
    let times = check.times("a:1");
    assert!((10..=17).contains(&times.len()), "{} checks in a minute", times.len());
    // Who comes later is told at once.
    let (findings, wake) = hearer();
    let now = Instant::now();
    let late = subscribe(&probers, "a:1", &probings[0], &findings);
    assert_eq!(found(&findings, &wake).await.1, now);
    // Another check of the same address is another question.
    let http = subscribe(&probers, "a:1", &Probing::http("/health"), &findings);
    assert_eq!(probers.addresses(), 2);
    drop((subscriptions, late, http));
    assert_eq!(probers.addresses(), 0);
    let asked = check.times("a:1").len();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(check.times("a:1").len(), asked, "nobody is asked for nobody");
}

#[tokio::test(start_paused = true)]
async fn first_checks_are_spread_and_pauses_vary() {
    let check = Scripted::default();
    let probing = Probing::custom(check.clone());
    let probers = Probers::default();
    let (findings, _) = hearer();
    let began = Instant::now();
    let addresses: Vec<_> = (0..200).map(|i| format!("a:{i}")).collect();
    let _subscriptions: Vec<_> =
        addresses.iter().map(|address| subscribe(&probers, address, &probing, &findings)).collect();
    sleep(Duration::from_secs(60)).await;
    let mut early = 0;
    for address in &addresses {
        let times = check.times(address);
        early += usize::from(times[0] - began < probing.settings.every / 2);
        for pair in times.windows(2) {
            let pause = (pair[1] - pair[0]).as_secs_f64();
            assert!((3.99..6.01).contains(&pause), "{pause}");
        }
    }
    assert!((60..140).contains(&early), "{early} of 200 in the first half");
}

#[tokio::test(start_paused = true)]
async fn no_more_checks_are_under_way_than_allowed() {
    let check = Scripted::taking(Duration::from_millis(900));
    let probing = Probing { require_first_check: true, ..Probing::custom(check.clone()) };
    let probers = Probers::new(8);
    let (findings, _) = hearer();
    let addresses: Vec<_> = (0..50).map(|i| format!("a:{i}")).collect();
    let _subscriptions: Vec<_> =
        addresses.iter().map(|address| subscribe(&probers, address, &probing, &findings)).collect();
    sleep(Duration::from_secs(10)).await;
    assert_eq!(check.0.most.load(SeqCst), 8);
    assert!(addresses.iter().all(|address| !check.times(address).is_empty()));
}

#[tokio::test(start_paused = true)]
async fn silence_and_a_panic_are_misses() {
    struct Panics;
    impl HealthCheck for Panics {
        fn check<'a>(&'a self, _: &'a Upstream) -> BoxFuture<'a, Checked> {
            Box::pin(async { panic!("by design") })
        }
    }
    let probers = Probers::default();
    for probing in [Probing::custom(Scripted::taking(Duration::from_secs(3600))), Probing::custom(Panics)] {
        let (findings, wake) = hearer();
        let _subscription = subscribe(&probers, "a:1", &probing, &findings);
        assert_eq!(found(&findings, &wake).await.0[&Arc::from("a:1")], Health::Down);
    }
}

#[test]
fn presets_are_ribbons() {
    assert!(Probing::ribbon().active().is_none());
    let ping = Probing::ribbon_ping_url("/ping");
    assert_eq!(
        (ping.settings.every, ping.settings.fall, ping.settings.rise),
        (Duration::from_secs(30), 1, 1)
    );
}
