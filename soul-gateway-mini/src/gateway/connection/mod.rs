//! One caller's connection, from the first byte to the last.
//!
//! What comes before the first request, in this order: the PROXY protocol, where it is expected; TLS, where it is spoken, with a
//! choice of protocol in it; else a look at the first bytes, which tell HTTP/2 from HTTP/1.1.

mod ending;
mod http1;
mod http2;
mod interim;
mod opening;
mod websocket;

use std::{
    net::IpAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Context,
    time::Duration,
};

use hyper::server::conn::http1 as hyper_http1;
use tokio::{
    net::TcpStream,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

pub(super) use self::interim::Interims;
use self::opening::{Begun, Speaks};
use super::{
    GatewayConfig,
    alarm::{Alarm, Timer},
    config::DEFAULT_MAX_HEADERS,
    forward::{Tunnel, Unsent},
    lane::Lane,
    peer::Peer,
    port, proxied,
};
use crate::{
    listen::GRACE,
    tls::{CallerTls, HTTP_2},
};

/// What a connection may hold of bodies, beyond the longest head: a slow reader costs no more than that.
const BUFFER: usize = 16 * 1024;

/// How connections are served.
pub(super) struct Serving {
    http1: hyper_http1::Builder,
    /// The same, for bare sockets, of which the end is looked for in `ending`.
    http1_bare: hyper_http1::Builder,
    /// `None` speaks no HTTP/2.
    http2: Option<http2::Limits>,
    body_idle_timeout: Duration,
    header_read_timeout: Duration,
    request_timeout: Duration,
    drain: CancellationToken,
    proxy_protocol: bool,
    tls: Option<Arc<CallerTls>>,
}

impl Serving {
    pub(super) fn new(config: &GatewayConfig, tls: Option<Arc<CallerTls>>, drain: CancellationToken) -> Self {
        let mut http1 = hyper_http1::Builder::new();
        // The time is ours to watch, see `alarm`.
        http1
            .header_read_timeout(None)
            .max_header_size(config.max_head_bytes)
            .max_buf_size(config.max_head_bytes.saturating_add(BUFFER));
        if config.max_headers != DEFAULT_MAX_HEADERS {
            // Told the number that is its own anyway, hyper clears three kilobytes for every request.
            http1.max_headers(config.max_headers);
        }
        let mut http1_bare = http1.clone();
        http1_bare.half_close(true);
        Self {
            http1,
            http1_bare,
            http2: http2::Limits::of(config),
            body_idle_timeout: config.body_idle_timeout,
            header_read_timeout: config.header_read_timeout,
            request_timeout: config.request_timeout,
            drain,
            proxy_protocol: config.proxy_protocol,
            tls,
        }
    }

    fn http1(&self, bare: bool) -> &hyper_http1::Builder {
        if bare { &self.http1_bare } else { &self.http1 }
    }

    /// Makes the connection one of TLS, if the caller can; a time limit is on it, as on the head of a request.
    async fn shake_hands(&self, stream: TcpStream, peer: &Peer) -> Option<TlsStream<TcpStream>> {
        let shaken = timeout(self.header_read_timeout, self.tls.as_ref()?.accept(stream));
        match self.begun(shaken).await? {
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

    /// What comes of the beginning of a connection; `None` if it does not come soon after the gateway was told to stop.
    async fn begun<T>(&self, beginning: impl Future<Output = T>) -> Option<T> {
        let late = async {
            self.drain.cancelled().await;
            sleep(GRACE).await;
        };
        tokio::select! {
            begun = beginning => Some(begun),
            () = late => None,
        }
    }

    /// The address of the caller: the other end of the connection, or whom that speaks for.
    async fn caller(&self, stream: &mut TcpStream, peer: IpAddr) -> Option<IpAddr> {
        if !self.proxy_protocol {
            return Some(peer);
        }
        let told = timeout(self.header_read_timeout, proxied::proxy_protocol(stream));
        match self.begun(told).await? {
            Ok(Ok(address)) => Some(address.unwrap_or(peer)),
            Ok(Err(error)) => {
                tracing::debug!(%peer, %error, "a connection did not begin with the PROXY protocol");
                None
            }
            Err(_) => None,
        }
    }
}

/// What the requests of one connection have in common, one at a time: of HTTP/2, what one of them has.
pub(super) struct Caller {
    pub(super) peer: Peer,
    /// Whether it speaks TLS.
    pub(super) secure: bool,
    pub(super) lane: Arc<Lane>,
    pub(super) alarm: Arc<Alarm>,
    /// What it can be told besides its answers; `None` where that is nothing.
    pub(super) interims: Option<Arc<Interims>>,
    /// What is still to be sent of a request that was answered early.
    pub(super) unsent: Unsent,
    header_read_timeout: Duration,
    request_timeout: Duration,
    /// What the connection becomes after the answer at hand.
    tunnel: Mutex<Option<Tunnel>>,
}

impl Caller {
    fn new(peer: Peer, lane: Arc<Lane>, serving: &Serving) -> Self {
        Self {
            peer,
            secure: serving.tls.is_some(),
            lane,
            alarm: Arc::new(Alarm::new()),
            interims: None,
            unsent: Unsent::default(),
            header_read_timeout: serving.header_read_timeout,
            request_timeout: serving.request_timeout,
            tunnel: Mutex::default(),
        }
    }

    /// The same caller, for one of several requests at a time, each with its own times.
    fn again(&self) -> Self {
        Self {
            peer: self.peer.clone(),
            lane: Arc::clone(&self.lane),
            alarm: Arc::new(Alarm::new()),
            interims: None,
            unsent: Unsent::default(),
            tunnel: Mutex::default(),
            ..*self
        }
    }

    /// A request begins: until the turn is dropped, the connection is not idle. Says also whether it may be served.
    pub(super) fn turn(&self, now: Instant) -> (Turn, bool) {
        self.alarm.busy(now, self.request_timeout);
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
        self.alarm.idle_since_seen(self.then);
    }
}

/// What may end a connection while it waits: its time, and the end of the gateway.
struct Watch<'p, 'd> {
    timer: Timer<Arc<Alarm>>,
    drained: Pin<&'p mut WaitForCancellationFuture<'d>>,
    lane: Arc<Lane>,
    listening: bool,
    /// No more requests are to be taken.
    ending: bool,
}

impl<'p, 'd> Watch<'p, 'd> {
    /// From now on the caller has the time of a head for its first request.
    fn new(caller: &Caller, drained: Pin<&'p mut WaitForCancellationFuture<'d>>) -> Self {
        caller.alarm.idle(caller.header_read_timeout);
        let (timer, lane) = (Timer::new(Arc::clone(&caller.alarm)), Arc::clone(&caller.lane));
        Self { timer, drained, lane, listening: false, ending: false }
    }

    /// Whether it is just now that no more requests are to be taken.
    fn drains(&mut self, cx: &mut Context<'_>) -> bool {
        // Registered once; the token itself has a lock, which is not for every request.
        if self.ending || self.listening && !self.lane.is_draining() {
            return false;
        }
        self.listening = true;
        self.ending = self.drained.as_mut().poll(cx).is_ready();
        self.ending
    }
}

/// Serves one caller to the end of its connection.
pub(super) async fn serve(mut stream: TcpStream, address: IpAddr, lane: Arc<Lane>, serving: Arc<Serving>) {
    if !port::PASSES_NODELAY_ON {
        // Without it answers only get slower.
        let _ = stream.set_nodelay(true);
    }
    let Some(address) = serving.caller(&mut stream, address).await else { return };
    let caller = Caller::new(Peer::new(address), lane, &serving);
    if caller.secure {
        // In memory of its own, which those without TLS do not take.
        Box::pin(secure(stream, caller, &serving)).await;
    } else {
        plain(stream, caller, &serving).await;
    }
}

/// Serves one without TLS.
async fn plain(stream: TcpStream, caller: Caller, serving: &Serving) {
    let drained = pin!(serving.drain.cancelled());
    let mut watch = Watch::new(&caller, drained);
    let begun = match &serving.http2 {
        None => Some((Begun::unread(stream), Speaks::Http1)),
        Some(_) => Begun::read(stream, &mut watch).await,
    };
    match (begun, &serving.http2) {
        (Some((stream, Speaks::Http2)), Some(limits)) => {
            Box::pin(http2::serve(stream, caller, limits, watch)).await;
        }
        (Some((stream, _)), _) => http1::serve(stream, caller, serving, watch).await,
        (None, _) => {}
    }
}

/// Serves one that begins with TLS.
async fn secure(stream: TcpStream, caller: Caller, serving: &Serving) {
    let Some(stream) = serving.shake_hands(stream, &caller.peer).await else { return };
    let drained = pin!(serving.drain.cancelled());
    let watch = Watch::new(&caller, drained);
    match &serving.http2 {
        Some(limits) if stream.get_ref().1.alpn_protocol() == Some(HTTP_2) => {
            http2::serve(stream, caller, limits, watch).await;
        }
        _ => http1::serve(stream, caller, serving, watch).await,
    }
}
