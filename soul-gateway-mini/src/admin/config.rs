//! The settings of the admin, each with its default.

use std::{
    convert::Infallible,
    fmt,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use soul_client::wire::shenyu::DEFAULT_NAMESPACE;

use super::problem::Problem;

/// Where the admin listens; Soul's port, but on loopback only.
pub const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9095));
/// Folder of the store, inside the working folder.
pub const DATA_FOLDER: &str = "soul-data";
/// User that ShenYu's clients log in as, unless another is set; that of every ShenYu.
pub const SHENYU_USER: &str = "admin";
/// Life of a token, as in ShenYu.
pub const SHENYU_TOKEN_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Time from the start of a round of probing to the start of the next; Soul waits as long after the end of one.
pub const UPSTREAM_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Time a probe waits for a connection; Soul waits as long as the system does.
pub const UPSTREAM_CHECK_TIMEOUT: Duration = Duration::from_secs(3);
/// Probes in flight at once. With as many unreachable addresses a round still takes one timeout.
pub const UPSTREAM_CHECK_CONCURRENCY: usize = 256;
/// Time from one dating of the groups to the next, as in Soul.
pub const REFRESH_INTERVAL: Duration = Duration::from_secs(300);
/// Time a poll is held, as in Soul; its gateways give up after 90 s.
pub const POLL_HOLD: Duration = Duration::from_secs(60);
/// Largest request body in bytes; a registration has a few hundred.
pub const BODY_LIMIT: usize = 256 * 1024;
/// Time for the head of a request, and of an idle connection.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for the body of a request.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time a client may take nothing of its answer.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Connections at once; more wait to be accepted.
pub const MAX_CONNECTIONS: usize = 16_384;
/// Time for requests in flight to end at shutdown.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings of one admin.
///
/// # Examples
/// ```
/// use soul_gateway_mini::admin::{AdminConfig, DataDir};
///
/// let config = AdminConfig { data: DataDir::Memory, ..AdminConfig::default() };
/// assert!(config.validate().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct AdminConfig {
    /// Address to listen on; port 0 takes a free one. Default [`LISTEN`].
    pub listen: SocketAddr,
    /// Where the store is kept. Default: the folder [`DATA_FOLDER`].
    pub data: DataDir,
    /// Token that `/api/v1` asks for. Without one, which is the default, only the own machine may use it.
    pub api_token: Option<ApiToken>,
    /// Whom ShenYu's clients must log in as. Without one, which is the default, any login gives a token and none is
    /// asked for; Soul's clients never log in.
    pub shenyu_login: Option<ShenyuLogin>,
    /// Life of a token. Default [`SHENYU_TOKEN_LIFE`].
    pub shenyu_token_life: Duration,
    /// The namespace whose registrations are taken; those of others are refused. Default: ShenYu's own default.
    pub shenyu_namespace: String,
    /// Time from one round of probing to the next; zero turns probing off. Default [`UPSTREAM_CHECK_INTERVAL`].
    pub upstream_check_interval: Duration,
    /// Time a probe waits for a connection. Default [`UPSTREAM_CHECK_TIMEOUT`].
    pub upstream_check_timeout: Duration,
    /// Probes in flight at once. Default [`UPSTREAM_CHECK_CONCURRENCY`].
    pub upstream_check_concurrency: usize,
    /// Time after which a dead upstream is dropped from its selector; zero, the default, never drops one.
    pub upstream_forget_after: Duration,
    /// Whether upstreams may have link-local addresses, where cloud hosts keep their metadata services. Default no.
    pub allow_link_local: bool,
    /// Time from one dating of the groups to the next; zero never dates them. Default [`REFRESH_INTERVAL`].
    pub refresh_interval: Duration,
    /// Time a poll is held. Default [`POLL_HOLD`].
    pub poll_hold: Duration,
    /// Largest request body in bytes. Default [`BODY_LIMIT`].
    pub body_limit: usize,
    /// Time for the head of a request; also how long a connection may be idle. Default [`HEADER_TIMEOUT`].
    pub header_timeout: Duration,
    /// Time for the body of a request. Default [`BODY_TIMEOUT`].
    pub body_timeout: Duration,
    /// Time a client may take nothing of its answer before it is cut off. Default [`WRITE_TIMEOUT`].
    pub write_timeout: Duration,
    /// Connections at once. Default [`MAX_CONNECTIONS`].
    pub max_connections: usize,
    /// Time for requests in flight to end at shutdown. Default [`DRAIN_TIMEOUT`].
    pub drain_timeout: Duration,
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self {
            listen: LISTEN,
            data: DataDir::Path(PathBuf::from(DATA_FOLDER)),
            api_token: None,
            shenyu_login: None,
            shenyu_token_life: SHENYU_TOKEN_LIFE,
            shenyu_namespace: DEFAULT_NAMESPACE.to_owned(),
            upstream_check_interval: UPSTREAM_CHECK_INTERVAL,
            upstream_check_timeout: UPSTREAM_CHECK_TIMEOUT,
            upstream_check_concurrency: UPSTREAM_CHECK_CONCURRENCY,
            upstream_forget_after: Duration::ZERO,
            allow_link_local: false,
            refresh_interval: REFRESH_INTERVAL,
            poll_hold: POLL_HOLD,
            body_limit: BODY_LIMIT,
            header_timeout: HEADER_TIMEOUT,
            body_timeout: BODY_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
            max_connections: MAX_CONNECTIONS,
            drain_timeout: DRAIN_TIMEOUT,
        }
    }
}

impl AdminConfig {
    /// Looks for values that cannot work.
    ///
    /// # Errors
    /// Every problem, by the name of the field.
    pub fn validate(&self) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        for (field, value) in [
            ("upstream_check_timeout", self.upstream_check_timeout),
            ("poll_hold", self.poll_hold),
            ("header_timeout", self.header_timeout),
            ("body_timeout", self.body_timeout),
            ("write_timeout", self.write_timeout),
            ("shenyu_token_life", self.shenyu_token_life),
        ] {
            if value.is_zero() {
                problems.push(Problem::new(field, "must be longer than zero"));
            }
        }
        for (field, value) in [
            ("upstream_check_concurrency", self.upstream_check_concurrency),
            ("body_limit", self.body_limit),
            ("max_connections", self.max_connections),
        ] {
            if value == 0 {
                problems.push(Problem::new(field, "must be at least 1"));
            }
        }
        if self.api_token.as_ref().is_some_and(|token| token.0.trim().is_empty()) {
            problems.push(Problem::new("api_token", "must not be empty; leave it out to have none"));
        }
        if self.api_token.as_ref().is_some_and(|token| token.0.chars().any(char::is_control)) {
            problems
                .push(Problem::new("api_token", "must be one line, which no header could hold otherwise"));
        }
        if let Some(login) = &self.shenyu_login {
            if login.user.trim().is_empty() {
                problems.push(Problem::new("shenyu_login", "must name a user"));
            }
            if login.password.0.is_empty() {
                problems
                    .push(Problem::new("shenyu_login", "must have a password; leave it out to ask for none"));
            }
        }
        if self.shenyu_namespace.trim().is_empty() {
            problems.push(Problem::new("shenyu_namespace", "must not be empty"));
        }
        if matches!(&self.data, DataDir::Path(path) if path.as_os_str().is_empty()) {
            problems.push(Problem::new("data", "must be a folder, or `memory`"));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Whether upstreams are probed.
    #[must_use]
    pub fn checks_upstreams(&self) -> bool {
        !self.upstream_check_interval.is_zero()
    }
}

/// Where the store is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataDir {
    /// In memory: it ends with the process.
    Memory,
    /// In a folder, which is made if it is missing.
    Path(PathBuf),
}

impl FromStr for DataDir {
    type Err = Infallible;

    /// `memory`, or the path of a folder; write `./memory` for a folder of that name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "memory" { Self::Memory } else { Self::Path(PathBuf::from(text)) })
    }
}

impl fmt::Display for DataDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// The secret that opens `/api/v1`; neither `Debug` nor any log shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiToken(String);

impl ApiToken {
    /// A token, surrounding white space cut off.
    #[must_use]
    pub fn new(token: &str) -> Self {
        Self(token.trim().to_owned())
    }

    /// Whether a given text is the token; takes the same time wherever they differ.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        same(self.0.as_bytes(), given)
    }
}

/// Who may register as a client of ShenYu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShenyuLogin {
    /// Name of the user.
    pub user: String,
    /// The password.
    pub password: Password,
}

impl ShenyuLogin {
    /// Whether these are the user and the password; takes the same time wherever they differ.
    pub(crate) fn is(&self, user: &str, password: &str) -> bool {
        let user = same(self.user.as_bytes(), user.as_bytes());
        same(self.password.0.as_bytes(), password.as_bytes()) && user
    }
}

/// A password; neither `Debug` nor any log shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// A password, as it is.
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    /// The bytes, for the one place that makes a key of them.
    pub(crate) fn expose(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(***)")
    }
}

/// Whether two secrets are the same, in a time that does not tell where they differ.
fn same(own: &[u8], given: &[u8]) -> bool {
    let differences = own.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b));
    own.len() == given.len() && std::hint::black_box(differences) == 0
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiToken(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bad_value_is_named() {
        let config = AdminConfig {
            poll_hold: Duration::ZERO,
            body_limit: 0,
            api_token: Some(ApiToken::new(" ")),
            shenyu_login: Some(ShenyuLogin { user: "admin".to_owned(), password: Password::new("") }),
            shenyu_namespace: " ".to_owned(),
            data: DataDir::Path(PathBuf::new()),
            ..AdminConfig::default()
        };
        let problems = config.validate().unwrap_err();
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(
            fields,
            ["poll_hold", "body_limit", "api_token", "shenyu_login", "shenyu_namespace", "data"]
        );
    }

    #[test]
    fn token_is_compared_and_never_shown() {
        let token = ApiToken::new("s3cret ");
        assert!(token.is(b"s3cret"));
        for other in ["s3cre", "s3cret2", "S3cret", ""] {
            assert!(!token.is(other.as_bytes()), "{other}");
        }
        let config = AdminConfig { api_token: Some(token), ..AdminConfig::default() };
        assert!(!format!("{config:?}").contains("s3cret"));
    }

    #[test]
    fn login_is_compared_and_never_shown() {
        let login = ShenyuLogin { user: "admin".to_owned(), password: Password::new("s3cret ") };
        assert!(login.is("admin", "s3cret "));
        for (user, password) in [("admin", "s3cret"), ("admin", ""), ("Admin", "s3cret "), ("", "s3cret ")] {
            assert!(!login.is(user, password), "{user} {password}");
        }
        let config = AdminConfig { shenyu_login: Some(login), ..AdminConfig::default() };
        assert!(!format!("{config:?}").contains("s3cret"));
    }

    #[test]
    fn data_dir_is_memory_or_a_path() {
        for (text, dir) in [("memory", DataDir::Memory), ("./memory", DataDir::Path("./memory".into()))] {
            assert_eq!(text.parse(), Ok(dir.clone()));
            assert_eq!(dir.to_string(), text);
        }
    }
}
