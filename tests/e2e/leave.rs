//! Instances come and go under load, and no request is lost: with every dialect of the SDK, against this admin.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, routing::post};
use soul_client::{
    ClientConfig, Life, SoulClient,
    plan::{Dialect, ShenyuVersion},
    route::{Annotation, Route},
};
use soul_tests::harness::{DEADLINE, Part, client, eventually, free_addr, own_address};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::{JoinHandle, JoinSet, LocalSet},
    time::timeout,
};

/// The password of an admin that asks for one.
const PASSWORD: &str = "pass&word 1";

/// Requests under way at once.
const CALLERS: usize = 4;

/// Restarts of one story.
const RESTARTS: usize = 3;

/// An admin and a gateway that polls it, neither of which probes or tries another upstream: a request that is sent to
/// a closed port is lost, and seen.
struct World {
    admin: Part,
    gateway: Part,
}

impl World {
    async fn start(admin: &[&str]) -> Self {
        let mut flags = vec!["admin"];
        flags.extend(admin);
        let admin = Part::start(&flags).await;
        let url = admin.admin_url();
        let gateway =
            Part::start(&["gateway", "--admin", &url, "--failover-limit", "0", "--suspect-for", "0"]).await;
        Self { admin, gateway }
    }

    async fn stop(self) {
        self.gateway.stop().await;
        self.admin.stop().await;
    }
}

/// A service of one route, which lives by the SDK.
struct Instance {
    addr: SocketAddr,
    stop: oneshot::Sender<()>,
    life: JoinHandle<Result<(), soul_client::Error>>,
}

impl Instance {
    async fn start(admin: &str, dialect: Dialect) -> Self {
        let listener = TcpListener::bind((own_address(), 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let config = ClientConfig::builder()
            .admin_url(admin)
            .context_path("/roll")
            .app_name("roll")
            .dialect(dialect)
            .username("admin")
            .password(PASSWORD)
            .propagation_time(Duration::from_millis(300))
            .build()
            .unwrap();
        let router = Router::new().route("/ping", post(move || async move { addr.to_string() }));
        let (stop, stopped) = oneshot::channel();
        let client = SoulClient::builder(config).routes([Route::new(Annotation::new("/ping"))]);
        let life = Life::of(client).until(async { drop(stopped.await) }).serve(listener, router);
        Self { addr, stop, life: tokio::spawn(life) }
    }

    /// Leaves in order.
    async fn leave(self) {
        self.stop.send(()).unwrap();
        timeout(DEADLINE, self.life).await.expect("the life ends").unwrap().unwrap();
    }

    /// Is gone without a word.
    async fn die(self) {
        self.life.abort();
        assert!(self.life.await.unwrap_err().is_cancelled());
    }
}

/// Waits until the gateway has exactly these instances.
async fn known(world: &World, instances: &[&Instance]) {
    let mut wanted: Vec<_> = instances.iter().map(|instance| instance.addr.to_string()).collect();
    wanted.sort();
    eventually(&format!("the instances {wanted:?} at the gateway"), async || {
        let mut known = world.gateway.gateway().upstreams("/roll").await;
        known.sort();
        (known == wanted).then_some(())
    })
    .await;
}

/// Waits until a request is answered by an instance: the route is there, too.
async fn answers(world: &World) {
    let url = format!("{}/roll/ping", world.gateway.gateway_url());
    eventually("an answer through the gateway", async || {
        client().post(&url).send().await.ok().filter(|answer| answer.status() == 200).map(drop)
    })
    .await;
}

/// Callers that send one request after the other, and count those that are not answered.
struct Load {
    enough: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    callers: JoinSet<Vec<String>>,
}

impl Load {
    fn start(gateway: &str) -> Self {
        let (enough, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let (enough, answered, url) =
                (Arc::clone(&enough), Arc::clone(&answered), format!("{gateway}/roll/ping"));
            callers.spawn(async move {
                let (http, mut lost) = (client(), Vec::new());
                while !enough.load(Ordering::Relaxed) {
                    match http.post(&url).send().await {
                        Ok(answer) if answer.status() == 200 => _ = answered.fetch_add(1, Ordering::Relaxed),
                        Ok(answer) => lost.push(format!("{answer:?}")),
                        Err(error) => lost.push(format!("{error:?}")),
                    }
                }
                lost
            });
        }
        Self { enough, answered, callers }
    }

    /// Waits until more requests have been answered than before.
    async fn goes_on(&self) {
        let before = self.answered.load(Ordering::Relaxed);
        eventually("further answers", async || {
            (self.answered.load(Ordering::Relaxed) >= before + 20).then_some(())
        })
        .await;
    }

    async fn end(self) -> Vec<String> {
        self.enough.store(true, Ordering::Relaxed);
        self.callers.join_all().await.concat()
    }
}

/// Two instances, each replaced in turn, under load.
async fn rolling_restart(world: &World, dialect: Dialect) {
    let admin = world.admin.admin_url();
    let mut old = Instance::start(&admin, dialect).await;
    let mut young = Instance::start(&admin, dialect).await;
    known(world, &[&old, &young]).await;
    answers(world).await;
    let load = Load::start(&world.gateway.gateway_url());
    for _ in 0..RESTARTS {
        let next = Instance::start(&admin, dialect).await;
        known(world, &[&old, &young, &next]).await;
        load.goes_on().await;
        old.leave().await;
        known(world, &[&young, &next]).await;
        load.goes_on().await;
        (old, young) = (young, next);
    }
    let lost = load.end().await;
    assert!(lost.is_empty(), "{dialect}: {} requests were lost: {lost:?}", lost.len());
    old.leave().await;
    young.leave().await;
    known(world, &[]).await;
}

async fn restarts_of(dialects: impl IntoIterator<Item = Dialect>, flags: &'static [&'static str]) {
    at_once(dialects, async move |dialect| {
        let world = World::start(flags).await;
        rolling_restart(&world, dialect).await;
        world.stop().await;
    })
    .await;
}

/// The same story with several dialects side by side.
async fn at_once(
    dialects: impl IntoIterator<Item = Dialect>,
    story: impl AsyncFn(Dialect) + Clone + 'static,
) {
    LocalSet::new()
        .run_until(async {
            let mut stories = JoinSet::new();
            for dialect in dialects {
                let story = story.clone();
                stories.spawn_local(async move { story(dialect).await });
            }
            stories.join_all().await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolling_restart_with_souls_dialects_loses_no_request() {
    let dialects = [Dialect::Any, Dialect::Feb2021, Dialect::V2_3_0];
    restarts_of(dialects, &["--upstream-check-interval", "0"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolling_restart_with_shenyus_dialects_loses_no_request() {
    let takes = ShenyuVersion::ALL.into_iter().filter(|version| version.takes_a_farewell());
    let flags = &["--upstream-check-interval", "0", "--shenyu-password", PASSWORD];
    restarts_of(takes.map(Dialect::Shenyu).chain([Dialect::Auto]), flags).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instance_of_any_dialect_that_dies_is_probed_away() {
    at_once(Dialect::ALL, async |dialect| {
        let world = World::start(&["--upstream-check-interval", "0.1"]).await;
        let admin = world.admin.admin_url();
        let (dying, staying) =
            (Instance::start(&admin, dialect).await, Instance::start(&admin, dialect).await);
        known(&world, &[&dying, &staying]).await;
        answers(&world).await;
        dying.die().await;
        known(&world, &[&staying]).await;
        answers(&world).await;
        staying.die().await;
        world.stop().await;
    })
    .await;
}

/// Who has no credentials speaks Soul's words, and leaves by them.
#[tokio::test]
async fn client_without_credentials_detects_an_admin_that_can_be_left() {
    let world = World::start(&["--upstream-check-interval", "0"]).await;
    let config = ClientConfig::builder()
        .admin_url(world.admin.admin_url())
        .context_path("/roll")
        .app_name("roll")
        .dialect(Dialect::Auto)
        .build()
        .unwrap();
    let client = SoulClient::builder(config)
        .routes([Route::new(Annotation::new("/ping"))])
        .start(([127, 0, 0, 1], 8188).into())
        .unwrap();
    client.registered_within(DEADLINE).await.unwrap();
    assert_eq!(client.status().admins[0].dialect, Dialect::Any);
    assert_eq!(world.admin.admin().upstreams("/roll").await, ["127.0.0.1:8188"]);
    client.offline().await.unwrap();
    assert!(client.status().was_told_to_leave());
    assert_eq!(world.admin.admin().upstreams("/roll").await, [""; 0]);
    world.stop().await;
}

/// The admin of a restart knows nothing: the answer to the next heartbeat says so, long before the routes are repeated.
/// The token of before still holds.
#[tokio::test]
async fn heartbeat_tells_that_an_admin_has_forgotten_the_instance() {
    let listen = free_addr().to_string();
    let flags =
        ["admin", "--admin-listen", &listen, "--upstream-check-interval", "0", "--shenyu-password", PASSWORD];
    let admin = Part::start(&flags).await;
    let config = ClientConfig::builder()
        .admin_url(admin.admin_url())
        .context_path("/roll")
        .app_name("roll")
        .dialect(Dialect::Shenyu(ShenyuVersion::V2_7))
        .username("admin")
        .password(PASSWORD)
        .heartbeat_interval(Duration::from_millis(100))
        .refresh_interval(Duration::from_secs(3600))
        .build()
        .unwrap();
    let client = SoulClient::builder(config)
        .routes([Route::new(Annotation::new("/ping"))])
        .start(([127, 0, 0, 1], 8188).into())
        .unwrap();
    client.registered_within(DEADLINE).await.unwrap();
    admin.stop().await;

    let admin = Part::start(&flags).await;
    eventually("the instance at the admin that was restarted", async || {
        (admin.admin().upstreams("/roll").await == ["127.0.0.1:8188"]).then_some(())
    })
    .await;
    assert_eq!(admin.admin().group("RULE").await.len(), 2, "the route and its context path");
    client.offline().await.unwrap();
    assert_eq!(admin.admin().upstreams("/roll").await, [""; 0]);
    admin.stop().await;
}
