//! Where connections come in: addresses that are taken here, and listening sockets that somebody else had opened.

use std::{io, net, net::SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

use super::{GatewayConfig, GatewayError};
use crate::listen::handshakes;

/// Connections that wait to be accepted, in the system's queue.
const BACKLOG: u32 = 1024;

/// Whether the system spreads connections over listeners at one address.
pub(super) const SPREADS: bool = cfg!(target_os = "linux");

/// Whether a connection sends without delay because its listener would, as it has from here.
pub(super) const PASSES_NODELAY_ON: bool = cfg!(target_os = "linux");

/// Listening sockets that are there already: of the process before this one, or of the service manager.
///
/// A connection that waits in one of them is lost only when the last process that has it closes it, so whoever hands
/// sockets over loses none.
#[derive(Debug, Default)]
pub struct Sockets {
    /// Those for requests. One that listens elsewhere than the settings say is not used.
    pub requests: Vec<net::TcpListener>,
    /// The one for status.
    pub status: Option<net::TcpListener>,
    /// Whether another gateway serves by them until this one does: then status is not told before that either.
    pub shared: bool,
    /// Whether those for requests were opened by a gateway, so that no service manager keeps them. Whoever has them in
    /// the end then lets those come in who are being connected, and nobody after them; other sockets are left as they are.
    pub own: bool,
}

impl Sockets {
    /// The same sockets once more.
    ///
    /// # Errors
    /// When the process may open no more files.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        let requests = self.requests.iter().map(net::TcpListener::try_clone).collect::<io::Result<_>>()?;
        let status = self.status.as_ref().map(net::TcpListener::try_clone).transpose()?;
        Ok(Self { requests, status, shared: self.shared, own: self.own })
    }
}

/// Whether a socket listens where the settings say; port 0 in them is any.
fn is_at(socket: &net::TcpListener, address: SocketAddr) -> bool {
    let own = socket.local_addr();
    own.is_ok_and(|own| own.ip() == address.ip() && (address.port() == 0 || own.port() == address.port()))
}

/// A port that is taken and not open yet, for one lane.
pub(super) enum Port {
    /// To be listened on.
    Taken(TcpSocket),
    /// Somebody has opened it; there may be several sockets to take connections from.
    Open(Vec<net::TcpListener>),
}

/// The port of all lanes.
pub(super) struct Ports {
    pub(super) address: SocketAddr,
    /// One for each lane.
    pub(super) lanes: Vec<Port>,
    /// All sockets once more, to be handed over.
    pub(super) sockets: Vec<net::TcpListener>,
}

impl Ports {
    /// Takes the port once for every lane.
    ///
    /// Where the system spreads connections over several listeners at one address, each lane has its own. Elsewhere the
    /// lanes would take them from each other, so there is one lane that listens.
    ///
    /// # Errors
    /// When the address cannot be listened on, for one because somebody else does.
    pub(super) fn take(address: SocketAddr, lanes: usize) -> io::Result<Self> {
        // Alone first, without sharing: that another gateway listens there already must not go unnoticed.
        let alone = socket(address, false)?;
        let address = alone.local_addr()?;
        let taken = if !SPREADS || lanes == 1 {
            vec![alone]
        } else {
            (0..lanes).map(|_| socket(address, true)).collect::<io::Result<_>>()?
        };
        let sockets = taken.iter().map(once_more).collect::<io::Result<Vec<_>>>()?.into_iter().flatten();
        let sockets = sockets.collect();
        Ok(Self { address, lanes: taken.into_iter().map(Port::Taken).collect(), sockets })
    }

    /// Shares open sockets out to the lanes: all of them, for in each that the system spreads over there may be
    /// connections, and to every lane at least one.
    ///
    /// # Errors
    /// When the process may open no more files.
    pub(super) fn share(sockets: Vec<net::TcpListener>, lanes: usize) -> io::Result<Self> {
        let first = sockets.first().ok_or(io::ErrorKind::NotFound)?;
        let address = first.local_addr()?;
        // Whoever had it before may have been about to end.
        sockets.iter().try_for_each(handshakes::begin_again)?;
        #[cfg(target_os = "linux")]
        sockets.iter().try_for_each(|socket| socket2::SockRef::from(socket).set_tcp_nodelay(true))?;
        let mut shares: Vec<Vec<net::TcpListener>> = (0..lanes.max(1)).map(|_| Vec::new()).collect();
        let all = shares.len();
        for index in 0..all.max(sockets.len()) {
            let socket = sockets[index % sockets.len()].try_clone()?;
            socket.set_nonblocking(true)?;
            shares[index % all].push(socket);
        }
        Ok(Self { address, lanes: shares.into_iter().map(Port::Open).collect(), sockets })
    }
}

/// The ports of a gateway.
pub(super) struct Listening {
    /// Where requests come in.
    pub(super) address: SocketAddr,
    pub(super) status_addr: SocketAddr,
    /// One for each lane.
    pub(super) lanes: Vec<Port>,
    /// For status.
    pub(super) watchers: TcpListener,
    /// All sockets once more, to be handed over.
    pub(super) sockets: Sockets,
}

impl Listening {
    /// Takes the ports where the settings say, or what is open there already.
    ///
    /// # Errors
    /// When an address cannot be listened on.
    pub(super) async fn open(
        open: Sockets,
        config: &GatewayConfig,
        lanes: usize,
    ) -> Result<Self, GatewayError> {
        let requests = usable(open.requests, config.listen, "--gateway-listen");
        let (ports, own) = if requests.is_empty() {
            (Ports::take(config.listen, lanes), true)
        } else {
            (Ports::share(requests, lanes), open.own)
        };
        let failed = |address, purpose| move |source| GatewayError::Listen { address, purpose, source };
        let Ports { address, lanes, sockets: requests } = ports.map_err(failed(config.listen, "requests"))?;
        let status = usable(open.status.into_iter().collect(), config.status_listen, "--status-listen").pop();
        let failed = failed(config.status_listen, "status");
        let (watchers, status) = watchers(status, config.status_listen).await.map_err(failed)?;
        let status_addr = watchers.local_addr().map_err(failed)?;
        let sockets = Sockets { requests, status, shared: true, own };
        Ok(Self { address, status_addr, lanes, watchers, sockets })
    }
}

/// The sockets that listen where the settings say; of the others it is told that nobody will answer there.
fn usable(sockets: Vec<net::TcpListener>, address: SocketAddr, setting: &str) -> Vec<net::TcpListener> {
    let (usable, others): (Vec<_>, Vec<_>) = sockets.into_iter().partition(|socket| is_at(socket, address));
    for socket in others {
        let at = socket.local_addr().map_or_else(|_| "?".to_owned(), |at| at.to_string());
        tracing::warn!(at, "an open socket was given that is not where `{setting}` says; it is not used");
    }
    usable
}

/// The listener for status, and the same once more to be handed over.
async fn watchers(
    open: Option<net::TcpListener>,
    address: SocketAddr,
) -> io::Result<(TcpListener, Option<net::TcpListener>)> {
    let listener = match open {
        Some(open) => {
            open.set_nonblocking(true)?;
            open
        }
        None => TcpListener::bind(address).await?.into_std()?,
    };
    let once_more = listener.try_clone()?;
    Ok((TcpListener::from_std(listener)?, Some(once_more)))
}

impl Port {
    /// Opens it; to be called in the lane.
    pub(super) fn open(self) -> io::Result<Vec<TcpListener>> {
        match self {
            Self::Taken(socket) => Ok(vec![socket.listen(BACKLOG)?]),
            Self::Open(sockets) => sockets.into_iter().map(TcpListener::from_std).collect(),
        }
    }
}

/// The same socket once more, where it can be handed over.
#[cfg(unix)]
fn once_more(socket: &TcpSocket) -> io::Result<Option<net::TcpListener>> {
    use std::os::fd::AsFd as _;
    Ok(Some(socket.as_fd().try_clone_to_owned()?.into()))
}

#[cfg(not(unix))]
fn once_more(_: &TcpSocket) -> io::Result<Option<net::TcpListener>> {
    Ok(None)
}

fn socket(address: SocketAddr, shared: bool) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of the process before this one may linger; elsewhere the option means another thing.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    #[cfg(target_os = "linux")]
    socket.set_reuseport(shared)?;
    #[cfg(not(target_os = "linux"))]
    let _ = shared;
    if PASSES_NODELAY_ON {
        socket.set_nodelay(true)?;
    }
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    #[tokio::test]
    async fn a_port_is_taken_once_for_all_lanes_and_never_from_somebody_else() {
        let Ports { address, lanes, .. } = Ports::take(free(), 3).unwrap();
        let listeners: Vec<_> = lanes.into_iter().flat_map(|port| port.open().unwrap()).collect();
        assert_eq!(listeners.len(), if SPREADS { 3 } else { 1 });
        assert!(listeners.iter().all(|listener| listener.local_addr().unwrap() == address));
        for lanes in [1, 3] {
            let taken = Ports::take(address, lanes).err().map(|error| error.kind());
            assert_eq!(taken, Some(io::ErrorKind::AddrInUse));
        }
    }

    #[tokio::test]
    async fn every_open_socket_has_a_lane_and_every_lane_a_socket() {
        for (sockets, lanes, shares) in [(1, 3, vec![1, 1, 1]), (4, 3, vec![2, 1, 1]), (2, 2, vec![1, 1])] {
            let sockets = (0..sockets).map(|_| net::TcpListener::bind(free()).unwrap()).collect::<Vec<_>>();
            let mut addresses: Vec<_> = sockets.iter().map(|s| s.local_addr().unwrap()).collect();
            let ports = Ports::share(sockets, lanes).unwrap();
            assert_eq!((ports.address, ports.sockets.len()), (addresses[0], addresses.len()));
            let opened: Vec<_> = ports.lanes.into_iter().map(|port| port.open().unwrap()).collect();
            assert_eq!(opened.iter().map(Vec::len).collect::<Vec<_>>(), shares);
            let mut served: Vec<_> = opened.iter().flatten().map(|l| l.local_addr().unwrap()).collect();
            served.sort();
            served.dedup();
            addresses.sort();
            assert_eq!(served, addresses, "none is left alone");
        }
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn connections_send_without_delay() {
        let taken = Ports::take(free(), 1).unwrap().lanes;
        let shared = Ports::share(vec![net::TcpListener::bind(free()).unwrap()], 1).unwrap().lanes;
        for port in taken.into_iter().chain(shared) {
            let listener = port.open().unwrap().remove(0);
            let _caller = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            assert!(listener.accept().await.unwrap().0.nodelay().unwrap());
        }
    }

    #[test]
    fn a_socket_counts_where_the_settings_say() {
        let socket = net::TcpListener::bind(free()).unwrap();
        let own = socket.local_addr().unwrap();
        assert!(is_at(&socket, own) && is_at(&socket, free()));
        let elsewhere = ["127.0.0.2:0".parse().unwrap(), SocketAddr::new(own.ip(), own.port() ^ 1)];
        assert!(!elsewhere.iter().any(|address| is_at(&socket, *address)));
    }
}
