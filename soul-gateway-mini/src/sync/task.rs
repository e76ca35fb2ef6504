//! The one task that owns the configuration: source to data, data to snapshot.

use std::{collections::HashSet, mem, sync::Arc};

use arc_swap::{ArcSwapOption, Cache};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use soul_client::{balance::SetSettings, wire::soul::ConfigGroup};
use tokio::{sync::watch, task, time};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Held, Kept, Learned, Origin, Refused, Snapshot, SnapshotOptions, Source, SyncConfig, SyncError,
    SyncStatus, Update, reaper::Reaper,
};
use crate::{causes::chain, slices::sliced};

/// The serving snapshot as one thread last saw it.
pub(crate) type CachedSnapshot = Cache<Arc<ArcSwapOption<Snapshot>>, Option<Arc<Snapshot>>>;

/// What the rest of the gateway sees of the synchronisation.
#[derive(Clone)]
pub(crate) struct ConfigSync {
    snapshot: Arc<ArcSwapOption<Snapshot>>,
    status: watch::Receiver<SyncStatus>,
    options: Arc<watch::Sender<SnapshotOptions>>,
}

impl ConfigSync {
    /// Starts to follow `source`; ends when `stop` is cancelled.
    pub(crate) fn start<S: Source>(
        source: S,
        kept: Option<Kept>,
        config: SyncConfig,
        options: SnapshotOptions,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let snapshot = Arc::new(ArcSwapOption::empty());
        let (status, seen) = watch::channel(SyncStatus::new(source.describe()));
        let (set_options, options) = watch::channel(options);
        let keep = kept.clone().map(|kept| keep_latest(kept, tasks));
        let owner = Owner {
            source,
            backoff: backoff(&config),
            config,
            options,
            kept,
            keep,
            data: Arc::default(),
            built: false,
            unread: Vec::new(),
            snapshot: Arc::clone(&snapshot),
            status,
            reaper: Reaper::start(tasks),
        };
        tasks.spawn(async move {
            stop.run_until_cancelled_owned(owner.run()).await;
        });
        Self { snapshot, status: seen, options: Arc::new(set_options) }
    }

    /// Chooses upstreams in another way from now on: what serves is built anew, off the threads that serve.
    pub(crate) fn balance_by(&self, balance: SetSettings) {
        self.options.send_if_modified(|options| {
            let changed = options.balance != balance;
            options.balance = balance;
            changed
        });
    }

    /// The configuration to serve by, from now to the end of one request; `None` before the first.
    pub(crate) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.load_full()
    }

    /// The same for one thread that asks with every request: as long as nothing has changed, it reads one number that
    /// others only read too.
    pub(crate) fn cached(&self) -> CachedSnapshot {
        Cache::new(Arc::clone(&self.snapshot))
    }

    /// How the synchronisation is doing.
    pub(crate) fn status(&self) -> watch::Receiver<SyncStatus> {
        self.status.clone()
    }

    /// Returns once there is a configuration; `false` if there never will be one.
    pub(crate) async fn ready(&self) -> bool {
        self.status().wait_for(|status| status.revision > 0).await.is_ok()
    }
}

struct Owner<S> {
    source: S,
    config: SyncConfig,
    options: watch::Receiver<SnapshotOptions>,
    backoff: ExponentialBackoff,
    /// The copy on disk, until the first configuration is there.
    kept: Option<Kept>,
    /// Takes what is to be kept.
    keep: Option<watch::Sender<Arc<Held>>>,
    data: Arc<Held>,
    /// Whether the snapshot was built from `data`.
    built: bool,
    /// Entries the source could not make sense of, by group.
    unread: Vec<Refused>,
    snapshot: Arc<ArcSwapOption<Snapshot>>,
    status: watch::Sender<SyncStatus>,
    /// Takes what requests may still hold.
    reaper: Reaper,
}

impl<S: Source> Owner<S> {
    async fn run(mut self) {
        let patience = time::sleep(self.config.kept_after);
        tokio::pin!(patience);
        loop {
            let outcome = tokio::select! {
                outcome = self.source.next() => outcome,
                () = &mut patience, if self.kept.is_some() => {
                    self.serve_kept().await;
                    continue;
                }
                Ok(()) = self.options.changed() => {
                    self.build_again().await;
                    continue;
                }
            };
            match outcome {
                Ok(update) => self.learned(update).await,
                Err(error) => {
                    self.failed(&error);
                    self.serve_kept().await;
                    let pause = self.backoff.next().unwrap_or(self.config.backoff_max);
                    tokio::select! {
                        () = time::sleep(pause.min(self.config.backoff_max)) => {}
                        Ok(()) = self.options.changed() => self.build_again().await,
                    }
                }
            }
        }
    }

    async fn learned(&mut self, update: Update) {
        let from = self.source.describe();
        if update != Update::Unchanged && self.gathered(update).await {
            self.rebuild(Origin::Admin(from.clone())).await;
        }
        self.reached(from);
    }

    /// Puts an update to the data, aside: large groups take a while to compare. Tells whether a snapshot
    /// has to be built of it.
    async fn gathered(&mut self, update: Update) -> bool {
        let (before, mut unread, built) = (Arc::clone(&self.data), mem::take(&mut self.unread), self.built);
        let gather = move || match update {
            Update::Refresh(all) => {
                unread.clear();
                let data = gather(Held::default(), all, &mut unread);
                // What is served is this already, for example after an admin was away for a while.
                let same = data == *before && built;
                (data, unread, same)
            }
            Update::Groups(groups) => (gather((*before).clone(), groups, &mut unread), unread, false),
            Update::Unchanged => ((*before).clone(), unread, true),
        };
        let gathered = task::spawn_blocking(move || sliced(gather)).await;
        match gathered {
            Ok((data, unread, same)) => {
                self.unread = unread;
                let before = mem::replace(&mut self.data, Arc::new(data));
                self.reaper.take(before);
                !same
            }
            Err(error) => {
                tracing::error!(%error, "a configuration could not be taken in, the last one keeps serving");
                self.built = false;
                false
            }
        }
    }

    /// Builds the next snapshot aside, off the threads that serve requests, and swaps it in.
    async fn rebuild(&mut self, origin: Origin) {
        let (data, unread) = (Arc::clone(&self.data), self.unread.clone());
        let previous = self.snapshot.load_full();
        let built = task::spawn_blocking({
            let (previous, options) = (previous.clone(), self.options.borrow_and_update().clone());
            move || {
                let build = || Snapshot::build(&data, unread, previous.as_deref(), &options);
                // Before the first there are no requests to be kept waiting.
                if previous.is_none() { build() } else { sliced(build) }
            }
        })
        .await;
        let snapshot = match built {
            Ok(snapshot) => Arc::new(snapshot),
            Err(error) => {
                self.built = false;
                tracing::error!(%error, "a configuration could not be made ready, the last one keeps serving");
                return;
            }
        };
        self.built = true;
        report(&snapshot, previous.as_deref(), &origin);
        let revision = snapshot.revision();
        self.snapshot.store(Some(snapshot));
        if let Some(previous) = previous {
            self.reaper.take(previous);
        }
        self.kept = None;
        if let (Origin::Admin(_), Some(keep)) = (&origin, &self.keep) {
            keep.send_replace(Arc::clone(&self.data));
        }
        self.status.send_modify(|status| {
            status.revision = revision;
            status.origin = Some(origin);
        });
    }

    /// Builds what serves once more, by other options.
    async fn build_again(&mut self) {
        let origin = self.status.borrow().origin.clone();
        if let Some(origin) = origin {
            self.rebuild(origin).await;
        }
    }

    /// Serves the copy on disk if nothing else is there.
    async fn serve_kept(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        match task::spawn_blocking(move || kept.load()).await {
            Ok(Ok(Some(data))) => {
                self.data = Arc::new(data);
                self.rebuild(Origin::Kept).await;
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                tracing::error!(error = chain(&error), "no admin answers and there is no good copy")
            }
            Err(error) => tracing::error!(%error, "the kept configuration could not be read"),
        }
    }

    fn reached(&mut self, source: String) {
        self.backoff = backoff(&self.config);
        self.status.send_modify(|status| {
            if status.consecutive_failures > 0 {
                let failures = status.consecutive_failures;
                tracing::info!(source, failures, "configuration is learned again");
            }
            if status.revision > 0 {
                status.origin = Some(Origin::Admin(source.clone()));
            }
            status.source = source;
            status.connected = true;
            status.last_contact = Some(time::Instant::now());
            status.consecutive_failures = 0;
        });
    }

    fn failed(&mut self, error: &SyncError) {
        let reason = chain(error);
        let source = self.source.describe();
        self.status.send_modify(|status| {
            if status.consecutive_failures == 0 {
                let serving = status.revision > 0;
                tracing::warn!(error = reason, serving, "no configuration is learned, trying on");
            } else {
                tracing::debug!(error = reason, "still no configuration");
            }
            status.source = source;
            status.connected = false;
            status.consecutive_failures = status.consecutive_failures.saturating_add(1);
            status.last_error = Some(reason);
        });
    }
}

/// Puts groups into `data` and what could not be read of them into `unread`.
fn gather(mut data: Held, groups: Vec<Learned>, unread: &mut Vec<Refused>) -> Held {
    for Learned { data: group, refused } in groups {
        let kind: ConfigGroup = group.group();
        unread.retain(|entry| entry.group != kind);
        unread.extend(refused);
        data.replace(group);
    }
    data
}

/// Tells of a new snapshot, and of every entry that is refused now and was not before.
fn report(snapshot: &Snapshot, previous: Option<&Snapshot>, origin: &Origin) {
    let known: HashSet<_> = previous.map(|p| p.refused().iter().collect()).unwrap_or_default();
    for Refused { group, entry, reason } in snapshot.refused().iter().filter(|r| !known.contains(r)) {
        tracing::warn!(%group, entry, reason, "an entry of the configuration cannot be used");
    }
    let (selectors, rules, upstreams) = snapshot.size();
    tracing::info!(
        revision = snapshot.revision(),
        %origin,
        selectors,
        rules,
        upstreams,
        refused = snapshot.refused().len(),
        "a new configuration serves"
    );
    if selectors == 0 && previous.is_some_and(|previous| previous.size().0 > 0) {
        // Right if someone deleted them, and what an admin that lost its store looks like.
        tracing::warn!(%origin, "the configuration has no selector any more, no request finds a way");
    }
}

/// Writes what it is given to disk, the latest when several come during one write, until its sender is dropped.
fn keep_latest(kept: Kept, tasks: &TaskTracker) -> watch::Sender<Arc<Held>> {
    let (sender, mut latest) = watch::channel(Arc::<Held>::default());
    tasks.spawn(async move {
        while latest.changed().await.is_ok() {
            let data = Arc::clone(&latest.borrow_and_update());
            let kept = kept.clone();
            match task::spawn_blocking(move || sliced(|| kept.save(&data))).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::error!(error = chain(&error), "a restart would find an older configuration")
                }
                Err(error) => tracing::error!(%error, "the configuration could not be kept"),
            }
        }
    });
    sender
}

fn backoff(config: &SyncConfig) -> ExponentialBackoff {
    // Jitter adds up to the delay itself, so half of the longest pause leaves room for it.
    ExponentialBuilder::default()
        .with_min_delay(config.backoff_min)
        .with_max_delay((config.backoff_max / 2).max(config.backoff_min))
        .with_factor(2.0)
        .with_jitter()
        .without_max_times()
        .build()
}
