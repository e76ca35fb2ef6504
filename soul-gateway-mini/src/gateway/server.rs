//! A gateway's own life: its listeners, its tasks, its end.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http::HeaderValue;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use soul_client::balance::java_ip_text;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    time::timeout,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use url::Url;

use super::{GatewayConfig, GatewayError, Requests, forward::Forwarder, probe, status};
use crate::{
    causes::chain,
    listen::{Accepted, Acceptor, Asked, Patience},
    model::ConfigImage,
    sync::{ConfigSync, Kept, Local, LongPoll, SnapshotOptions, SyncStatus},
};

/// What a connection may hold of bodies, beyond the longest head: a slow reader costs no more than that.
const BUFFER: usize = 16 * 1024;

/// Connections that wait to be accepted, in the system's queue.
const BACKLOG: u32 = 1024;

/// How long background tasks may take to end once they were told to.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Where a gateway learns its configuration.
#[derive(Debug)]
pub enum GatewaySource {
    /// By HTTP long polling from one of these admins, in order of preference.
    Admins(Vec<Url>),
    /// From the admin in this process.
    Local(watch::Receiver<Arc<ConfigImage>>),
}

/// Whether the requests in flight ended in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// All did.
    All,
    /// Some did not and were cut off.
    CutOff {
        /// Connections that still had one.
        connections: usize,
    },
}

/// A running gateway.
///
/// Dropping it stops it at once; [`shutdown`](Self::shutdown) lets requests in flight end first.
pub struct Gateway {
    local_addr: SocketAddr,
    status_addr: SocketAddr,
    sync: ConfigSync,
    /// Whether the port for requests is open.
    open: watch::Receiver<bool>,
    requests: Arc<Requests>,
    tasks: Tasks,
    drain_timeout: Duration,
    _stop_on_drop: [DropGuard; 4],
}

/// Who owns which tasks, and what ends them.
#[derive(Default)]
struct Tasks {
    /// Connections of callers.
    callers: TaskTracker,
    /// No more requests: listeners close, connections end after the request they are at.
    drain: CancellationToken,
    /// Cuts off what did not end.
    cut: CancellationToken,
    /// Connections to upstreams.
    upstreams: TaskTracker,
    close: CancellationToken,
    /// Synchronisation, probing, status.
    background: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Runs something without an end in the background, until everything stops.
    fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.background.spawn(async move { stop.run_until_cancelled_owned(task).await });
    }
}

impl Gateway {
    /// Takes the ports and starts to learn from `source`.
    ///
    /// The port for requests is open once the first configuration is there ([`ready`](Self::ready)): until then
    /// callers are refused, so that whoever balances over gateways passes this one by. The port for status is open
    /// at once, and `/readyz` says why not yet.
    ///
    /// # Errors
    /// When a setting cannot work, an admin's address is none, or an address cannot be listened on.
    pub async fn start(config: GatewayConfig, source: GatewaySource) -> Result<Self, GatewayError> {
        let problems = config.problems();
        if !problems.is_empty() {
            return Err(GatewayError::Config { problems });
        }
        if let GatewaySource::Admins(admins) = &source {
            check_admins(admins)?;
        }
        let callers =
            reserve(config.listen).map_err(|source| listen_error(config.listen, "requests", source))?;
        let watchers = listen(config.status_listen, "status").await?;
        let local_addr = callers.local_addr().map_err(|e| listen_error(config.listen, "requests", e))?;
        let status_addr =
            watchers.local_addr().map_err(|e| listen_error(config.status_listen, "status", e))?;

        let tasks = Tasks::default();
        let sync = follow(source, &config, &tasks)?;
        let forwarder = Forwarder::new(&config, tasks.upstreams.clone(), tasks.close.clone());
        let requests = Arc::new(Requests::new(&config, sync.clone(), forwarder));
        tasks.run(requests.forwarder.sweep());
        let watched = status::Watched {
            sync: sync.clone(),
            requests: Arc::clone(&requests),
            callers: tasks.callers.clone(),
            draining: tasks.drain.clone(),
            stale_after: config.sync.stale_after,
        };
        tasks.background.spawn(status::serve(watchers, watched, tasks.stop.clone()));
        if !config.check_interval.is_zero() {
            tasks.run(probe::rounds(sync.clone(), config.check_interval, config.check_timeout));
        }
        let (opened, open) = watch::channel(false);
        let listening = Listening::new(&config, &tasks);
        tasks.background.spawn(open_and_accept(
            callers,
            sync.clone(),
            opened,
            Arc::clone(&requests),
            listening,
        ));

        let guard = |token: &CancellationToken| token.clone().drop_guard();
        let stop_on_drop = [guard(&tasks.drain), guard(&tasks.cut), guard(&tasks.close), guard(&tasks.stop)];
        let drain_timeout = config.drain_timeout;
        Ok(Self {
            local_addr,
            status_addr,
            sync,
            open,
            requests,
            tasks,
            drain_timeout,
            _stop_on_drop: stop_on_drop,
        })
    }

    /// Where requests are accepted.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Where health, metrics and status are served.
    #[must_use]
    pub fn status_addr(&self) -> SocketAddr {
        self.status_addr
    }

    /// Returns once requests are accepted: the first configuration serves, from an admin or from disk. `false` if
    /// the gateway stopped before, or could not open the port after all.
    pub async fn ready(&self) -> bool {
        self.open.clone().wait_for(|open| *open).await.is_ok()
    }

    /// How the synchronisation is doing, now and from now on.
    #[must_use]
    pub fn sync_status(&self) -> watch::Receiver<SyncStatus> {
        self.sync.status()
    }

    /// Stops accepting, lets requests in flight end for as long as the settings allow, and stops everything.
    pub async fn shutdown(self) -> Drained {
        let tasks = &self.tasks;
        tasks.drain.cancel();
        tasks.callers.close();
        let drained = match timeout(self.drain_timeout, tasks.callers.wait()).await {
            Ok(()) => Drained::All,
            Err(_) => Drained::CutOff { connections: tasks.callers.len() },
        };
        tasks.cut.cancel();
        tasks.callers.wait().await;

        tasks.stop.cancel();
        tasks.close.cancel();
        self.requests.forwarder.close_idle();
        for owner in [&tasks.background, &tasks.upstreams] {
            owner.close();
            if timeout(STOP_TIMEOUT, owner.wait()).await.is_err() {
                tracing::warn!(tasks = owner.len(), "some tasks did not end in time");
            }
        }
        drained
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("local_addr", &self.local_addr)
            .field("status_addr", &self.status_addr)
            .finish_non_exhaustive()
    }
}

fn check_admins(admins: &[Url]) -> Result<(), GatewayError> {
    if admins.is_empty() {
        return Err(GatewayError::NoAdmin);
    }
    for url in admins {
        let reason = match url.scheme() {
            "http" if url.has_host() => continue,
            "http" => "it names no host",
            "https" => "`https` is not spoken yet, use `http`",
            _ => "expected an address such as `http://127.0.0.1:9095`",
        };
        return Err(GatewayError::AdminUrl { url: url.to_string(), reason });
    }
    Ok(())
}

/// Takes a port without opening it.
fn reserve(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of the process before this one may linger; elsewhere the option means another thing.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn listen(address: SocketAddr, purpose: &'static str) -> Result<TcpListener, GatewayError> {
    TcpListener::bind(address).await.map_err(|source| listen_error(address, purpose, source))
}

fn listen_error(address: SocketAddr, purpose: &'static str, source: io::Error) -> GatewayError {
    GatewayError::Listen { address, purpose, source }
}

fn follow(source: GatewaySource, config: &GatewayConfig, tasks: &Tasks) -> Result<ConfigSync, GatewayError> {
    let options = SnapshotOptions { choice: config.upstream_choice, invalids: config.invalid_entries };
    let (background, stop) = (&tasks.background, tasks.stop.clone());
    let settings = config.sync.clone();
    Ok(match source {
        GatewaySource::Admins(admins) => {
            let kept = config.data_dir.as_deref().map(Kept::new);
            let source = LongPoll::new(&admins, &settings);
            ConfigSync::start(source, kept, settings, options, background, stop)
        }
        // An admin in this process has a store of its own, so there is nothing to keep.
        GatewaySource::Local(images) => {
            ConfigSync::start(Local::new(images), None, settings, options, background, stop)
        }
    })
}

/// The caller at the other end of one connection, prepared for all its requests.
pub(super) struct Peer {
    address: IpAddr,
    /// For `X-Forwarded-For`.
    text: HeaderValue,
    /// For `hash`: the text Java would hash.
    key: Box<str>,
}

impl Peer {
    fn new(address: IpAddr) -> Self {
        let address = address.to_canonical();
        // The text of an address is always the value of a header.
        let text = HeaderValue::from_str(&address.to_string()).unwrap_or(HeaderValue::from_static("unknown"));
        Self { address, text, key: java_ip_text(address).as_str().into() }
    }

    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    pub(super) fn text(&self) -> &HeaderValue {
        &self.text
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }
}

/// What the accept loop and its connections need.
struct Listening {
    http: http1::Builder,
    body_idle_timeout: Duration,
    max_connections: usize,
    callers: TaskTracker,
    drain: CancellationToken,
    cut: CancellationToken,
}

impl Listening {
    fn new(config: &GatewayConfig, tasks: &Tasks) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(config.header_read_timeout)
            .max_headers(config.max_headers)
            .max_header_size(config.max_head_bytes)
            .max_buf_size(config.max_head_bytes.saturating_add(BUFFER));
        Self {
            http,
            body_idle_timeout: config.body_idle_timeout,
            max_connections: config.max_connections,
            callers: tasks.callers.clone(),
            drain: tasks.drain.clone(),
            cut: tasks.cut.clone(),
        }
    }
}

/// Opens the port once there is something to answer with, and accepts connections until the gateway drains.
async fn open_and_accept(
    port: TcpSocket,
    sync: ConfigSync,
    opened: watch::Sender<bool>,
    requests: Arc<Requests>,
    listening: Listening,
) {
    match listening.drain.run_until_cancelled(sync.ready()).await {
        Some(true) => {}
        Some(false) | None => return,
    }
    match port.listen(BACKLOG) {
        Ok(listener) => {
            opened.send_replace(true);
            accept(listener, requests, listening).await;
        }
        Err(error) => tracing::error!(%error, "the port for requests cannot be opened"),
    }
}

/// Accepts connections until the gateway drains.
async fn accept(listener: TcpListener, requests: Arc<Requests>, listening: Listening) {
    let drain = listening.drain.clone();
    let mut acceptor = Acceptor::new(listener, "gateway", listening.max_connections);
    let accepting = async {
        loop {
            let Accepted { stream, peer, place } = acceptor.next().await;
            let connection = connection(stream, Peer::new(peer.ip()), &requests, &listening);
            listening.callers.spawn(async move {
                connection.await;
                drop(place);
            });
        }
    };
    drain.run_until_cancelled(accepting).await;
}

/// Serves one caller to the end of its connection.
fn connection(
    stream: TcpStream,
    peer: Peer,
    requests: &Arc<Requests>,
    listening: &Listening,
) -> impl Future<Output = ()> + Send + use<> {
    let (drain, cut) = (listening.drain.clone(), listening.cut.clone());
    let (http, pause) = (listening.http.clone(), listening.body_idle_timeout);
    let requests = Arc::clone(requests);
    async move {
        // Without it answers only get slower.
        let _ = stream.set_nodelay(true);
        let asked = Asked::default();
        let (requests, peer, asked) = (&*requests, &peer, &asked);
        let service = service_fn(move |request| async move {
            asked.note();
            Ok::<_, std::convert::Infallible>(requests.answer(request, peer).await)
        });
        let mut connection =
            std::pin::pin!(http.serve_connection(TokioIo::new(Patience::new(stream, pause)), service));
        let served = async {
            tokio::select! {
                ended = connection.as_mut() => return ended,
                () = drain.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = asked.nothing() => Ok(()),
            }
        };
        if let Some(Err(error)) = cut.run_until_cancelled(served).await {
            // A caller that went away, sent nonsense, or was left without the rest of an answer.
            tracing::debug!(peer = %peer.address, error = chain(&error), "a connection ended early");
        }
    }
}
