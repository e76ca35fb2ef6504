//! Over HTTP, to an admin in this process that does as it is told.

use std::{
    net::TcpListener,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, Response, StatusCode},
};
use tokio::runtime::{Builder, Runtime};

use super::{LISTENER, ROUTES, builder, config, until_within};
use crate::{RouteState, SoulClient, Status, config::ClientConfigBuilder, error::Error};

/// What the admin does with a request.
#[derive(Clone, Copy, Debug, Default)]
enum Mood {
    #[default]
    Well,
    Answers(StatusCode, &'static str),
    RedirectsTo(&'static str),
    Hangs,
    Closes,
}

#[derive(Clone, Debug)]
struct Seen {
    method: String,
    path: String,
    headers: HeaderMap,
    body: String,
}

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<(Mood, Vec<Seen>)>>);

/// An admin on a runtime of its own, so that stopping it also ends its connections.
struct Admin {
    memory: Memory,
    url: String,
    runtime: Option<Runtime>,
}

impl Drop for Admin {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Admin {
    fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn on(listener: TcpListener) -> Self {
        let memory = Memory::default();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = axum::Router::new().fallback(answer).with_state(memory.clone());
        listener.set_nonblocking(true).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, app).await.unwrap();
        });
        Self { memory, url, runtime: Some(runtime) }
    }

    /// Stops it and starts another one, which knows nothing, at the same address.
    async fn restart(mut self, meanwhile: impl AsyncFnOnce()) -> Self {
        let runtime = self.runtime.take().unwrap();
        tokio::task::spawn_blocking(|| runtime.shutdown_timeout(Duration::from_secs(20))).await.unwrap();
        meanwhile().await;
        Self::on(TcpListener::bind(self.url.trim_start_matches("http://")).unwrap())
    }

    fn be(&self, mood: Mood) {
        self.memory.0.lock().unwrap().0 = mood;
    }

    /// What was accepted; a restart without a store forgets it.
    fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.memory.0.lock().unwrap().1)
    }

    fn has_all(&self) -> bool {
        let memory = self.memory.0.lock().unwrap();
        let mut bodies: Vec<_> = memory.1.iter().map(|seen| &seen.body).collect();
        bodies.sort();
        bodies.dedup();
        bodies.len() == ROUTES.len()
    }
}

async fn answer(State(memory): State<Memory>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let mood = memory.0.lock().unwrap().0;
    match mood {
        Mood::Well => {
            let seen = Seen {
                method: parts.method.to_string(),
                path: parts.uri.to_string(),
                headers: parts.headers,
                body: String::from_utf8(body.to_vec()).unwrap(),
            };
            memory.0.lock().unwrap().1.push(seen);
            Response::new("success".into())
        }
        Mood::Answers(status, text) => Response::builder().status(status).body(text.into()).unwrap(),
        Mood::RedirectsTo(to) => {
            Response::builder().status(302).header("location", to).body(Body::empty()).unwrap()
        }
        Mood::Hangs => std::future::pending().await,
        // The server closes the connection of a handler that panics.
        Mood::Closes => panic!("scripted panic: this one is expected"),
    }
}

/// Waits of milliseconds, so that nothing here takes long.
fn quick(url: &str) -> ClientConfigBuilder {
    config()
        .admin_url(url)
        .retry_delay(Duration::from_millis(5), Duration::from_millis(20))
        .refresh_interval(Duration::from_millis(50))
}

/// Here the clock is real.
const LIMIT: Duration = Duration::from_secs(20);

async fn until(client: &SoulClient, what: &str, wanted: impl FnMut(&Status) -> bool) {
    until_within(LIMIT, client, what, wanted).await;
}

async fn registered(client: &SoulClient) {
    client.registered_within(LIMIT).await.unwrap_or_else(|error| panic!("{}", error.chain()));
}

/// The cause of the first failure that the status shows.
fn cause(status: &Status) -> Option<&Arc<Error>> {
    status.admins[0].routes.iter().find_map(|route| match &route.state {
        RouteState::Failed { cause, .. } => Some(cause),
        _ => None,
    })
}

fn start(url: &str) -> SoulClient {
    builder(quick(url)).start(LISTENER).unwrap()
}

#[tokio::test]
async fn request_is_that_of_the_java_client() {
    let admin = Admin::start();
    let client = start(&format!("{}/", admin.url));
    registered(&client).await;
    client.shutdown().await;
    let seen = admin.take();
    assert_eq!((seen[0].method.as_str(), seen[0].path.as_str()), ("POST", "/soul-client/springmvc-register"));
    assert_eq!(seen[0].headers["content-type"], "application/json; charset=utf-8");
    assert_eq!(
        seen[0].body,
        "{\"appName\":\"http\",\"context\":\"/http\",\"contextPath\":\"/http\",\"path\":\"/http/a\",\"pathDesc\":\"\",\
         \"rpcType\":\"http\",\"host\":\"10.0.0.2\",\"port\":8188,\"ruleName\":\"/http/a\",\"enabled\":true,\
         \"registerMetaData\":false}"
    );
}

#[test]
fn proxy_of_the_environment_is_not_used() {
    // In a process of its own, since the environment of this one is shared by all tests.
    let test = "client::tests::over_http::request_is_that_of_the_java_client";
    let proxy = "http://127.0.0.1:1";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .envs([("HTTP_PROXY", proxy), ("http_proxy", proxy), ("ALL_PROXY", proxy), ("all_proxy", proxy)])
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn admin_that_comes_later_is_found() {
    // The port is free until the admin takes it again.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = start(&format!("http://{address}"));
    until(&client, "a refused connection", |status| cause(status).is_some_and(|cause| cause.is_connect()))
        .await;
    let admin = Admin::on(TcpListener::bind(address).unwrap());
    registered(&client).await;
    assert!(admin.has_all());
}

#[tokio::test]
async fn every_kind_of_wrong_answer_is_told_and_waited_through() {
    const BUSY: &str = r#"{"code":500,"message":"unique index conflict, please enter again","data":null}"#;
    let ok = StatusCode::OK;
    for (mood, words) in [
        (Mood::Answers(StatusCode::INTERNAL_SERVER_ERROR, "oops"), "500 Internal Server Error: `oops`"),
        (Mood::Answers(ok, "<html>Welcome to nginx</html>"), "`<html>Welcome to nginx</html>`"),
        (Mood::Answers(ok, BUSY), "code 500: unique index conflict"),
        (
            Mood::Answers(StatusCode::UNAUTHORIZED, r#"{"code":401,"message":"token is error"}"#),
            "code 401: token",
        ),
        (Mood::Answers(ok, "\u{0}\u{1}{{{"), "expected the answer `success`"),
        (Mood::Answers(ok, "success\n"), "expected the answer `success`"),
        (Mood::RedirectsTo("http://127.0.0.1:1/login"), "points to `http://127.0.0.1:1/login`"),
        (Mood::Hangs, "operation timed out"),
        (Mood::Closes, "connection closed"),
    ] {
        let admin = Admin::start();
        admin.be(mood);
        let config = match mood {
            Mood::Hangs => quick(&admin.url).request_timeout(Duration::from_millis(300)),
            _ => quick(&admin.url),
        };
        let client = builder(config).start(LISTENER).unwrap();
        until(&client, "a failure", |status| cause(status).is_some()).await;
        let cause = cause(&client.status()).unwrap().clone();
        assert!(cause.chain().contains(words), "{mood:?}: {}", cause.chain());
        assert!(cause.chain().contains(&admin.url), "{}", cause.chain());
        assert_eq!(cause.is_timeout(), matches!(mood, Mood::Hangs), "{cause:?}");
        assert!(cause.is_retryable() && !client.status().is_registered());
        assert!(admin.take().is_empty());

        admin.be(Mood::Well);
        registered(&client).await;
        assert!(admin.has_all(), "{mood:?}");
        client.shutdown().await;
    }
}

#[tokio::test]
async fn admin_restarted_empty_learns_everything_again() {
    let mut admin = Admin::start();
    let client = start(&admin.url);
    registered(&client).await;
    for _ in 0..3 {
        let lost = async || until(&client, "the loss", |status| !status.is_registered()).await;
        admin = admin.restart(lost).await;
        registered(&client).await;
        assert!(admin.has_all());
    }
}

#[tokio::test]
async fn admin_that_forgot_is_told_again_without_a_failure() {
    let admin = Admin::start();
    let client = start(&admin.url);
    registered(&client).await;
    admin.take();
    let mut status = client.watch();
    let again = async {
        while !admin.has_all() {
            status.changed().await.unwrap();
        }
    };
    tokio::time::timeout(LIMIT, again).await.unwrap();
    assert!(client.status().is_registered());
}

#[tokio::test]
async fn hanging_admin_does_not_keep_the_client_from_stopping() {
    let admin = Admin::start();
    admin.be(Mood::Hangs);
    let config = quick(&admin.url)
        .request_timeout(Duration::from_secs(60))
        .shutdown_timeout(Duration::from_millis(50));
    let client = builder(config).start(LISTENER).unwrap();
    until(&client, "an address", |status| status.admins[0].announced.is_some()).await;
    tokio::time::timeout(LIMIT, client.shutdown()).await.unwrap();
    admin.be(Mood::Well);
    assert!(client.status().is_stopped());
    assert!(admin.take().is_empty());
}

/// An admin whose machine takes no connection any more: nothing comes back at all.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn connecting_takes_no_longer_than_it_may() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody accepts these, and what comes after them is dropped.
    let filling: Vec<_> = (0..4).map(|_| tokio::spawn(tokio::net::TcpStream::connect(address))).collect();
    tokio::task::yield_now().await;
    let config = quick(&format!("http://{address}"))
        .connect_timeout(Duration::from_millis(200))
        .request_timeout(Duration::from_secs(600));
    let client = builder(config).start(LISTENER).unwrap();
    until(&client, "a failure", |status| cause(status).is_some()).await;
    let cause = cause(&client.status()).unwrap().clone();
    assert!(cause.is_timeout() && cause.chain().contains("(Connect)"), "{}", cause.chain());
    filling.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn second_admin_takes_over() {
    let (one, two) = (Admin::start(), Admin::start());
    one.be(Mood::Answers(StatusCode::BAD_GATEWAY, "<html>"));
    let client = start(&format!("{},{}", one.url, two.url));
    registered(&client).await;
    assert!(two.has_all());
    assert!(client.status().admins[0].last_error.is_some());
}

#[tokio::test]
async fn wildcard_listener_announces_an_address_of_this_machine() {
    let admin = Admin::start();
    let config = crate::ClientConfig::builder().admin_url(&admin.url).context_path("/http").build().unwrap();
    let client = SoulClient::builder(config).routes(ROUTES).start("0.0.0.0:8188".parse().unwrap()).unwrap();
    registered(&client).await;
    let announced = client.status().admins[0].announced.clone().unwrap();
    let ip: std::net::IpAddr = announced.host().parse().unwrap();
    assert!(std::net::UdpSocket::bind((ip, 0)).is_ok(), "{announced:?} is not ours");
    assert!(!ip.is_unspecified());
}

#[tokio::test]
async fn thousand_routes_are_registered_over_few_connections() {
    use crate::plan::{Attributes, ClassDeclaration, ClassDeclarations};
    let admin = Admin::start();
    let routes = (0..1000).map(|number| Attributes::new(format!("/route/{number}"))).collect();
    let class = ClassDeclaration::new(Some(Attributes::new("")), routes);
    let config = config().admin_url(&admin.url).build().unwrap();
    let client =
        SoulClient::builder(config).declarations(ClassDeclarations(vec![class])).start(LISTENER).unwrap();
    let begin = std::time::Instant::now();
    registered(&client).await;
    println!("1000 routes in {:?}", begin.elapsed()); // shown with --nocapture
    assert_eq!(admin.take().len(), 1000);
}
