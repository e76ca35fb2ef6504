//! TLS towards callers and upstreams, by rustls. What is served comes from files, and may change while connections are open: an open one
//! keeps what it began with, the next one gets what the files say now.

mod callers;
mod error;
mod files;
mod upstreams;
mod watch;

pub(crate) use callers::CallerTls;
pub use error::TlsError;
pub(crate) use files::TlsFiles;
pub(crate) use upstreams::{UpstreamTls, UpstreamTrust};

/// The name of HTTP/2 in TLS.
pub(crate) const HTTP_2: &[u8] = b"h2";

/// The name of HTTP/1.1 in TLS.
pub(crate) const HTTP_1_1: &[u8] = b"http/1.1";
