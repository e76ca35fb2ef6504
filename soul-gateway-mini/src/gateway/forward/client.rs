//! The connections of one lane to all upstreams: those that wait, and new ones.
//!
//! Connecting and sending are separate steps, so that it is known of every failure whether the upstream can have
//! seen any of the request.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    net::{TcpStream, lookup_host},
    time::{Instant, timeout_at},
};

use super::{
    Forwarder,
    http2::{self, Connections, UnderWay},
    link::{Link, Open},
    names::Names,
    pool::Pool,
    stream::Stream,
};
use crate::{
    model::Target,
    sync::{Destination, Protocol},
    tls::{HTTP_2, UpstreamTls},
};

/// Why no connection was made.
pub(super) enum ConnectError {
    Refused(io::Error),
    Late(Duration),
}

impl ConnectError {
    /// Whether it is the gateway that can open no more connections, whatever the upstream.
    pub(super) fn is_ours(&self) -> bool {
        /// "Too many open files", in the system and in the process, on every Unix.
        const NO_DESCRIPTOR: [i32; 2] = [23, 24];
        match self {
            // Out of local ports, out of descriptors.
            Self::Refused(error) => {
                error.kind() == io::ErrorKind::AddrNotAvailable
                    || cfg!(unix) && error.raw_os_error().is_some_and(|code| NO_DESCRIPTOR.contains(&code))
            }
            Self::Late(_) => false,
        }
    }
}

/// The connections of one lane.
#[derive(Debug)]
pub(in crate::gateway) struct Client {
    pool: Pool,
    http2: Connections,
    names: Arc<Names>,
    tls: Arc<UpstreamTls>,
    open: Arc<AtomicUsize>,
}

impl Client {
    pub(in crate::gateway) fn new(names: Arc<Names>, tls: Arc<UpstreamTls>) -> Self {
        Self { pool: Pool::default(), http2: Connections::default(), names, tls, open: Arc::default() }
    }

    /// Keeps as many idle connections, and for as long, as these settings say from now on.
    pub(in crate::gateway) fn keep_to(&self, forwarder: &Forwarder) {
        self.pool.keep_to(forwarder.pool);
    }

    /// Closes and forgets what has been idle for too long.
    pub(in crate::gateway) fn sweep(&self) {
        self.pool.sweep();
        self.http2.sweep(self.pool.idle_timeout());
        self.names.sweep();
    }

    /// How many connections are open.
    pub(in crate::gateway) fn connections(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Closes the connections that wait.
    pub(in crate::gateway) fn close_idle(&self) {
        self.pool.clear();
        self.http2.clear();
    }

    /// Whether requests for an upstream share connections; with TLS that is known of those that are open.
    pub(super) fn shares(&self, destination: &Destination) -> bool {
        match destination.protocol() {
            Protocol::Http => false,
            Protocol::Https(_) => self.http2.has_room(destination.address()),
            Protocol::H2c => true,
        }
    }

    /// A place on a connection that is shared, or on a new one.
    pub(super) async fn place(
        self: &Arc<Self>,
        destination: &Destination,
        connect_timeout: Duration,
        deadline: Instant,
    ) -> Result<Fresh, ConnectError> {
        match self.http2.place(destination.address()) {
            Some(under_way) => Ok(Fresh::Http2(under_way)),
            None => self.fresh(destination, connect_timeout, deadline).await,
        }
    }

    /// A connection to an upstream that waits for a request; `None` if there is none.
    pub(super) fn waiting(self: &Arc<Self>, address: &Arc<str>, now: Instant) -> Option<Lease> {
        let link = self.pool.take(address, now)?;
        Some(Lease { link, client: Arc::clone(self) })
    }

    /// A new connection to an upstream.
    pub(super) async fn fresh(
        self: &Arc<Self>,
        destination: &Destination,
        connect_timeout: Duration,
        deadline: Instant,
    ) -> Result<Fresh, ConnectError> {
        let asked = Instant::now();
        let until = deadline.min(asked + connect_timeout);
        match timeout_at(until, self.connect(destination)).await {
            Ok(Ok(fresh)) => Ok(fresh),
            Ok(Err(error)) => Err(ConnectError::Refused(error)),
            Err(_) => Err(ConnectError::Late(until - asked)),
        }
    }

    async fn connect(self: &Arc<Self>, destination: &Destination) -> io::Result<Fresh> {
        let stream = TcpStream::connect(&*self.addresses(destination.target()).await?).await?;
        stream.set_nodelay(true)?;
        let address = destination.address();
        let open = Open::count(&self.open);
        let stream = match destination.protocol() {
            Protocol::Http => Stream::Plain(stream),
            Protocol::H2c => {
                return Ok(Fresh::Http2(self.http2.add(http2::open(stream, address, open).await?)));
            }
            Protocol::Https(name) => {
                let stream = Box::pin(self.tls.connect(name.clone(), stream)).await?;
                if stream.get_ref().1.alpn_protocol() == Some(HTTP_2) {
                    return Ok(Fresh::Http2(self.http2.add(http2::open(stream, address, open).await?)));
                }
                Stream::Tls(Box::new(stream))
            }
        };
        let lines = self.pool.lines(address);
        let link = Box::new(Link::new(stream, Arc::clone(address), lines, open));
        Ok(Fresh::Http1(Lease { link, client: Arc::clone(self) }))
    }

    async fn addresses(&self, target: &Target) -> io::Result<Arc<[SocketAddr]>> {
        let (host, port) = (target.host(), target.port());
        let lookup = || {
            let host = host.to_owned();
            async move { Ok(lookup_host((host, port)).await?.collect()) }
        };
        self.names.addresses(host, port, lookup).await
    }
}

/// A new connection, by what is spoken on it.
pub(super) enum Fresh {
    /// One request at a time.
    Http1(Lease),
    /// One place of several.
    Http2(UnderWay),
}

/// A connection in use; it closes unless it is given back.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) link: Box<Link>,
    client: Arc<Client>,
}

impl Lease {
    /// Puts the connection away, after all of the answer was read.
    pub(super) fn give_back(self, now: Instant) {
        self.client.pool.put(self.link, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn an_upstream_is_not_blamed_for_what_the_gateway_has_run_out_of() {
        let refused = |code| ConnectError::Refused(io::Error::from_raw_os_error(code));
        assert!(refused(24).is_ours(), "EMFILE");
        assert!(refused(23).is_ours(), "ENFILE");
        assert!(ConnectError::Refused(io::ErrorKind::AddrNotAvailable.into()).is_ours());
        assert!(!ConnectError::Refused(io::ErrorKind::ConnectionRefused.into()).is_ours());
        assert!(!ConnectError::Late(Duration::ZERO).is_ours());
    }
}
