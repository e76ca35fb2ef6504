//! The check itself: a TCP connection, closed at once.

use std::{
    fmt,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
};

use tokio::{net::TcpStream, task::JoinSet};

use crate::model::Target;

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
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpConnect {
    /// Whether names may lead to link-local addresses.
    pub(crate) allow_link_local: bool,
}

impl HealthCheck for TcpConnect {
    fn check(&self, target: Target) -> Checked {
        let allow_link_local = self.allow_link_local;
        Box::pin(async move {
            let mut addresses = resolve(&target).await.map_err(|e| e.to_string())?;
            addresses.retain(|address| allow_link_local || !is_link_local(address.ip()));
            addresses.truncate(ADDRESSES);
            connect(addresses).await.map_err(|e| e.to_string())
        })
    }
}

async fn resolve(target: &Target) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((target.host(), target.port())).await?.collect())
}

/// Whether an address only reaches the own link, where metadata services of cloud hosts live.
pub(crate) fn is_link_local(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Connects to all at once; one that answers is enough, and one that swallows packets delays no other.
async fn connect(addresses: Vec<SocketAddr>) -> io::Result<()> {
    let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "no address that may be probed");
    if let [address] = addresses[..] {
        return TcpStream::connect(address).await.map(drop);
    }
    let mut attempts: JoinSet<io::Result<TcpStream>> =
        addresses.into_iter().map(TcpStream::connect).collect();
    while let Some(ended) = attempts.join_next().await {
        match ended.map_err(io::Error::other).flatten() {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    const ANYWHERE: TcpConnect = TcpConnect { allow_link_local: false };

    #[tokio::test]
    async fn listening_is_alive_by_number_and_by_name() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for text in
            [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("http://127.0.0.1:{port}")]
        {
            assert_eq!(ANYWHERE.check(text.parse().unwrap()).await, Ok(()), "{text}");
        }
        drop(listener);
        let target = format!("127.0.0.1:{port}").parse().unwrap();
        assert!(ANYWHERE.check(target).await.unwrap_err().contains("refused"));
    }

    #[tokio::test]
    async fn ipv6_is_probed() {
        // A machine without IPv6 has nothing to listen on.
        let Ok(listener) = TcpListener::bind("[::1]:0").await else { return };
        let target = format!("[::1]:{}", listener.local_addr().unwrap().port());
        assert_eq!(ANYWHERE.check(target.parse().unwrap()).await, Ok(()));
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
        let error = ANYWHERE.check("169.254.169.254:80".parse().unwrap()).await.unwrap_err();
        assert!(error.contains("no address that may be probed"), "{error}");
    }
}
