//! The check itself: a TCP connection, closed at once.

use std::{
    fmt,
    future::Future,
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    pin::Pin,
    sync::Arc,
};

use tokio::{
    net::TcpStream,
    sync::Semaphore,
    task::{JoinSet, spawn_blocking},
};

use crate::model::Target;

/// Addresses of one name that are tried.
const ADDRESSES: usize = 8;

/// Names that are looked up at once. Each holds a thread of the runtime's pool, which the store needs too, and holds it
/// until the name server has answered or the system has given up, which is long after the probe has.
const LOOKUPS: usize = 32;

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
    lookups: Arc<Semaphore>,
}

impl TcpConnect {
    pub(crate) fn new(allow_link_local: bool) -> Self {
        Self { allow_link_local, lookups: Arc::new(Semaphore::new(LOOKUPS)) }
    }
}

impl HealthCheck for TcpConnect {
    fn check(&self, target: Target) -> Checked {
        let Self { allow_link_local, lookups } = self.clone();
        Box::pin(async move {
            let mut addresses = resolve(&target, lookups).await.map_err(|e| e.to_string())?;
            addresses.retain(|address| allow_link_local || !is_link_local(address.ip()));
            addresses.truncate(ADDRESSES);
            connect(addresses).await.map_err(|e| e.to_string())
        })
    }
}

async fn resolve(target: &Target, lookups: Arc<Semaphore>) -> io::Result<Vec<SocketAddr>> {
    let (host, port) = (target.host().to_owned(), target.port());
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![(ip, port).into()]);
    }
    let place = lookups.acquire_owned().await.map_err(io::Error::other)?;
    let lookup = spawn_blocking(move || {
        let found = (host.as_str(), port).to_socket_addrs();
        drop(place); // here, not where the probe gives up waiting
        found.map(Iterator::collect)
    });
    lookup.await.map_err(io::Error::other)?
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
        return connect_to(address).await;
    }
    let mut attempts: JoinSet<io::Result<()>> = addresses.into_iter().map(connect_to).collect();
    while let Some(ended) = attempts.join_next().await {
        match ended.map_err(io::Error::other).flatten() {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn connect_to(address: SocketAddr) -> io::Result<()> {
    not_itself(&TcpStream::connect(address).await?)
}

/// Where nobody listens on a port of this machine, the system may take just that port for the connection's own end, and
/// then connects it to itself: a dead node would seem alive.
fn not_itself(stream: &TcpStream) -> io::Result<()> {
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

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

    #[tokio::test]
    async fn a_connection_to_itself_is_nobody_listening() {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let own = socket.local_addr().unwrap();
        let stream = socket.connect(own).await.unwrap();
        assert_eq!(not_itself(&stream).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn names_wait_for_a_place_and_addresses_do_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = TcpConnect::new(false);
        let taken =
            connect.lookups.clone().acquire_many_owned(u32::try_from(LOOKUPS).unwrap()).await.unwrap();
        let mut named = connect.check(format!("localhost:{port}").parse().unwrap());
        assert!(named.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(connect.check(format!("127.0.0.1:{port}").parse().unwrap()).await, Ok(()));
        drop(taken);
        assert_eq!(named.await, Ok(()));
        assert_eq!(connect.lookups.available_permits(), LOOKUPS);
    }
}
