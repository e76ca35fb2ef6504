//! Learning from admins that come and go, stall, and answer nonsense.

use std::{
    collections::HashMap,
    io::ErrorKind,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    extract::{RawQuery, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get as on_get, post},
};
use serde_json::{Value, json};
use soul_client::wire::soul::{ConfigGroup, md5_hex};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};
use url::form_urlencoded;

use super::{
    super::{Gateway, GatewayConfig, GatewaySource},
    peers::{Upstream, eventually, get, nobody, reserved, within},
    setup::{ConfigData, config, handle, rule, service},
};

/// What a scripted admin does with every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    /// Answers as an admin.
    Fine,
    /// Answers with a page of something else.
    Html,
    /// Answers with status 500.
    Broken,
    /// Answers with an admin's own error.
    Busy,
    /// Reports every group as changed, at once, again and again.
    Nervous,
}

/// An admin that speaks as the Java ones do.
struct Admin {
    address: SocketAddr,
    inner: Arc<Inner>,
    server: JoinHandle<()>,
}

struct Inner {
    groups: watch::Sender<HashMap<ConfigGroup, Value>>,
    mood: Mutex<Mood>,
    hold: Duration,
    fetches: AtomicUsize,
    polls: Mutex<Vec<HashMap<String, String>>>,
}

impl Admin {
    async fn start(data: &ConfigData) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), data, Duration::from_secs(60)).await
    }

    /// Where one was that died: its port may be somebody else's for a moment.
    async fn start_at(address: SocketAddr, data: &ConfigData, hold: Duration) -> Self {
        let bound = async {
            loop {
                match TcpListener::bind(address).await {
                    Err(e) if e.kind() == ErrorKind::AddrInUse => sleep(Duration::from_millis(20)).await,
                    bound => return bound,
                }
            }
        };
        Self::start_on(within(bound).await.unwrap(), data, hold)
    }

    fn start_on(socket: TcpListener, data: &ConfigData, hold: Duration) -> Self {
        let inner = Arc::new(Inner {
            groups: watch::Sender::new(groups(data)),
            mood: Mutex::new(Mood::Fine),
            hold,
            fetches: AtomicUsize::new(0),
            polls: Mutex::default(),
        });
        let router = Router::new()
            .route("/configs/fetch", on_get(fetch))
            .route("/configs/listener", post(listener))
            .with_state(Arc::clone(&inner));
        let address = socket.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(socket, router).await.unwrap() });
        Self { address, inner, server }
    }

    fn publish(&self, data: &ConfigData) {
        self.inner.groups.send_replace(groups(data));
    }

    fn be(&self, mood: Mood) {
        *self.inner.mood.lock().unwrap() = mood;
    }

    fn fetches(&self) -> usize {
        self.inner.fetches.load(SeqCst)
    }

    fn polls(&self) -> Vec<HashMap<String, String>> {
        self.inner.polls.lock().unwrap().clone()
    }

    /// Ends it and every connection it holds.
    async fn die(self) -> SocketAddr {
        self.server.abort();
        // axum's connections live on without the server; a changed group ends the polls they hold.
        self.be(Mood::Broken);
        self.inner.groups.send_modify(|_| {});
        let _ = self.server.await;
        self.address
    }
}

fn groups(data: &ConfigData) -> HashMap<ConfigGroup, Value> {
    let json = |value| serde_json::to_value(value).unwrap();
    let value = |group| match group {
        ConfigGroup::AppAuth => serde_json::to_value(&data.app_auth).unwrap(),
        ConfigGroup::Plugin => serde_json::to_value(&data.plugins).unwrap(),
        ConfigGroup::Rule => serde_json::to_value(&data.rules).unwrap(),
        ConfigGroup::Selector => serde_json::to_value(&data.selectors).unwrap(),
        ConfigGroup::MetaData => json(&data.meta_data),
    };
    ConfigGroup::ALL.into_iter().map(|group| (group, value(group))).collect()
}

fn md5(value: &Value) -> String {
    md5_hex(&value.to_string())
}

fn result(code: i32, data: Value) -> Response {
    (
        [(CONTENT_TYPE, "application/json")],
        json!({ "code": code, "message": "m", "data": data, "trace": 1 }).to_string(),
    )
        .into_response()
}

impl Inner {
    fn out_of_order(&self) -> Option<Response> {
        match *self.mood.lock().unwrap() {
            Mood::Fine | Mood::Nervous => None,
            Mood::Html => Some("<html><body>log in</body></html>".into_response()),
            Mood::Broken => Some(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
            Mood::Busy => Some(result(500, Value::Null)),
        }
    }
}

async fn fetch(State(admin): State<Arc<Inner>>, RawQuery(query): RawQuery) -> Response {
    admin.fetches.fetch_add(1, SeqCst);
    if let Some(answer) = admin.out_of_order() {
        return answer;
    }
    let query = query.unwrap_or_default();
    let groups = admin.groups.borrow();
    let mut answer = serde_json::Map::new();
    for (_, name) in form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == "groupKeys") {
        let data = &groups[&name.parse::<ConfigGroup>().unwrap()];
        answer.insert(
            name.into_owned(),
            json!({ "md5": md5(data), "lastModifyTime": 7, "data": data, "x": null }),
        );
    }
    result(200, Value::Object(answer))
}

async fn listener(State(admin): State<Arc<Inner>>, body: Bytes) -> Response {
    let echoes: HashMap<String, String> = form_urlencoded::parse(&body).into_owned().collect();
    assert_eq!(echoes.len(), 5, "all five groups are mandatory: {echoes:?}");
    admin.polls.lock().unwrap().push(echoes.clone());
    if let Some(answer) = admin.out_of_order() {
        return answer;
    }
    let mut groups = admin.groups.subscribe();
    if *admin.mood.lock().unwrap() == Mood::Nervous {
        return result(200, json!(ConfigGroup::ALL.map(ConfigGroup::as_str)));
    }
    let changed = |groups: &HashMap<ConfigGroup, Value>| -> Vec<&str> {
        let differs = |group: &ConfigGroup| {
            let (echo, _) = echoes[group.as_str()].split_once(',').expect("md5,lastModifyTime");
            echo != md5(&groups[group])
        };
        ConfigGroup::ALL.into_iter().filter(differs).map(ConfigGroup::as_str).collect()
    };
    let held = timeout(admin.hold, async {
        loop {
            let found = changed(&groups.borrow_and_update());
            if !found.is_empty() || admin.out_of_order().is_some() {
                return found;
            }
            groups.changed().await.unwrap();
        }
    });
    let found = held.await.unwrap_or_default();
    admin.out_of_order().unwrap_or_else(|| result(200, json!(found)))
}

fn quick() -> GatewayConfig {
    let mut config = config();
    config.sync.backoff_min = Duration::from_millis(20);
    config.sync.backoff_max = Duration::from_millis(100);
    config.sync.connect_timeout = Duration::from_millis(500);
    config.sync.stale_after = Duration::from_millis(300);
    config.sync.kept_after = Duration::from_millis(200);
    config
}

async fn follow(config: GatewayConfig, admins: &[SocketAddr]) -> Gateway {
    let admins = admins.iter().map(|a| format!("http://{a}").parse().unwrap()).collect();
    Gateway::start(config, GatewaySource::Admins(admins)).await.unwrap()
}

async fn serves(gateway: &Gateway, path: &str) -> bool {
    get(gateway.local_addr(), path).await.status() == 200
}

/// A service with a rule for each of the paths.
fn with_paths(upstream: &Upstream, paths: &[&str]) -> ConfigData {
    let mut data = service(&[upstream.address], &handle("random", 0, 3000));
    data.rules = paths.iter().map(|path| rule("divide", "/http", path, &handle("random", 0, 3000))).collect();
    data
}

#[tokio::test]
async fn a_change_serves_at_once_and_only_its_group_is_fetched() {
    let upstream = Upstream::named("one").await;
    let admin = Admin::start(&with_paths(&upstream, &["/http/a"])).await;
    let gateway = follow(quick(), &[admin.address]).await;
    assert!(within(gateway.ready()).await);
    assert!(serves(&gateway, "/http/a").await && !serves(&gateway, "/http/b").await);
    eventually("the admin is polled", async || admin.polls().len() == 1).await;
    assert_eq!(admin.fetches(), 1);

    admin.publish(&with_paths(&upstream, &["/http/b"]));
    eventually("the change serves", async || serves(&gateway, "/http/b").await).await;
    assert!(!serves(&gateway, "/http/a").await);
    eventually("the next poll is held", async || admin.polls().len() == 2).await;
    assert_eq!(admin.fetches(), 2);
    let polls = admin.polls();
    assert!(polls[0]["RULE"].ends_with(",7") && polls[0]["RULE"] != polls[1]["RULE"], "{polls:?}");
    assert_eq!(polls[0]["PLUGIN"], polls[1]["PLUGIN"]);
}

#[tokio::test]
async fn the_second_admin_is_followed_when_the_first_is_down_and_back_again() {
    let upstream = Upstream::named("one").await;
    let first = reserved();
    let second = Admin::start(&with_paths(&upstream, &["/http/b"])).await;
    let gateway = follow(quick(), &[first.local_addr().unwrap(), second.address]).await;
    assert!(within(gateway.ready()).await);
    assert!(serves(&gateway, "/http/b").await);

    // It stays with the one that works.
    let listener = first.listen(64).unwrap();
    let first = Admin::start_on(listener, &with_paths(&upstream, &["/http/a"]), Duration::from_secs(60));
    second.publish(&with_paths(&upstream, &["/http/b", "/http/c"]));
    eventually("its changes come", async || serves(&gateway, "/http/c").await).await;
    assert_eq!(first.fetches(), 0);

    // When that one dies, everything is fetched anew from the other.
    second.die().await;
    eventually("the other is followed", async || serves(&gateway, "/http/a").await).await;
    assert!(!serves(&gateway, "/http/b").await);
    first.publish(&with_paths(&upstream, &["/http/d"]));
    eventually("its changes come", async || serves(&gateway, "/http/d").await).await;
}

#[tokio::test]
async fn without_any_admin_the_last_configuration_serves_and_its_age_shows() {
    let upstream = Upstream::named("one").await;
    let data = with_paths(&upstream, &["/http/a"]);
    let (first, second) = (Admin::start(&data).await, Admin::start(&data).await);
    let gateway = follow(quick(), &[first.address, second.address]).await;
    assert!(within(gateway.ready()).await);
    let (address, _) = (first.die().await, second.die().await);

    let status = async || -> Value {
        serde_json::from_slice(&get(gateway.status_addr(), "/status").await.body).unwrap()
    };
    eventually("it is stale", async || status().await["sync"]["stale"] == true).await;
    let stale = status().await;
    assert_eq!((&stale["sync"]["connected"], &stale["ready"]), (&false.into(), &true.into()), "{stale}");
    assert!(stale["sync"]["lastError"].as_str().unwrap().starts_with("none of 2 admins"), "{stale}");
    assert!(stale["sync"]["consecutiveFailures"].as_u64().unwrap() > 0);
    assert!(serves(&gateway, "/http/a").await);
    let metrics = get(gateway.status_addr(), "/metrics").await.text();
    assert!(
        metrics.contains("soul_gateway_sync_stale 1") && metrics.contains("soul_gateway_sync_connected 0")
    );

    // It resumes by itself; the same configuration is no change.
    let _back = Admin::start_at(address, &data, Duration::from_secs(60)).await;
    eventually("it is connected", async || status().await["sync"]["connected"] == true).await;
    let fresh = status().await;
    assert_eq!(
        (&fresh["sync"]["stale"], &fresh["config"]["revision"]),
        (&false.into(), &1.into()),
        "{fresh}"
    );
}

#[tokio::test]
async fn a_gateway_restarts_from_the_configuration_it_kept() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::named("one").await;
    let data = with_paths(&upstream, &["/http/a"]);
    let admin = Admin::start(&data).await;
    let keeping = || GatewayConfig { data_dir: Some(folder.path().join("data")), ..quick() };
    let gateway = follow(keeping(), &[admin.address]).await;
    assert!(within(gateway.ready()).await);
    within(gateway.shutdown()).await;
    let address = admin.die().await;

    let gateway = follow(keeping(), &[address]).await;
    assert!(within(gateway.ready()).await);
    assert!(serves(&gateway, "/http/a").await);
    let status = gateway.sync_status();
    assert_eq!(status.borrow().origin.as_ref().map(ToString::to_string).as_deref(), Some("kept on disk"));
    assert!(status.borrow().is_stale(Duration::from_secs(3600)), "no admin was heard of");

    // An admin that answers again takes over.
    let _admin =
        Admin::start_at(address, &with_paths(&upstream, &["/http/b"]), Duration::from_secs(60)).await;
    eventually("the admin takes over", async || serves(&gateway, "/http/b").await).await;
    assert_eq!(status.borrow().origin.as_ref().map(ToString::to_string), Some(format!("http://{address}")));
    within(gateway.shutdown()).await;

    // A damaged copy is never served.
    let file = folder.path().join("data/gateway-config.json");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let gateway = follow(keeping(), &[nobody().await]).await;
    let mut status = gateway.sync_status();
    within(status.wait_for(|s| s.consecutive_failures > 2)).await.unwrap();
    assert_eq!(get(gateway.status_addr(), "/readyz").await.status(), 503);
}

#[tokio::test]
async fn an_admin_that_does_not_answer_is_not_waited_for_if_there_is_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::named("one").await;
    let data = with_paths(&upstream, &["/http/a"]);
    crate::sync::Kept::new(folder.path()).save(&data.held()).unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = GatewayConfig { data_dir: Some(folder.path().to_owned()), ..quick() };
    let gateway = follow(config, &[silent.local_addr().unwrap()]).await;
    assert!(timeout(Duration::from_secs(3), gateway.ready()).await.unwrap());
    assert!(serves(&gateway, "/http/a").await);
}

#[tokio::test]
async fn nonsense_changes_nothing_and_is_reported() {
    let upstream = Upstream::named("one").await;
    let admin = Admin::start_at(
        "127.0.0.1:0".parse().unwrap(),
        &with_paths(&upstream, &["/http/a"]),
        Duration::from_millis(50),
    )
    .await;
    let gateway = follow(quick(), &[admin.address]).await;
    assert!(within(gateway.ready()).await);
    for (mood, words) in [
        (Mood::Html, "it is not an admin's, it begins with `<html><body>log in"),
        (Mood::Broken, "it has status 500"),
        (Mood::Busy, "it has code 500"),
    ] {
        admin.be(mood);
        let mut status = gateway.sync_status();
        let told =
            status.wait_for(|s| !s.connected && s.last_error.as_ref().is_some_and(|e| e.contains(words)));
        within(told).await.unwrap_or_else(|_| panic!("{mood:?}"));
        assert!(serves(&gateway, "/http/a").await, "{mood:?}");
        admin.be(Mood::Fine);
        within(status.wait_for(|s| s.connected)).await.unwrap();
        assert_eq!(status.borrow().revision, 1, "{mood:?}");
    }
}

#[tokio::test]
async fn an_admin_that_reports_changes_without_end_is_not_asked_without_end() {
    let upstream = Upstream::named("one").await;
    let admin = Admin::start(&with_paths(&upstream, &["/http/a"])).await;
    admin.be(Mood::Nervous);
    let started = Instant::now();
    let gateway = follow(quick(), &[admin.address]).await;
    assert!(within(gateway.ready()).await);
    // The second answer without news is followed by a pause of 250 ms, the third by one of 500 ms.
    eventually("a fourth poll", async || admin.polls().len() >= 4).await;
    assert!(started.elapsed() >= Duration::from_millis(750), "{:?}", started.elapsed());
    assert_eq!(gateway.sync_status().borrow().revision, 1);

    admin.publish(&with_paths(&upstream, &["/http/b"]));
    eventually("news still come", async || serves(&gateway, "/http/b").await).await;
}

#[tokio::test]
async fn the_admin_may_start_last() {
    let upstream = Upstream::named("one").await;
    let port = reserved();
    let gateway = follow(quick(), &[port.local_addr().unwrap()]).await;
    let mut status = gateway.sync_status();
    within(status.wait_for(|s| s.consecutive_failures >= 3)).await.unwrap();
    let _admin = Admin::start_on(
        port.listen(64).unwrap(),
        &with_paths(&upstream, &["/http/a"]),
        Duration::from_secs(60),
    );
    assert!(within(gateway.ready()).await);
    assert!(serves(&gateway, "/http/a").await);
}
