//! The two requests of the long-poll protocol, at one admin.

use std::{mem, time::Duration};

use bytes::Bytes;
use soul_client::wire::soul::{ConfigGroup, answer::beginning};
use tokio::task;
use url::{Url, form_urlencoded};

use super::{
    answer::{self, Echo, Fetched, Known},
    http::{Answered, HttpClient, Outgoing},
};
use crate::{
    slices::sliced,
    sync::{AnswerError, Attempt, SyncConfig, SyncError},
};

/// One admin.
pub(super) struct AdminApi {
    http: HttpClient,
    fetch_url: Url,
    listener_url: Url,
    /// The address without user and password, for logs.
    name: String,
    fetch_timeout: Duration,
    poll_timeout: Duration,
}

impl AdminApi {
    pub(super) fn new(url: &Url, http: HttpClient, config: &SyncConfig) -> Self {
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
    ///
    /// - `known`: what was read before, of whatever admin, and afterwards what was read now.
    ///
    /// # Cancel safety
    /// Dropping the future forgets what is known, so that the next answer takes longer to read.
    pub(super) async fn fetch(
        &self,
        groups: &[ConfigGroup],
        known: &mut Known,
    ) -> Result<Vec<Fetched>, SyncError> {
        let mut url = self.fetch_url.clone();
        url.query_pairs_mut().extend_pairs(groups.iter().map(|group| ("groupKeys", group.as_str())));
        let request = Outgoing { url, form: None, limit: self.fetch_timeout };
        let body = self.exchange(Attempt::Fetch, request).await?;
        let groups = groups.to_vec();
        // A large configuration takes a while to read, and this thread may serve requests.
        let mut before = mem::take(known);
        let read = move || (sliced(|| answer::fetched(&body, &groups, &mut before)), before);
        match task::spawn_blocking(read).await {
            Ok((fetched, now)) => {
                *known = now;
                fetched.map_err(|e| self.answered(Attempt::Fetch, e))
            }
            Err(error) => Err(SyncError::Interrupted { admin: self.name.clone(), source: error }),
        }
    }

    /// Waits until a group differs from what is echoed, or the admin's patience ends: then none does.
    pub(super) async fn poll(&self, echoes: &[Echo; 5]) -> Result<Vec<ConfigGroup>, SyncError> {
        let form = Some(form(echoes).into());
        let request = Outgoing { url: self.listener_url.clone(), form, limit: self.poll_timeout };
        let body = self.exchange(Attempt::Poll, request).await?;
        answer::changed(&body).map_err(|e| self.answered(Attempt::Poll, e))
    }

    async fn exchange(&self, attempt: Attempt, request: Outgoing) -> Result<Bytes, SyncError> {
        let failed = |source| SyncError::Request { attempt, admin: self.name.clone(), source };
        let Answered { status, body } = self.http.exchange(request).await.map_err(failed)?;
        if status != ::http::StatusCode::OK {
            let error = AnswerError::Status { status: status.as_u16(), body: beginning(&body) };
            return Err(self.answered(attempt, error));
        }
        Ok(body)
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
        let admin = AdminApi::new(&url, HttpClient::new(&config), &config);
        assert_eq!(admin.name(), "http://a:9095");
    }
}
