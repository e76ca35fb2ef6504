//! A gateway's own life: its listeners, its tasks, its end.

use std::{
    fmt, io, net,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::{
    net::TcpListener,
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use url::Url;

use super::{
    GatewayConfig, GatewayError, Requests,
    access::{AccessLog, Lines},
    connection::Serving,
    forward::{Client, Names},
    lane::Lane,
    port::{Ports, SPREADS, Sockets, is_at},
    probe, refresh,
    reload::{Reloaded, Reloads},
    spread, status,
    work::Work,
};
use crate::{
    listen::{Places, handshakes},
    model::ConfigImage,
    sync::{ConfigSync, Kept, Local, LongPoll, SnapshotOptions, StatusStats, SyncStatus},
    tls::{CallerTls, TlsError, UpstreamTls},
};

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
    /// What it listens on, to be handed over.
    sockets: Sockets,
    /// Whether no other process has the sockets for requests.
    alone: Arc<AtomicBool>,
    local_addr: SocketAddr,
    status_addr: SocketAddr,
    pub(super) sync: ConfigSync,
    access_log: Arc<AccessLog>,
    /// How many lanes take connections.
    open: watch::Receiver<usize>,
    lanes: Arc<[Arc<Lane>]>,
    tls: Option<Arc<CallerTls>>,
    tasks: Tasks,
    config: Arc<watch::Sender<Arc<GatewayConfig>>>,
    reloads: Reloads,
    _stop_on_drop: [DropGuard; 3],
}

/// Who owns which tasks, and what ends them.
#[derive(Default)]
struct Tasks {
    /// Connections of callers.
    callers: TaskTracker,
    /// The end has begun: whoever asks is told to go elsewhere.
    leaving: CancellationToken,
    /// No more requests: listeners close, connections end after the request they are at.
    drain: CancellationToken,
    /// Cuts off what did not end, and ends the lanes.
    cut: CancellationToken,
    /// The threads of the lanes.
    lanes: TaskTracker,
    /// Synchronisation, probing, status.
    background: TaskTracker,
    stop: CancellationToken,
    /// Another gateway serves by the same sockets.
    handed_over: CancellationToken,
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
        Self::start_on(Sockets::default(), config, source).await
    }

    /// The same, on sockets that are open already, as far as they listen where the settings say.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_on(
        sockets: Sockets,
        config: GatewayConfig,
        source: GatewaySource,
    ) -> Result<Self, GatewayError> {
        let problems = config.problems();
        if !problems.is_empty() {
            return Err(GatewayError::Config { problems });
        }
        if let GatewaySource::Admins(admins) = &source {
            check_admins(admins)?;
        }
        let tls = config.caller_tls().map(|files| CallerTls::open(files, config.speaks_http2()));
        let tls = tls.transpose()?.map(Arc::new);
        let upstream_tls = Arc::new(UpstreamTls::open(config.upstream_trust())?);
        let threads = if SPREADS { threads(&config) } else { 1 };
        let Sockets { requests, status, shared } = sockets;
        let requests = usable(requests, config.listen, "--gateway-listen");
        let ports = if requests.is_empty() {
            Ports::take(config.listen, threads)
        } else {
            Ports::share(requests, threads)
        };
        let ports = ports.map_err(|source| listen_error(config.listen, "requests", source))?;
        let Ports { address: local_addr, lanes: ports, sockets: requests, own } = ports;
        let status = usable(status.into_iter().collect(), config.status_listen, "--status-listen").pop();
        let (watchers, status) = match watchers(status, config.status_listen).await {
            Ok(watchers) => watchers,
            Err(error) => return Err(listen_error(config.status_listen, "status", error)),
        };
        let sockets = Sockets { requests, status, shared: true };
        let status_addr =
            watchers.local_addr().map_err(|e| listen_error(config.status_listen, "status", e))?;

        let access_log = Arc::new(open_log(&config)?);
        let tasks = Tasks::default();
        let guard = |token: &CancellationToken| token.clone().drop_guard();
        let stop_on_drop = [guard(&tasks.drain), guard(&tasks.cut), guard(&tasks.stop)];
        let sync = follow(source, &config, &tasks)?;
        let (unmatched, names) = (Arc::<StatusStats>::default(), Names::new(tasks.stop.clone()));
        let all = ports.len();
        let requests = {
            let unmatched = Arc::clone(&unmatched);
            move |config: &GatewayConfig| Arc::new(Requests::new(config, all, Arc::clone(&unmatched)))
        };
        let serving = {
            let (tls, drain) = (tls.clone(), tasks.drain.clone());
            move |config: &GatewayConfig| Arc::new(Serving::new(config, tls.clone(), drain.clone()))
        };
        let served = Arc::new(ArcSwap::new(requests(&config)));
        let accepted = Arc::new(ArcSwap::new(serving(&config)));
        let lane = |share| {
            let client = Client::new(Arc::clone(&names), Arc::clone(&upstream_tls));
            let lines = Lines::new(Arc::clone(&access_log));
            Arc::new(Lane::new(&sync, &served, client, lines, share))
        };
        let (shares, handed): (Vec<_>, Vec<_>) = spread::shares(ports.len()).into_iter().unzip();
        let lanes: Arc<[Arc<Lane>]> = shares.into_iter().map(lane).collect();
        let places = Places::new(config.max_connections);
        let (config, configured) = watch::channel(Arc::new(config));
        let config = Arc::new(config);
        let mut reloads = Reloads::default();
        reloads.swap("requests", &served, requests);
        reloads.swap("connections", &accepted, serving);
        reloads.add("choice of upstreams", {
            let (sync, lanes) = (sync.clone(), lanes.len());
            move |config| {
                sync.balance_by(config.balance(lanes));
                Ok(())
            }
        });
        reloads.add("access log", {
            let access_log = Arc::clone(&access_log);
            move |config| reopen_log(&access_log, config)
        });
        let watched = status::Watched {
            sync: sync.clone(),
            unmatched,
            lanes: Arc::clone(&lanes),
            callers: tasks.callers.clone(),
            draining: tasks.leaving.clone(),
            handed_over: tasks.handed_over.clone(),
            config: configured.clone(),
        };
        let (ready, stop) = (sync.clone(), tasks.stop.clone());
        tasks.background.spawn(async move {
            // While another one answers by the same socket, this one answers only if it serves, too.
            let serves = async { !shared || ready.ready().await };
            if stop.run_until_cancelled(serves).await == Some(true) {
                status::serve(watchers, watched, stop).await;
            }
        });
        tasks.run(probe::rounds(sync.clone(), configured));
        tasks.run(refresh::rounds(sync.clone()));
        let alone = Arc::new(AtomicBool::new(own));
        let (opened, open) = watch::channel(0);
        let opened = Arc::new(opened);
        if let Some(tls) = tls.clone() {
            tasks.run(Arc::clone(&tls).watch());
            reloads.add("certificates", move |config| {
                tls.offer_http2(config.speaks_http2());
                Ok(tls.reload()?)
            });
        }
        reloads
            .add("authorities of upstreams", move |config| Ok(upstream_tls.reload(config.upstream_trust())?));
        for (index, ((lane, port), handed)) in lanes.iter().zip(ports).zip(handed).enumerate() {
            let work = Work {
                sync: sync.clone(),
                serving: Arc::clone(&accepted),
                places: places.clone(),
                callers: tasks.callers.clone(),
                drain: tasks.drain.clone(),
                alone: Arc::clone(&alone),
                open: Arc::clone(&opened),
            };
            let work = Arc::new(work).run(Arc::clone(lane), port, handed);
            lane.start(index, work, tasks.cut.clone(), tasks.lanes.token())
                .map_err(|source| GatewayError::Thread { source })?;
        }

        Ok(Self {
            sockets,
            alone,
            local_addr,
            status_addr,
            sync,
            access_log,
            open,
            lanes,
            tls,
            tasks,
            config,
            reloads,
            _stop_on_drop: stop_on_drop,
        })
    }

    /// Where requests are accepted.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Whether requests arrive over TLS.
    #[must_use]
    pub fn speaks_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Where health, metrics and status are served.
    #[must_use]
    pub fn status_addr(&self) -> SocketAddr {
        self.status_addr
    }

    /// Returns once requests are accepted: the first configuration serves, from an admin or from disk. `false` if
    /// the gateway stopped before, or could not open the port after all.
    pub async fn ready(&self) -> bool {
        self.open.clone().wait_for(|open| *open == self.lanes.len()).await.is_ok()
    }

    /// Reads the files of [`GatewayConfig::tls_certificates`] and the others for TLS again; without any, does nothing.
    /// Connections from now on are shown what they hold, and open ones live on. Blocks while it reads.
    ///
    /// The gateway does so by itself, too, within half a minute after a file has changed.
    ///
    /// # Errors
    /// When a file cannot be read or served; then all stays as it was.
    pub fn reload_certificates(&self) -> Result<(), TlsError> {
        self.tls.as_ref().map_or(Ok(()), |tls| tls.reload())
    }

    /// How the synchronisation is doing, now and from now on.
    #[must_use]
    pub fn sync_status(&self) -> watch::Receiver<SyncStatus> {
        self.sync.status()
    }

    /// Takes up settings while it serves, and opens the access log anew; gives each part with how it went. A part that
    /// fails keeps what it had.
    ///
    /// Requests and new connections go by them from then on, a connection that is open keeps its limits of time and size.
    /// Addresses, threads, folders and what concerns the synchronisation stay as they were: they need a restart.
    ///
    /// # Errors
    /// When a setting cannot work; then nothing changes.
    pub fn reload(&self, config: &GatewayConfig) -> Result<Reloaded, GatewayError> {
        let problems = config.problems();
        if !problems.is_empty() {
            return Err(GatewayError::Config { problems });
        }
        let reloaded = self.reloads.run(config);
        self.config.send_replace(Arc::new(config.clone()));
        Ok(reloaded)
    }

    /// Goes on with the access log in the file that has its name now, as after another program moved it away.
    ///
    /// # Errors
    /// When that cannot be written; then the old file is written on.
    pub fn reopen_log(&self) -> Result<(), GatewayError> {
        let config = Arc::clone(&self.config.borrow());
        reopen_log(&self.access_log, &config)
    }

    /// The sockets it listens on, for a gateway that is to take over from this one.
    ///
    /// # Errors
    /// When the process may open no more files.
    pub fn sockets(&self) -> io::Result<Sockets> {
        self.alone.store(false, Relaxed);
        self.sockets.try_clone()
    }

    /// The same as [`shutdown`](Self::shutdown), after another gateway has begun to serve by the [`sockets`](Self::sockets):
    /// leaves status to it at once.
    pub async fn hand_over(self) -> Drained {
        self.tasks.handed_over.cancel();
        self.shutdown().await
    }

    /// Stops accepting, lets requests in flight end for as long as the settings allow, and stops everything.
    ///
    /// Connections that are being made or wait to be accepted are served as well. A caller whose connection is open is told
    /// with its next answer that it is the last one; one that asks nothing for a second is closed.
    pub async fn shutdown(mut self) -> Drained {
        let sockets = std::mem::take(&mut self.sockets);
        let tasks = &self.tasks;
        let drain_timeout = self.config.borrow().drain_timeout;
        // First, for a connection that is woken looks there.
        self.lanes.iter().for_each(|lane| lane.drain());
        tasks.leaving.cancel();
        tasks.callers.close();
        let ended = async {
            if self.alone.load(Relaxed) && *self.open.borrow() > 0 {
                last_handshakes(&sockets.requests).await;
            }
            drop(sockets);
            tasks.drain.cancel();
            // Until then lanes still take in what waits at the port. An error: they are gone already.
            let _ = self.open.clone().wait_for(|open| *open == 0).await;
            tasks.callers.wait().await;
        };
        let drained = match timeout(drain_timeout, ended).await {
            Ok(()) => Drained::All,
            Err(_) => Drained::CutOff { connections: tasks.callers.len() },
        };
        tasks.cut.cancel();
        tasks.callers.wait().await;

        tasks.stop.cancel();
        for owner in [&tasks.background, &tasks.lanes] {
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

fn open_log(config: &GatewayConfig) -> Result<AccessLog, GatewayError> {
    AccessLog::open(config.access_log.as_deref()).map_err(|source| log_error(config, source))
}

fn reopen_log(log: &AccessLog, config: &GatewayConfig) -> Result<(), GatewayError> {
    log.reopen(config.access_log.as_deref()).map_err(|source| log_error(config, source))
}

fn log_error(config: &GatewayConfig, source: io::Error) -> GatewayError {
    GatewayError::AccessLog { path: config.access_log.clone().unwrap_or_default(), source }
}

/// How many lanes there are: one a core, unless the settings say otherwise.
fn threads(config: &GatewayConfig) -> usize {
    match config.threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
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

/// Lets no new connections be made, and those that are being made come in.
async fn last_handshakes(sockets: &[net::TcpListener]) {
    match sockets.iter().try_for_each(handshakes::begin_none) {
        Ok(()) => sleep(handshakes::UNDER_WAY).await,
        Err(error) => tracing::debug!(%error, "connections that are being made at the end may be lost"),
    }
}

fn listen_error(address: SocketAddr, purpose: &'static str, source: io::Error) -> GatewayError {
    GatewayError::Listen { address, purpose, source }
}

fn follow(source: GatewaySource, config: &GatewayConfig, tasks: &Tasks) -> Result<ConfigSync, GatewayError> {
    let options =
        SnapshotOptions { balance: config.balance(threads(config)), invalids: config.invalid_entries };
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
