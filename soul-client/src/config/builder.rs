//! Says what a configuration is to be.

use std::{path::PathBuf, time::Duration};

use super::{AdminsRule, ClientConfig, admin_url::Written, check, env};
use crate::{
    error::{Error, Problem},
    plan::Dialect,
    route::RpcType,
    secret::Secret,
};

/// Builds a [`ClientConfig`]; see there for the defaults.
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `build`"]
#[non_exhaustive]
pub struct ClientConfigBuilder {
    pub(super) admin_urls: Vec<Written>,
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
    pub(super) username: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) password_file: Option<PathBuf>,
    pub(super) namespaces: Vec<String>,
    pub(super) protocol: Option<String>,
    pub(super) add_prefixed: Option<bool>,
    pub(super) offline_timeout: Option<Duration>,
    pub(super) heartbeat_interval: Option<Duration>,
    pub(super) propagation_time: Option<Duration>,
    pub(super) stop_timeout: Option<Duration>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) client_cert_file: Option<PathBuf>,
    pub(super) client_key_file: Option<PathBuf>,
    pub(super) proxy: Option<Secret>,
    pub(super) preferred_networks: Vec<String>,
    pub(super) ignored_interfaces: Vec<String>,
    /// What the environment says; used where the fields above say nothing.
    pub(super) environment: Option<Box<ClientConfigBuilder>>,
    /// What a file says; used where neither these nor the environment say anything.
    pub(super) file: Option<Box<ClientConfigBuilder>>,
    /// What could not be read from the environment, or from a file.
    pub(super) unreadable: Vec<Problem>,
}

impl ClientConfigBuilder {
    /// Adds an admin, or several joined by commas, for example `http://localhost:9095`.
    ///
    /// The order is the order in which they are tried. Needed.
    pub fn admin_url(mut self, url: impl Into<String>) -> Self {
        self.admin_urls.push(Written(url.into()));
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

    /// Prefers addresses of a network, `10.0.0.0/8` or `192.168.*`, or of several joined by commas, where the host is
    /// not set and the listener is bound to all addresses.
    pub fn preferred_network(mut self, network: impl Into<String>) -> Self {
        self.preferred_networks.push(network.into());
        self
    }

    /// Never takes the address of an interface, `tun0` or `wg*`, or of several joined by commas, where the host is
    /// not set and the listener is bound to all addresses.
    pub fn ignored_interface(mut self, name: impl Into<String>) -> Self {
        self.ignored_interfaces.push(name.into());
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

    /// Sets the kind of admin that the bodies are written for (default: [`Dialect::Any`], or [`Dialect::Auto`] where
    /// there is a [`username`](Self::username)).
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Sets how several admins are treated (default: as the Java clients of the dialect treat them).
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

    /// Sets the user that logs in at the admins of ShenYu, with its password.
    pub fn username(mut self, username: impl Into<String>) -> Self {
        self.username = Some(username.into());
        self
    }

    /// Sets the password of the user.
    pub fn password(mut self, password: impl Into<Secret>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Reads the password of the user from a file at [`build`](Self::build); [`password`](Self::password) wins.
    pub fn password_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.password_file = Some(path.into());
        self
    }

    /// Adds the id of a namespace of ShenYu to register in, or several joined by semicolons (default: the one that
    /// every admin has).
    pub fn namespace(mut self, id: impl Into<String>) -> Self {
        self.namespaces.push(id.into());
        self
    }

    /// Sets what a gateway of ShenYu speaks to this instance: `http://` (default) or `https://`.
    pub fn protocol(mut self, protocol: impl Into<String>) -> Self {
        self.protocol = Some(protocol.into());
        self
    }

    /// Sets whether a gateway of ShenYu keeps the context path in front of what it sends (default: no).
    pub fn add_prefixed(mut self, add_prefixed: bool) -> Self {
        self.add_prefixed = Some(add_prefixed);
        self
    }

    /// Sets how often an instance says that it is still there, to admins that take heartbeats; zero turns them off
    /// (default: as the Java clients of the dialect).
    pub fn heartbeat_interval(mut self, interval: Duration) -> Self {
        self.heartbeat_interval = Some(interval);
        self
    }

    /// Sets the time between the farewell and the moment from which no connection is accepted any more, in which
    /// gateways hear of it (default: [`ClientConfig::DEFAULT_PROPAGATION_TIME`]). Only [`Life`](crate::Life) waits.
    pub fn propagation_time(mut self, time: Duration) -> Self {
        self.propagation_time = Some(time);
        self
    }

    /// Sets the time from the signal to the end, whatever is still under way
    /// (default: [`ClientConfig::DEFAULT_STOP_TIMEOUT`]). Only [`Life`](crate::Life) keeps to it.
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = Some(timeout);
        self
    }

    /// Trusts the authorities of this PEM file, and no others, for admins with an `https` address (default: those of
    /// the system). Needs the feature `rustls`.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Shows this certificate to admins that ask for one: PEM files with the chain, its own certificate first, and
    /// with the private key. Needs the feature `rustls`.
    pub fn client_certificate(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.client_cert_file = Some(chain.into());
        self.client_key_file = Some(key.into());
        self
    }

    /// Sends everything through a proxy, `http://host:port` (default: none; variables such as `HTTP_PROXY` are not
    /// looked at, since a registration should not leave by accident). It may hold a user and a password, which are
    /// not shown.
    pub fn proxy(mut self, url: impl Into<Secret>) -> Self {
        self.proxy = Some(url.into());
        self
    }

    /// Sets the time for telling the admins that this instance leaves
    /// (default: [`ClientConfig::DEFAULT_OFFLINE_TIMEOUT`]).
    pub fn offline_timeout(mut self, timeout: Duration) -> Self {
        self.offline_timeout = Some(timeout);
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

    /// Reads the settings that were not set, and that the environment does not set where it is read, from a YAML or
    /// TOML file; [`ClientConfig`] lists its keys. What is wrong with the file is told at [`build`](Self::build).
    #[cfg(feature = "file")]
    pub fn file(self, path: impl AsRef<std::path::Path>) -> Self {
        self.over_file(super::file::read(path.as_ref()))
    }

    #[cfg(feature = "file")]
    pub(super) fn over_file(mut self, file: Self) -> Self {
        self.file = Some(Box::new(file));
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
        let environment = self.environment.take().map(|environment| *environment).unwrap_or_default();
        let file = self.file.take().map(|file| *file).unwrap_or_default();
        let mut problems = [environment.unreadable.clone(), file.unreadable.clone()].concat();
        let config = self.over(environment).over(file).resolve(&mut problems);
        check::all(&config, &mut problems);
        if problems.is_empty() { Ok(config) } else { Err(Error::config(problems)) }
    }
}
