//! The admin as a whole, over real sockets.

mod api;
mod life;
mod registration;
mod shenyu;
mod sync;

use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde_json::Value;

use super::{Admin, AdminConfig, DataDir};

/// Settings of a test: a free port, nothing on disk, no probing.
fn config() -> AdminConfig {
    AdminConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        data: DataDir::Memory,
        upstream_check_interval: Duration::ZERO,
        ..AdminConfig::default()
    }
}

/// A running admin and a client for it.
struct Running {
    admin: Admin,
    client: Client,
}

impl Running {
    async fn start(config: AdminConfig) -> Self {
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Self { admin: Admin::start(config).await.unwrap(), client }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.admin.local_addr())
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        let response = self.client.get(self.url(path)).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    async fn get_json(&self, path: &str) -> Value {
        let (_, text) = self.get(path).await;
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    async fn post(&self, path: &str, body: impl Into<String>) -> (StatusCode, String) {
        let request =
            self.client.post(self.url(path)).header("content-type", "application/json; charset=utf-8");
        let response = request.body(body.into()).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }

    /// Registers, and expects it to be taken.
    async fn register(&self, body: impl Into<String>) {
        let answer = self.post("/soul-client/springmvc-register", body).await;
        assert_eq!(answer, (StatusCode::OK, "success".to_owned()));
    }

    /// The entries of a group, by `/configs/fetch`.
    async fn group(&self, group: &str) -> Vec<Value> {
        let answer = self.get_json(&format!("/configs/fetch?groupKeys={group}")).await;
        answer["data"][group]["data"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
    }
}
