//! Connections that are made only to see whether somebody is there: what the probes of admin and gateway do alike.

use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    sync::Arc,
};

use tokio::{
    net::TcpStream,
    sync::Semaphore,
    task::{JoinSet, spawn_blocking},
};

use crate::model::Target;

/// Names that are looked up at once. Each holds a thread of the runtime's pool, which the store needs too, and holds it
/// until the name server has answered or the system has given up, which is long after the probe has.
const LOOKUPS: usize = 32;

/// Finds the addresses of targets.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    lookups: Arc<Semaphore>,
}

impl Dialer {
    pub(crate) fn new() -> Self {
        Self { lookups: Arc::new(Semaphore::new(LOOKUPS)) }
    }

    /// The addresses of a target; those of a name are looked up.
    pub(crate) async fn resolve(&self, target: &Target) -> io::Result<Vec<SocketAddr>> {
        let (host, port) = (target.host().to_owned(), target.port());
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![(ip, port).into()]);
        }
        let place = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
        let lookup = spawn_blocking(move || {
            let found = (host.as_str(), port).to_socket_addrs();
            drop(place); // here, not where the probe gives up waiting
            found.map(Iterator::collect)
        });
        lookup.await.map_err(io::Error::other)?
    }
}

/// Connects to all at once; one that answers is enough, and one that swallows packets delays no other.
pub(crate) async fn connect(addresses: Vec<SocketAddr>) -> io::Result<()> {
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
    use std::{
        future::Future as _,
        task::{Context, Waker},
    };

    use super::*;

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
        let dialer = Dialer::new();
        let taken =
            Arc::clone(&dialer.lookups).acquire_many_owned(u32::try_from(LOOKUPS).unwrap()).await.unwrap();
        let target: Target = "localhost:80".parse().unwrap();
        let mut named = std::pin::pin!(dialer.resolve(&target));
        assert!(named.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let number = dialer.resolve(&"127.0.0.1:80".parse().unwrap()).await;
        assert_eq!(number.unwrap(), ["127.0.0.1:80".parse().unwrap()]);
        drop(taken);
        assert!(named.await.unwrap().iter().all(|address| address.ip().is_loopback()));
        assert_eq!(dialer.lookups.available_permits(), LOOKUPS);
    }
}
