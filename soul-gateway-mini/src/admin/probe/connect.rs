//! The check itself: a TCP connection, closed at once.

use std::{fmt, future::Future, net::IpAddr, pin::Pin};

use crate::{
    dial::{self, Dialer},
    model::Target,
};

/// Addresses of one name that are tried.
const ADDRESSES: usize = 8;

/// A check to come: nothing if the upstream is alive, else why it is not.
pub(crate) type Checked = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Says whether an upstream is alive.
pub(crate) trait HealthCheck: fmt::Debug + Send + Sync + 'static {
    /// Checks one address; the caller bounds the time.
    fn check(&self, target: Target) -> Checked;
}

/// Alive is what takes a TCP connection.
#[derive(Clone, Debug)]
pub(crate) struct TcpConnect {
    /// Whether names may lead to link-local addresses.
    allow_link_local: bool,
    dialer: Dialer,
}

impl TcpConnect {
    pub(crate) fn new(allow_link_local: bool) -> Self {
        Self { allow_link_local, dialer: Dialer::new() }
    }
}

impl HealthCheck for TcpConnect {
    fn check(&self, target: Target) -> Checked {
        let Self { allow_link_local, dialer } = self.clone();
        Box::pin(async move {
            let mut addresses = dialer.resolve(&target).await.map_err(|e| e.to_string())?;
            addresses.retain(|address| allow_link_local || !is_link_local(address.ip()));
            addresses.truncate(ADDRESSES);
            dial::connect(addresses).await.map_err(|e| e.to_string())
        })
    }
}

/// Whether an address only reaches the own link, where metadata services of cloud hosts live.
pub(crate) fn is_link_local(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Why a link-local address is refused where the settings do not allow it.
pub(crate) fn refuse_link_local(address: &str) -> String {
    format!("`{address}` is link-local, and the admin is not set to allow such addresses")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn check(text: &str) -> Checked {
        TcpConnect::new(false).check(text.parse().unwrap())
    }

    #[tokio::test]
    async fn listening_is_alive_by_number_and_by_name() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for text in
            [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("http://127.0.0.1:{port}")]
        {
            assert_eq!(check(&text).await, Ok(()), "{text}");
        }
        drop(listener);
        let target = format!("127.0.0.1:{port}");
        assert!(check(&target).await.unwrap_err().contains("refused"));
    }

    #[tokio::test]
    async fn ipv6_is_probed() {
        // A machine without IPv6 has nothing to listen on.
        let Ok(listener) = TcpListener::bind("[::1]:0").await else { return };
        let target = format!("[::1]:{}", listener.local_addr().unwrap().port());
        assert_eq!(check(&target).await, Ok(()));
    }

    #[test]
    fn link_local_is_seen_through_mapping() {
        for (ip, link_local) in [
            ("169.254.169.254", true),
            ("::ffff:169.254.169.254", true),
            ("fe80::1", true),
            ("10.0.0.1", false),
            ("::1", false),
        ] {
            assert_eq!(is_link_local(ip.parse().unwrap()), link_local, "{ip}");
        }
    }

    #[tokio::test]
    async fn link_local_is_not_connected_to() {
        let error = check("169.254.169.254:80").await.unwrap_err();
        assert!(error.contains("no address that may be probed"), "{error}");
    }
}
