use serde_json::json;

use super::{registration::FEB, *};
use crate::{admin::AdminError, documented::check_fields, exposition};

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
    check_fields("Status of an admin", &status);
    let response = running.client.get(running.url("/metrics")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], exposition::CONTENT_TYPE);
    let metrics = response.text().await.unwrap();
    assert!(metrics.contains("soul_admin_registrations_total{outcome=\"changed\"} 1"), "{metrics}");
    exposition::check(&metrics);
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
            &*image.group(soul_client::wire::soul::ConfigGroup::Selector).data
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

#[tokio::test]
async fn half_a_head_does_not_hold_up_the_end_and_half_a_body_is_waited_for() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let drain_timeout = Duration::from_secs(600);
    let running =
        Running::start(AdminConfig { drain_timeout, header_timeout: drain_timeout, ..config() }).await;
    let connect = || tokio::net::TcpStream::connect(running.admin.local_addr());
    let mut half_head = connect().await.unwrap();
    half_head.write_all(b"GET /healthz HTTP/1.1\r\nHo").await.unwrap();
    let mut half_body = connect().await.unwrap();
    let (first, rest) = FEB[0].split_at(20);
    let length = FEB[0].len();
    // The interim answer says that the request was taken on.
    let head = format!(
        "POST /soul-client/springmvc-register HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
         expect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
    );
    half_body.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    half_body.read_exact(&mut interim).await.unwrap();
    assert_eq!(interim, *b"HTTP/1.1 100 Continue\r\n\r\n");
    half_body.write_all(first.as_bytes()).await.unwrap();

    let Running { admin, .. } = running;
    let ended = tokio::spawn(admin.shutdown());
    let limit = Duration::from_secs(30);
    let mut nothing = Vec::new();
    tokio::time::timeout(limit, half_head.read_to_end(&mut nothing)).await.unwrap().unwrap();
    assert_eq!(nothing, b"");
    assert!(!ended.is_finished());
    half_body.write_all(rest.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(limit, half_body.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.ends_with("\r\n\r\nsuccess"), "{answer}");
    tokio::time::timeout(limit, ended).await.unwrap().unwrap();
}
