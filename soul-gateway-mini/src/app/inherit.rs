//! Listening sockets from the service manager, as systemd's socket units hand them over: `LISTEN_FDS`.

use crate::gateway::Sockets;

/// The sockets that this process was started with, in any order: the gateway uses those that listen where its settings
/// say.
///
/// To be called before there are threads, since it takes the variables out of the environment.
#[cfg(unix)]
pub(super) fn sockets() -> Vec<std::net::TcpListener> {
    let mut given = listenfd::ListenFd::from_env();
    let mut sockets = Vec::new();
    for index in 0..given.len() {
        match given.take_tcp_listener(index) {
            Ok(socket) => sockets.extend(socket),
            Err(error) => tracing::warn!(index, %error, "a socket of `LISTEN_FDS` is not used"),
        }
    }
    sockets
}

/// Other systems have no such thing.
#[cfg(not(unix))]
pub(super) fn sockets() -> Vec<std::net::TcpListener> {
    Vec::new()
}

/// What of them a gateway may use for what.
pub(super) fn sorted(sockets: Vec<std::net::TcpListener>, status: std::net::SocketAddr) -> Sockets {
    let is_status = |socket: &std::net::TcpListener| socket.local_addr().is_ok_and(|own| own == status);
    let (mut status, requests): (Vec<_>, Vec<_>) = sockets.into_iter().partition(is_status);
    Sockets { requests, status: status.pop(), shared: false, own: false }
}
