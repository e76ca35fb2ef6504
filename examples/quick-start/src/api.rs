//! What the story asks of the admin (`/api/v1`) and of the gateway (requests and `/status`).

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::{http::Http, world::Failure};

/// Header in which the example service says which instance answered.
const SERVED_BY: &str = http_service::SERVED_BY;

/// The admin's API.
pub(crate) struct Admin {
    url: String,
    http: Http,
}

impl Admin {
    pub(crate) fn new(url: String, http: Http) -> Self {
        Self { url, http }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Rows of one kind: `selectors`, `rules`, …
    pub(crate) async fn rows(&self, kind: &str) -> Result<Vec<Value>, Failure> {
        let answer = self.http.get(&format!("{}/api/v1/{kind}", self.url)).await?.json()?;
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
        let answer = self.http.patch(&url, &json!({ "loadBalance": balance })).await?.json()?;
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
    http: Http,
}

impl Gateway {
    pub(crate) fn new(url: String, status_url: String, http: Http) -> Self {
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
        let answer = self.http.get(&format!("{}{path}", self.url)).await?;
        if answer.status == 200 { Ok(answer.body) } else { Err(Failure::new(answer.body)) }
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
        let http = Http::from(address);
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
        self.http.get(&format!("{}/status", self.status_url)).await?.json()
    }
}

async fn ask(http: &Http, url: &str) -> Result<String, Failure> {
    let answer = http.get(url).await?;
    match answer.headers.get(SERVED_BY).and_then(|value| value.to_str().ok()) {
        Some(served_by) if answer.status == 200 => Ok(served_by.to_owned()),
        _ => Err(Failure::new(format!("GET {url} was answered {}: {}", answer.status, answer.body))),
    }
}
