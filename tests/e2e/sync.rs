//! How a gateway learns, goes on without admins, and resumes.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http_service::Service;
use soul_client::ClientConfig;
use soul_tests::harness::{AdminApi, DEADLINE, Part, Upstream, eventually, free_addr, registration, text};

use crate::program;

const PATH: &str = "/orders/order/save";

/// Waits until this upstream answers.
async fn served_by(gateway: &Part, upstream: &Upstream) {
    let api = gateway.gateway();
    eventually("an answer of that upstream", async || {
        (api.seen(PATH).await?.served_by == upstream.addr().to_string()).then_some(())
    })
    .await;
}

/// Flags of a gateway that loses no time, as a test wants it.
fn gateway_args<'a>(admins: &[&'a str]) -> Vec<&'a str> {
    let mut args =
        vec!["gateway", "--sync-backoff-min", "0.05", "--sync-backoff-max", "0.2", "--kept-after", "0.2"];
    admins.iter().for_each(|admin| args.extend(["--admin", admin]));
    args
}

async fn example_service(admins: &[String]) -> Service {
    let config = ClientConfig::builder()
        .context_path("/http")
        .app_name("http")
        .retry_delay(Duration::from_millis(50), Duration::from_millis(200))
        .refresh_interval(Duration::from_millis(300));
    let config = admins.iter().fold(config, |config, url| config.admin_url(url)).build().unwrap();
    Service::start("127.0.0.1:0".parse().unwrap(), config).await.unwrap()
}

#[tokio::test]
async fn everything_comes_together_when_the_admin_starts_last() {
    let addr = free_addr();
    let url = format!("http://{addr}");
    let service = example_service(std::slice::from_ref(&url)).await;
    let gateway = tokio::spawn({
        let url = url.clone();
        async move { Part::start(&gateway_args(&[&url])).await }
    });
    // Both have been refused before there is anybody to answer.
    eventually("a refused registration", async || {
        service.client().status().admins[0].last_error.is_some().then_some(())
    })
    .await;
    assert!(!gateway.is_finished(), "a gateway without a configuration does not open its port");

    let admin = Part::start(&["admin", "--admin-listen", &addr.to_string()]).await;
    service.client().registered_within(DEADLINE).await.unwrap();
    let gateway = gateway.await.unwrap();
    gateway.gateway().learned("/http", 5, 1).await;
    let answer = gateway.gateway().get("/http/order/findById?id=95").await.unwrap();
    assert_eq!(answer.headers()["x-served-by"], service.local_addr().to_string());
    assert_eq!(answer.text().await.unwrap(), r#"{"id":"95","name":"hello world findById"}"#);
    service.shutdown().await;
    gateway.stop().await;
    admin.stop().await;
}

#[tokio::test]
async fn an_admin_that_restarts_empty_learns_its_services_again() {
    let addr = free_addr().to_string();
    let admin = Part::start(&["admin", "--admin-listen", &addr]).await;
    let url = admin.admin_url();
    let service = example_service(std::slice::from_ref(&url)).await;
    service.client().registered_within(DEADLINE).await.unwrap();
    admin.stop().await;

    let admin = Part::start(&["admin", "--admin-listen", &addr]).await;
    let api = admin.admin();
    let upstream = service.local_addr().to_string();
    eventually("the service, registered again", async || {
        let known = api.upstreams("/http").await == [upstream.clone()];
        (known && api.group("RULE").await.iter().filter(|r| r["pluginName"] == "divide").count() == 5)
            .then_some(())
    })
    .await;
    service.shutdown().await;
    admin.stop().await;
}

#[tokio::test]
async fn the_second_of_two_admins_is_asked_while_the_first_is_down() {
    let upstream = Upstream::start().await;
    let down = free_addr();
    let first = format!("http://{down}");
    let second = Part::start(&["admin"]).await;
    second.admin().register("/orders", PATH, upstream.addr()).await;
    let gateway = Part::start(&gateway_args(&[&first, &second.admin_url()])).await;
    assert_eq!(gateway.gateway().seen(PATH).await.unwrap().target, "/order/save");

    // The first one comes, the second goes: what changes at the first is learned.
    let other = Upstream::start().await;
    let first = Part::start(&["admin", "--admin-listen", &down.to_string()]).await;
    first.admin().register("/orders", PATH, other.addr()).await;
    second.stop().await;
    served_by(&gateway, &other).await;
    gateway.stop().await;
    first.stop().await;
}

#[tokio::test]
async fn a_gateway_whose_admins_are_all_gone_keeps_serving_and_resumes() {
    let upstream = Upstream::start().await;
    let (addr, other) = (free_addr(), free_addr());
    let args = |addr: SocketAddr| ["admin".to_owned(), "--admin-listen".to_owned(), addr.to_string()];
    let start = async |addr| Part::start(&args(addr).each_ref().map(String::as_str)).await;
    let (first, second) = (start(addr).await, start(other).await);
    first.admin().register("/orders", PATH, upstream.addr()).await;
    second.admin().register("/orders", PATH, upstream.addr()).await;
    let urls = [first.admin_url(), second.admin_url()];
    let mut gateway_args = gateway_args(&[&urls[0], &urls[1]]);
    gateway_args.extend(["--stale-after", "0.3"]);
    let gateway = Part::start(&gateway_args).await;
    served_by(&gateway, &upstream).await;

    first.stop().await;
    second.stop().await;
    eventually("a status that calls the configuration stale", async || {
        (gateway.gateway().status().await["sync"]["stale"] == true).then_some(())
    })
    .await;
    for _ in 0..20 {
        assert!(gateway.gateway().seen(PATH).await.is_some(), "it serves what it knows");
    }

    let admin = start(addr).await;
    let new = Upstream::start().await;
    admin.admin().register("/orders", PATH, new.addr()).await;
    served_by(&gateway, &new).await;
    eventually("a status that is fresh again", async || {
        (gateway.gateway().status().await["sync"]["stale"] == false).then_some(())
    })
    .await;
    gateway.stop().await;
    admin.stop().await;
}

#[tokio::test]
async fn a_gateway_restarted_without_admins_serves_what_it_kept() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start().await;
    let addr = free_addr().to_string();
    let admin = Part::start(&["admin", "--admin-listen", &addr]).await;
    admin.admin().register("/orders", PATH, upstream.addr()).await;
    let url = admin.admin_url();
    let mut args = gateway_args(&[&url]);
    args.extend(["--data-dir", text(folder.path())]);
    let gateway = Part::start(&args).await;
    served_by(&gateway, &upstream).await;
    gateway.stop().await;
    admin.stop().await;

    let gateway = Part::start(&args).await;
    assert_eq!(gateway.gateway().seen(PATH).await.unwrap().served_by, upstream.addr().to_string());

    // And it is no gateway of the past: it learns as soon as there is somebody to learn from.
    let new = Upstream::start().await;
    let admin = Part::start(&["admin", "--admin-listen", &addr]).await;
    admin.admin().register("/orders", PATH, new.addr()).await;
    served_by(&gateway, &new).await;
    gateway.stop().await;
    admin.stop().await;
}

/// Everything that was answered `success` before the kill is there after it, in each of several rounds.
#[tokio::test]
async fn what_was_acknowledged_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let addr = free_addr().to_string();
    let program = program();
    let args = [
        "admin",
        "--admin-listen",
        &addr,
        "--data-dir",
        text(folder.path()),
        "--upstream-check-interval",
        "0",
    ];
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..3 {
        let mut admin = program.start(&args).await;
        let api = admin.admin();
        assert_known(&api, &acknowledged).await;

        let count = Arc::new(AtomicUsize::new(0));
        let writer = |writer| tokio::spawn(write(api.clone(), round, writer, Arc::clone(&count)));
        let writers: Vec<_> = (0..4).map(writer).collect();
        // In the midst of the writing: once there is something to lose, and long before the writers end.
        eventually("answers", async || (count.load(Ordering::Relaxed) > 20).then_some(())).await;
        admin.kill().await;
        for writer in writers {
            acknowledged.extend(writer.await.unwrap());
        }
    }
    let admin = program.start(&args).await;
    assert_known(&admin.admin(), &acknowledged).await;
}

/// Registers path after path until the admin is gone, and gives those that were acknowledged.
async fn write(api: AdminApi, round: usize, writer: usize, count: Arc<AtomicUsize>) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 0..100_000 {
        let path = format!("/orders/{round}/{writer}/{number}");
        let upstream = ([10, 0, u8::try_from(writer).unwrap(), 1], 8080).into();
        let body = registration("/orders", &path, upstream);
        match api.try_register(&body).await {
            Ok(answer) => {
                assert_eq!(answer, "success");
                acknowledged.push(path);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => return acknowledged,
        }
    }
    panic!("the admin was not killed in time");
}

async fn assert_known(api: &AdminApi, paths: &[String]) {
    let rules = api.group("RULE").await;
    let known: std::collections::HashSet<_> = rules.iter().filter_map(|rule| rule["name"].as_str()).collect();
    let lost: Vec<_> = paths.iter().filter(|path| !known.contains(path.as_str())).collect();
    assert!(
        lost.is_empty(),
        "{} of {} acknowledged rules are gone: {:?}",
        lost.len(),
        paths.len(),
        lost.first()
    );
}
