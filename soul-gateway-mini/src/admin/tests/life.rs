use serde_json::json;

use super::{registration::FEB, *};
use crate::admin::AdminError;

#[tokio::test]
async fn what_was_registered_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let config = || AdminConfig { data: DataDir::Path(folder.path().join("data")), ..config() };
    let running = Running::start(config()).await;
    for body in FEB {
        running.register(body).await;
    }
    let before = running.group("RULE").await;
    let revision = running.admin.image().borrow().revision;
    running.admin.shutdown().await;

    let running = Running::start(config()).await;
    assert_eq!(running.group("RULE").await, before);
    assert_eq!(running.admin.image().borrow().revision, revision);
    assert!(matches!(Admin::start(config()).await, Err(AdminError::Store(_))), "the folder is in use");
    running.admin.shutdown().await;
    Admin::start(config()).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn address_in_use_is_named() {
    let running = Running::start(config()).await;
    let taken = running.admin.local_addr();
    let error = Admin::start(AdminConfig { listen: taken, ..config() }).await.unwrap_err();
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
}

#[tokio::test]
async fn wrong_settings_are_all_named() {
    let config = AdminConfig { poll_hold: Duration::ZERO, body_limit: 0, ..config() };
    let error = Admin::start(config).await.unwrap_err().to_string();
    assert!(error.contains("`poll_hold`") && error.contains("`body_limit`"), "{error}");
}

#[tokio::test]
async fn status_shows_the_whole() {
    let running = Running::start(config()).await;
    running.register(FEB[0]).await;
    assert_eq!(running.get("/healthz").await, (StatusCode::OK, "ok\n".to_owned()));
    assert_eq!(running.get("/readyz").await, (StatusCode::OK, "ready\n".to_owned()));
    let status = running.get_json("/status").await;
    assert_eq!((&status["part"], &status["revision"]), (&json!("admin"), &json!(1)));
    assert_eq!((&status["counts"]["upstreams"], &status["counts"]["rules"]), (&json!(1), &json!(1)));
    assert_eq!(status["store"]["durable"], json!(false));
    let (_, metrics) = running.get("/metrics").await;
    assert!(metrics.contains("soul_admin_registrations_total{outcome=\"changed\"} 1"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
}

#[tokio::test]
async fn live_upstreams_are_probed() {
    // Real sockets: one upstream listens, the other does not.
    let alive = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, dead_port) = (alive.local_addr().unwrap().port(), dead.local_addr().unwrap().port());
    drop(dead);
    let config = AdminConfig { upstream_check_interval: Duration::from_millis(50), ..config() };
    let running = Running::start(config).await;
    for port in [port, dead_port] {
        running.register(FEB[0].replace("10.0.0.2", "127.0.0.1").replace("8188", &port.to_string())).await;
    }
    let mut image = running.admin.image();
    let handle = |image: &crate::model::ConfigImage| {
        let crate::model::GroupData::Selector(list) =
            &image.group(soul_client::wire::soul::ConfigGroup::Selector).data
        else {
            return String::new();
        };
        list[0].handle.clone().unwrap_or_default()
    };
    let left = image.wait_for(|image| {
        let handle = handle(image);
        handle.contains(&format!(":{port}\"")) && !handle.contains(&format!(":{dead_port}\""))
    });
    tokio::time::timeout(Duration::from_secs(20), left).await.unwrap().unwrap();
    let selector = &running.get_json("/api/v1/selectors").await["data"]["items"][0];
    let upstream = &selector["upstreams"][1];
    assert_eq!((&upstream["healthy"], &upstream["status"]), (&json!(false), &json!(true)));
    assert!(upstream["lastProbe"]["error"].as_str().unwrap().contains("refused"), "{upstream}");

    let _listener = tokio::net::TcpListener::bind(("127.0.0.1", dead_port)).await.unwrap();
    let back = image.wait_for(|image| handle(image).contains(&format!(":{dead_port}\"")));
    tokio::time::timeout(Duration::from_secs(20), back).await.unwrap().unwrap();
}
