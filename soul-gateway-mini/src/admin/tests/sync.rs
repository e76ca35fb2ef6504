use std::{collections::HashMap, sync::Arc};

use serde_json::json;
use soul_client::wire::{
    gson,
    soul::{ConfigGroup, FetchedGroup, PluginData, SoulResult},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{registration::FEB, *};
use crate::model::GroupData;

/// The answer of a poll after the hold time.
const NOTHING: &str = "{\"code\":200,\"message\":\"success\",\"data\":[]}\n";

impl Running {
    /// The form of a gateway that has everything.
    fn form(&self) -> String {
        let image = self.admin.image().borrow().clone();
        let pair = |group: &ConfigGroup| {
            let image = image.group(*group);
            format!("{group}={}%2C{}", image.md5, image.last_modify_time)
        };
        ConfigGroup::ALL.iter().map(pair).collect::<Vec<_>>().join("&")
    }

    async fn poll(&self, form: String) -> String {
        let request = self.client.post(self.url("/configs/listener"));
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
        request.send().await.unwrap().text().await.unwrap()
    }

    async fn held(&self) -> i64 {
        self.get_json("/status").await["sync"]["pollsHeld"].as_i64().unwrap()
    }

    async fn until_held(&self, expected: i64) {
        let reached = async {
            while self.held().await != expected {
                sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(timeout(Duration::from_secs(20), reached).await.is_ok(), "{} held", self.held().await);
    }
}

#[tokio::test]
async fn fetch_writes_nulls_and_the_texts_of_the_image() {
    let running = Running::start(config()).await;
    running.register(FEB[1]).await;
    let answer = running
        .get_json("/configs/fetch?groupKeys=APP_AUTH&groupKeys=PLUGIN&groupKeys=RULE,SELECTOR,META_DATA")
        .await;
    assert_eq!((&answer["code"], &answer["message"]), (&json!(200), &json!("success")));
    let image = running.admin.image().borrow().clone();
    for group in ConfigGroup::ALL {
        let found = &answer["data"][group.as_str()];
        assert_eq!(found["md5"], json!(image.group(group).md5), "{group}");
        assert_eq!(found["lastModifyTime"], json!(image.group(group).last_modify_time), "{group}");
    }
    assert_eq!(answer["data"]["APP_AUTH"]["data"], json!([]));
    let (_, text) = running.get("/configs/fetch?groupKeys=PLUGIN").await;
    let read: SoulResult<'_, HashMap<ConfigGroup, FetchedGroup<PluginData>>> =
        gson::from_plain(&text).unwrap().unwrap();
    let group = &read.data.unwrap()[&ConfigGroup::Plugin];
    let plugins = image.group(ConfigGroup::Plugin);
    assert_eq!((&group.md5, group.last_modify_time), (&plugins.md5, plugins.last_modify_time));
    assert_eq!(GroupData::Plugin(group.data.clone()), *plugins.data);
    assert!(text.contains(r#"{"id":"1","name":"sign","config":null,"role":1,"enabled":false}"#), "{text}");
}

#[tokio::test]
async fn errors_of_sync_are_soul_s() {
    let running = Running::start(config()).await;
    let busy = r#"{"code":500,"message":"The system is busy, please try again later","data":null}"#;
    for path in ["/configs/fetch", "/configs/fetch?groupKeys=NOPE", "/configs/fetch?groupKeys=PLUGIN,NOPE"] {
        let (status, text) = running.get(path).await;
        assert_eq!(status, 200);
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            serde_json::from_str::<Value>(busy).unwrap()
        );
    }
    let text = running.poll(running.form().replace("RULE=", "RULES=")).await;
    let expected = json!({"code": 500, "message": "group param invalid:null", "data": null});
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    assert_eq!(running.get("/configs/listener").await.0, 405);
}

#[tokio::test]
async fn poll_that_knows_less_is_answered_at_once() {
    let running = Running::start(config()).await;
    let old = running.form();
    running.register(FEB[1]).await;
    let text = running.poll(old).await;
    assert_eq!(text, "{\"code\":200,\"message\":\"success\",\"data\":[\"RULE\",\"SELECTOR\"]}\n");
    let nothing: String =
        ConfigGroup::ALL.iter().map(|group| format!("{group}=x%2C99999999999999&")).collect();
    let text = running.poll(nothing).await;
    assert!(text.contains(r#"["APP_AUTH","PLUGIN","RULE","SELECTOR","META_DATA"]"#), "{text}");
}

#[tokio::test]
async fn held_poll_is_answered_by_a_change() {
    let running = Arc::new(Running::start(config()).await);
    let poller = Arc::clone(&running);
    let form = running.form();
    let poll = tokio::spawn(async move { poller.poll(form).await });
    running.until_held(1).await;
    running.register(FEB[1]).await;
    let text = poll.await.unwrap();
    assert!(text.contains("SELECTOR"), "{text}");
    running.until_held(0).await;
}

#[tokio::test]
async fn poll_without_a_change_ends_after_the_hold_time() {
    let hold = Duration::from_millis(300);
    let running = Running::start(AdminConfig { poll_hold: hold, ..config() }).await;
    let started = Instant::now();
    assert_eq!(running.poll(running.form()).await, NOTHING);
    assert!(started.elapsed() >= hold, "{:?}", started.elapsed());
}

#[tokio::test]
async fn poll_may_be_held_longer_than_a_head_may_take() {
    let config = AdminConfig {
        poll_hold: Duration::from_millis(600),
        header_timeout: Duration::from_millis(100),
        body_timeout: Duration::from_millis(100),
        write_timeout: Duration::from_millis(100),
        ..config()
    };
    let running = Running::start(config).await;
    assert_eq!(running.poll(running.form()).await, NOTHING);
}

#[tokio::test]
async fn dating_the_groups_anew_wakes_nobody() {
    let config = AdminConfig {
        poll_hold: Duration::from_millis(500),
        refresh_interval: Duration::from_millis(20),
        ..config()
    };
    let running = Running::start(config).await;
    let dated = running.admin.image().borrow().groups[0].last_modify_time;
    assert_eq!(running.poll(running.form()).await, NOTHING);
    assert!(running.admin.image().borrow().groups[0].last_modify_time > dated);
}

#[tokio::test]
async fn poll_of_a_client_that_left_is_dropped() {
    let running = Running::start(config()).await;
    let form = running.form();
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(running.admin.local_addr()).await.unwrap();
        let head = format!(
            "POST /configs/listener HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    running.until_held(20).await;
    drop(streams);
    running.until_held(0).await;
}

#[tokio::test]
async fn held_polls_are_answered_at_shutdown() {
    let running = Running::start(config()).await;
    let mut polls = JoinSet::new();
    for _ in 0..10 {
        let request = running.client.post(running.url("/configs/listener"));
        let request =
            request.header("content-type", "application/x-www-form-urlencoded").body(running.form());
        polls.spawn(async move { request.send().await.unwrap().text().await.unwrap() });
    }
    running.until_held(10).await;
    let started = Instant::now();
    running.admin.shutdown().await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    while let Some(text) = polls.join_next().await {
        assert_eq!(text.unwrap(), NOTHING);
    }
}

#[tokio::test]
async fn no_change_is_lost_between_polls() {
    // A gateway that polls and fetches ends at the last revision, whatever comes between its two steps.
    let running = Arc::new(Running::start(config()).await);
    let gateway = {
        let running = Arc::clone(&running);
        tokio::spawn(async move {
            loop {
                let answer = running
                    .get_json("/configs/fetch?groupKeys=RULE,SELECTOR,APP_AUTH,PLUGIN,META_DATA")
                    .await;
                let rules = answer["data"]["RULE"]["data"].as_array().unwrap().len();
                if rules == 200 {
                    return;
                }
                let pair = |group: &ConfigGroup| {
                    let found = &answer["data"][group.as_str()];
                    format!("{group}={}%2C{}", found["md5"].as_str().unwrap(), found["lastModifyTime"])
                };
                let form = ConfigGroup::ALL.iter().map(pair).collect::<Vec<_>>().join("&");
                let text = running.poll(form).await;
                assert_ne!(text, NOTHING, "held although there was more to come");
            }
        })
    };
    for at in 0..200 {
        running.register(FEB[1].replace("/http/order/save", &format!("/http/{at}"))).await;
    }
    timeout(Duration::from_secs(20), gateway).await.unwrap().unwrap();
}

#[tokio::test]
async fn slow_head_and_slow_body_are_cut_off() {
    let config = AdminConfig {
        header_timeout: Duration::from_millis(200),
        body_timeout: Duration::from_millis(200),
        ..config()
    };
    let running = Running::start(config).await;
    for start in [
        "POST /soul-client/springmvc-register HTTP/1.1\r\nhost: a\r\n",
        "POST /soul-client/springmvc-register HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{",
    ] {
        let mut stream = TcpStream::connect(running.admin.local_addr()).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let ended = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "{start:?} is still open");
    }
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_for_their_turn() {
    let running = Running::start(AdminConfig { max_connections: 2, ..config() }).await;
    let first = TcpStream::connect(running.admin.local_addr()).await.unwrap();
    let _second = TcpStream::connect(running.admin.local_addr()).await.unwrap();
    let get = running.client.get(running.url("/healthz")).send();
    tokio::pin!(get);
    assert!(timeout(Duration::from_millis(200), get.as_mut()).await.is_err());
    drop(first);
    assert_eq!(timeout(Duration::from_secs(5), get).await.unwrap().unwrap().status(), 200);
}
