//! Whether an upstream takes a connection.

use std::io;

use tokio::net::TcpStream;

use super::{Checked, HealthCheck};
use crate::{balance::Upstream, call::discover::BoxFuture};

/// Passes if a connection is taken. A host name is resolved at each check.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpCheck;

impl HealthCheck for TcpCheck {
    fn check<'a>(&'a self, upstream: &'a Upstream) -> BoxFuture<'a, Checked> {
        let target = target(upstream);
        Box::pin(async move { Ok(connect(&target).await?) })
    }

    fn key(&self) -> Option<String> {
        Some("tcp".to_owned())
    }
}

async fn connect(target: &str) -> io::Result<()> {
    TcpStream::connect(target).await.map(drop)
}

/// `host:port` to connect to: without a path, and with the port of the protocol if none is given.
fn target(upstream: &Upstream) -> String {
    let address = upstream.address();
    let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
    let after_host = authority.rfind(']').map_or(authority, |end| &authority[end..]);
    if after_host.contains(':') {
        return authority.to_owned();
    }
    let port = if upstream.protocol().starts_with("https") { 443 } else { 80 };
    format!("{authority}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_that_of_the_protocol_where_none_is_given() {
        for (protocol, address, connects) in [
            ("http://", "10.0.0.2:8188", "10.0.0.2:8188"),
            ("http://", "orders", "orders:80"),
            ("https://", "orders/api", "orders:443"),
            ("http://", "[::1]:81", "[::1]:81"),
            ("https://", "[::1]", "[::1]:443"),
        ] {
            assert_eq!(target(&Upstream::new(address).with_protocol(protocol)), connects);
        }
    }

    #[tokio::test]
    async fn passes_where_somebody_listens_and_not_where_nobody_does() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = Upstream::new(listener.local_addr().unwrap().to_string());
        TcpCheck.check(&upstream).await.unwrap();
        drop(listener);
        let error = TcpCheck.check(&upstream).await.unwrap_err().to_string();
        assert!(error.to_lowercase().contains("refused"), "{error}");
    }
}
