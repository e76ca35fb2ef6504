//! Lanes: a gateway works in as many as there are cores, and they share as little as they can.
//!
//! A lane is a thread with a runtime of its own, a listener of its own at the common address, connections of its own to
//! the upstreams, and a copy of its own of what says which configuration serves. A request stays in its lane from its
//! first byte to its last, so nothing of it ever goes from core to core. What lanes have in common is read by all and
//! written at a change of the configuration. What they count, each counts in a part of its own, by the number that it enters
//! with ([`parts`]).

use std::{
    cell::Cell,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use arc_swap::{ArcSwap, Cache};
use soul_client::balance::parts;
use tokio::{
    runtime::{Builder, Handle, Runtime},
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::{sync::CancellationToken, task::task_tracker::TaskTrackerToken};

use super::{LaneScheduling, Requests, access::Lines, forward::Client, patient::schedule, spread::Share};
use crate::{
    clock::{Clock, Moment},
    sync::{CachedSnapshot, ConfigSync, Snapshot},
};

/// Pause between two looks at what has been idle for too long.
const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// How long lookups of names, which cannot be stopped, are waited for at the end.
const LEFTOVERS: Duration = Duration::from_millis(100);

/// Over how long it is measured how busy a lane is, and from which share of that on it has too much to do itself.
const BUSY_OVER: Duration = Duration::from_millis(50);
const BUSY: f64 = 0.7;

thread_local! {
    static STRAIN: Cell<Option<Strain>> = const { Cell::new(None) };
}

/// How busy this thread was when it was looked at last.
#[derive(Clone, Copy)]
struct Strain {
    at: Instant,
    busy: Duration,
    strained: bool,
}

/// Whether the lane of this thread has so much to do itself that the times of requests say little about the upstreams.
pub(super) fn is_strained(now: Moment) -> bool {
    let before = STRAIN.get();
    let passed = before.map(|before| now.at.saturating_duration_since(before.at));
    if let Some((before, passed)) = before.zip(passed)
        && passed < BUSY_OVER
    {
        return before.strained;
    }
    let Ok(runtime) = Handle::try_current() else { return false };
    let busy = runtime.metrics().worker_total_busy_duration(0);
    let strained = before.zip(passed).is_some_and(|(before, passed)| {
        busy.saturating_sub(before.busy).as_secs_f64() >= BUSY * passed.as_secs_f64()
    });
    STRAIN.set(Some(Strain { at: now.at, busy, strained }));
    strained
}

/// What one thread has to itself.
pub(super) struct Lane {
    client: Arc<Client>,
    share: Share,
    serving: Mutex<Serving>,
    lines: Lines,
    clock: Clock,
    /// Requests under way, and how many may be.
    under_way: AtomicUsize,
    max_requests: AtomicUsize,
    /// Whether no more requests are to be taken. Looked at with every one of them, unlike a token with its lock.
    draining: AtomicBool,
}

/// What serves, as this lane knows it.
struct Serving {
    snapshot: CachedSnapshot,
    requests: Cache<Arc<ArcSwap<Requests>>, Arc<Requests>>,
    held: Arc<InUse>,
}

/// A snapshot and settings that requests of one lane hold on to: counting them in and out touches memory of this lane
/// only.
pub(super) struct InUse {
    snapshot: Option<Arc<Snapshot>>,
    requests: Arc<Requests>,
}

impl InUse {
    /// The configuration to serve by; `None` before the first.
    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_deref()
    }

    /// The settings to serve by.
    pub(super) fn requests(&self) -> &Requests {
        &self.requests
    }

    fn is(&self, snapshot: Option<&Arc<Snapshot>>, requests: &Arc<Requests>) -> bool {
        self.snapshot.as_ref().map(Arc::as_ptr) == snapshot.map(Arc::as_ptr)
            && Arc::ptr_eq(&self.requests, requests)
    }
}

impl Lane {
    pub(super) fn new(
        sync: &ConfigSync,
        requests: &Arc<ArcSwap<Requests>>,
        client: Client,
        lines: Lines,
        share: Share,
    ) -> Self {
        let held = Arc::new(InUse { snapshot: None, requests: requests.load_full() });
        let requests = Cache::new(Arc::clone(requests));
        let lane = Self {
            client: Arc::new(client),
            share,
            serving: Mutex::new(Serving { snapshot: sync.cached(), requests, held: Arc::clone(&held) }),
            lines,
            clock: Clock::new(),
            under_way: AtomicUsize::new(0),
            max_requests: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
        };
        lane.keep_to(&held.requests);
        lane
    }

    /// Takes over what of the settings is not looked at with every request.
    fn keep_to(&self, requests: &Requests) {
        self.max_requests.store(requests.max_in_lane, Relaxed);
        self.client.keep_to(&requests.forwarder);
    }

    /// Its connections to upstreams.
    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Its connections to callers, and those of the other lanes.
    pub(super) fn share(&self) -> &Share {
        &self.share
    }

    /// Reads the clock.
    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// A request has come; says whether it may be served, or there are as many as may be.
    pub(super) fn count_in(&self) -> bool {
        // By nobody but this thread, so in two steps, which take a third of the time.
        let before = self.under_way.load(Relaxed);
        self.under_way.store(before.saturating_add(1), Relaxed);
        before < self.max_requests.load(Relaxed)
    }

    /// A request has ended.
    pub(super) fn count_out(&self) {
        self.under_way.store(self.under_way.load(Relaxed).saturating_sub(1), Relaxed);
    }

    /// Its part of the access log.
    pub(super) fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Configuration and settings to serve by, from now to the end of one request.
    pub(super) fn held(&self) -> Arc<InUse> {
        // Nobody else ever wants it: the lock is there because the compiler cannot know.
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        let Serving { snapshot, requests, held } = &mut *serving;
        let (snapshot, requests) = (snapshot.load().as_ref(), requests.load());
        if !held.is(snapshot, requests) {
            if !Arc::ptr_eq(&held.requests, requests) {
                self.keep_to(requests);
            }
            *held = Arc::new(InUse { snapshot: snapshot.cloned(), requests: Arc::clone(requests) });
        }
        Arc::clone(held)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// Notes that no more requests are to be taken.
    pub(super) fn drain(&self) {
        self.draining.store(true, Relaxed);
    }

    /// Closes what has been idle for too long, writes log lines and lets go of configurations that serve no more, again
    /// and again.
    async fn sweep(&self) {
        let mut ticks = interval(SWEEP_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.clock.adjust();
            self.client.sweep();
            self.share.settle();
            self.lines.flush();
            drop(self.held());
        }
    }

    /// Starts the thread of this lane, in which `work` runs until it ends or `cut` is cancelled; then all that it
    /// has spawned is dropped.
    ///
    /// # Errors
    /// When the system gives no runtime or no thread.
    pub(super) fn start(
        self: &Arc<Self>,
        index: usize,
        scheduling: LaneScheduling,
        work: impl Future<Output = ()> + Send + 'static,
        cut: CancellationToken,
        owned: TaskTrackerToken,
    ) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let lane = Arc::clone(self);
        let logs = tracing::dispatcher::get_default(Clone::clone);
        thread::Builder::new().name(format!("gateway-{index}")).spawn(move || {
            parts::enter(index);
            schedule(scheduling);
            tracing::dispatcher::with_default(&logs, || run(runtime, &lane, work, &cut));
            drop(owned);
        })?;
        Ok(())
    }
}

fn run(runtime: Runtime, lane: &Lane, work: impl Future<Output = ()>, cut: &CancellationToken) {
    runtime.block_on(async {
        let both = async { tokio::join!(work, lane.sweep()) };
        cut.run_until_cancelled(both).await;
    });
    lane.client.close_idle();
    runtime.shutdown_timeout(LEFTOVERS);
    lane.lines.flush();
}
