//! One caller's connection, from the first byte to the last. All of it is one task: reading requests, asking upstreams,
//! writing answers, and the one timer for all of that.
//!
//! What comes before the first request, in this order: the PROXY protocol, where it is expected; TLS, where it is spoken.

mod ending;
mod http1;

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hyper::server::conn::http1 as hyper_http1;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use super::{
    GatewayConfig, alarm::Alarm, config::DEFAULT_MAX_HEADERS, forward::Tunnel, lane::Lane, peer::Peer,
    proxied,
};
use crate::tls::CallerTls;

/// What a connection may hold of bodies, beyond the longest head: a slow reader costs no more than that.
const BUFFER: usize = 16 * 1024;

/// How connections are served.
pub(super) struct Serving {
    http: hyper_http1::Builder,
    body_idle_timeout: Duration,
    header_read_timeout: Duration,
    request_timeout: Duration,
    drain: CancellationToken,
    proxy_protocol: bool,
    tls: Option<Arc<CallerTls>>,
}

impl Serving {
    pub(super) fn new(config: &GatewayConfig, tls: Option<Arc<CallerTls>>, drain: CancellationToken) -> Self {
        let mut http = hyper_http1::Builder::new();
        // The time is ours to watch, see `alarm`.
        http.header_read_timeout(None)
            .max_header_size(config.max_head_bytes)
            .max_buf_size(config.max_head_bytes.saturating_add(BUFFER));
        if config.max_headers != DEFAULT_MAX_HEADERS {
            // Told the number that is its own anyway, hyper clears three kilobytes for every request.
            http.max_headers(config.max_headers);
        }
        Self {
            http,
            body_idle_timeout: config.body_idle_timeout,
            header_read_timeout: config.header_read_timeout,
            request_timeout: config.request_timeout,
            drain,
            proxy_protocol: config.proxy_protocol,
            tls,
        }
    }

    /// Makes the connection one of TLS, if the caller can; a time limit is on it, as on the head of a request.
    async fn shake_hands(&self, stream: TcpStream, peer: &Peer) -> Option<TlsStream<TcpStream>> {
        let shaken = timeout(self.header_read_timeout, self.tls.as_ref()?.accept(stream));
        match self.drain.run_until_cancelled(shaken).await? {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(peer = %peer.address(), %error, "a TLS handshake failed");
                None
            }
            Err(_) => {
                tracing::debug!(peer = %peer.address(), "a TLS handshake took too long");
                None
            }
        }
    }

    /// The address of the caller: the other end of the connection, or whom that speaks for.
    async fn caller(&self, stream: &mut TcpStream, peer: IpAddr) -> Option<IpAddr> {
        if !self.proxy_protocol {
            return Some(peer);
        }
        let told = timeout(self.header_read_timeout, proxied::proxy_protocol(stream));
        match self.drain.run_until_cancelled(told).await? {
            Ok(Ok(address)) => Some(address.unwrap_or(peer)),
            Ok(Err(error)) => {
                tracing::debug!(%peer, %error, "a connection did not begin with the PROXY protocol");
                None
            }
            Err(_) => None,
        }
    }
}

/// What the requests of one connection have in common.
pub(super) struct Caller {
    pub(super) peer: Peer,
    /// Whether it speaks TLS.
    pub(super) secure: bool,
    pub(super) lane: Arc<Lane>,
    pub(super) alarm: Arc<Alarm>,
    header_read_timeout: Duration,
    request_timeout: Duration,
    /// What the connection becomes after the answer at hand.
    tunnel: Mutex<Option<Tunnel>>,
}

impl Caller {
    /// A request begins: until the turn is dropped, the connection is not idle. Says also whether it may be served.
    pub(super) fn turn(&self) -> (Turn, bool) {
        self.alarm.busy(self.request_timeout);
        let served = self.lane.count_in();
        let (lane, alarm) = (Arc::clone(&self.lane), Arc::clone(&self.alarm));
        (Turn { lane, alarm, then: self.header_read_timeout }, served)
    }

    /// The connection changes its protocol after this answer.
    pub(super) fn tunnel(&self, tunnel: Tunnel) {
        *self.waiting_tunnel() = Some(tunnel);
    }

    fn waiting_tunnel(&self) -> MutexGuard<'_, Option<Tunnel>> {
        self.tunnel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// From the head of a request to the end of its answer.
pub(super) struct Turn {
    lane: Arc<Lane>,
    alarm: Arc<Alarm>,
    then: Duration,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.lane.count_out();
        self.alarm.idle(self.then);
    }
}

/// A connection whose caller is known.
struct Opened<S> {
    stream: S,
    peer: Peer,
    /// Whether it is one of TLS.
    secure: bool,
    lane: Arc<Lane>,
    serving: Arc<Serving>,
}

/// Serves one caller to the end of its connection.
pub(super) async fn serve(mut stream: TcpStream, address: IpAddr, lane: Arc<Lane>, serving: Arc<Serving>) {
    // Without it answers only get slower.
    let _ = stream.set_nodelay(true);
    let Some(address) = serving.caller(&mut stream, address).await else { return };
    let opened = Opened { stream, peer: Peer::new(address), secure: false, lane, serving };
    if opened.serving.tls.is_none() {
        http1::serve(opened).await;
    } else {
        // In memory of its own, which those without TLS do not take.
        Box::pin(secure(opened)).await;
    }
}

/// Serves one that begins with TLS.
async fn secure(opened: Opened<TcpStream>) {
    let Opened { stream, peer, lane, serving, .. } = opened;
    let Some(stream) = serving.shake_hands(stream, &peer).await else { return };
    http1::serve(Opened { stream, peer, secure: true, lane, serving }).await;
}
