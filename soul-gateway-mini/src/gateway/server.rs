//! A gateway's own life: its listeners, its tasks, its end.

use std::{fmt, io, net::SocketAddr, sync::Arc, thread, time::Duration};

use arc_swap::ArcSwap;
use tokio::{net::TcpListener, sync::watch, time::timeout};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use url::Url;

use super::{
    GatewayConfig, GatewayError, Requests,
    access::{AccessLog, Lines},
    connection::{self, Serving},
    forward::{Client, Names},
    lane::{Lane, Port, SPREADS},
    probe, refresh,
    reload::{Reloaded, Reloads},
    status,
};
use crate::{
    listen::{Accepted, Acceptor, Places},
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
    local_addr: SocketAddr,
    status_addr: SocketAddr,
    sync: ConfigSync,
    access_log: Arc<AccessLog>,
    /// How many lanes take connections, and how many there are.
    open: watch::Receiver<usize>,
    lanes: usize,
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
    /// No more requests: listeners close, connections end after the request they are at.
    drain: CancellationToken,
    /// Cuts off what did not end, and ends the lanes.
    cut: CancellationToken,
    /// The threads of the lanes.
    lanes: TaskTracker,
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
        let tls = config.caller_tls().map(|files| CallerTls::open(files, config.speaks_http2()));
        let tls = tls.transpose()?.map(Arc::new);
        let upstream_tls = Arc::new(UpstreamTls::open(config.upstream_trust())?);
        let threads = if SPREADS { threads(&config) } else { 1 };
        let (local_addr, ports) = Port::take(config.listen, threads)
            .map_err(|source| listen_error(config.listen, "requests", source))?;
        let watchers = listen(config.status_listen, "status").await?;
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
        let lane = || {
            let client = Client::new(Arc::clone(&names), Arc::clone(&upstream_tls));
            let lines = Lines::new(Arc::clone(&access_log));
            Arc::new(Lane::new(&sync, &served, client, lines))
        };
        let lanes: Arc<[Arc<Lane>]> = ports.iter().map(|_| lane()).collect();
        let places = Places::new(config.max_connections);
        let (config, configured) = watch::channel(Arc::new(config));
        let config = Arc::new(config);
        let mut reloads = Reloads::default();
        reloads.swap("requests", &served, requests);
        reloads.swap("connections", &accepted, serving);
        reloads.add("choice of upstreams", {
            let sync = sync.clone();
            move |config| {
                sync.balance_by(config.balance());
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
            draining: tasks.drain.clone(),
            config: configured.clone(),
        };
        tasks.background.spawn(status::serve(watchers, watched, tasks.stop.clone()));
        tasks.run(probe::rounds(sync.clone(), configured));
        tasks.run(refresh::rounds(sync.clone()));
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
        for (index, (lane, port)) in lanes.iter().zip(ports).enumerate() {
            let work = Work {
                sync: sync.clone(),
                serving: Arc::clone(&accepted),
                places: places.clone(),
                callers: tasks.callers.clone(),
                drain: tasks.drain.clone(),
                open: Arc::clone(&opened),
            };
            lane.start(index, work.run(Arc::clone(lane), port), tasks.cut.clone(), tasks.lanes.token())
                .map_err(|source| GatewayError::Thread { source })?;
        }

        let lanes = lanes.len();
        Ok(Self {
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
        self.open.clone().wait_for(|open| *open == self.lanes).await.is_ok()
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

    /// Stops accepting, lets requests in flight end for as long as the settings allow, and stops everything.
    pub async fn shutdown(self) -> Drained {
        let tasks = &self.tasks;
        let drain_timeout = self.config.borrow().drain_timeout;
        tasks.drain.cancel();
        tasks.callers.close();
        let drained = match timeout(drain_timeout, tasks.callers.wait()).await {
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

async fn listen(address: SocketAddr, purpose: &'static str) -> Result<TcpListener, GatewayError> {
    TcpListener::bind(address).await.map_err(|source| listen_error(address, purpose, source))
}

fn listen_error(address: SocketAddr, purpose: &'static str, source: io::Error) -> GatewayError {
    GatewayError::Listen { address, purpose, source }
}

fn follow(source: GatewaySource, config: &GatewayConfig, tasks: &Tasks) -> Result<ConfigSync, GatewayError> {
    let options = SnapshotOptions { balance: config.balance(), invalids: config.invalid_entries };
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

/// What a lane is to do.
struct Work {
    sync: ConfigSync,
    /// How connections are served that are accepted from now on.
    serving: Arc<ArcSwap<Serving>>,
    places: Places,
    callers: TaskTracker,
    drain: CancellationToken,
    /// How many lanes take connections.
    open: Arc<watch::Sender<usize>>,
}

impl Work {
    /// Opens the port once there is something to answer with, and accepts connections until the gateway drains.
    async fn run(self, lane: Arc<Lane>, port: Port) {
        let drain = self.drain.clone();
        if drain.run_until_cancelled(self.sync.ready()).await == Some(true) {
            match port.open() {
                Ok(listener) => {
                    self.open.send_modify(|lanes| *lanes += 1);
                    drain.run_until_cancelled(self.accept(&lane, listener)).await;
                }
                Err(error) => {
                    tracing::error!(%error, "the port for requests cannot be opened");
                    drain.cancel();
                }
            }
        }
        lane.drain();
    }

    async fn accept(&self, lane: &Arc<Lane>, listener: TcpListener) {
        let mut acceptor = Acceptor::new(listener, "gateway", self.places.clone());
        loop {
            let Accepted { stream, peer, place } = acceptor.next().await;
            let (lane, serving) = (Arc::clone(lane), self.serving.load_full());
            let connection = connection::serve(stream, peer.ip(), lane, serving);
            self.callers.spawn(async move {
                connection.await;
                drop(place);
            });
        }
    }
}
