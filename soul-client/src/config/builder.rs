//! Says what a configuration is to be, and finds out at the end whether it can.

use std::time::Duration;

use super::{AdminUrl, AdminsRule, ClientConfig, check, env};
use crate::{
    backoff::Bounds,
    error::{Error, Problem},
    plan::Dialect,
    route::RpcType,
};

/// Builds a [`ClientConfig`]; see there for the defaults.
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `build`"]
#[non_exhaustive]
pub struct ClientConfigBuilder {
    pub(super) admin_urls: Vec<String>,
    pub(super) context_path: Option<String>,
    pub(super) app_name: Option<String>,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) full: Option<bool>,
    pub(super) rpc_type: Option<RpcType>,
    pub(super) dialect: Option<Dialect>,
    pub(super) admins_rule: Option<AdminsRule>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) request_timeout: Option<Duration>,
    pub(super) refresh_interval: Option<Duration>,
    pub(super) retry_delay: Option<(Duration, Duration)>,
    pub(super) concurrency: Option<usize>,
    pub(super) shutdown_timeout: Option<Duration>,
    /// What the environment says; used where the fields above say nothing.
    pub(super) environment: Option<Box<ClientConfigBuilder>>,
    /// What could not be read from the environment.
    pub(super) unreadable: Vec<Problem>,
}

impl ClientConfigBuilder {
    /// Adds an admin, or several joined by commas, for example `http://localhost:9095`.
    ///
    /// The order is the order in which they are tried. Needed.
    pub fn admin_url(mut self, url: impl Into<String>) -> Self {
        self.admin_urls.push(url.into());
        self
    }

    /// Sets the prefix that names the service at the gateway: starts with `/`, no `/` at the end.
    ///
    /// A gateway of February 2021 takes exactly the first segment off, so one segment suits every version.
    pub fn context_path(mut self, context_path: impl Into<String>) -> Self {
        self.context_path = Some(context_path.into());
        self
    }

    /// Sets the name of the application; optional for `http`, though metadata needs it.
    pub fn app_name(mut self, app_name: impl Into<String>) -> Self {
        self.app_name = Some(app_name.into());
        self
    }

    /// Sets the host that the gateway reaches this instance at (default: found at start). Blank is as if not
    /// set.
    ///
    /// A Java admin probes IPv4 addresses only: it drops a name or an IPv6 address within ten seconds.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.host = Some(host.into());
        self
    }

    /// Sets the port that the gateway reaches this instance at (default: the listener's), for example when
    /// it is mapped by a container.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Registers the whole context path with one entry instead of the annotated routes (default: no).
    pub fn full(mut self, full: bool) -> Self {
        self.full = Some(full);
        self
    }

    /// Sets how the gateway calls routes whose annotation does not say (default: [`RpcType::Http`]).
    pub fn rpc_type(mut self, rpc_type: RpcType) -> Self {
        self.rpc_type = Some(rpc_type);
        self
    }

    /// Sets the kind of admin that the bodies are written for (default: [`Dialect::Any`]).
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Sets how several admins are treated (default: [`AdminsRule::FirstThatAnswers`]).
    pub fn admins_rule(mut self, rule: AdminsRule) -> Self {
        self.admins_rule = Some(rule);
        self
    }

    /// Sets the time to open a connection to an admin
    /// (default: [`ClientConfig::DEFAULT_CONNECT_TIMEOUT`]).
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// Sets the time for one registration, connecting included
    /// (default: [`ClientConfig::DEFAULT_REQUEST_TIMEOUT`]).
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// Sets the time between two rounds of registration, give or take a tenth; zero turns repeating off
    /// (default: [`ClientConfig::DEFAULT_REFRESH_INTERVAL`]).
    pub fn refresh_interval(mut self, interval: Duration) -> Self {
        self.refresh_interval = Some(interval);
        self
    }

    /// Sets the shortest and longest wait after a failure
    /// (default: [`ClientConfig::DEFAULT_RETRY_DELAY`]).
    pub fn retry_delay(mut self, shortest: Duration, longest: Duration) -> Self {
        self.retry_delay = Some((shortest, longest));
        self
    }

    /// Sets how many registrations are under way at the same time towards one admin
    /// (default: [`ClientConfig::DEFAULT_CONCURRENCY`]).
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = Some(concurrency);
        self
    }

    /// Sets the time that registrations under way are given to end at shutdown
    /// (default: [`ClientConfig::DEFAULT_SHUTDOWN_TIMEOUT`]).
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = Some(timeout);
        self
    }

    /// Reads the settings that were not set, and are not set later, from the environment.
    pub fn env(self) -> Self {
        self.vars(|name| std::env::var(name).ok())
    }

    /// As [`env`](Self::env), with the variables that `lookup` knows.
    ///
    /// # Examples
    ///
    /// ```
    /// use soul_client::ClientConfig;
    ///
    /// let vars = |name: &str| match name {
    ///     "SOUL_ADMIN_URL" => Some("http://admin:9095".to_owned()),
    ///     "SOUL_CONTEXT_PATH" => Some("/from-env".to_owned()),
    ///     _ => None,
    /// };
    /// let config = ClientConfig::builder().context_path("/order").vars(vars).build()?;
    /// assert_eq!(config.context_path(), Some("/order"));
    /// assert_eq!(config.admin_urls().next(), Some("http://admin:9095"));
    /// # Ok::<(), soul_client::Error>(())
    /// ```
    pub fn vars(mut self, lookup: impl Fn(&str) -> Option<String>) -> Self {
        self.environment = Some(Box::new(env::read(lookup)));
        self
    }

    /// Every problem with the settings, by field; empty if [`build`](Self::build) will succeed.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        self.clone().build().map_or_else(|error| error.problems().to_vec(), |_| Vec::new())
    }

    /// Checks the settings and fixes them.
    ///
    /// # Errors
    /// When something is missing or wrong; [`Error::problems`] lists all of it.
    pub fn build(mut self) -> Result<ClientConfig, Error> {
        let under = self.environment.take().map(|environment| *environment).unwrap_or_default();
        let mut problems = under.unreadable.clone();
        let config = self.over(under).resolve(&mut problems);
        check::all(&config, &mut problems);
        if problems.is_empty() { Ok(config) } else { Err(Error::config(problems)) }
    }

    /// These settings, and where they say nothing those of `under`.
    fn over(self, under: Self) -> Self {
        Self {
            admin_urls: if self.admin_urls.is_empty() { under.admin_urls } else { self.admin_urls },
            context_path: self.context_path.or(under.context_path),
            app_name: self.app_name.or(under.app_name),
            host: self.host.or(under.host),
            port: self.port.or(under.port),
            full: self.full.or(under.full),
            rpc_type: self.rpc_type.or(under.rpc_type),
            dialect: self.dialect.or(under.dialect),
            admins_rule: self.admins_rule.or(under.admins_rule),
            connect_timeout: self.connect_timeout.or(under.connect_timeout),
            request_timeout: self.request_timeout.or(under.request_timeout),
            refresh_interval: self.refresh_interval.or(under.refresh_interval),
            retry_delay: self.retry_delay.or(under.retry_delay),
            concurrency: self.concurrency.or(under.concurrency),
            shutdown_timeout: self.shutdown_timeout.or(under.shutdown_timeout),
            environment: None,
            unreadable: Vec::new(),
        }
    }

    /// Fills in the defaults.
    fn resolve(self, problems: &mut Vec<Problem>) -> ClientConfig {
        let (min, max) = self.retry_delay.unwrap_or(ClientConfig::DEFAULT_RETRY_DELAY);
        let refresh = self.refresh_interval.unwrap_or(ClientConfig::DEFAULT_REFRESH_INTERVAL);
        ClientConfig {
            admin_urls: admins(&self.admin_urls, problems),
            context_path: self.context_path,
            app_name: self.app_name,
            host: self.host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty()),
            port: self.port,
            full: self.full.unwrap_or(false),
            rpc_type: self.rpc_type.unwrap_or(RpcType::Http),
            dialect: self.dialect.unwrap_or_default(),
            admins_rule: self.admins_rule.unwrap_or_default(),
            connect_timeout: self.connect_timeout.unwrap_or(ClientConfig::DEFAULT_CONNECT_TIMEOUT),
            request_timeout: self.request_timeout.unwrap_or(ClientConfig::DEFAULT_REQUEST_TIMEOUT),
            refresh_interval: Some(refresh).filter(|interval| !interval.is_zero()),
            retry_delay: Bounds { min, max },
            concurrency: self.concurrency.unwrap_or(ClientConfig::DEFAULT_CONCURRENCY),
            shutdown_timeout: self.shutdown_timeout.unwrap_or(ClientConfig::DEFAULT_SHUTDOWN_TIMEOUT),
        }
    }
}

/// Each address once, in the order given.
fn admins(lists: &[String], problems: &mut Vec<Problem>) -> Vec<AdminUrl> {
    let mut admins: Vec<AdminUrl> = Vec::new();
    let mut refused = false;
    for text in lists.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|text| !text.is_empty()) {
        match AdminUrl::parse(text) {
            Ok(url) if !admins.contains(&url) => admins.push(url),
            Ok(_) => {}
            Err(text) => {
                refused = true;
                problems.push(Problem::new("admin_url", text));
            }
        }
    }
    if admins.is_empty() && !refused {
        let text = "is missing: set the address of the admin, for example `http://localhost:9095`";
        problems.push(Problem::new("admin_url", text));
    }
    admins
}
