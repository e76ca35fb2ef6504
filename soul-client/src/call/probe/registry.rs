//! One probe an address, shared by all services that check it alike.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore},
    task::AbortHandle,
    time::{sleep, timeout},
};

use super::{CheckError, HealthCheck, Probing};
use crate::{
    balance::{CheckSettings, FastRandom, Health, HealthTrack, Upstream},
    call::guard::guarded,
};

/// No pause between two checks is shorter, whatever is set.
const SHORTEST: Duration = Duration::from_millis(10);

/// The probes of a program, or of one part of it.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use soul_client::call::{Membership, probe::Probers};
///
/// let probers = Arc::new(Probers::new(16));
/// let orders = Membership::builder("orders").probers(Arc::clone(&probers));
/// let stock = Membership::builder("stock").probers(Arc::clone(&probers));
/// # let _ = (orders, stock);
/// assert_eq!(probers.addresses(), 0);
/// ```
pub struct Probers {
    in_flight: Arc<Semaphore>,
    /// Ended ones are dead weak references until the map is swept.
    probes: Mutex<HashMap<Key, Weak<Probe>>>,
}

/// What makes two probes the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    base_url: String,
    check: Same,
    /// Settings and timeout, which are floating point and durations.
    timing: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Same {
    /// By what the check says of itself.
    Named(String),
    /// By where the check stands in memory; its probe keeps it there.
    At(usize),
}

impl Default for Probers {
    fn default() -> Self {
        Self::new(Self::IN_FLIGHT)
    }
}

impl Probers {
    /// Checks under way at once unless set.
    pub const IN_FLIGHT: usize = 64;

    /// No probe yet; at most so many checks will be under way at once.
    #[must_use]
    pub fn new(in_flight: usize) -> Self {
        let in_flight = in_flight.clamp(1, Semaphore::MAX_PERMITS);
        Self { in_flight: Arc::new(Semaphore::new(in_flight)), probes: Mutex::default() }
    }

    /// How many addresses are probed now; one that is checked in two ways counts twice.
    #[must_use]
    pub fn addresses(&self) -> usize {
        self.probes().values().filter(|probe| probe.strong_count() > 0).count()
    }

    /// Has an upstream probed as long as the subscription lives. What is known of it already is told at once.
    pub(in crate::call) fn subscribe(
        &self,
        upstream: &Upstream,
        check: &Arc<dyn HealthCheck>,
        probing: &Probing,
        findings: &Arc<Findings>,
    ) -> Subscription {
        let key = Key {
            base_url: upstream.base_url().to_owned(),
            check: check
                .key()
                .map_or_else(|| Same::At(Arc::as_ptr(check).cast::<()>() as usize), Same::Named),
            timing: format!("{:?} {:?}", probing.settings, probing.timeout),
        };
        let mut probes = self.probes();
        let probe = probes.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            probes.retain(|_, probe| probe.strong_count() > 0);
            let probe = self.start(upstream, check, probing);
            probes.insert(key, Arc::downgrade(&probe));
            probe
        });
        drop(probes);
        let id = probe.shared.hear(upstream.address().into(), Arc::clone(findings));
        Subscription { probe, id }
    }

    fn start(&self, upstream: &Upstream, check: &Arc<dyn HealthCheck>, probing: &Probing) -> Arc<Probe> {
        let shared = Arc::new(Shared::default());
        let prober = Prober {
            upstream: upstream.clone(),
            check: Arc::clone(check),
            settings: probing.settings,
            timeout: probing.timeout,
            at_once: probing.require_first_check,
            in_flight: Arc::clone(&self.in_flight),
            shared: Arc::clone(&shared),
        };
        let task = tokio::spawn(prober.run()).abort_handle();
        Arc::new(Probe { shared, task })
    }

    fn probes(&self) -> MutexGuard<'_, HashMap<Key, Weak<Probe>>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Probers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probers")
            .field("addresses", &self.addresses())
            .field("free", &self.in_flight.available_permits())
            .finish()
    }
}

/// What probes found and the writer of a service has not yet read: the newest of each address.
#[derive(Debug)]
pub(in crate::call) struct Findings {
    found: Mutex<HashMap<Arc<str>, Health>>,
    wake: Arc<Notify>,
}

impl Findings {
    pub(in crate::call) fn new(wake: Arc<Notify>) -> Self {
        Self { found: Mutex::default(), wake }
    }

    pub(in crate::call) fn take(&self) -> HashMap<Arc<str>, Health> {
        std::mem::take(&mut self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, address: Arc<str>, health: Health) {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(address, health);
        self.wake.notify_one();
    }
}

/// A service's part in a probe. The probe ends with the last.
pub(in crate::call) struct Subscription {
    probe: Arc<Probe>,
    id: u64,
}

impl Subscription {
    /// Somebody else changed the health meanwhile: the next check is told whatever it finds.
    pub(in crate::call) fn tell_again(&self) {
        if let Some(hearer) = self.probe.shared.state().hearers.get_mut(&self.id) {
            hearer.told = Health::Unknown;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.probe.shared.state().hearers.remove(&self.id);
    }
}

struct Probe {
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Default)]
struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    track: HealthTrack,
    hearers: HashMap<u64, Hearer>,
}

struct Hearer {
    /// As the service calls it.
    address: Arc<str>,
    findings: Arc<Findings>,
    told: Health,
}

impl Hearer {
    fn tell(&mut self, health: Health) {
        if self.told != health {
            self.told = health;
            self.findings.put(Arc::clone(&self.address), health);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, address: Arc<str>, findings: Arc<Findings>) -> u64 {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let id = NEXT_ID.fetch_add(1, Relaxed);
        let mut state = self.state();
        let mut hearer = Hearer { address, findings, told: Health::Unknown };
        hearer.tell(state.track.health());
        state.hearers.insert(id, hearer);
        id
    }

    /// Notes a result and tells everyone; gives the new health if it changed.
    fn observe(&self, settings: &CheckSettings, answered: bool) -> Option<Health> {
        let mut state = self.state();
        let turned = state.track.observe(settings, answered);
        let health = state.track.health();
        state.hearers.values_mut().for_each(|hearer| hearer.tell(health));
        turned
    }
}

/// The task of one address.
struct Prober {
    upstream: Upstream,
    check: Arc<dyn HealthCheck>,
    settings: CheckSettings,
    timeout: Duration,
    at_once: bool,
    in_flight: Arc<Semaphore>,
    shared: Arc<Shared>,
}

impl Prober {
    async fn run(self) {
        if !self.at_once {
            sleep(HealthTrack::first_pause(&self.settings, &FastRandom)).await;
        }
        loop {
            let result = self.check().await;
            if let Some(health) = self.shared.observe(&self.settings, result.is_ok()) {
                self.log(health, &result);
            }
            let pause = self.shared.state().track.pause(&self.settings, &FastRandom);
            sleep(pause.max(SHORTEST)).await;
        }
    }

    async fn check(&self) -> Result<(), CheckError> {
        // Never closed.
        let _place = self.in_flight.acquire().await;
        let (check, upstream) = (Arc::clone(&self.check), self.upstream.clone());
        match timeout(self.timeout, guarded(async move { check.check(&upstream).await })).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(panicked)) => Err(panicked.into()),
            Err(_) => Err(format!("no answer within {} s", self.timeout.as_secs_f64()).into()),
        }
    }

    fn log(&self, health: Health, result: &Result<(), CheckError>) {
        let upstream = self.upstream.base_url();
        match result {
            Ok(()) => tracing::info!(upstream, ?health, "the upstream answers its checks"),
            Err(error) => tracing::warn!(upstream, %error, "the upstream fails its checks and gets no calls"),
        }
    }
}
