//! Over HTTP/1.1, as the Java clients do.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::{
    header::{CONTENT_TYPE, HeaderValue},
    redirect::Policy,
};

use super::{
    Message, SendError, Transport, USER_AGENT,
    answer::{Answer, unanswered},
    detect,
    session::{Session, Token},
};
use crate::{
    config::ClientConfig,
    error::{Error, Kind, Problem},
    meter::Meter,
    plan::Dialect,
    wire::shenyu::paths::TOKEN_HEADER,
};

/// Java's client writes it so.
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// Connections stay open from one round to the next, if rounds are not too far apart.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A pool of connections to the admins, and the session with each.
#[derive(Clone, Debug)]
pub(crate) struct HttpTransport {
    client: reqwest::Client,
    /// By address of the admin.
    sessions: Arc<HashMap<String, Session>>,
    /// By address of the admin: whether it takes a farewell in Soul's words.
    farewells: Arc<HashMap<String, AtomicBool>>,
}

impl HttpTransport {
    pub(crate) fn new(config: &ClientConfig) -> Result<Self, Error> {
        let mut builder = reqwest::Client::builder();
        #[cfg(feature = "rustls")]
        {
            // Without one reqwest would ask for the provider of the program, and panic if there is none.
            builder = builder.tls_backend_preconfigured(super::tls::config(config)?);
        }
        // A registration must not leave through a proxy that happens to stand in the environment.
        builder = builder.no_proxy();
        if let Some(proxy) = config.proxy() {
            let proxy = reqwest::Proxy::all(proxy.expose()).map_err(|error| {
                // Its text may hold the user of the proxy.
                drop(error);
                Error::config(vec![Problem::new("proxy", "is no address: write `http://host:port`")])
            })?;
            builder = builder.proxy(proxy);
        }
        let client = builder
            .http1_only()
            // A redirect would turn the POST into a GET, whose answer says nothing.
            .redirect(Policy::none())
            .connect_timeout(config.connect_timeout())
            .timeout(config.request_timeout())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(config.concurrency())
            .user_agent(USER_AGENT)
            .build()
            .map_err(|error| Error::new(Kind::Config, "build the HTTP client").with_source(error))?;
        let meter = Meter::new(config);
        let session =
            |url: &str| (url.to_owned(), Session::new(url, config.credentials().cloned(), meter.clone()));
        let sessions = Arc::new(config.admin_urls().map(session).collect());
        let farewells = config.admin_urls().map(|url| (url.to_owned(), AtomicBool::new(false)));
        let farewells = Arc::new(farewells.collect());
        Ok(Self { client, sessions, farewells })
    }

    /// The pool of connections, for other questions to the admins.
    #[cfg(feature = "call")]
    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// The session with an admin, if there is anyone to log in.
    #[cfg(feature = "call")]
    pub(crate) fn session(&self, admin: &str) -> Option<&Session> {
        self.sessions.get(admin).filter(|session| session.has_credentials())
    }

    async fn post(&self, url: &str, message: &Message, token: Option<&Token>) -> Result<Answer, SendError> {
        let mut request =
            self.client.post(url).header(CONTENT_TYPE, JSON).body(message.body.as_bytes().to_vec());
        if let Some(token) = token {
            request = request.header(TOKEN_HEADER, token.header());
        }
        let what = || format!("register at `{url}`");
        let response = request.send().await.map_err(|error| unanswered(what(), error))?;
        Answer::read(response).await.map_err(|error| unanswered(what(), error))
    }
}

impl Transport for HttpTransport {
    async fn send(&self, admin: &str, message: Message) -> Result<(), SendError> {
        let url = format!("{admin}{}", message.endpoint);
        let session = self.sessions.get(admin).filter(|_| message.needs_login);
        let Some(session) = session else {
            let answer = self.post(&url, &message, None).await?;
            let announced = answer.announces_offline();
            answer.judge(&url, None)?;
            if let Some(takes) = self.farewells.get(admin) {
                takes.store(announced, Ordering::Relaxed);
            }
            return Ok(());
        };

        let token = session.token(&self.client).await?;
        let answer = self.post(&url, &message, Some(&token)).await?;
        if !answer.refuses_token() {
            token.prove();
            return answer.judge(&url, Some(&token));
        }
        // The admin was restarted with another key, or the password was changed: once more, and then as it is.
        let token = session.token_instead_of(&self.client, &token).await?;
        let answer = self.post(&url, &message, Some(&token)).await?;
        if !answer.refuses_token() {
            token.prove();
        }
        answer.judge(&url, Some(&token))
    }

    fn takes_farewell(&self, admin: &str) -> bool {
        self.farewells.get(admin).is_some_and(|takes| takes.load(Ordering::Relaxed))
    }

    async fn detect(&self, admin: &str) -> Result<Dialect, SendError> {
        detect::dialect(&self.client, admin, self.sessions.get(admin)).await
    }
}
