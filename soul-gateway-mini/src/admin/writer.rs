//! The one place where the store changes: commands come in by a queue, are applied in batches, made durable, published,
//! and answered, in this order. Nothing is answered as done before it is on disk.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use soul_client::wire::gson::GsonError;
use thiserror::Error;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    clock::Clock,
    metrics::Metrics,
    persist::{Batch, Persist, PersistError},
    publish::{Published, Publisher},
    store::{Applied, Command, DamagedRow, Outcome, Rejected, Snowflake, Store},
};
use crate::{
    causes::chain,
    model::{ConfigImage, DataEvent},
};

/// Commands that may wait; a sender beyond waits itself.
const QUEUE: usize = 1024;
/// Commands that are made durable together.
const BATCH: usize = 512;
/// How often a store that could not be written is tried again while nothing comes.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(5);

/// Why a command was not done.
#[derive(Debug, Error)]
pub(crate) enum SubmitError {
    /// It cannot be done.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// It could not be made durable; nothing changed, and it may be repeated.
    #[error("the store cannot be written: {0}")]
    NotDurable(String),
    /// The admin is stopping, or the writer failed on this command.
    #[error("the store takes no changes now")]
    Stopped,
}

/// What is sent to the writer.
enum Job {
    Apply { command: Command, expected: Option<u64>, reply: oneshot::Sender<Result<Applied, SubmitError>> },
    Refresh,
}

/// The way to the writer, and to what it published.
#[derive(Clone, Debug)]
pub(crate) struct StoreHandle {
    jobs: mpsc::Sender<Job>,
    published: watch::Receiver<Arc<Published>>,
    image: watch::Receiver<Arc<ConfigImage>>,
    trouble: watch::Receiver<Option<String>>,
}

impl StoreHandle {
    /// Has a command done. When it returns, the change is durable and published.
    ///
    /// # Cancel safety
    /// A command that was sent is done even if nobody waits for the answer.
    pub(crate) async fn submit(&self, command: Command) -> Result<Applied, SubmitError> {
        self.submit_at(command, None).await
    }

    /// As [`Self::submit`], if the store is still at a revision.
    pub(crate) async fn submit_at(
        &self,
        command: Command,
        expected: Option<u64>,
    ) -> Result<Applied, SubmitError> {
        let (reply, answer) = oneshot::channel();
        let job = Job::Apply { command, expected, reply };
        self.jobs.send(job).await.map_err(|_| SubmitError::Stopped)?;
        answer.await.unwrap_or(Err(SubmitError::Stopped))
    }

    /// Has the groups dated anew.
    pub(crate) async fn refresh(&self) {
        // A writer that is gone has nothing to date.
        let _ = self.jobs.send(Job::Refresh).await;
    }

    /// The newest state.
    pub(crate) fn published(&self) -> Arc<Published> {
        Arc::clone(&self.published.borrow())
    }

    /// The newest rows.
    pub(crate) fn store(&self) -> Arc<Store> {
        Arc::clone(&self.published.borrow().store)
    }

    /// The newest image, and those after it.
    pub(crate) fn image(&self) -> watch::Receiver<Arc<ConfigImage>> {
        self.image.clone()
    }

    /// Why the store cannot be written at the moment.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }
}

/// Why a store cannot be opened.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Persist(#[from] PersistError),
    #[error(transparent)]
    Row(#[from] DamagedRow),
    #[error("write a group of the configuration as JSON")]
    Render(#[from] GsonError),
}

/// The state that the writer owns.
struct Core {
    store: Arc<Store>,
    ids: Snowflake,
    persist: Box<dyn Persist>,
    publisher: Publisher,
    /// Why the last commit failed; until `recover` has succeeded nothing is written.
    trouble: watch::Sender<Option<String>>,
    clock: Clock,
    metrics: Arc<Metrics>,
}

/// Reads what a place keeps, or makes a new store there. Blocks on the disk.
///
/// # Errors
/// If the place cannot be read or written, or holds a row that is none.
pub(crate) fn open(
    mut persist: Box<dyn Persist>,
    ids: Snowflake,
    clock: Clock,
    metrics: Arc<Metrics>,
) -> Result<(StoreHandle, Writer), OpenError> {
    let store = match persist.load()? {
        Some(saved) => Store::restore(saved, ids.clone())?,
        None => {
            let mut store = Store::new(ids.clone());
            persist.commit(&batch_of(&mut store))?;
            store
        }
    };
    let store = Arc::new(store);
    let publisher = Publisher::new(Arc::clone(&store), clock.now_ms())?;
    let (trouble, trouble_seen) = watch::channel(None);
    let (jobs, queue) = mpsc::channel(QUEUE);
    let handle = StoreHandle {
        jobs,
        published: publisher.published(),
        image: publisher.image(),
        trouble: trouble_seen,
    };
    let core = Core { store, ids, persist, publisher, trouble, clock, metrics };
    core.count();
    Ok((handle, Writer { queue, core: Arc::new(Mutex::new(core)) }))
}

/// The task that writes.
pub(crate) struct Writer {
    queue: mpsc::Receiver<Job>,
    core: Arc<Mutex<Core>>,
}

impl Writer {
    /// Works until `stop`, then does what is in the queue and closes the store.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            let troubled = lock(&self.core).trouble.borrow().is_some();
            let first = tokio::select! {
                biased;
                job = receive(&mut self.queue, troubled) => job,
                () = stop.cancelled() => break,
            };
            match first {
                Received::Job(job) => self.work(job).await,
                Received::Nothing => self.process(Vec::new()).await,
                Received::End => break,
            }
        }
        self.queue.close();
        while let Some(job) = self.queue.recv().await {
            self.work(job).await;
        }
        // Closing the store writes to the disk once more.
        let _ = tokio::task::spawn_blocking(move || drop(self.core)).await;
    }

    /// Does a job and everything that waits behind it.
    async fn work(&mut self, first: Job) {
        let mut batch = vec![first];
        while batch.len() < BATCH {
            let Ok(job) = self.queue.try_recv() else { break };
            batch.push(job);
        }
        self.process(batch).await;
    }

    async fn process(&self, batch: Vec<Job>) {
        let core = Arc::clone(&self.core);
        let done = tokio::task::spawn_blocking(move || lock(&core).process(batch)).await;
        if let Err(error) = done {
            // The senders of this batch are told that it stopped; what is on disk decides before the next one.
            tracing::error!(%error, "a batch of changes failed");
            lock(&self.core).fail("the writer failed unexpectedly");
        }
    }
}

/// What came out of the queue.
enum Received {
    Job(Job),
    /// Nothing, and there is a store to recover.
    Nothing,
    End,
}

async fn receive(queue: &mut mpsc::Receiver<Job>, troubled: bool) -> Received {
    let received = if troubled {
        let Ok(received) = timeout(RECOVERY_INTERVAL, queue.recv()).await else { return Received::Nothing };
        received
    } else {
        queue.recv().await
    };
    received.map_or(Received::End, Received::Job)
}

/// A panic inside leaves the core as it was after the last whole batch, except for the place that keeps it, which
/// `recover` reads anew.
fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    fn process(&mut self, batch: Vec<Job>) {
        if let Err(why) = self.recover() {
            for job in batch {
                answer(job, Err(SubmitError::NotDurable(why.clone())));
            }
            return;
        }
        let now_ms = self.clock.now_ms();
        let mut next = (*self.store).clone();
        let mut events = Vec::new();
        let mut refresh = false;
        let mut answers = Vec::with_capacity(batch.len());
        for job in batch {
            match job {
                Job::Refresh => refresh = true,
                Job::Apply { command, expected, reply } => {
                    let result = apply(&mut next, command, expected, now_ms, &mut events);
                    answers.push((reply, result));
                }
            }
        }
        let committed = if answers.is_empty() { Ok(()) } else { self.commit(next, &events, now_ms) };
        if refresh {
            self.publisher.refresh(now_ms);
        }
        for (reply, result) in answers {
            let result = match &committed {
                Ok(()) => result.map_err(SubmitError::from),
                Err(why) => result.map_err(SubmitError::from).and(Err(SubmitError::NotDurable(why.clone()))),
            };
            // A sender that left does not need the answer.
            let _ = reply.send(result);
        }
    }

    /// Makes the next state durable, then the present one.
    fn commit(&mut self, mut next: Store, events: &[DataEvent], now_ms: i64) -> Result<(), String> {
        let batch = batch_of(&mut next);
        if !batch.changes.is_empty() {
            let started = Instant::now();
            let written = self.persist.commit(&batch);
            self.metrics.commit_seconds.observe(started.elapsed().as_secs_f64());
            if let Err(error) = written {
                let why = chain(&error);
                self.metrics.commit_failures.inc();
                self.fail(&why);
                return Err(why);
            }
        }
        self.store = Arc::new(next);
        self.publisher.publish(Arc::clone(&self.store), events, now_ms);
        self.count();
        Ok(())
    }

    /// After a failed commit: finds out what is durable, and goes on from there.
    fn recover(&mut self) -> Result<(), String> {
        let Some(why) = self.trouble.borrow().clone() else { return Ok(()) };
        let again = |error: &dyn std::error::Error| format!("{why}; opening it again: {}", chain(error));
        let saved = self.persist.load().map_err(|error| again(&error))?;
        if let Some(saved) = saved.filter(|saved| saved.revision != self.store.revision()) {
            // The batch had reached the disk although its commit failed.
            let store = Store::restore(saved, self.ids.clone()).map_err(|error| again(&error))?;
            self.store = Arc::new(store);
            self.publisher.publish_all(Arc::clone(&self.store), self.clock.now_ms());
            self.count();
        }
        self.trouble.send_replace(None);
        tracing::info!(revision = self.store.revision(), "the store can be written again");
        Ok(())
    }

    fn fail(&mut self, why: &str) {
        if self.trouble.borrow().is_none() {
            tracing::error!(error = why, "the store cannot be written; changes are refused until it can");
        }
        self.trouble.send_replace(Some(why.to_owned()));
    }

    fn count(&self) {
        let upstreams = || self.store.selectors().iter().flat_map(|row| row.upstreams.iter().flatten());
        let alive = upstreams().filter(|upstream| upstream.healthy).count();
        self.metrics.count_upstreams(alive, upstreams().count() - alive);
        self.metrics.revision.set(i64::try_from(self.store.revision()).unwrap_or(i64::MAX));
    }
}

fn apply(
    store: &mut Store,
    command: Command,
    expected: Option<u64>,
    now_ms: i64,
    events: &mut Vec<DataEvent>,
) -> Result<Applied, Rejected> {
    if let Some(expected) = expected.filter(|expected| *expected != store.revision()) {
        return Err(Rejected::Stale { expected, actual: store.revision() });
    }
    let applied = store.apply(command, now_ms)?;
    if let Outcome::Changed { events: new, .. } = &applied.outcome {
        events.extend(new.iter().cloned());
    }
    Ok(applied)
}

fn batch_of(store: &mut Store) -> Batch {
    let changes = store.take_changes();
    Batch { revision: store.revision(), next_place: store.next_place(), changes }
}

fn answer(job: Job, result: Result<Applied, SubmitError>) {
    if let Job::Apply { reply, .. } = job {
        let _ = reply.send(result);
    }
}

#[cfg(test)]
mod tests;
