//! Whole lives, with an admin and callers in this process.

use std::{net::SocketAddr, time::Duration};

use axum::{Router, routing::get};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{oneshot, watch},
    task::JoinHandle,
};

use super::Life;
use crate::{
    ClientConfig, Dialect, Error, ShenyuVersion, SoulClient, Status,
    config::ClientConfigBuilder,
    route::{Annotation, Route},
    testing::{FakeAdmin, Reply},
};

const LIMIT: Duration = Duration::from_secs(20);

fn config(admin: &FakeAdmin) -> ClientConfigBuilder {
    ClientConfig::builder()
        .admin_url(admin.url())
        .context_path("/orders")
        .username(FakeAdmin::USERNAME)
        .password(FakeAdmin::PASSWORD)
        .propagation_time(Duration::from_millis(200))
}

async fn admin() -> FakeAdmin {
    FakeAdmin::start(Dialect::Shenyu(ShenyuVersion::V2_7)).await.unwrap()
}

struct Running {
    address: SocketAddr,
    status: watch::Receiver<Status>,
    life: JoinHandle<Result<(), Error>>,
}

/// `/fast`, and `/slow`, which takes half a second.
async fn run(config: ClientConfigBuilder, until: Option<oneshot::Receiver<()>>) -> Running {
    let router = Router::new().route("/fast", get(async || "fast")).route(
        "/slow",
        get(async || {
            tokio::time::sleep(Duration::from_millis(500)).await;
            "slow"
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = [Route::new(Annotation::new("/fast")), Route::new(Annotation::new("/slow"))];
    let (tell, told) = oneshot::channel();
    let mut life = Life::of(SoulClient::builder(config.build().unwrap()).routes(routes))
        .on_start(|status| drop(tell.send(status)));
    if let Some(until) = until {
        life = life.until(async { drop(until.await) });
    }
    let life = tokio::spawn(life.serve(listener, router));
    Running { address, status: told.await.unwrap(), life }
}

impl Running {
    async fn registered(&mut self) {
        tokio::time::timeout(LIMIT, self.status.wait_for(Status::is_registered)).await.unwrap().unwrap();
    }

    async fn ended(self) -> Result<(), Error> {
        tokio::time::timeout(LIMIT, self.life).await.unwrap().unwrap()
    }
}

async fn call(address: SocketAddr, path: &str) -> Result<String, std::io::Error> {
    let mut stream = TcpStream::connect(address).await?;
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes())
        .await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

async fn gone(admin: &FakeAdmin) {
    let wait = async {
        while !admin.instances().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(LIMIT, wait).await.unwrap();
}

#[tokio::test]
async fn leaves_first_and_serves_on_until_every_gateway_knows() {
    let admin = admin().await;
    let (stop, stopped) = oneshot::channel();
    let mut running = run(config(&admin), Some(stopped)).await;
    running.registered().await;
    let address = running.address;
    assert_eq!(admin.instances(), [address.to_string()]);

    stop.send(()).unwrap();
    gone(&admin).await;
    // The gateways do not know yet: new connections are served, and one of them takes its time.
    assert!(call(address, "/fast").await.unwrap().ends_with("fast"));
    let slow = tokio::spawn(call(address, "/slow"));
    running.ended().await.unwrap();
    assert!(slow.await.unwrap().unwrap().ends_with("slow"), "a request under way is finished");
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
    let requests = admin.take();
    assert!(requests.last().unwrap().path.ends_with("/offline"), "{requests:#?}");
}

#[tokio::test]
async fn dead_admin_and_a_hanging_request_are_waited_for_no_longer_than_allowed() {
    let admin = admin().await;
    let (stop, stopped) = oneshot::channel();
    let config = config(&admin)
        .stop_timeout(Duration::from_millis(300))
        .propagation_time(Duration::from_secs(60))
        .offline_timeout(Duration::from_secs(60));
    let mut running = run(config, Some(stopped)).await;
    running.registered().await;
    admin.script(|_| Reply::Hang);
    let slow = tokio::spawn(call(running.address, "/slow"));
    let begin = std::time::Instant::now();
    stop.send(()).unwrap();
    running.ended().await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(300) && begin.elapsed() < Duration::from_secs(5));
    slow.abort();
}

#[tokio::test]
async fn admin_without_a_farewell_is_not_waited_for() {
    let admin = FakeAdmin::start(Dialect::Feb2021).await.unwrap();
    let (stop, stopped) = oneshot::channel();
    let mut running = run(config(&admin).propagation_time(Duration::from_secs(60)), Some(stopped)).await;
    running.registered().await;
    stop.send(()).unwrap();
    running.ended().await.unwrap();
}

#[tokio::test]
async fn server_that_fails_takes_the_instance_out() {
    let admin = admin().await;
    let routes = [Route::new(Annotation::new("/fast"))];
    let client = SoulClient::builder(config(&admin).build().unwrap()).routes(routes);
    let registered = async {
        while admin.instances().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let life = Life::of(client).until(std::future::pending());
    let error = life
        .serve_with("127.0.0.1:3000".parse().unwrap(), |_| async {
            registered.await;
            Err("no more files")
        })
        .await
        .unwrap_err();
    assert_eq!(error.chain(), "serve requests: no more files");
    assert!(admin.instances().is_empty());
}

#[tokio::test]
async fn server_that_hears_of_the_signal_first_does_not_cut_the_farewell_short() {
    let admin = admin().await;
    let routes = [Route::new(Annotation::new("/fast"))];
    let client = SoulClient::builder(config(&admin).build().unwrap()).routes(routes);
    let stop = tokio_util::sync::CancellationToken::new();
    let (life, server) = (stop.clone().cancelled_owned(), stop.clone().cancelled_owned());
    let signal = async {
        while admin.instances().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        admin.script(|_| Reply::UsualAfter(Duration::from_millis(100)));
        stop.cancel();
    };
    let life = Life::of(client).until(life).serve_with("127.0.0.1:3000".parse().unwrap(), |_| async {
        server.await;
        Ok::<_, Error>(())
    });
    let (ended, ()) = tokio::join!(life, signal);
    ended.unwrap();
    assert!(admin.instances().is_empty());
}

#[tokio::test]
async fn server_that_fails_while_the_admin_hangs_ends_in_time() {
    let admin = admin().await;
    let minute = Duration::from_secs(60);
    let config = config(&admin).offline_timeout(minute).stop_timeout(Duration::from_millis(300));
    let client = SoulClient::builder(config.build().unwrap()).routes([Route::new(Annotation::new("/fast"))]);
    let registered = async {
        while admin.instances().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        admin.script(|_| Reply::Hang);
    };
    let life = Life::of(client).until(std::future::pending());
    let life = life.serve_with("127.0.0.1:3000".parse().unwrap(), |_| async {
        registered.await;
        Err::<(), _>("no more files")
    });
    let ended = tokio::time::timeout(LIMIT, life).await.expect("a bounded end");
    assert_eq!(ended.unwrap_err().chain(), "serve requests: no more files");
}

#[cfg(unix)]
#[tokio::test]
async fn terminate_ends_it_and_a_second_one_at_once() {
    let admin = admin().await;
    let mut running = run(config(&admin).propagation_time(Duration::from_secs(60)), None).await;
    running.registered().await;
    let terminate = || {
        // Safe for the other tests: the signal is waited for by now, so it ends nothing by itself.
        let id = std::process::id().to_string();
        let sent = std::process::Command::new("sh").args(["-c", "kill -TERM \"$0\"", &id]).status();
        assert!(sent.unwrap().success());
    };
    terminate();
    gone(&admin).await;
    // One that comes with the first means nothing more; later ones mean now.
    terminate();
    let life = running.life.abort_handle();
    let again = async {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            terminate();
        }
    };
    assert!(!life.is_finished(), "the gateways are waited for");
    let begin = std::time::Instant::now();
    tokio::select! {
        () = again => {}
        ended = running.ended() => ended.unwrap(),
    }
    assert!(begin.elapsed() > Duration::from_millis(200), "{:?}", begin.elapsed());
}
