//! What a recorder of the program is told in the life of a client.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ::metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    set_default_local_recorder, with_local_recorder,
};

use super::*;
use crate::{
    ClientConfig, Dialect, ShenyuVersion, SoulClient,
    route::{Annotation, Route},
    testing::{FakeAdmin, Reply},
};

const LIMIT: Duration = Duration::from_secs(20);

/// `name{label="value",…}`, labels sorted.
type Values = BTreeMap<String, Arc<AtomicU64>>;

/// Keeps every value.
#[derive(Default)]
struct Kept {
    counters: Mutex<Values>,
    gauges: Mutex<Values>,
    described: Mutex<Vec<String>>,
}

fn text(key: &Key) -> String {
    let mut labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
    labels.sort();
    format!("{}{{{}}}", key.name(), labels.join(","))
}

impl Kept {
    fn value(values: &Mutex<Values>, name: &str, labels: &[(&str, &str)]) -> Option<u64> {
        let mut labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        labels.push("context_path=/orders".to_owned());
        labels.sort();
        let key = format!("{name}{{{}}}", labels.join(","));
        values.lock().unwrap().get(&key).map(|value| value.load(Ordering::Relaxed))
    }

    fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        Self::value(&self.counters, name, labels).unwrap_or(0)
    }

    fn gauge(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        Self::value(&self.gauges, name, labels).map(f64::from_bits)
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        assert!(!text.is_empty());
        self.described.lock().unwrap().push(name.as_str().to_owned());
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe_counter(name, unit, text);
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("there is none");
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::clone(self.counters.lock().unwrap().entry(text(key)).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::clone(self.gauges.lock().unwrap().entry(text(key)).or_default()))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("there is none");
    }
}

/// Waits for what a recorder is told, which comes a little after the status.
async fn eventually(kept: &Kept, what: &str, holds: impl Fn(&Kept) -> bool) {
    let waited = tokio::time::timeout(LIMIT, async {
        while !holds(kept) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let held = waited.await.is_ok();
    assert!(
        held,
        "waited for {what}: {:#?} {:#?}",
        kept.counters.lock().unwrap(),
        kept.gauges.lock().unwrap()
    );
}

fn is_in(kept: &Kept, admin: &str, state: &str) -> bool {
    let is = |one: &&str| kept.gauge(ADMIN_STATE, &[("admin", admin), ("state", one)]) == Some(1.0);
    let states: Vec<_> = ["pending", "registered", "failed", "offline"].into_iter().filter(is).collect();
    states == [state]
}

// The recorder is that of this thread, on which everything of this test runs.
#[tokio::test]
async fn whole_life_is_counted() {
    let kept = Kept::default();
    let _guard = set_default_local_recorder(&kept);
    let admin = FakeAdmin::start(Dialect::Shenyu(ShenyuVersion::V2_7)).await.unwrap();
    let url = admin.url();
    // The second route is refused twice, the instance is not answered once.
    let (mut refusals, mut silences) = (2, 1);
    admin.script(move |request| {
        if request.body.contains("\"ruleName\":\"/orders/two\"") && refusals > 0 {
            refusals -= 1;
            return Reply::Text(200, r#"{"code":500,"message":"no"}"#.into());
        }
        if request.body.contains("\"REGISTER\"") && silences > 0 {
            silences -= 1;
            return Reply::Text(502, "<html>".into());
        }
        Reply::Usual
    });
    let config = ClientConfig::builder()
        .admin_url(&url)
        .context_path("/orders")
        .host("192.168.1.20")
        .port(3000)
        .username(FakeAdmin::USERNAME)
        .password(FakeAdmin::PASSWORD)
        .retry_delay(Duration::from_millis(5), Duration::from_millis(20))
        .refresh_interval(Duration::ZERO)
        .heartbeat_interval(Duration::from_millis(10));
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let routes = [Route::new(Annotation::new("/one")), Route::new(Annotation::new("/two"))];
    let client = SoulClient::builder(config.build().unwrap())
        .routes(routes)
        .start("127.0.0.1:3000".parse().unwrap())
        .unwrap();
    client.registered_within(LIMIT).await.unwrap();

    let admin_label = ("admin", url.as_str());
    let of = |kind| [admin_label, ("kind", kind)];
    let result = |kind, result| [admin_label, ("kind", kind), ("result", result)];
    // One, and two three times; the instance of the first round and once more.
    assert_eq!(kept.count(REGISTRATION_ATTEMPTS, &of("route")), 4);
    assert_eq!(kept.count(REGISTRATIONS, &result("route", "accepted")), 2);
    assert_eq!(kept.count(REGISTRATIONS, &result("route", "refused")), 2);
    assert_eq!(kept.count(REGISTRATION_RETRIES, &of("route")), 2);
    assert_eq!(kept.count(REGISTRATIONS, &result("instance", "unanswered")), 1);
    assert_eq!(kept.count(REGISTRATIONS, &result("instance", "accepted")), 1);
    assert_eq!(kept.count(REGISTRATION_RETRIES, &of("instance")), 1);
    let login = |reason, result| [admin_label, ("reason", reason), ("result", result)];
    assert_eq!(kept.count(LOGINS, &login("first", "accepted")), 1);
    assert_eq!(kept.count(DETECTIONS, &[admin_label, ("result", "accepted")]), 1);

    eventually(&kept, "the gauges", |kept| is_in(kept, &url, "registered")).await;
    let entries = |kind, state| kept.gauge(ENTRIES, &[admin_label, ("kind", kind), ("state", state)]);
    assert_eq!((entries("route", "registered"), entries("route", "failed")), (Some(2.0), Some(0.0)));
    assert_eq!(entries("instance", "registered"), Some(1.0));
    let last_success = kept.gauge(LAST_SUCCESS, &[admin_label]).unwrap();
    assert!(last_success >= before && last_success < before + 3600.0, "{last_success}");

    let beats = |result| [admin_label, ("result", result)];
    eventually(&kept, "beats", |kept| kept.count(HEARTBEATS, &beats("accepted")) > 2).await;
    admin.revoke_tokens();
    eventually(&kept, "a renewal", |kept| kept.count(LOGINS, &login("refused", "accepted")) == 1).await;

    // Away: a lost heartbeat, rounds that fail, and the recovery.
    admin.down().await;
    eventually(&kept, "the loss", |kept| is_in(kept, &url, "failed")).await;
    assert!(kept.count(HEARTBEATS, &beats("unanswered")) >= 1);
    let questions = [admin_label, ("result", "unanswered")];
    eventually(&kept, "questions", |kept| kept.count(DETECTIONS, &questions) > 1).await;
    let retries = kept.count(REGISTRATION_RETRIES, &of("route"));
    admin.up().await.unwrap();
    eventually(&kept, "the recovery", |kept| is_in(kept, &url, "registered")).await;

    assert!(kept.count(REGISTRATION_RETRIES, &of("route")) >= retries + 2);

    client.offline().await.unwrap();
    assert_eq!(kept.count(FAREWELLS, &[admin_label, ("result", "accepted")]), 1);
    assert!(is_in(&kept, &url, "offline"), "shown before `offline` returns");
    assert_eq!(kept.gauge(ENTRIES, &[admin_label, ("kind", "route"), ("state", "offline")]), Some(2.0));
    assert_eq!(kept.count(PANICS, &[]), 0);
}

#[tokio::test]
async fn token_that_ends_is_renewed_and_counted() {
    let kept = Kept::default();
    let _guard = set_default_local_recorder(&kept);
    let admin = FakeAdmin::start(Dialect::Shenyu(ShenyuVersion::V2_6)).await.unwrap();
    admin.set_token_life(Duration::from_millis(100));
    let url = admin.url();
    let config = ClientConfig::builder()
        .admin_url(&url)
        .context_path("/orders")
        .host("192.168.1.20")
        .username(FakeAdmin::USERNAME)
        .password(FakeAdmin::PASSWORD)
        .refresh_interval(Duration::from_millis(10));
    let client = SoulClient::builder(config.build().unwrap())
        .routes([Route::new(Annotation::new("/one"))])
        .start("127.0.0.1:3000".parse().unwrap())
        .unwrap();
    let labels = [("admin", url.as_str()), ("reason", "expiry"), ("result", "accepted")];
    eventually(&kept, "renewals", |kept| kept.count(LOGINS, &labels) > 1).await;
    client.shutdown().await;
}

#[test]
fn every_name_is_described() {
    let kept = Kept::default();
    with_local_recorder(&kept, describe);
    let mut described = kept.described.lock().unwrap().clone();
    described.sort();
    let mut names = [
        ADMIN_STATE,
        DETECTIONS,
        ENTRIES,
        FAREWELLS,
        HEARTBEATS,
        LAST_SUCCESS,
        LOGINS,
        PANICS,
        REGISTRATIONS,
        REGISTRATION_ATTEMPTS,
        REGISTRATION_RETRIES,
    ];
    names.sort_unstable();
    assert_eq!(described, names);
}
