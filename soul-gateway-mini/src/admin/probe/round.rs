//! One round: every address once, in parallel, with a bound on time and number; verdicts go to the store as they come.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    sync::Arc,
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::HealthCheck;
use crate::{
    admin::{
        clock::Clock,
        metrics::Metrics,
        store::{Applied, Command, Outcome, Store, UpstreamRow, Verdict, Verdicts},
        writer::{StoreHandle, SubmitError},
    },
    model::Target,
};

/// How long the first verdict of a batch waits for others. A dead node leaves this soon after it refused, however
/// long unreachable ones take, and a round still makes few changes.
const BATCH_WAIT: Duration = Duration::from_millis(200);

/// What probing needs.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    pub(super) store: StoreHandle,
    pub(super) check: Arc<dyn HealthCheck>,
    pub(super) clock: Clock,
    pub(super) metrics: Arc<Metrics>,
    pub(super) timeout: Duration,
    pub(super) concurrency: usize,
    pub(super) forget_after: Duration,
}

/// What a round came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Addresses probed.
    pub(crate) probed: usize,
    /// Those that did not answer.
    pub(crate) dead: usize,
}

/// One address, and every entry that has it.
struct Job {
    url: String,
    entries: Vec<Verdict>,
}

impl Probing {
    /// Probes every upstream of the store.
    pub(super) async fn all(&self) -> Tally {
        let jobs = jobs(&self.store.store(), |_| true);
        let tally = self.run(jobs).await;
        if !self.forget_after.is_zero() {
            let forget = i64::try_from(self.forget_after.as_millis()).unwrap_or(i64::MAX);
            let before = self.clock.now_ms().saturating_sub(forget);
            self.submit(Verdicts { verdicts: Vec::new(), forget_before_ms: Some(before) }).await;
        }
        tally
    }

    /// Probes one address.
    pub(super) async fn one(&self, url: &str) -> Tally {
        let jobs = jobs(&self.store.store(), |upstream| upstream.url() == url);
        self.run(jobs).await
    }

    async fn run(&self, mut waiting: VecDeque<Job>) -> Tally {
        let mut tally = Tally::default();
        let mut running = JoinSet::new();
        let mut batch: Vec<Verdict> = Vec::new();
        let mut send_at = Instant::now();
        loop {
            while running.len() < self.concurrency {
                let Some(job) = waiting.pop_front() else { break };
                running.spawn(self.probe(job));
            }
            tokio::select! {
                ended = running.join_next() => match ended {
                    None => break,
                    Some(Err(error)) => tracing::error!(%error, "a probe failed"),
                    Some(Ok(verdicts)) => {
                        tally.probed += 1;
                        tally.dead += usize::from(verdicts.iter().any(|verdict| verdict.error.is_some()));
                        if batch.is_empty() {
                            send_at = Instant::now() + BATCH_WAIT;
                        }
                        batch.extend(verdicts);
                    }
                },
                () = sleep_until(send_at), if !batch.is_empty() => {
                    self.judge(std::mem::take(&mut batch)).await;
                }
            }
        }
        self.judge(batch).await;
        tally
    }

    /// Probes one address on behalf of all its entries.
    fn probe(&self, job: Job) -> impl Future<Output = Vec<Verdict>> + Send + 'static {
        let Self { check, clock, metrics, timeout: limit, .. } = self.clone();
        async move {
            let error = match job.url.parse::<Target>() {
                Err(bad) => Some(bad.to_string()),
                Ok(target) => match timeout(limit, check.check(target)).await {
                    Ok(result) => result.err(),
                    Err(_) => Some(format!("no answer within {limit:?}")),
                },
            };
            metrics.probed(error.is_none());
            let at_ms = clock.now_ms();
            job.entries.into_iter().map(|entry| Verdict { at_ms, error: error.clone(), ..entry }).collect()
        }
    }

    /// Tells the store, and logs what turned, in Soul's words.
    async fn judge(&self, verdicts: Vec<Verdict>) {
        if verdicts.is_empty() {
            return;
        }
        let before = self.store.store();
        let command = Verdicts { verdicts: verdicts.clone(), forget_before_ms: None };
        if self.submit(command).await == Some(Judged::Turned) {
            log_turned(&before, &self.store.store(), &verdicts);
        }
    }

    async fn submit(&self, verdicts: Verdicts) -> Option<Judged> {
        match self.store.submit(Command::Verdicts(verdicts)).await {
            Ok(Applied { outcome: Outcome::NoChange, .. }) => Some(Judged::AsBefore),
            Ok(_) => Some(Judged::Turned),
            Err(SubmitError::Stopped) => None,
            Err(error) => {
                // The next round comes to the same verdicts and tries again.
                tracing::warn!(%error, "verdicts of the probe are not kept");
                None
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Judged {
    AsBefore,
    Turned,
}

/// The addresses of some upstreams, each with its entries as they are known now.
fn jobs(store: &Store, wanted: impl Fn(&UpstreamRow) -> bool) -> VecDeque<Job> {
    let mut jobs: BTreeMap<String, Job> = BTreeMap::new();
    for row in store.selectors().iter() {
        let upstreams = row.upstreams.iter().flatten();
        for upstream in upstreams.filter(|upstream| !upstream.unchecked && wanted(upstream)) {
            let entry = Verdict {
                selector: row.data.id.clone().unwrap_or_default(),
                url: upstream.url().to_owned(),
                incarnation: upstream.incarnation,
                touched: upstream.touched,
                at_ms: 0,
                error: None,
            };
            // Two spellings of one address are one probe.
            let target = upstream.url().parse::<Target>();
            let key = target.map_or_else(|_| upstream.url().to_owned(), |target| target.to_string());
            let job = Job { url: upstream.url().to_owned(), entries: Vec::new() };
            jobs.entry(key).or_insert(job).entries.push(entry);
        }
    }
    jobs.into_values().collect()
}

fn log_turned(before: &Store, after: &Store, verdicts: &[Verdict]) {
    for verdict in verdicts {
        let find = |store: &Store| {
            let row = store.selectors().by_id(&verdict.selector)?;
            let upstream = row.upstream(&verdict.url)?;
            Some((
                upstream.healthy,
                upstream.entry.upstream_host.clone().unwrap_or_default(),
                row.data.name.clone(),
            ))
        };
        let (Some((was, ..)), Some((is, host, selector))) = (find(before), find(after)) else { continue };
        let (url, selector) = (&verdict.url, selector.unwrap_or_default());
        match (was, is, &verdict.error) {
            (false, true, None) => {
                tracing::info!(selector, "UpstreamCacheManager check success the url: {url}, host: {host} ");
            }
            (true, false, Some(reason)) => {
                tracing::error!(selector, reason, "check the url={url} is fail ");
            }
            _ => {}
        }
    }
}
