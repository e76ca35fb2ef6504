//! The admin's wire, as a client and a gateway see it.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::client::client;

/// The groups of configuration, as they are called on the wire.
const GROUPS: [&str; 5] = ["APP_AUTH", "PLUGIN", "RULE", "SELECTOR", "META_DATA"];

/// Talks to one admin.
#[derive(Clone, Debug)]
pub struct AdminApi {
    base: String,
    http: reqwest::Client,
}

/// The body with which an instance announces one path of `context`, as the Java client of February 2021 does.
#[must_use]
pub fn registration(context: &str, path: &str, upstream: SocketAddr) -> Value {
    json!({
        "appName": context.trim_start_matches('/'),
        "context": context,
        "path": path,
        "pathDesc": "",
        "rpcType": "http",
        "host": upstream.ip().to_string(),
        "port": upstream.port(),
        "ruleName": path,
        "enabled": true,
        "registerMetaData": false,
    })
}

impl AdminApi {
    /// An admin by its base address.
    #[must_use]
    pub fn new(base: impl Into<String>) -> Self {
        Self { base: base.into(), http: client() }
    }

    /// Posts a registration and gives the answer's text.
    ///
    /// # Errors
    /// When the admin is not there.
    pub async fn try_register(&self, body: &Value) -> reqwest::Result<String> {
        let url = format!("{}/soul-client/springmvc-register", self.base);
        self.http.post(url).json(body).send().await?.text().await
    }

    /// Registers `path` of `context` for an upstream.
    ///
    /// # Panics
    /// When the admin does not answer `success`.
    pub async fn register(&self, context: &str, path: &str, upstream: SocketAddr) {
        let answer = self.try_register(&registration(context, path, upstream)).await;
        assert_eq!(answer.expect("the admin answers"), "success", "{context} {path} {upstream}");
    }

    /// One group as `/configs/fetch` gives it: `SELECTOR`, `RULE`, …
    ///
    /// # Panics
    /// When the admin does not give it.
    pub async fn group(&self, group: &str) -> Vec<Value> {
        let answer = self.get(&format!("/configs/fetch?groupKeys={group}")).await;
        assert_eq!(answer["code"], 200, "{answer}");
        answer["data"][group]["data"].as_array().unwrap_or_else(|| panic!("no {group} in {answer}")).clone()
    }

    /// The upstreams that gateways are told of for a selector, as `host:port`.
    ///
    /// # Panics
    /// When the handle is no list.
    pub async fn upstreams(&self, selector: &str) -> Vec<String> {
        let selectors = self.group("SELECTOR").await;
        let found = selectors.iter().find(|s| s["name"] == selector);
        let Some(handle) = found.and_then(|s| s["handle"].as_str()).filter(|handle| !handle.is_empty())
        else {
            return Vec::new();
        };
        let handle: Vec<Value> = serde_json::from_str(handle).expect("the handle is a list");
        handle.iter().map(|u| u["upstreamUrl"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Asks for everything, and gives what a gateway then says to be told of the next change.
    ///
    /// # Panics
    /// When the admin does not answer.
    pub async fn known(&self) -> Vec<(&'static str, String)> {
        let query = GROUPS.map(|group| format!("groupKeys={group}")).join("&");
        let answer = self.get(&format!("/configs/fetch?{query}")).await;
        let group = |name| &answer["data"][name];
        let value = |name| {
            format!("{},{}", group(name)["md5"].as_str().unwrap_or_default(), group(name)["lastModifyTime"])
        };
        GROUPS.map(|name| (name, value(name))).to_vec()
    }

    /// Holds a poll until something is not as `known`, and gives the groups that changed.
    ///
    /// # Panics
    /// When the admin does not answer.
    pub async fn poll(&self, known: &[(&'static str, String)]) -> Vec<String> {
        let url = format!("{}/configs/listener", self.base);
        let response = self.http.post(url).form(known).send().await.expect("the admin answers");
        let answer: Value = response.json().await.expect("the answer is JSON");
        assert_eq!(answer["code"], 200, "{answer}");
        let changed = answer["data"].as_array().unwrap_or_else(|| panic!("no list in {answer}"));
        changed.iter().map(|group| group.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The id of a row of `/api/v1` by its name; `kind` is `selectors`, `rules`, …
    ///
    /// # Panics
    /// When there is none.
    pub async fn id(&self, kind: &str, name: &str) -> String {
        let answer = self.get(&format!("/api/v1/{kind}")).await;
        let rows = answer["data"]["items"].as_array().unwrap_or_else(|| panic!("no list in {answer}"));
        let row =
            rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no `{name}` in {answer}"));
        row["id"].as_str().unwrap_or_else(|| panic!("no id in {row}")).to_owned()
    }

    /// Changes a row of `/api/v1`, for example `rules/17`.
    ///
    /// # Panics
    /// When the admin refuses.
    pub async fn change(&self, path: &str, patch: Value) {
        let url = format!("{}/api/v1/{path}", self.base);
        let answer = self.http.patch(url).json(&patch).send().await.expect("the admin answers");
        assert_eq!(answer.status(), 200, "{path} {patch}: {:?}", answer.text().await);
    }

    /// Deletes a row of `/api/v1`.
    ///
    /// # Panics
    /// When the admin refuses.
    pub async fn delete(&self, path: &str) {
        let answer =
            self.http.delete(format!("{}/api/v1/{path}", self.base)).send().await.expect("the admin answers");
        assert_eq!(answer.status(), 200, "{path}: {:?}", answer.text().await);
    }

    /// Gets JSON.
    ///
    /// # Panics
    /// When there is none.
    pub async fn get(&self, path: &str) -> Value {
        let response = self.http.get(format!("{}{path}", self.base)).send().await.expect("the admin answers");
        response.json().await.unwrap_or_else(|e| panic!("`{path}`: {e}"))
    }
}
