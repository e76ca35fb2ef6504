//! Whether upstreams are alive: specification, section 9.
//!
//! The admin asks every configured upstream for a TCP connection, all of them in parallel, once a round. One
//! failure takes an upstream out of its selector's handle, one success puts it back: the configured upstreams stay, and
//! health is a flag beside them. A node that registers although it is known as dead is asked at once. What was found
//! enters the store like any other change, and says what was known when the probe began, so that it cannot
//! overwrite anything newer.

mod check_url;
mod connect;
mod round;

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    task::{Id, JoinError, JoinSet},
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

pub use check_url::{CheckUrl, check_url};
pub(crate) use connect::{HealthCheck, TcpConnect, is_link_local, refuse_link_local};
use round::{Probing, Tally};

use super::{clock::Clock, config::AdminConfig, metrics::Metrics, writer::StoreHandle};

/// Addresses that may wait to be probed at once.
const QUEUE: usize = 1024;

/// The last round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeReport {
    /// Rounds so far.
    pub(crate) rounds: u64,
    /// When the last one began, milliseconds since the epoch.
    pub(crate) started_ms: i64,
    /// How long it took.
    pub(crate) took: Duration,
    /// What it came to.
    pub(crate) tally: Tally,
}

/// The task that probes.
pub(crate) struct Prober {
    probing: Probing,
    interval: Duration,
    requests: mpsc::Receiver<String>,
    report: watch::Sender<ProbeReport>,
}

/// What a finished piece of work was.
enum Done {
    Round(ProbeReport),
    Address,
}

impl Prober {
    /// A prober, and the way to have an address probed at once.
    pub(crate) fn new(
        config: &AdminConfig,
        store: StoreHandle,
        check: Arc<dyn HealthCheck>,
        clock: Clock,
        metrics: Arc<Metrics>,
        report: watch::Sender<ProbeReport>,
    ) -> (Self, mpsc::Sender<String>) {
        let (ask, requests) = mpsc::channel(QUEUE);
        let probing = Probing {
            store,
            check,
            clock,
            metrics,
            timeout: config.upstream_check_timeout,
            concurrency: config.upstream_check_concurrency,
            forget_after: config.upstream_forget_after,
        };
        (Self { probing, interval: config.upstream_check_interval, requests, report }, ask)
    }

    /// Probes until `stop`.
    ///
    /// Rounds begin an interval apart, the first at once, because what died while the admin was down should not wait.
    /// A round that takes longer than the interval is not joined by another.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut rounds = interval(self.interval);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut work = Work::default();
        loop {
            tokio::select! {
                () = stop.cancelled() => return, // dropping the work ends it
                _ = rounds.tick() => {
                    if work.round.is_none() {
                        work.start_round(&self.probing);
                    }
                }
                Some(url) = self.requests.recv() => work.start_address(&self.probing, url),
                Some(ended) = work.tasks.join_next_with_id() => {
                    if let Some(report) = work.end(ended) {
                        self.probing.metrics.probe_round_seconds.observe(report.took.as_secs_f64());
                        self.report.send_modify(|last| *last = ProbeReport { rounds: last.rounds + 1, ..report });
                    }
                }
            }
        }
    }
}

/// The probes in flight.
#[derive(Default)]
struct Work {
    tasks: JoinSet<Done>,
    round: Option<Id>,
    addresses: HashSet<(Id, String)>,
}

impl Work {
    fn start_round(&mut self, probing: &Probing) {
        let probing = probing.clone();
        let handle = self.tasks.spawn(async move {
            let (started_ms, started) = (probing.clock.now_ms(), Instant::now());
            let tally = probing.all().await;
            Done::Round(ProbeReport { rounds: 0, started_ms, took: started.elapsed(), tally })
        });
        self.round = Some(handle.id());
    }

    /// A node that registers five routes asks five times; one probe answers them all.
    fn start_address(&mut self, probing: &Probing, url: String) {
        if self.addresses.iter().any(|(_, known)| *known == url) {
            return;
        }
        let (probing, address) = (probing.clone(), url.clone());
        let handle = self.tasks.spawn(async move {
            probing.one(&address).await;
            Done::Address
        });
        self.addresses.insert((handle.id(), url));
    }

    /// Takes note of the end of a task, however it came; returns the report of a round.
    fn end(&mut self, ended: Result<(Id, Done), JoinError>) -> Option<ProbeReport> {
        let (id, done) = match ended {
            Ok((id, done)) => (id, Some(done)),
            Err(error) => {
                tracing::error!(%error, "upstream scheduled check error");
                (error.id(), None)
            }
        };
        self.addresses.retain(|(known, _)| *known != id);
        if self.round == Some(id) {
            self.round = None;
        }
        match done? {
            Done::Round(report) => Some(report),
            Done::Address => None,
        }
    }
}

#[cfg(test)]
mod tests;
