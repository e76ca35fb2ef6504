//! What can go wrong: when a gateway starts, and with one request.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use super::{context::ContextPathError, forward::CallerFault};
use crate::{
    causes::{chain, is_of_the_name},
    tls::TlsError,
};

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// Settings that cannot work.
    #[error("the gateway's settings cannot work: {}", problems.join("; "))]
    Config {
        /// Every problem, each with its field.
        problems: Vec<String>,
    },
    /// An admin's address that cannot be used.
    #[error("`{url}` is not the address of an admin: {reason}")]
    AdminUrl {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No admin to learn from.
    #[error("no admin is given, name at least one such as `http://127.0.0.1:9095`")]
    NoAdmin,
    /// A listener could not be opened.
    #[error("listen on `{address}` for {purpose}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What it is for.
        purpose: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The access log cannot be written.
    #[error(
        "open the access log `{}` (`--access-log`), expected a file in a folder that is there and may be written by this user",
        path.display()
    )]
    AccessLog {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// TLS cannot be spoken with the files that were given.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Some parts cannot take up new settings, so none has.
    #[error("{}", refused.iter().map(|(part, error)| format!("{part}: {}", chain(error))).collect::<Vec<_>>().join("; "))]
    Reload {
        /// Which parts, and why not; never empty.
        refused: Vec<(&'static str, GatewayError)>,
    },
    /// The system gave no thread to serve in.
    #[error("start a thread for requests (`--gateway-threads`)")]
    Thread {
        /// Why not.
        source: io::Error,
    },
}

impl GatewayError {
    /// Whether a setting has to be put right, or a file that it names.
    pub(crate) fn is_of_a_setting(&self) -> bool {
        match self {
            Self::Config { .. } | Self::AdminUrl { .. } | Self::NoAdmin => true,
            Self::AccessLog { source, .. } => is_of_the_name(source),
            Self::Tls(error) => error.is_of_a_setting(),
            Self::Reload { refused } => refused.iter().all(|(_, error)| error.is_of_a_setting()),
            Self::Listen { .. } | Self::Thread { .. } => false,
        }
    }
}

/// Why a request was not answered by an upstream; what the caller is told is decided in `respond`.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// No configuration has arrived yet.
    #[error("no configuration yet")]
    NotReady,
    /// The request itself cannot be served, whatever is configured.
    #[error("malformed request: {0}")]
    Malformed(&'static str),
    /// The head has more lines, or is longer, than may be; over HTTP/2, where the connection lives on.
    #[error("the head has more lines than `--max-headers` allows, or more bytes than `--max-head-bytes`")]
    HeadTooLarge,
    /// The request asks for what a gateway does not do.
    #[error("not served: {0}")]
    NotServed(&'static str),
    /// The caller did not send the body it announced.
    #[error("the caller's body {}", match .0 {
        CallerFault::Left => "broke off",
        CallerFault::Malformed => "cannot be read",
        CallerFault::Stalled => "paused for too long",
        CallerFault::TooLarge => "is longer than `--max-body-bytes` allows",
    })]
    Caller(CallerFault),
    /// As many requests as the gateway may serve at once are under way.
    #[error("as many requests as `--max-requests` allows are under way")]
    Overloaded,
    /// Every upstream that may be chosen has as many requests under way as it may.
    #[error(
        "as many requests as `--upstream-max-requests` allows are under way at every upstream, and as many wait as may"
    )]
    Busy,
    /// `divide` is switched off or unknown, or the path belongs to another kind of service: nothing says where to.
    #[error("not divided: {0}")]
    NotDivided(&'static str),
    /// No selector takes the request.
    #[error("can not match selector data: divide")]
    NoSelector,
    /// The selector has no rule for the request.
    #[error("can not match rule data: divide")]
    NoRule,
    /// A selector or rule that had to be tried cannot be evaluated; by setting that is an error, as in Soul.
    #[error("a condition cannot be evaluated: {0}")]
    Condition(String),
    /// The selector has no upstream at all.
    #[error("divide upstream configuration error： {rule}")]
    NoUpstreamConfigured { rule: Arc<str> },
    /// The selector has upstreams, and none may be chosen.
    #[error("divide has no upstream")]
    NoUpstream,
    /// The path does not begin with the context path of the rule that matched.
    #[error(transparent)]
    ContextPath(ContextPathError),
    /// No connection could be made.
    #[error("connect to `{upstream}`")]
    Connect { upstream: Arc<str>, source: io::Error },
    /// No connection was made in time.
    #[error("connect to `{upstream}` within {} ms", after.as_millis())]
    ConnectLate { upstream: Arc<str>, after: Duration },
    /// The upstream broke off.
    #[error("exchange with `{upstream}`")]
    Broken { upstream: Arc<str>, source: io::Error },
    /// What the upstream said is no answer, or none that a gateway can pass on.
    #[error("exchange with `{upstream}`: {what}")]
    Unusable { upstream: Arc<str>, what: String },
    /// The request needs HTTP/2, and the upstream speaks HTTP/1.1.
    #[error(
        "gRPC needs HTTP/2, and `{upstream}` is spoken to in HTTP/1.1; register it with `h2c://` or `grpc://`, or set `--upstream-http2`"
    )]
    NoHttp2 { upstream: Arc<str> },
    /// The upstream did not answer in time.
    #[error("no answer of `{upstream}` within {} ms", after.as_millis())]
    Late { upstream: Arc<str>, after: Duration },
    /// The upstream did not answer in the time that the caller gives, which is no fault of the upstream.
    #[error("no answer of `{upstream}` within the {} ms that the caller gives", after.as_millis())]
    GivenUp { upstream: Arc<str>, after: Duration },
}
