//! One caller's connection, from the first byte to the last. All of it is one task: reading requests, asking upstreams,
//! writing answers, and the one timer for all of that.

use std::{
    convert::Infallible,
    future::poll_fn,
    net::IpAddr,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    GatewayConfig, Requests,
    alarm::{Alarm, Timer},
    config::DEFAULT_MAX_HEADERS,
    forward::Tunnel,
    lane::Lane,
    peer::Peer,
    proxied,
};
use crate::{
    causes::chain,
    listen::{Asked, Patience},
};

/// What a connection may hold of bodies, beyond the longest head: a slow reader costs no more than that.
const BUFFER: usize = 16 * 1024;

/// How connections are served.
pub(super) struct Serving {
    http: http1::Builder,
    body_idle_timeout: Duration,
    header_read_timeout: Duration,
    request_timeout: Duration,
    drain: CancellationToken,
    proxy_protocol: bool,
}

impl Serving {
    pub(super) fn new(config: &GatewayConfig, drain: CancellationToken) -> Self {
        let mut http = http1::Builder::new();
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

/// Serves one caller to the end of its connection.
pub(super) async fn serve(
    mut stream: TcpStream,
    address: IpAddr,
    lane: Arc<Lane>,
    requests: Arc<Requests>,
    serving: Arc<Serving>,
) {
    // Without it answers only get slower.
    let _ = stream.set_nodelay(true);
    let Serving { http, body_idle_timeout, header_read_timeout, drain, .. } = &*serving;
    let header_read_timeout = *header_read_timeout;
    let Some(address) = serving.caller(&mut stream, address).await else { return };
    let (peer, alarm, tunnel) = (Peer::new(address), Arc::new(Alarm::new()), Mutex::new(None));
    let request_timeout = serving.request_timeout;
    let caller = Caller { peer, lane, alarm, header_read_timeout, request_timeout, tunnel };
    let asked = Asked::default();
    let (requests, caller, asked) = (&*requests, &caller, &asked);
    let service = service_fn(move |request| async move {
        asked.note();
        Ok::<_, Infallible>(requests.answer(request, caller).await)
    });
    let io = TokioIo::new(Patience::new(stream, *body_idle_timeout));
    let mut connection = pin!(http.serve_connection(io, service).with_upgrades());
    let alarm = &*caller.alarm;
    alarm.idle(header_read_timeout);
    let mut timer = Timer::new(alarm);
    let mut drained = pin!(drain.cancelled());
    let mut abandoned = pin!(asked.nothing());
    let (mut listening, mut ending) = (false, false);
    let served = poll_fn(|cx| {
        if timer.ring() && alarm.is_idle() {
            // It has asked nothing for too long, or half a question.
            return Poll::Ready(Ok(()));
        }
        // Registered once; the token itself has a lock, which is not for every request.
        if !ending && (!listening || caller.lane.is_draining()) {
            listening = true;
            if drained.as_mut().poll(cx).is_ready() {
                ending = true;
                connection.as_mut().graceful_shutdown();
            }
        }
        if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return Poll::Ready(ended);
        }
        if ending && abandoned.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        timer.arm(cx);
        Poll::Pending
    });
    if let Err(error) = served.await {
        // A caller that went away, sent nonsense, or was left without the rest of an answer.
        tracing::debug!(peer = %caller.peer.address(), error = chain(&error), "a connection ended early");
        return;
    }
    let tunnel = caller.waiting_tunnel().take();
    if let Some(tunnel) = tunnel
        && let Err(error) = tunnel.run(alarm).await
    {
        tracing::debug!(peer = %caller.peer.address(), %error, "a tunnel ended early");
    }
}
