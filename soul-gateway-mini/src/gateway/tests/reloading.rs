//! Settings that change while requests are served.

use std::{fs, time::Duration};

use super::{
    super::{ErrorStatus, GatewayConfig, GatewayError},
    peers::{Reply, Upstream, Wire, eventually, get, ok},
    setup::{Running, config, handle, service},
};

/// Takes up settings.
fn reload(running: &Running, config: &GatewayConfig) {
    running.gateway.reload(config).expect("settings that work");
}

#[tokio::test]
async fn open_connections_go_by_new_settings_from_their_next_request_on() {
    let upstream = Upstream::named("one").await;
    let data = service(&[upstream.address], &handle("random", 0, 3000));
    let running = Running::start(&data).await;
    let mut wire = Wire::connect(running.address()).await;
    wire.send("GET /nowhere/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(wire.response_to("GET").await.status(), 404);

    reload(&running, &GatewayConfig { error_status: ErrorStatus::Soul, max_body_bytes: 4, ..config() });
    wire.send("GET /nowhere/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(wire.response_to("GET").await.status(), 200, "as Soul says it");
    wire.send("POST /http/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!(wire.response_to("POST").await.status(), 413);
    let unmatched = get(running.gateway.status_addr(), "/metrics").await.text();
    for status in [200, 404] {
        let line = format!(r#"soul_gateway_requests_total{{selector="",rule="",status="{status}"}} 1"#);
        assert!(unmatched.contains(&line), "counted on: {unmatched}");
    }
}

#[tokio::test]
async fn settings_that_cannot_work_change_nothing() {
    let upstream = Upstream::named("one").await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 3000))).await;
    let wrong =
        GatewayConfig { error_status: ErrorStatus::Soul, connect_timeout: Duration::ZERO, ..config() };
    let Err(GatewayError::Config { problems }) = running.gateway.reload(&wrong) else {
        panic!("taken up");
    };
    assert!(problems[0].contains("connect_timeout"), "{problems:?}");
    assert_eq!(get(running.address(), "/nowhere/x").await.status(), 404);
}

#[tokio::test]
async fn limits_of_requests_and_of_idle_connections_change() {
    let upstream =
        Upstream::start(|seen| if seen.target() == "/slow" { Reply::Hang } else { ok("one") }).await;
    let running = Running::start(&service(&[upstream.address], &handle("random", 0, 60_000))).await;
    let mut slow = Wire::connect(running.address()).await;
    slow.send("GET /http/slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    eventually("the request arrives", async || upstream.seen().len() == 1).await;
    assert_eq!(get(running.address(), "/http/x").await.status(), 200);
    assert_eq!(running.status().await["connections"]["upstreams"], 2, "one busy, one idle");

    reload(&running, &GatewayConfig { max_requests: 1, pool_max_idle: 0, ..config() });
    eventually("none is kept idle", async || running.status().await["connections"]["upstreams"] == 1).await;
    let refused = get(running.address(), "/http/x").await;
    assert_eq!((refused.status(), refused.values("retry-after")), (503, vec!["1"]));
    reload(&running, &config());
    assert_eq!(get(running.address(), "/http/x").await.status(), 200);
}

#[tokio::test]
async fn upstreams_are_chosen_by_new_settings_and_keep_what_is_known_of_them() {
    let upstream = Upstream::named("one").await;
    let mut data = service(&[upstream.address], &handle("random", 0, 3000));
    let selector = std::sync::Arc::make_mut(&mut data.selectors[0]);
    selector.handle = selector.handle.take().map(|handle| handle.replace("\"weight\":50", "\"weight\":0"));
    assert!(selector.handle.as_deref().is_some_and(|handle| handle.contains("\"weight\":0")), "{selector:?}");
    let running = Running::start(&data).await;
    assert_eq!(get(running.address(), "/http/x").await.status(), 503, "weight 0 takes no traffic");

    let choice = soul_client::balance::Choice::Soul;
    let mut sync = running.gateway.sync_status();
    let before = sync.borrow_and_update().revision;
    reload(&running, &GatewayConfig { upstream_choice: choice, ..config() });
    super::peers::within(sync.wait_for(|status| status.revision > before)).await.expect("built anew");
    assert_eq!(get(running.address(), "/http/x").await.text(), "one");
    assert_eq!(running.status().await["config"]["selectors"][0]["upstreams"][0]["attempts"], 1);
}

#[tokio::test]
async fn the_access_log_goes_on_in_a_new_file_after_the_old_one_was_moved() {
    let folder = tempfile::tempdir().unwrap();
    let [path, moved, other] =
        ["access.log", "access.log.1", "other.log"].map(|name| folder.path().join(name));
    let upstream = Upstream::named("one").await;
    let data = service(&[upstream.address], &handle("random", 0, 3000));
    let running = Running::with(GatewayConfig { access_log: Some(path.clone()), ..config() }, &data).await;
    let lines = |path: &std::path::Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    let mut wire = Wire::connect(running.address()).await;
    let mut ask = async |times: usize| {
        for _ in 0..times {
            wire.send("GET /http/x HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(wire.response_to("GET").await.status(), 200);
        }
    };
    ask(3).await;
    eventually("they are written", async || lines(&path) == 3).await;

    fs::rename(&path, &moved).unwrap();
    ask(2).await;
    running.gateway.reopen_log().unwrap();
    ask(4).await;
    eventually("none is lost", async || lines(&path) + lines(&moved) == 9).await;
    assert!(lines(&path) >= 4, "the new file is written to");

    let nowhere = GatewayConfig { access_log: Some(folder.path().join("no/such/folder")), ..config() };
    let Err(GatewayError::Reload { refused }) = running.gateway.reload(&nowhere) else { panic!("taken up") };
    assert!(matches!(refused[..], [("access log", GatewayError::AccessLog { .. })]), "{refused:?}");
    ask(1).await;
    eventually("it is written on", async || lines(&path) + lines(&moved) == 10).await;

    reload(&running, &GatewayConfig { access_log: Some(other.clone()), ..config() });
    ask(2).await;
    eventually("the log may be another", async || lines(&other) == 2).await;
    ask(2).await;
    reload(&running, &config());
    ask(2).await;
    assert_eq!((lines(&other), lines(&path) + lines(&moved)), (4, 10), "and none at all, after the last");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_leaves_all_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, nowhere) = (folder.path().join("ca.pem"), folder.path().join("no/such/folder"));
    let running = Running::start(&service(&[], &handle("random", 0, 3000))).await;
    let wrong = GatewayConfig {
        error_status: ErrorStatus::Soul,
        upstream_ca: Some(missing.clone()),
        access_log: Some(nowhere.clone()),
        ..config()
    };
    let error = running.gateway.reload(&wrong).unwrap_err().to_string();
    let parts =
        ["access log: ", "`--access-log`", "certificates for upstreams: ", "`--upstream-ca`", "(os error 2)"];
    for said in parts.into_iter().chain([missing.to_str().unwrap(), nowhere.to_str().unwrap()]) {
        assert!(error.contains(said), "{error}");
    }
    assert_eq!(get(running.address(), "/nowhere/x").await.status(), 404, "other parts have not gone ahead");
}

#[tokio::test]
async fn the_limit_of_connections_changes_and_open_ones_stay() {
    let running = Running::start(&service(&[], &handle("random", 0, 3000))).await;
    let request = "GET /nowhere/x HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut wires = [Wire::connect(running.address()).await, Wire::connect(running.address()).await];
    for limit in [2, 1] {
        reload(&running, &GatewayConfig { max_connections: limit, ..config() });
        for wire in &mut wires {
            wire.send(request).await;
            assert_eq!(wire.response_to("GET").await.status(), 404);
        }
    }
    let mut third = Wire::connect(running.address()).await;
    third.send(request).await;
    let [first, _second] = wires;
    drop(first);
    eventually("the second has the only place", async || {
        running.status().await["connections"]["callers"] == 1
    })
    .await;
    reload(&running, &GatewayConfig { max_connections: 2, ..config() });
    assert_eq!(third.response_to("GET").await.status(), 404);
}
