//! What the story asks of the admin (`/api/v1`) and of the gateway (requests and `/status`).

use std::net::IpAddr;

use reqwest::Client;
use serde_json::{Value, json};

use crate::world::Failure;

/// Header in which the example service says which instance answered.
const SERVED_BY: &str = http_service::SERVED_BY;

/// The admin's API.
pub(crate) struct Admin {
    url: String,
    http: Client,
}

impl Admin {
    pub(crate) fn new(url: String, http: Client) -> Self {
        Self { url, http }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Rows of one kind: `selectors`, `rules`, …
    pub(crate) async fn rows(&self, kind: &str) -> Result<Vec<Value>, Failure> {
        let response = self.http.get(format!("{}/api/v1/{kind}", self.url)).send().await?;
        let answer: Value = response.json().await?;
        match answer["data"]["items"].as_array() {
            Some(rows) => Ok(rows.clone()),
            None => Err(Failure::new(format!("`/api/v1/{kind}` answered `{answer}`"))),
        }
    }

    /// The row of a kind that has this name.
    pub(crate) async fn row(&self, kind: &str, name: &str) -> Result<Option<Value>, Failure> {
        Ok(self.rows(kind).await?.into_iter().find(|row| row["name"] == name))
    }

    /// Sets the load balance of the rule with this name; tells whether that changed anything.
    pub(crate) async fn set_balance(&self, rule: &str, balance: &str) -> Result<bool, Failure> {
        let row = self.row("rules", rule).await?.ok_or_else(|| Failure::new(format!("no rule `{rule}`")))?;
        let url = format!("{}/api/v1/rules/{}", self.url, row["id"].as_str().unwrap_or_default());
        let response = self.http.patch(url).json(&json!({ "loadBalance": balance })).send().await?;
        let answer: Value = response.json().await?;
        match answer["data"]["changed"].as_bool() {
            Some(changed) => Ok(changed),
            None => Err(Failure::new(format!("the change to `{balance}` was answered `{answer}`"))),
        }
    }
}

/// The gateway from outside.
pub(crate) struct Gateway {
    url: String,
    status_url: String,
    http: Client,
}

impl Gateway {
    pub(crate) fn new(url: String, status_url: String, http: Client) -> Self {
        Self { url, status_url, http }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn status_url(&self) -> &str {
        &self.status_url
    }

    /// Sends one request through the gateway, and gives the body of the answer.
    pub(crate) async fn body(&self, path: &str) -> Result<String, Failure> {
        let response = self.http.get(format!("{}{path}", self.url)).send().await?;
        Ok(response.error_for_status()?.text().await?)
    }

    /// Sends one request through the gateway, and gives the address of the instance that answered.
    pub(crate) async fn ask(&self, path: &str) -> Result<String, Failure> {
        ask(&self.http, &format!("{}{path}", self.url)).await
    }

    /// The same as another caller, whose connections come from `address`.
    pub(crate) async fn ask_from(
        &self,
        address: IpAddr,
        path: &str,
        times: usize,
    ) -> Result<Vec<String>, Failure> {
        let http = Client::builder().local_address(address).build()?;
        let mut answered = Vec::new();
        for _ in 0..times {
            answered.push(ask(&http, &format!("{}{path}", self.url)).await?);
        }
        Ok(answered)
    }

    /// Number of the configuration that serves.
    pub(crate) async fn revision(&self) -> Result<u64, Failure> {
        let status = self.status().await?;
        status["config"]["revision"]
            .as_u64()
            .ok_or_else(|| Failure::new(format!("no revision in `{status}`")))
    }

    /// The upstreams of a selector, as the gateway has them.
    pub(crate) async fn upstreams(&self, selector: &str) -> Result<Vec<String>, Failure> {
        let status = self.status().await?;
        let selectors = status["config"]["selectors"].as_array().cloned().unwrap_or_default();
        let found = selectors.into_iter().find(|row| row["name"] == selector).unwrap_or_default();
        let upstreams = found["upstreams"].as_array().cloned().unwrap_or_default();
        Ok(upstreams.iter().map(|upstream| upstream["url"].as_str().unwrap_or_default().to_owned()).collect())
    }

    async fn status(&self) -> Result<Value, Failure> {
        Ok(self.http.get(format!("{}/status", self.status_url)).send().await?.json().await?)
    }
}

async fn ask(http: &Client, url: &str) -> Result<String, Failure> {
    let response = http.get(url).send().await?;
    let status = response.status();
    let served_by =
        response.headers().get(SERVED_BY).and_then(|value| value.to_str().ok()).map(str::to_owned);
    // The whole answer counts, not its head alone.
    let body = response.text().await?;
    match served_by {
        Some(served_by) if status == 200 => Ok(served_by),
        _ => Err(Failure::new(format!("GET {url} was answered {status}: {body}"))),
    }
}
