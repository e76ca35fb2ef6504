//! A gateway from outside: its requests, and what it says of itself.

use reqwest::{Client, Response};
use serde_json::Value;

use super::{
    client::{client, client_builder},
    upstream::Seen,
    wait::eventually,
};

/// Talks to one gateway.
#[derive(Clone, Debug)]
pub struct GatewayApi {
    requests: String,
    status: String,
    http: Client,
}

impl GatewayApi {
    /// A gateway by the base addresses of its requests and of its status.
    #[must_use]
    pub fn new(requests: impl Into<String>, status: impl Into<String>) -> Self {
        Self { requests: requests.into(), status: status.into(), http: client() }
    }

    /// The same gateway, seen by the callers of another machine: connections come from `address`.
    ///
    /// # Panics
    /// When no client can be built.
    #[must_use]
    pub fn from(&self, address: std::net::IpAddr) -> Self {
        let http = client_builder().local_address(address).build().expect("build a client");
        Self { http, ..self.clone() }
    }

    /// Gets a path through the gateway; `None` when nobody answers.
    pub async fn get(&self, path: &str) -> Option<Response> {
        self.http.get(format!("{}{path}", self.requests)).send().await.ok()
    }

    /// Gets a path through the gateway, and what the upstream saw; `None` when the gateway answers itself.
    pub async fn seen(&self, path: &str) -> Option<Seen> {
        let response = self.get(path).await?;
        if response.status() == 200 { response.json().await.ok() } else { None }
    }

    /// Gets a path that the gateway itself answers with an error: HTTP status and body.
    ///
    /// # Panics
    /// When nobody answers, or with something else than JSON.
    pub async fn error(&self, path: &str) -> (u16, Value) {
        let response = self.get(path).await.expect("the gateway answers");
        let status = response.status().as_u16();
        (status, response.json().await.expect("an error is JSON"))
    }

    /// What the gateway says of itself.
    ///
    /// # Panics
    /// When it says nothing.
    pub async fn status(&self) -> Value {
        let response =
            self.http.get(format!("{}/status", self.status)).send().await.expect("the gateway answers");
        response.json().await.expect("the status is JSON")
    }

    /// The selector of this name, as the gateway has it.
    pub async fn selector(&self, name: &str) -> Option<Value> {
        let status = self.status().await;
        status["config"]["selectors"].as_array()?.iter().find(|selector| selector["name"] == name).cloned()
    }

    /// The upstreams of a selector, as the gateway has them.
    pub async fn upstreams(&self, selector: &str) -> Vec<String> {
        let selector = self.selector(selector).await.unwrap_or_default();
        let upstreams = selector["upstreams"].as_array().cloned().unwrap_or_default();
        upstreams.iter().map(|upstream| upstream["url"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until the gateway has a selector with so many rules and upstreams.
    ///
    /// # Panics
    /// When it does not learn of them in time.
    pub async fn learned(&self, selector: &str, rules: usize, upstreams: usize) {
        let what =
            format!("selector `{selector}` with {rules} rules and {upstreams} upstreams at the gateway");
        eventually(&what, async || {
            let found = self.selector(selector).await?;
            (found["rules"] == rules && found["upstreams"].as_array()?.len() == upstreams).then_some(())
        })
        .await;
    }
}
