//! What a service says about itself and about its admins.

mod admin_url;
mod admins_rule;
mod builder;
mod check;
mod env;
#[cfg(feature = "file")]
mod file;
mod resolve;

use std::{path::PathBuf, time::Duration};

pub use admins_rule::AdminsRule;
pub use builder::ClientConfigBuilder;

pub(crate) use admin_url::AdminUrl;
#[cfg(all(feature = "file", feature = "call"))]
pub(crate) use file::pairs as file_pairs;

use crate::{
    address::Wishes,
    backoff::Bounds,
    error::Error,
    plan::{Dialect, Heartbeat, Properties, ShenyuVersion},
    route::RpcType,
    secret::Secret,
    transport::Credentials,
};

/// Settings of a [`SoulClient`](crate::SoulClient), checked: made by [`ClientConfig::builder`] or
/// [`ClientConfig::from_env`].
///
/// | setting | environment | default |
/// |---|---|---|
/// | `admin_url` | `SOUL_ADMIN_URL` | none, needed |
/// | `context_path` | `SOUL_CONTEXT_PATH` | none, needed (optional for [`Dialect::V2_3_0`]) |
/// | `app_name` | `SOUL_APP_NAME` | none, needed for `springCloud` |
/// | `host` | `SOUL_HOST` | found at start, see [`Announced`](crate::Announced) |
/// | `port` | `SOUL_PORT` | the listener's |
/// | `preferred_networks` | `SOUL_PREFERRED_NETWORKS`, joined by commas | none |
/// | `ignored_interfaces` | `SOUL_IGNORED_INTERFACES`, joined by commas | none |
/// | `full` | `SOUL_FULL` | `false` |
/// | `rpc_type` | `SOUL_RPC_TYPE` | `http` |
/// | `dialect` | `SOUL_DIALECT` | `any`; `auto` once there is a user |
/// | `admins_rule` | `SOUL_ADMINS_RULE` | that of the dialect: `first` for Soul |
/// | `username` | `SOUL_USERNAME` | none, needed for ShenYu from 2.4.2 on |
/// | `password` | `SOUL_PASSWORD`, or the file `SOUL_PASSWORD_FILE` | none, needed with a user |
/// | `namespace` | `SOUL_NAMESPACE` | the one every ShenYu has |
/// | `protocol` | `SOUL_PROTOCOL` | `http://` |
/// | `add_prefixed` | `SOUL_ADD_PREFIXED` | `false` |
/// | `connect_timeout` | `SOUL_CONNECT_TIMEOUT`, seconds | 10 s |
/// | `request_timeout` | `SOUL_REQUEST_TIMEOUT`, seconds | 10 s |
/// | `refresh_interval` | `SOUL_REFRESH_INTERVAL`, seconds | 30 s |
/// | `retry_delay` | – | 1 s to 30 s |
/// | `concurrency` | – | 16 |
/// | `shutdown_timeout` | – | 1 s |
/// | `offline_timeout` | – | 3 s |
/// | `propagation_time` | `SOUL_PROPAGATION_TIME`, seconds | 3 s |
/// | `stop_timeout` | `SOUL_STOP_TIMEOUT`, seconds | 25 s |
/// | `ca_file` | `SOUL_CA_FILE` | what the system trusts |
/// | `client_certificate` | `SOUL_CLIENT_CERT_FILE`, `SOUL_CLIENT_KEY_FILE` | none |
/// | `proxy` | `SOUL_PROXY` | none; `HTTP_PROXY` and its like are not looked at |
/// | `heartbeat_interval` | – | that of the dialect, see [`ShenyuVersion::heartbeat`](crate::ShenyuVersion::heartbeat) |
///
/// With ShenYu, a context path without its slash gets one, and an application without a name is called by its
/// context path.
///
/// What the builder is told wins over the environment, and that over a file, in whichever order they are given.
///
/// # Files
/// With the feature `file`, `ClientConfig::from_file` reads YAML and TOML with the keys of the Java clients, as
/// leniently as Spring (`context-path`, `${NAME:otherwise}`):
///
/// | where | what |
/// |---|---|
/// | `soul.http`, `soul.springcloud` | `adminUrl`, `contextPath`, `appName`, `full`, `host`, `port` |
/// | `soul.client` | `registerType`, `serverLists`, `props.{contextPath,appName,isFull,host,port}` |
/// | `shenyu.register` | `registerType`, `serverLists`, `props.{username,password,passwordFile}` |
/// | `shenyu.client.http.props` | `contextPath`, `appName`, `isFull`, `host`, `port`, `protocol`, `addPrefixed` |
/// | `shenyu.namespace`, `spring.application.name` | themselves |
/// | `soul.rust` | every other setting above by its name, such as `dialect` and `caFile`; times in seconds |
///
/// Keys of `shenyu` set the dialect to [`Dialect::Auto`], unless there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    admin_urls: Vec<AdminUrl>,
    context_path: Option<String>,
    app_name: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    full: bool,
    rpc_type: RpcType,
    dialect: Dialect,
    admins_rule: AdminsRule,
    connect_timeout: Duration,
    request_timeout: Duration,
    refresh_interval: Option<Duration>,
    retry_delay: Bounds,
    concurrency: usize,
    shutdown_timeout: Duration,
    credentials: Option<Credentials>,
    namespaces: Vec<String>,
    protocol: String,
    add_prefixed: bool,
    offline_timeout: Duration,
    heartbeat_interval: Option<Duration>,
    propagation_time: Duration,
    stop_timeout: Duration,
    tls: Tls,
    proxy: Option<Secret>,
    wishes: Wishes,
}

/// What is trusted, and how this client shows who it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "rustls"), allow(dead_code, reason = "only TLS reads it"))]
pub(crate) struct Tls {
    pub(crate) ca_file: Option<PathBuf>,
    /// Certificates and key.
    pub(crate) client: Option<(PathBuf, PathBuf)>,
}

impl ClientConfig {
    /// Time to open a connection to an admin. Source: the Java client (OkHttp), 10 s.
    pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
    /// Time for one registration from its start to the last byte of the answer, connecting included.
    /// Source: the Java client waits 10 s for each of its steps.
    pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
    /// Time between two rounds of telling an admin what it should already know. Ours: an admin that was
    /// restarted empty, or that dropped this instance, learns it again within half a minute.
    pub const DEFAULT_REFRESH_INTERVAL: Duration = Duration::from_secs(30);
    /// Shortest and longest wait after a failure; Java clients never try again.
    pub const DEFAULT_RETRY_DELAY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
    /// Registrations under way at the same time towards one admin. Ours: 1000 routes stay well below a second
    /// on a local network, and an admin's thread pool keeps room for others.
    pub const DEFAULT_CONCURRENCY: usize = 16;
    /// Time that registrations under way are given to end when the client is shut down.
    pub const DEFAULT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

    /// Time for telling the admins that this instance leaves, all of them together.
    pub const DEFAULT_OFFLINE_TIMEOUT: Duration = Duration::from_secs(3);

    /// Time from the farewell until gateways no longer send anything. Source: the Java client of ShenYu waits 3 s.
    pub const DEFAULT_PROPAGATION_TIME: Duration = Duration::from_secs(3);
    /// Time from the signal to the end of the process. Ours: Kubernetes kills after 30 s.
    pub const DEFAULT_STOP_TIMEOUT: Duration = Duration::from_secs(25);

    /// Starts a configuration.
    ///
    /// # Examples
    ///
    /// ```
    /// use soul_client::ClientConfig;
    ///
    /// let config = ClientConfig::builder()
    ///     .admin_url("http://admin-1:9095,http://admin-2:9095/")
    ///     .context_path("/order")
    ///     .app_name("order")
    ///     .build()?;
    /// assert_eq!(config.admin_urls().collect::<Vec<_>>(), ["http://admin-1:9095", "http://admin-2:9095"]);
    /// # Ok::<(), soul_client::Error>(())
    /// ```
    #[must_use = "a builder does nothing until `build`"]
    pub fn builder() -> ClientConfigBuilder {
        ClientConfigBuilder::default()
    }

    /// Reads the whole configuration from the environment.
    ///
    /// # Errors
    /// When a variable that is needed is missing or one has a bad value; every problem is listed.
    pub fn from_env() -> Result<Self, Error> {
        Self::builder().env().build()
    }

    /// Reads the configuration from a file (`.yml`, `.yaml` or `.toml`), and from the environment, which wins.
    ///
    /// # Errors
    /// When the file cannot be read, or something is missing or wrong; every problem is listed.
    #[cfg(feature = "file")]
    pub fn from_file(path: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        Self::builder().file(path).env().build()
    }

    /// The admins, in the order in which they are tried, without a slash at the end.
    pub fn admin_urls(&self) -> impl Iterator<Item = &str> {
        self.admin_urls.iter().map(AdminUrl::as_str)
    }

    /// The prefix that names the service.
    #[must_use]
    pub fn context_path(&self) -> Option<&str> {
        self.context_path.as_deref()
    }

    /// The name of the application.
    #[must_use]
    pub fn app_name(&self) -> Option<&str> {
        self.app_name.as_deref()
    }

    /// The host to announce, when it is not to be found out.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// The port to announce, when it is not the listener's.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether the whole context path is registered instead of the annotated routes.
    #[must_use]
    pub fn full(&self) -> bool {
        self.full
    }

    /// How the gateway calls routes that do not say otherwise.
    #[must_use]
    pub fn rpc_type(&self) -> RpcType {
        self.rpc_type
    }

    /// The kind of admin that the bodies are written for.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// How several admins are treated.
    #[must_use]
    pub fn admins_rule(&self) -> AdminsRule {
        self.admins_rule
    }

    /// Time to open a connection.
    #[must_use]
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// Time for one registration, connecting included.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// Time between two rounds of registration; `None`: once is enough.
    #[must_use]
    pub fn refresh_interval(&self) -> Option<Duration> {
        self.refresh_interval
    }

    /// Shortest and longest wait after a failure.
    #[must_use]
    pub fn retry_delay(&self) -> (Duration, Duration) {
        (self.retry_delay.min, self.retry_delay.max)
    }

    /// Registrations under way at the same time towards one admin.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// Time that registrations under way are given to end at shutdown.
    #[must_use]
    pub fn shutdown_timeout(&self) -> Duration {
        self.shutdown_timeout
    }

    /// The user that logs in at the admins.
    #[must_use]
    pub fn username(&self) -> Option<&str> {
        self.credentials.as_ref().map(|credentials| credentials.username.as_str())
    }

    /// Ids of ShenYu's namespaces to register in; none stands for the one that every admin has.
    #[must_use]
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// What a gateway of ShenYu speaks to this instance, `http://` or `https://`.
    #[must_use]
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// Whether a gateway of ShenYu keeps the context path in front.
    #[must_use]
    pub fn add_prefixed(&self) -> bool {
        self.add_prefixed
    }

    /// Time for telling the admins that this instance leaves.
    #[must_use]
    pub fn offline_timeout(&self) -> Duration {
        self.offline_timeout
    }

    /// Time from the farewell until gateways no longer send anything.
    #[must_use]
    pub fn propagation_time(&self) -> Duration {
        self.propagation_time
    }

    /// Time from the signal to the end of the process.
    #[must_use]
    pub fn stop_timeout(&self) -> Duration {
        self.stop_timeout
    }

    /// How often an instance says that it is still there, if that was set.
    #[must_use]
    pub fn heartbeat_interval(&self) -> Option<Duration> {
        self.heartbeat_interval
    }

    /// What that means for a dialect.
    pub(crate) fn heartbeat(&self, dialect: Dialect) -> Option<Heartbeat> {
        let own = dialect.shenyu().and_then(ShenyuVersion::heartbeat)?;
        match self.heartbeat_interval {
            None => Some(own),
            Some(period) => (!period.is_zero()).then_some(Heartbeat { first: period, period }),
        }
    }

    #[cfg_attr(not(feature = "rustls"), allow(dead_code, reason = "only TLS reads it"))]
    pub(crate) fn tls(&self) -> &Tls {
        &self.tls
    }

    pub(crate) fn proxy(&self) -> Option<&Secret> {
        self.proxy.as_ref()
    }

    pub(crate) fn wishes(&self) -> &Wishes {
        &self.wishes
    }

    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    pub(crate) fn retry_bounds(&self) -> Bounds {
        self.retry_delay
    }

    pub(crate) fn admins(&self) -> &[AdminUrl] {
        &self.admin_urls
    }

    /// The same, as a Soul client of either version has it in its configuration.
    ///
    /// # Shape
    /// - `host`, `port`: what is announced; they take the place of this configuration's own.
    #[must_use]
    pub fn properties(&self, host: &str, port: u16) -> Properties {
        let mut properties = Properties::new(self.dialect, host);
        properties.rpc_type = self.rpc_type;
        properties.server_lists = Some(self.admin_urls().collect::<Vec<_>>().join(","));
        properties.context_path.clone_from(&self.context_path);
        properties.app_name.clone_from(&self.app_name);
        properties.host = Some(host.to_owned());
        properties.port = Some(port.to_string());
        properties.full = Some(self.full.to_string());
        properties.namespaces.clone_from(&self.namespaces);
        properties.protocol.clone_from(&self.protocol);
        properties.add_prefixed = self.add_prefixed;
        properties
    }
}
