//! How a gateway starts: its files are read, its ports taken, its parts made, and then they run.

use std::{
    sync::{Arc, atomic::AtomicUsize},
    thread,
};

use arc_swap::ArcSwap;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    super::{
        GatewayConfig, GatewayError, LaneScheduling, Requests,
        access::{AccessLog, Lines, Place},
        connection::Serving,
        forward::{Client, Names},
        lane::Lane,
        port::{Listening, Port, SPREADS, Sockets},
        probe, refresh,
        reload::Reloads,
        spread::{self, Handed},
        status,
        work::Work,
    },
    Gateway, GatewaySource, Tasks,
};
use crate::{
    listen::Places,
    sync::{ConfigSync, Kept, Local, LongPoll, SnapshotOptions, StatusStats},
    tls::{CallerTls, UpstreamTls},
};

impl Gateway {
    /// Takes the ports and starts to learn from `source`.
    ///
    /// The port for requests is open once the first configuration is there ([`ready`](Self::ready)): until then
    /// callers are refused, so that whoever balances over gateways passes this one by. The port for status is open
    /// at once, and `/readyz` says why not yet.
    ///
    /// # Errors
    /// When a setting cannot work, a file that one names cannot be used, an admin's address is none, or an address cannot be
    /// listened on.
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
        check(&config, &source)?;
        let files = Files::open(&config)?;
        let shared = sockets.shared;
        let Listening { address, status_addr, lanes: ports, watchers, sockets } =
            Listening::open(sockets, &config, lanes(&config)).await?;
        let tasks = Tasks::default();
        let stop_on_drop = [&tasks.drain, &tasks.cut, &tasks.stop].map(|token| token.clone().drop_guard());
        let (parts, handed) = Parts::make(files, &config, source, &tasks);
        let (config, configured) = watch::channel(Arc::new(config));
        let watched = parts.watched(&tasks, configured.clone());
        tasks.background.spawn(watch(watchers, watched, shared, tasks.stop.clone()));
        tasks.run(probe::rounds(parts.sync.clone(), configured));
        tasks.run(refresh::rounds(parts.sync.clone()));
        tasks.run(Arc::clone(&parts.files.upstream_tls).watch());
        if let Some(tls) = parts.files.tls.clone() {
            tasks.run(tls.watch());
        }
        let (opened, open) = watch::channel(0);
        let others = Arc::new(AtomicUsize::new(if sockets.own { 0 } else { 1 }));
        parts.work(ports.into_iter().zip(handed), &tasks, &others, opened)?;
        Ok(Self {
            sockets,
            others,
            local_addr: address,
            status_addr,
            open,
            reloads: parts.reloads(),
            sync: parts.sync,
            access_log: parts.files.access_log,
            lanes: parts.lanes,
            tls: parts.files.tls,
            tasks,
            config: Arc::new(config),
            _stop_on_drop: stop_on_drop,
        })
    }
}

fn check(config: &GatewayConfig, source: &GatewaySource) -> Result<(), GatewayError> {
    let problems = config.problems();
    if !problems.is_empty() {
        return Err(GatewayError::Config { problems });
    }
    match source {
        GatewaySource::Admins(admins) => check_admins(admins),
        GatewaySource::Local(_) => Ok(()),
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

/// How many lanes there are: one a core, unless the settings say otherwise, or the system cannot spread connections over them.
fn lanes(config: &GatewayConfig) -> usize {
    match config.threads {
        _ if !SPREADS => 1,
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

/// What files hold, or are written to.
struct Files {
    tls: Option<Arc<CallerTls>>,
    upstream_tls: Arc<UpstreamTls>,
    access_log: Arc<AccessLog>,
}

impl Files {
    fn open(config: &GatewayConfig) -> Result<Self, GatewayError> {
        let tls = config.caller_tls().map(|files| CallerTls::open(files, config.speaks_http2()));
        Ok(Self {
            tls: tls.transpose()?.map(Arc::new),
            upstream_tls: Arc::new(UpstreamTls::open(config.upstream_trust())?),
            access_log: Arc::new(AccessLog::new(Place::of(config)?)),
        })
    }
}

/// What a gateway consists of, besides its listeners.
struct Parts {
    files: Files,
    sync: ConfigSync,
    /// Requests that no selector took.
    unmatched: Arc<StatusStats>,
    requests: Arc<ArcSwap<Requests>>,
    serving: Arc<ArcSwap<Serving>>,
    lanes: Arc<[Arc<Lane>]>,
    scheduling: LaneScheduling,
    places: Places,
    drain: CancellationToken,
}

impl Parts {
    /// Makes them, and what each lane gets connections by from the others.
    fn make(
        files: Files,
        config: &GatewayConfig,
        source: GatewaySource,
        tasks: &Tasks,
    ) -> (Self, Vec<Handed>) {
        let (sync, unmatched) = (follow(source, config, tasks), Arc::<StatusStats>::default());
        let all = lanes(config);
        let requests = Requests::new(config, all, Arc::clone(&unmatched));
        let requests = Arc::new(ArcSwap::from_pointee(requests));
        let drain = tasks.drain.clone();
        let serving = Serving::new(config, files.tls.clone(), drain.clone());
        let names = Names::new(tasks.stop.clone());
        let lane = |share| {
            let client = Client::new(Arc::clone(&names), Arc::clone(&files.upstream_tls));
            let lines = Lines::new(Arc::clone(&files.access_log));
            Arc::new(Lane::new(&sync, &requests, client, lines, share))
        };
        let (shares, handed): (Vec<_>, _) = spread::shares(all).into_iter().unzip();
        let lanes = shares.into_iter().map(lane).collect();
        let (serving, places) =
            (Arc::new(ArcSwap::from_pointee(serving)), Places::new(config.max_connections));
        let scheduling = config.lane_scheduling;
        (Self { files, sync, unmatched, requests, serving, lanes, scheduling, places, drain }, handed)
    }

    /// What of them takes up other settings, and how.
    fn reloads(&self) -> Reloads {
        let mut reloads = Reloads::default();
        let (lanes, unmatched) = (self.lanes.len(), Arc::clone(&self.unmatched));
        reloads.swap("requests", &self.requests, move |config| {
            Arc::new(Requests::new(config, lanes, Arc::clone(&unmatched)))
        });
        let (tls, drain) = (self.files.tls.clone(), self.drain.clone());
        reloads.swap("connections", &self.serving, move |config| {
            Arc::new(Serving::new(config, tls.clone(), drain.clone()))
        });
        let sync = self.sync.clone();
        reloads.add("choice of upstreams", move |config| {
            let (sync, balance) = (sync.clone(), config.balance(lanes));
            Ok(move || sync.balance_by(balance))
        });
        let (log, lanes) = (Arc::clone(&self.files.access_log), Arc::clone(&self.lanes));
        reloads.add("access log", move |config| {
            let (log, lanes, place) = (Arc::clone(&log), Arc::clone(&lanes), Place::of(config)?);
            Ok(move || log.go_on(place, lanes.iter().map(|lane| lane.lines())))
        });
        let places = self.places.clone();
        reloads.add("limit of connections", move |config| {
            let (places, limit) = (places.clone(), config.max_connections);
            Ok(move || places.resize(limit))
        });
        if let Some(tls) = self.files.tls.clone() {
            reloads.add("certificates", move |config| {
                let (tls, read) = (Arc::clone(&tls), tls.read(config.speaks_http2())?);
                Ok(move || tls.serve(read))
            });
        }
        let tls = Arc::clone(&self.files.upstream_tls);
        reloads.add("certificates for upstreams", move |config| Ok(tls.read(config.upstream_trust())?));
        reloads
    }

    /// What status, health and metrics are made of.
    fn watched(&self, tasks: &Tasks, config: watch::Receiver<Arc<GatewayConfig>>) -> status::Watched {
        status::Watched {
            sync: self.sync.clone(),
            unmatched: Arc::clone(&self.unmatched),
            lanes: Arc::clone(&self.lanes),
            callers: tasks.callers.clone(),
            draining: tasks.leaving.clone(),
            handed_over: tasks.handed_over.clone(),
            config,
        }
    }

    /// Has each lane take connections from its port.
    ///
    /// - `ports`: one for each lane, and what the lane gets connections by from the others.
    /// - `open`: told how many lanes do.
    fn work(
        &self,
        ports: impl Iterator<Item = (Port, Handed)>,
        tasks: &Tasks,
        others: &Arc<AtomicUsize>,
        open: watch::Sender<usize>,
    ) -> Result<(), GatewayError> {
        let open = Arc::new(open);
        for (index, (lane, (port, handed))) in self.lanes.iter().zip(ports).enumerate() {
            let work = Work {
                sync: self.sync.clone(),
                serving: Arc::clone(&self.serving),
                places: self.places.clone(),
                callers: tasks.callers.clone(),
                drain: self.drain.clone(),
                others: Arc::clone(others),
                open: Arc::clone(&open),
            };
            let work = Arc::new(work).run(Arc::clone(lane), port, handed);
            lane.start(index, self.scheduling, work, tasks.cut.clone(), tasks.lanes.token())
                .map_err(|source| GatewayError::Thread { source })?;
        }
        Ok(())
    }
}

/// Tells the status until the end. While another gateway answers by the same socket, this one answers only once it serves, too.
async fn watch(watchers: TcpListener, watched: status::Watched, shared: bool, stop: CancellationToken) {
    let sync = watched.sync.clone();
    let serves = async { !shared || sync.ready().await };
    if stop.run_until_cancelled(serves).await == Some(true) {
        status::serve(watchers, watched, stop).await;
    }
}

fn follow(source: GatewaySource, config: &GatewayConfig, tasks: &Tasks) -> ConfigSync {
    let options =
        SnapshotOptions { balance: config.balance(lanes(config)), invalids: config.invalid_entries };
    let (background, stop) = (&tasks.background, tasks.stop.clone());
    let settings = config.sync.clone();
    match source {
        GatewaySource::Admins(admins) => {
            let kept = config.data_dir.as_deref().map(Kept::new);
            let source = LongPoll::new(&admins, &settings);
            ConfigSync::start(source, kept, settings, options, background, stop)
        }
        // An admin in this process has a store of its own, so there is nothing to keep.
        GatewaySource::Local(images) => {
            ConfigSync::start(Local::new(images), None, settings, options, background, stop)
        }
    }
}
