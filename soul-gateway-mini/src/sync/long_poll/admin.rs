//! The two requests of the long-poll protocol, at one admin.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::{Client, RequestBuilder, header::CONTENT_TYPE, redirect};
use soul_client::wire::soul::ConfigGroup;
use tokio::task;
use url::{Url, form_urlencoded};

use super::answer::{self, Echo, Fetched};
use crate::sync::{AnswerError, Attempt, SyncConfig, SyncError};

/// No configuration comes near this; a stream without end is cut here.
const ANSWER_LIMIT: usize = 512 * 1024 * 1024;

/// How long an idle connection to an admin is kept: below what servers keep theirs, since a poll that meets a closed one
/// looks like a failing admin.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// One admin.
pub(super) struct AdminApi {
    http: Client,
    fetch_url: Url,
    listener_url: Url,
    /// The address without user and password, for logs.
    name: String,
    fetch_timeout: Duration,
    poll_timeout: Duration,
}

/// The client for all admins: straight to them (a proxy of the environment has no business here), and one redirect
/// is followed, from a follower of a cluster to its leader.
pub(super) fn http_client(config: &SyncConfig) -> Result<Client, reqwest::Error> {
    Client::builder()
        .connect_timeout(config.connect_timeout)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .redirect(redirect::Policy::limited(1))
        .no_proxy()
        .user_agent(concat!("soul-gateway-mini/", env!("CARGO_PKG_VERSION")))
        .build()
}

impl AdminApi {
    pub(super) fn new(url: &Url, http: Client, config: &SyncConfig) -> Self {
        let mut name = url.clone();
        // Both fail only for addresses without a host, which the gateway refuses at start.
        let _ = name.set_username("");
        let _ = name.set_password(None);
        Self {
            http,
            fetch_url: below(url, "configs/fetch"),
            listener_url: below(url, "configs/listener"),
            name: name.as_str().trim_end_matches('/').to_owned(),
            fetch_timeout: config.fetch_timeout,
            poll_timeout: config.poll_timeout,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The groups asked for, in the order asked for.
    pub(super) async fn fetch(&self, groups: &[ConfigGroup]) -> Result<Vec<Fetched>, SyncError> {
        let mut url = self.fetch_url.clone();
        url.query_pairs_mut().extend_pairs(groups.iter().map(|group| ("groupKeys", group.as_str())));
        let body = self.exchange(Attempt::Fetch, self.http.get(url).timeout(self.fetch_timeout)).await?;
        let groups = groups.to_vec();
        // A large configuration takes a while to read, and this thread may serve requests.
        match task::spawn_blocking(move || answer::fetched(&body, &groups)).await {
            Ok(fetched) => fetched.map_err(|e| self.answered(Attempt::Fetch, e)),
            Err(error) => Err(SyncError::Interrupted { admin: self.name.clone(), source: error }),
        }
    }

    /// Waits until a group differs from what is echoed, or the admin's patience ends: then none does.
    pub(super) async fn poll(&self, echoes: &[Echo; 5]) -> Result<Vec<ConfigGroup>, SyncError> {
        let request = self
            .http
            .post(self.listener_url.clone())
            .timeout(self.poll_timeout)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form(echoes));
        let body = self.exchange(Attempt::Poll, request).await?;
        answer::changed(&body).map_err(|e| self.answered(Attempt::Poll, e))
    }

    async fn exchange(&self, attempt: Attempt, request: RequestBuilder) -> Result<Bytes, SyncError> {
        // Without the address: the message names the admin already, and it may hold a password.
        let failed = |e: reqwest::Error| SyncError::Request {
            attempt,
            admin: self.name.clone(),
            source: e.without_url(),
        };
        let mut response = request.send().await.map_err(failed)?;
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > ANSWER_LIMIT {
                return Err(self.answered(attempt, AnswerError::TooLong { limit: ANSWER_LIMIT }));
            }
            body.extend_from_slice(&chunk);
        }
        let status = response.status();
        if status != http::StatusCode::OK {
            let error = AnswerError::Status { status: status.as_u16(), body: answer::beginning(&body) };
            return Err(self.answered(attempt, error));
        }
        Ok(body.freeze())
    }

    fn answered(&self, attempt: Attempt, source: AnswerError) -> SyncError {
        SyncError::Answer { attempt, admin: self.name.clone(), source }
    }
}

/// What is known of each group, all five as an admin demands.
fn form(echoes: &[Echo; 5]) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (group, echo) in ConfigGroup::ALL.iter().zip(echoes) {
        form.append_pair(group.as_str(), &format!("{},{}", echo.md5, echo.last_modify_time));
    }
    form.finish()
}

/// `path` below `base`, whose own path is kept and may end with a slash or not.
fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url.set_query(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_below_the_address_whatever_its_end() {
        for base in ["http://a:9095", "http://a:9095/"] {
            assert_eq!(
                below(&Url::parse(base).unwrap(), "configs/fetch").as_str(),
                "http://a:9095/configs/fetch"
            );
        }
        let nested = Url::parse("http://a/soul/?x=1").unwrap();
        assert_eq!(below(&nested, "configs/fetch").as_str(), "http://a/soul/configs/fetch");
    }

    #[test]
    fn the_name_shows_no_password() {
        let config = SyncConfig::default();
        let url = Url::parse("http://me:secret@a:9095/").unwrap();
        let admin = AdminApi::new(&url, http_client(&config).unwrap(), &config);
        assert_eq!(admin.name(), "http://a:9095");
    }
}
