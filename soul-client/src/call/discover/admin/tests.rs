//! Against an admin of this file's own: its answers, its failures, and its holding of polls.

use std::{collections::HashSet, time::Duration};

use axum::{
    Form, Json, Router,
    body::Body,
    extract::{Query, State as Of},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    balance::Upstream,
    call::{Membership, Refresh, discover::Listing, probe::Probing},
    wire::shenyu::DEFAULT_NAMESPACE,
};

/// What an admin has, and what it was asked.
#[derive(Clone, Debug, Default)]
struct World {
    /// Groups by name: a revision, which is the checksum, and the entries.
    groups: HashMap<&'static str, (u64, Vec<Value>)>,
    /// The token that is good; `None` wants none.
    token: Option<u64>,
}

/// A form or query.
type Pairs = Vec<(String, String)>;

#[derive(Clone)]
struct Fake {
    world: watch::Sender<World>,
    polls: Arc<Mutex<Vec<Pairs>>>,
    stop: CancellationToken,
}

struct Running {
    fake: Fake,
    url: String,
    server: JoinHandle<()>,
}

const SOUL: [&str; 5] = ["APP_AUTH", "PLUGIN", "RULE", "SELECTOR", "META_DATA"];

impl Running {
    async fn start(groups: &[&'static str]) -> Self {
        let groups = groups.iter().map(|group| (*group, (1, Vec::new()))).collect();
        let fake = Fake {
            world: watch::channel(World { groups, token: None }).0,
            polls: Arc::default(),
            stop: CancellationToken::new(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        Self { server: serve(fake.clone(), listener), url, fake }
    }

    /// Closes the port and every connection; what is held is answered with nothing.
    async fn down(&mut self) {
        self.fake.stop.cancel();
        (&mut self.server).await.unwrap();
        self.fake.stop = CancellationToken::new();
    }

    async fn up(&mut self) {
        let listener = TcpListener::bind(self.url.trim_start_matches("http://")).await.unwrap();
        self.server = serve(self.fake.clone(), listener);
    }

    fn set(&self, group: &'static str, entries: Vec<Value>) {
        self.fake.world.send_modify(|world| {
            let group = world.groups.entry(group).or_default();
            *group = (group.0 + 1, entries);
        });
    }

    fn orders(&self, addresses: &[&str]) {
        self.set("SELECTOR", vec![selector("1", "/orders", addresses)]);
    }
}

fn selector(id: &str, name: &str, addresses: &[&str]) -> Value {
    let entry =
        |address: &&str| json!({"protocol": "http://", "upstreamUrl": address, "weight": 50, "status": true});
    let handle = Value::from(addresses.iter().map(entry).collect::<Vec<_>>()).to_string();
    json!({"id": id, "pluginName": "divide", "name": name, "sort": 1, "enabled": true, "handle": handle})
}

fn serve(fake: Fake, listener: TcpListener) -> JoinHandle<()> {
    let router = Router::new()
        .route("/configs/fetch", get(fetch))
        .route("/configs/listener", post(poll))
        .route("/platform/login", get(login))
        .with_state(fake.clone());
    let stopped = fake.stop.cancelled_owned();
    tokio::spawn(async { axum::serve(listener, router).with_graceful_shutdown(stopped).await.unwrap() })
}

fn refused(fake: &Fake, headers: &HeaderMap) -> Option<Response> {
    let wanted = fake.world.borrow().token?.to_string();
    let is_good = headers.get("X-Access-Token").is_some_and(|token| token == &*wanted);
    (!is_good)
        .then(|| (StatusCode::UNAUTHORIZED, r#"{"code":600,"message":"token is error"}"#).into_response())
}

async fn login(Of(fake): Of<Fake>) -> Json<Value> {
    let token = fake.world.borrow().token.map(|token| token.to_string());
    Json(json!({"code": 200, "message": "ok", "data": {"token": token, "expiredTime": 86_400_000}}))
}

async fn fetch(Of(fake): Of<Fake>, headers: HeaderMap, Query(query): Query<Pairs>) -> Response {
    if let Some(refused) = refused(&fake, &headers) {
        return refused;
    }
    assert!(query.contains(&("namespaceId".to_owned(), DEFAULT_NAMESPACE.to_owned())));
    let world = fake.world.borrow().clone();
    let mut data = serde_json::Map::new();
    for (_, name) in query.iter().filter(|(key, _)| key == "groupKeys") {
        let Some((revision, entries)) = world.groups.get(name.as_str()) else {
            return Json(json!({"code": 500, "message": "The system is busy", "data": null})).into_response();
        };
        let group = json!({"md5": format!("{name}{revision}"), "lastModifyTime": 1, "data": entries});
        data.insert(name.clone(), group);
    }
    Json(json!({"code": 200, "message": "success", "data": data})).into_response()
}

/// Holds the poll until a group differs, or the admin goes down.
async fn poll(Of(fake): Of<Fake>, headers: HeaderMap, Form(form): Form<Pairs>) -> Response {
    if let Some(refused) = refused(&fake, &headers) {
        return refused;
    }
    fake.polls.lock().unwrap().push(form.clone());
    let mut world = fake.world.subscribe();
    let differing = |world: &World| -> Vec<&'static str> {
        let sent = |group: &str| form.iter().find(|(key, _)| key == group).map(|(_, value)| value.clone());
        let differs = |name: &&str| sent(name) != Some(format!("{name}{},0", world.groups[*name].0));
        world.groups.keys().copied().filter(differs).collect()
    };
    let waiting = timeout(Duration::from_secs(60), world.wait_for(|world| !differing(world).is_empty()));
    let changed = match fake.stop.run_until_cancelled(waiting).await {
        None => return Response::new(Body::from("")),
        Some(Ok(world)) => differing(&world.unwrap()),
        Some(Err(_)) => Vec::new(),
    };
    Json(json!({"code": 200, "message": "success", "data": changed})).into_response()
}

async fn until(feed: &mut Feed, what: &str, wanted: impl Fn(&Listing) -> bool) -> Listing {
    let waiting = async {
        loop {
            let listing = feed.take();
            if wanted(&listing) {
                return listing;
            }
            assert!(feed.changed().await, "the source ended");
        }
    };
    match timeout(Duration::from_secs(60), waiting).await {
        Ok(listing) => listing,
        Err(_) => panic!("no {what}: {:?}", feed.now()),
    }
}

fn has(addresses: &[&str]) -> impl Fn(&Listing) -> bool {
    move |listing| {
        let list = listing.upstreams.as_deref().unwrap_or_default();
        listing.upstreams.is_some() && list.iter().map(Upstream::address).eq(addresses.iter().copied())
    }
}

#[tokio::test]
async fn a_change_is_pushed_to_each_service_over_one_poll() {
    let admin = Running::start(&SOUL).await;
    admin.orders(&["a:1"]);
    let source = AdminDiscover::new(&admin.url).unwrap();
    let mut orders = source.watch("orders").unwrap();
    until(&mut orders, "list", has(&["a:1"])).await;
    let mut stock = source.watch("/stock").unwrap();
    let unknown = until(&mut stock, "answer", |l| l.failures > 0).await;
    assert!(unknown.error.unwrap().is_unknown_service());
    let again = source.watch("orders").unwrap();
    assert!(has(&["a:1"])(&again.now()), "known already");

    admin.set("SELECTOR", vec![selector("1", "/orders", &["a:1", "b:1"]), selector("2", "/stock", &["s:1"])]);
    until(&mut orders, "second upstream", has(&["a:1", "b:1"])).await;
    until(&mut stock, "its list", has(&["s:1"])).await;
    // A group that has no upstreams is learnt too, or the next poll would not be held.
    admin.set("RULE", vec![json!({"id": "9"})]);
    admin.orders(&["b:1"]);
    until(&mut orders, "the last list", has(&["b:1"])).await;
    until(&mut stock, "that it is gone", |l| l.failures > 0 && l.upstreams.is_some()).await;

    let polls = admin.fake.polls.lock().unwrap();
    let groups: HashSet<_> = polls[0].iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(groups.len(), 9, "eight groups and the namespace: {groups:?}");
    assert!(polls[0].contains(&("AI_PROXY_API_KEY".to_owned(), "0,0".to_owned())));
    assert!(polls.len() <= 5, "{} polls: one for both services", polls.len());
}

#[tokio::test]
async fn an_admin_that_fails_is_followed_by_the_next_and_the_lists_are_kept_when_all_do() {
    let (mut first, mut second) = (Running::start(&SOUL).await, Running::start(&SOUL).await);
    first.orders(&["a:1"]);
    second.orders(&["a:1", "b:1"]);
    let source = AdminDiscover::new(&format!("{},{}", first.url, second.url)).unwrap();
    let mut orders = source.watch("orders").unwrap();
    until(&mut orders, "list of the first", has(&["a:1"])).await;
    first.down().await;
    let listing = until(&mut orders, "list of the second", has(&["a:1", "b:1"])).await;
    assert_eq!(listing.failures, 0, "nobody noticed");
    second.down().await;
    let stale = until(&mut orders, "failure", |l| l.failures > 0).await;
    assert!(has(&["a:1", "b:1"])(&stale));
    let error = stale.error.unwrap().chain();
    assert!(error.starts_with("follow the admin `http://127.0.0.1:") && error.contains("refused"), "{error}");
    first.orders(&["c:1"]);
    first.up().await;
    let back = until(&mut orders, "list of the first again", has(&["c:1"])).await;
    assert_eq!(back.failures, 0);
}

#[tokio::test]
async fn an_admin_that_comes_back_empty_takes_nobody_away() {
    let mut admin = Running::start(&SOUL).await;
    admin.orders(&["a:1"]);
    let source = AdminDiscover::new(&admin.url).unwrap();
    let mut orders = source.watch("orders").unwrap();
    until(&mut orders, "list", has(&["a:1"])).await;
    admin.down().await;
    admin.set("SELECTOR", Vec::new());
    admin.up().await;
    let unknown = |l: &Listing| l.error.as_ref().is_some_and(|error| error.is_unknown_service());
    let kept = until(&mut orders, "an admin without it", unknown).await;
    assert!(has(&["a:1"])(&kept));
    // What is registered anew is learnt.
    admin.orders(&["b:1"]);
    until(&mut orders, "the new list", has(&["b:1"])).await;
    // And a list that is said to be empty is.
    admin.orders(&[]);
    until(&mut orders, "nobody", has(&[])).await;
}

#[tokio::test]
async fn shenyu_wants_a_token_and_pushes_upstreams_apart() {
    let newer = [&SOUL[..], &["PROXY_SELECTOR", "DISCOVER_UPSTREAM"]].concat();
    let admin = Running::start(&newer).await;
    admin.fake.world.send_modify(|world| world.token = Some(1));
    admin.orders(&["old:1"]);
    let pushed = |address: &str| json!({"selectorId": "1", "pluginName": "divide", "upstreamDataList": [{"url": address, "status": 0, "weight": 1}]});
    admin.set("DISCOVER_UPSTREAM", vec![pushed("a:1")]);
    let nobody = AdminDiscover::new(&admin.url).unwrap();
    let error = nobody.fetch("orders").await.unwrap_err().chain();
    assert!(error.contains("401") && error.contains("set user and password"), "{error}");

    let source = AdminDiscover::with_login(&admin.url, "admin", "123456").unwrap();
    let mut orders = source.watch("orders").unwrap();
    until(&mut orders, "list", has(&["a:1"])).await;
    admin.set("DISCOVER_UPSTREAM", vec![pushed("b:1")]);
    until(&mut orders, "other list", has(&["b:1"])).await;
    // A restarted admin knows no token that was given before.
    admin.fake.world.send_modify(|world| world.token = Some(2));
    admin.set("DISCOVER_UPSTREAM", vec![pushed("c:1")]);
    until(&mut orders, "list by a new token", has(&["c:1"])).await;
    let listed = source.fetch("orders").await.unwrap();
    assert_eq!(listed[0].address(), "c:1");
}

#[tokio::test]
async fn an_answer_that_is_no_admins_says_what_to_set() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async { axum::serve(listener, Router::new()).await.unwrap() });
    let error = AdminDiscover::new(&url).unwrap().fetch("orders").await.unwrap_err().chain();
    assert!(error.contains("status 404: is `soul.sync.http.enabled`"), "{error}");
    server.abort();
    let error = AdminDiscover::new("localhost:9095").unwrap_err();
    assert!(error.is_config(), "{error}");
}

#[tokio::test]
async fn polling_asks_for_the_selectors_alone() {
    let admin = Running::start(&SOUL).await;
    admin.orders(&["a:1"]);
    let members = Membership::builder("orders")
        .source(AdminDiscover::new(&admin.url).unwrap())
        .refresh(Refresh::Polling {
            initial: Duration::from_millis(10),
            every: Duration::from_millis(10),
            jitter: 0.0,
        })
        .probing(Probing::none())
        .spawn()
        .unwrap();
    members.ready(Duration::from_secs(30)).await.unwrap();
    admin.orders(&["a:1", "b:1"]);
    let deadline = Instant::now() + Duration::from_secs(30);
    while members.status().all != 2 {
        assert!(Instant::now() < deadline, "{:?}", members.status());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(admin.fake.polls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn nobody_is_followed_for_nobody() {
    let admin = Running::start(&SOUL).await;
    admin.orders(&["a:1"]);
    let source = AdminDiscover::new(&admin.url).unwrap();
    let mut first = source.watch("orders").unwrap();
    until(&mut first, "list", has(&["a:1"])).await;
    drop(first);
    // The next answer finds that out.
    admin.orders(&["b:1"]);
    let deadline = Instant::now() + Duration::from_secs(30);
    while source.inner.state().task.is_some() {
        assert!(Instant::now() < deadline, "{source:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut second = source.watch("orders").unwrap();
    until(&mut second, "list again", has(&["b:1"])).await;
    let task = source.inner.state().task.clone().unwrap();
    drop(source);
    while !task.is_finished() {
        assert!(Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
}
