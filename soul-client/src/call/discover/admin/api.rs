//! The two requests of the long poll, at one admin (specification, section 10.2; ShenYu specification, sections 7.1 and 7.2).

use std::{sync::Arc, time::Duration};

use reqwest::{RequestBuilder, StatusCode, Url};

use super::{
    follow::Checksums,
    read::{self, Fetched, Selectors},
};
use crate::{
    call::{DiscoverError, guard::guarded_blocking},
    transport::{HttpTransport, LoggedIn, Token},
    wire::{
        shenyu::paths::TOKEN_HEADER,
        soul::{ConfigGroup, paths},
    },
};

/// Groups that only ShenYu has: 2.6.0 and, the last, 2.7.0.3. The admin wants every group that it knows in a poll.
pub(super) const NEWER: [&str; 3] = ["PROXY_SELECTOR", DISCOVER_UPSTREAM, "AI_PROXY_API_KEY"];

/// The upstreams by selector, in ShenYu from 2.6.0 on.
pub(super) const DISCOVER_UPSTREAM: &str = "DISCOVER_UPSTREAM";

/// Longest wait for a whole configuration.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for a poll, which the admin holds for 60 s; that of the Java gateways.
const POLL_TIMEOUT: Duration = Duration::from_secs(90);

/// No configuration comes near this.
const ANSWER_LIMIT: usize = 256 * 1024 * 1024;

/// One admin.
pub(super) struct AdminApi {
    base: String,
    transport: HttpTransport,
    namespace: Arc<str>,
}

impl AdminApi {
    pub(super) fn new(base: &str, transport: &HttpTransport, namespace: &str) -> Self {
        Self { base: base.to_owned(), transport: transport.clone(), namespace: namespace.into() }
    }

    /// Its address.
    pub(super) fn name(&self) -> &str {
        &self.base
    }

    /// Whether it may have the groups that only ShenYu has: an admin that wants no login is none of ShenYu since 2.4.2.
    pub(super) fn may_have_newer_groups(&self) -> bool {
        self.transport.session(&self.base).is_some()
    }

    /// The selectors alone, without following them.
    pub(super) async fn selectors(&self) -> Result<Selectors, DiscoverError> {
        let fetched = self.fetch(&[ConfigGroup::Selector.as_str()]).await?;
        let mut selectors =
            Selectors { selectors: fetched.selectors.unwrap_or_default(), ..Selectors::default() };
        if self.may_have_newer_groups()
            && let Ok(fetched) = self.fetch(&[DISCOVER_UPSTREAM]).await
        {
            selectors.pushed = fetched.pushed.unwrap_or_default();
        }
        Ok(selectors)
    }

    /// Groups as they are now.
    pub(super) async fn fetch(&self, groups: &[&'static str]) -> Result<Fetched, DiscoverError> {
        let attempt = || format!("fetch {} from `{}`", groups.join(", "), self.base);
        let mut url = self.url(paths::CONFIGS_FETCH, &attempt)?;
        url.query_pairs_mut()
            .extend_pairs(groups.iter().map(|group| ("groupKeys", *group)))
            .append_pair("namespaceId", &self.namespace);
        let client = self.transport.client();
        let body = self.exchange(&attempt, || client.get(url.clone()).timeout(FETCH_TIMEOUT)).await?;
        let (groups, namespace) = (groups.to_vec(), Arc::clone(&self.namespace));
        // A large configuration takes a while to read.
        match guarded_blocking(move || read::fetched(&body, &groups, &namespace)).await {
            Ok(fetched) => fetched.map_err(|error| DiscoverError::new(attempt()).with_source(error)),
            Err(panicked) => Err(DiscoverError::new(attempt()).with_source(panicked)),
        }
    }

    /// Waits until a group has another checksum, or the admin's patience ends: then none has.
    pub(super) async fn poll(&self, checksums: &Checksums) -> Result<Vec<&'static str>, DiscoverError> {
        let attempt = || format!("wait for changes at `{}`", self.base);
        let url = self.url(paths::CONFIGS_LISTENER, &attempt)?;
        let form = self.form(url.clone(), checksums);
        let client = self.transport.client();
        let request = || {
            let request = client.post(url.clone()).timeout(POLL_TIMEOUT);
            // ShenYu would list this program among its gateways (ShenYu specification, section 7.2).
            let request = request.header("X-Real-PORT", "0");
            request.header("content-type", "application/x-www-form-urlencoded").body(form.clone())
        };
        let body = self.exchange(&attempt, request).await?;
        let known: Vec<_> = checksums.keys().copied().collect();
        read::changed(&body, &known).map_err(|error| DiscoverError::new(attempt()).with_source(error))
    }

    /// What is known, as the body of a poll.
    fn form(&self, mut url: Url, checksums: &Checksums) -> String {
        // Encoded as a query, which is what a form is.
        url.set_query(None);
        let mut pairs = url.query_pairs_mut();
        for group in ConfigGroup::ALL.map(ConfigGroup::as_str).into_iter().chain(NEWER) {
            // The time is 0 in either dialect: then another checksum always means a change, while a time that is later than the
            // admin's, as after a change of admins, makes Soul doubt itself and ShenYu fail (ShenYu specification, section 7.2).
            pairs.append_pair(group, &format!("{},0", checksums.get(group).map_or("0", String::as_str)));
        }
        pairs.append_pair("namespaceId", &self.namespace);
        drop(pairs);
        url.query().unwrap_or_default().to_owned()
    }

    fn url(&self, path: &str, attempt: &impl Fn() -> String) -> Result<Url, DiscoverError> {
        let url = Url::parse(&format!("{}{path}", self.base));
        url.map_err(|error| DiscoverError::new(attempt()).with_source(error))
    }

    /// Sends a request, a second time with a new token if the first was refused, and reads the answer.
    async fn exchange(
        &self,
        attempt: &impl Fn() -> String,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<Vec<u8>, DiscoverError> {
        let failed = |error: reqwest::Error| DiscoverError::new(attempt()).with_source(error.without_url());
        let client = self.transport.client();
        let session = self.transport.session(&self.base);
        let mut token = None;
        if let Some(session) = session {
            let logged_in = session.enter(client).await;
            if let LoggedIn::Token(given) = logged_in
                .map_err(|error| DiscoverError::new(attempt()).with_source(Arc::clone(error.cause())))?
            {
                token = Some(given);
            }
        }
        let mut response = with(request(), token.as_ref()).send().await.map_err(failed)?;
        if let (StatusCode::UNAUTHORIZED, Some(session), Some(refused)) = (response.status(), session, &token)
        {
            let fresh = session.token_instead_of(client, refused).await;
            let fresh = fresh
                .map_err(|error| DiscoverError::new(attempt()).with_source(Arc::clone(error.cause())))?;
            response = with(request(), Some(&fresh)).send().await.map_err(failed)?;
            token = Some(fresh);
        }
        let status = response.status();
        if let Some(token) = token.filter(|_| status == StatusCode::OK) {
            token.prove();
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > ANSWER_LIMIT {
                let text = format!("the answer is longer than {ANSWER_LIMIT} bytes");
                return Err(DiscoverError::new(attempt()).with_source(text));
            }
            body.extend_from_slice(&chunk);
        }
        if status == StatusCode::OK {
            return Ok(body);
        }
        let remedy = match status {
            StatusCode::UNAUTHORIZED => ": the admin wants a login, set user and password",
            StatusCode::NOT_FOUND => {
                ": is `soul.sync.http.enabled` (ShenYu: `shenyu.sync.http.enabled`) set in the admin?"
            }
            _ => "",
        };
        let text = format!("it answers with status {}{remedy}", status.as_u16());
        Err(DiscoverError::new(attempt()).with_source(text))
    }
}

fn with(request: RequestBuilder, token: Option<&Token>) -> RequestBuilder {
    match token {
        Some(token) => request.header(TOKEN_HEADER, token.header()),
        None => request,
    }
}
