//! Says what a configuration is to be, and finds out at the end whether it can.

use std::{path::PathBuf, time::Duration};

use super::{AdminUrl, AdminsRule, ClientConfig, Tls, admin_url::Written, check, env};
use crate::{
    address::{Network, Wishes},
    backoff::Bounds,
    error::{Error, Problem},
    plan::Dialect,
    route::RpcType,
    secret::Secret,
    transport::Credentials,
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
            username: self.username.or(under.username),
            // A file that was set here wins over a password from underneath, and the other way round.
            password_file: if self.password.is_some() {
                None
            } else {
                self.password_file.clone().or(under.password_file)
            },
            password: if self.password_file.is_some() {
                self.password
            } else {
                self.password.or(under.password)
            },
            namespaces: if self.namespaces.is_empty() { under.namespaces } else { self.namespaces },
            protocol: self.protocol.or(under.protocol),
            add_prefixed: self.add_prefixed.or(under.add_prefixed),
            offline_timeout: self.offline_timeout.or(under.offline_timeout),
            heartbeat_interval: self.heartbeat_interval.or(under.heartbeat_interval),
            propagation_time: self.propagation_time.or(under.propagation_time),
            stop_timeout: self.stop_timeout.or(under.stop_timeout),
            ca_file: self.ca_file.or(under.ca_file),
            client_cert_file: self.client_cert_file.or(under.client_cert_file),
            client_key_file: self.client_key_file.or(under.client_key_file),
            proxy: self.proxy.or(under.proxy),
            preferred_networks: if self.preferred_networks.is_empty() {
                under.preferred_networks
            } else {
                self.preferred_networks
            },
            ignored_interfaces: if self.ignored_interfaces.is_empty() {
                under.ignored_interfaces
            } else {
                self.ignored_interfaces
            },
            environment: None,
            file: None,
            unreadable: Vec::new(),
        }
    }

    /// Fills in the defaults.
    fn resolve(self, problems: &mut Vec<Problem>) -> ClientConfig {
        let credentials = credentials(self.username.as_deref(), self.password, self.password_file, problems);
        let client = match (self.client_cert_file, self.client_key_file) {
            (Some(chain), Some(key)) => Some((chain, key)),
            (None, None) => None,
            (chain, _) => {
                let field = if chain.is_some() { "client_key_file" } else { "client_cert_file" };
                problems
                    .push(Problem::new(field, "is missing: a client certificate needs both of its files"));
                None
            }
        };
        let dialect =
            self.dialect.unwrap_or(if self.username.is_some() { Dialect::Auto } else { Dialect::Any });
        let lenient = matches!(dialect, Dialect::Auto | Dialect::Shenyu(_));
        let (context_path, app_name) = if lenient {
            normal(self.context_path, self.app_name)
        } else {
            (self.context_path, self.app_name)
        };
        let (min, max) = self.retry_delay.unwrap_or(ClientConfig::DEFAULT_RETRY_DELAY);
        let refresh = self.refresh_interval.unwrap_or(ClientConfig::DEFAULT_REFRESH_INTERVAL);
        ClientConfig {
            admin_urls: admins(&self.admin_urls, problems),
            context_path,
            app_name,
            host: self.host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty()),
            port: self.port,
            full: self.full.unwrap_or(false),
            rpc_type: self.rpc_type.unwrap_or(RpcType::Http),
            dialect,
            admins_rule: self.admins_rule.unwrap_or_else(|| AdminsRule::of(dialect)),
            connect_timeout: self.connect_timeout.unwrap_or(ClientConfig::DEFAULT_CONNECT_TIMEOUT),
            request_timeout: self.request_timeout.unwrap_or(ClientConfig::DEFAULT_REQUEST_TIMEOUT),
            refresh_interval: Some(refresh).filter(|interval| !interval.is_zero()),
            retry_delay: Bounds { min, max },
            concurrency: self.concurrency.unwrap_or(ClientConfig::DEFAULT_CONCURRENCY),
            shutdown_timeout: self.shutdown_timeout.unwrap_or(ClientConfig::DEFAULT_SHUTDOWN_TIMEOUT),
            credentials,
            namespaces: listed(&self.namespaces, ';'),
            protocol: self.protocol.unwrap_or_else(|| "http://".to_owned()),
            add_prefixed: self.add_prefixed.unwrap_or(false),
            offline_timeout: self.offline_timeout.unwrap_or(ClientConfig::DEFAULT_OFFLINE_TIMEOUT),
            heartbeat_interval: self.heartbeat_interval,
            propagation_time: self.propagation_time.unwrap_or(ClientConfig::DEFAULT_PROPAGATION_TIME),
            stop_timeout: self.stop_timeout.unwrap_or(ClientConfig::DEFAULT_STOP_TIMEOUT),
            tls: Tls { ca_file: self.ca_file, client },
            proxy: self.proxy,
            wishes: Wishes {
                preferred: networks(&self.preferred_networks, problems),
                ignored: listed(&self.ignored_interfaces, ','),
            },
        }
    }
}

/// As the Java starters of ShenYu make them: a slash in front and none at the end, and one named by the other.
fn normal(context_path: Option<String>, app_name: Option<String>) -> (Option<String>, Option<String>) {
    let bare = |text: &String| Some(text.trim().trim_matches('/').to_owned()).filter(|text| !text.is_empty());
    let name = app_name.as_ref().and_then(bare);
    let path = match &context_path {
        // What is there and says nothing is a mistake to be told.
        Some(text) if bare(text).is_none() && !text.trim().is_empty() => return (context_path, app_name),
        text => text.as_ref().and_then(bare).or_else(|| name.clone()),
    };
    (path.as_ref().map(|path| format!("/{path}")), app_name.or(path))
}

fn credentials(
    username: Option<&str>,
    password: Option<Secret>,
    file: Option<PathBuf>,
    problems: &mut Vec<Problem>,
) -> Option<Credentials> {
    let password = match (password, file) {
        (Some(password), _) => Some(password),
        (None, Some(file)) => match Secret::read(&file) {
            Ok(password) => Some(password),
            Err(problem) => {
                problems.push(problem);
                return None;
            }
        },
        (None, None) => None,
    };
    match (username, password) {
        (Some(username), Some(password)) => Some(Credentials { username: username.to_owned(), password }),
        (Some(username), None) => {
            let text = format!("is missing: set that of the user `{username}`, or `password_file`");
            problems.push(Problem::new("password", text));
            None
        }
        (None, Some(_)) => {
            problems.push(Problem::new("username", "is missing: set the user that the password belongs to"));
            None
        }
        (None, None) => None,
    }
}

fn networks(lists: &[String], problems: &mut Vec<Problem>) -> Vec<Network> {
    let mut networks = Vec::new();
    for text in listed(lists, ',') {
        match Network::parse(&text) {
            Ok(network) => networks.push(network),
            Err(text) => problems.push(Problem::new("preferred_networks", text)),
        }
    }
    networks
}

/// The pieces of lists, each once.
fn listed(lists: &[String], separator: char) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in
        lists.iter().flat_map(|list| list.split(separator)).map(str::trim).filter(|piece| !piece.is_empty())
    {
        if !pieces.iter().any(|known| known == piece) {
            pieces.push(piece.to_owned());
        }
    }
    pieces
}

/// Each address once, in the order given.
fn admins(lists: &[Written], problems: &mut Vec<Problem>) -> Vec<AdminUrl> {
    let mut admins: Vec<AdminUrl> = Vec::new();
    let mut refused = false;
    for text in lists.iter().flat_map(|list| list.0.split(',')).map(str::trim).filter(|text| !text.is_empty())
    {
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
