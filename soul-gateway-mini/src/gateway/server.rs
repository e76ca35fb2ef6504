//! A gateway's own life: its listeners, its tasks, its end.

mod start;

use std::{
    fmt, io, net,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use url::Url;

use super::{
    GatewayConfig, GatewayError,
    access::{AccessLog, Place},
    lane::Lane,
    port::Sockets,
    reload::Reloads,
};
use crate::{
    listen::handshakes,
    model::ConfigImage,
    sync::{ConfigSync, SyncStatus},
    tls::{CallerTls, TlsError},
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
    /// How many others have the sockets for requests.
    others: Arc<AtomicUsize>,
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

    /// Takes up settings while it serves, and opens the access log anew; gives the names of the parts that have done so.
    ///
    /// Requests and new connections go by them from then on, a connection that is open keeps its limits of time and size.
    /// Addresses, threads, folders and what concerns the synchronisation stay as they were: they need a restart.
    ///
    /// # Errors
    /// When a setting cannot work, or a file that one names cannot be used; then nothing changes.
    pub fn reload(&self, config: &GatewayConfig) -> Result<Vec<&'static str>, GatewayError> {
        let problems = config.problems();
        if !problems.is_empty() {
            return Err(GatewayError::Config { problems });
        }
        let reloaded = self.reloads.run(config)?;
        self.config.send_replace(Arc::new(config.clone()));
        Ok(reloaded)
    }

    /// Goes on with the access log in the file that has its name now, as after another program moved it away.
    ///
    /// # Errors
    /// When that cannot be written; then the old file is written on.
    pub fn reopen_log(&self) -> Result<(), GatewayError> {
        let place = Place::of(&self.config.borrow())?;
        self.access_log.go_on(place, self.lanes.iter().map(|lane| lane.lines()));
        Ok(())
    }

    /// The sockets it listens on, for a gateway that is to take over from this one. At the end they are left to that one as they
    /// are, unless it has given them up ([`take_back`](Self::take_back)).
    ///
    /// # Errors
    /// When the process may open no more files.
    pub fn sockets(&self) -> io::Result<Sockets> {
        let sockets = self.sockets.try_clone()?;
        self.others.fetch_add(1, Relaxed);
        Ok(sockets)
    }

    /// Notes that a gateway that was given the [`sockets`](Self::sockets) has them no more, as one that ended before it served. To be
    /// called once for each at most.
    pub fn take_back(&self) {
        // An error: nobody has any.
        let _ = self.others.fetch_update(Relaxed, Relaxed, |others| others.checked_sub(1));
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
            if self.others.load(Relaxed) == 0 && *self.open.borrow() > 0 {
                // Where there is little time, what is under way needs some of it as well.
                last_handshakes(&sockets.requests, handshakes::UNDER_WAY.min(drain_timeout / 2)).await;
            }
            drop(sockets);
            tasks.drain.cancel();
            // Until then lanes still take in what waits at the port. An error: they are gone already.
            let _ = self.open.clone().wait_for(|open| *open == 0).await;
            tasks.callers.wait().await;
        };
        let in_time = timeout(drain_timeout, ended).await.is_ok();
        let drained = match tasks.callers.len() {
            connections @ 1.. if !in_time => Drained::CutOff { connections },
            _ => Drained::All,
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

/// Lets no new connections be made, and those that are being made come in, for as long as this.
async fn last_handshakes(sockets: &[net::TcpListener], under_way: Duration) {
    match sockets.iter().try_for_each(handshakes::begin_none) {
        Ok(()) => sleep(under_way).await,
        Err(error) => tracing::debug!(%error, "connections that are being made at the end may be lost"),
    }
}
