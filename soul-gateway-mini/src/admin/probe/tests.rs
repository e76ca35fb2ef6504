use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use tokio::time::{sleep, timeout};

use super::*;
use crate::{
    admin::{
        config::DataDir,
        persist::Memory,
        register::{Dialect, Service},
        store::{Command, Edit, Registration, Revive, Snowflake, UpstreamPatch},
        writer::{self, StoreHandle},
    },
    model::Target,
};

/// What an address does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaviour {
    Alive,
    Refused,
    /// Swallows packets.
    Silent,
    /// The check itself fails badly.
    Panics,
}

/// A network in memory; it notes when each address was asked.
#[derive(Debug, Default)]
struct Network {
    behaviour: Mutex<HashMap<String, Behaviour>>,
    asked: Mutex<Vec<(String, Instant)>>,
}

impl Network {
    fn set(&self, address: &str, behaviour: Behaviour) {
        self.behaviour.lock().unwrap_or_else(PoisonError::into_inner).insert(address.to_owned(), behaviour);
    }

    fn asked(&self, address: &str) -> Vec<Instant> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter(|(known, _)| known == address).map(|(_, at)| *at).collect()
    }
}

impl HealthCheck for Network {
    fn check(&self, target: Target) -> connect::Checked {
        let address = target.to_string();
        let known = self.behaviour.lock().unwrap_or_else(PoisonError::into_inner).get(&address).copied();
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push((address, Instant::now()));
        Box::pin(async move {
            match known.unwrap_or(Behaviour::Alive) {
                Behaviour::Alive => Ok(()),
                Behaviour::Refused => Err("refused".to_owned()),
                Behaviour::Silent => std::future::pending().await,
                Behaviour::Panics => panic!("a bug in the check"),
            }
        })
    }
}

struct Running {
    network: Arc<Network>,
    store: StoreHandle,
    ask: mpsc::Sender<String>,
    report: watch::Receiver<ProbeReport>,
    /// The wall clock, which the store goes by.
    now_ms: Arc<AtomicI64>,
    stop: CancellationToken,
}

impl Running {
    fn start(config: AdminConfig) -> Self {
        let config = AdminConfig { data: DataDir::Memory, ..config };
        let metrics = Arc::new(Metrics::new());
        let now_ms = Arc::new(AtomicI64::new(1_612_368_121_899));
        let shown = Arc::clone(&now_ms);
        let clock = Clock::of(move || shown.load(Ordering::Relaxed));
        let (store, writer) =
            writer::open(Box::new(Memory), Snowflake::new(1, 1), clock.clone(), Arc::clone(&metrics))
                .unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(writer.run(stop.clone()));
        let network = Arc::new(Network::default());
        let (sender, report) = watch::channel(ProbeReport::default());
        let check = Arc::clone(&network) as Arc<dyn HealthCheck>;
        let (prober, ask) = Prober::new(&config, store.clone(), check, clock, metrics, sender);
        tokio::spawn(prober.run(stop.clone()));
        Self { network, store, ask, report, now_ms, stop }
    }

    async fn register(&self, context: &str, host: &str, port: i32) {
        let body = soul_client::wire::soul::MetaDataRegisterDto {
            context_path: Some(context.to_owned()),
            path: Some(format!("{context}/**")),
            rule_name: Some(format!("{context}/**")),
            rpc_type: Some("http".to_owned()),
            host: Some(host.to_owned()),
            port: Some(port),
            ..Default::default()
        };
        let registration = Registration {
            dialect: Dialect::Feb2021,
            service: Service::SpringMvc,
            body,
            revive: Revive::AfterProbe,
        };
        let applied = self.store.submit(Command::Register(Box::new(registration))).await.unwrap();
        if let Some(url) = applied.probe {
            self.ask.send(url).await.unwrap();
        }
    }

    fn alive(&self, context: &str) -> Vec<String> {
        let store = self.store.store();
        let row = store.selectors().by_name(context).unwrap();
        let living = row.upstreams.iter().flatten().filter(|upstream| upstream.healthy);
        living.map(|upstream| upstream.url().to_owned()).collect()
    }

    /// Waits until the living upstreams are these, in simulated time.
    async fn until_alive(&self, context: &str, expected: &[&str]) {
        let reached = async {
            while self.alive(context) != expected {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let found = timeout(Duration::from_secs(120), reached).await;
        assert!(found.is_ok(), "{:?} instead of {expected:?}", self.alive(context));
    }

    async fn rounds(&self, count: u64) -> ProbeReport {
        *self.report.clone().wait_for(|report| report.rounds >= count).await.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn dead_node_leaves_and_returns_by_itself() {
    let running = Running::start(AdminConfig::default());
    running.register("/a", "10.0.0.2", 1).await;
    running.register("/a", "10.0.0.2", 2).await;
    running.network.set("10.0.0.2:2", Behaviour::Refused);
    running.until_alive("/a", &["10.0.0.2:1"]).await;
    running.network.set("10.0.0.2:2", Behaviour::Alive);
    running.until_alive("/a", &["10.0.0.2:1", "10.0.0.2:2"]).await;
}

#[tokio::test(start_paused = true)]
async fn rounds_begin_an_interval_apart() {
    let config = AdminConfig { upstream_check_interval: Duration::from_secs(7), ..AdminConfig::default() };
    let running = Running::start(config);
    running.register("/a", "10.0.0.2", 1).await;
    running.network.set("10.0.0.2:1", Behaviour::Silent);
    running.rounds(6).await;
    let asked = running.network.asked("10.0.0.2:1");
    for pair in asked.windows(2) {
        let gap = (pair[1] - pair[0]).as_secs_f64();
        assert!((gap - 7.0).abs() < 0.7, "{gap}");
    }
    assert!(asked.len() >= 5, "{}", asked.len());
}

#[tokio::test(start_paused = true)]
async fn silent_addresses_delay_no_others_and_the_round_is_short() {
    let running = Running::start(AdminConfig::default());
    for port in 1..=200 {
        running.register("/a", "10.0.0.2", port).await;
        let behaviour = match port {
            200 => Behaviour::Refused,
            port if port % 2 == 0 => Behaviour::Silent,
            _ => Behaviour::Alive,
        };
        running.network.set(&format!("10.0.0.2:{port}"), behaviour);
    }
    let before = running.rounds(1).await.rounds;
    running.network.asked.lock().unwrap().clear();
    // The refused one is out long before the silent ones have timed out.
    let refused_out = async {
        while running.alive("/a").contains(&"10.0.0.2:200".to_owned()) {
            sleep(Duration::from_millis(10)).await;
        }
        Instant::now()
    };
    let refused_out = refused_out.await;
    let asked = running.network.asked("10.0.0.2:200")[0];
    assert!(refused_out - asked < Duration::from_secs(1), "{:?}", refused_out - asked);
    let report = running.rounds(before + 1).await;
    assert!(report.took < 2 * AdminConfig::default().upstream_check_timeout, "{:?}", report.took);
    assert_eq!((report.tally.probed, report.tally.dead), (200, 100));
    assert_eq!(running.alive("/a").len(), 100);
}

#[tokio::test(start_paused = true)]
async fn one_address_in_several_selectors_is_asked_once() {
    let running = Running::start(AdminConfig::default());
    running.rounds(1).await;
    running.register("/a", "10.0.0.2", 1).await;
    running.register("/b", "10.0.0.2", 1).await;
    running.network.set("10.0.0.2:1", Behaviour::Refused);
    running.rounds(2).await;
    assert_eq!(running.network.asked("10.0.0.2:1").len(), 1);
    running.until_alive("/a", &[]).await;
    running.until_alive("/b", &[]).await;
}

#[tokio::test(start_paused = true)]
async fn loop_survives_a_check_that_panics_and_an_address_that_is_none() {
    let running = Running::start(AdminConfig::default());
    running.register("/a", "10.0.0.2", 1).await;
    running.register("/a", "10.0.0.2", 2).await;
    running.register("/a", "null", 0).await;
    running.network.set("10.0.0.2:1", Behaviour::Panics);
    running.until_alive("/a", &["10.0.0.2:1", "10.0.0.2:2"]).await;
    let rounds = running.rounds(1).await.rounds;
    running.rounds(rounds + 3).await;
    running.network.set("10.0.0.2:1", Behaviour::Refused);
    running.until_alive("/a", &["10.0.0.2:2"]).await;
}

#[tokio::test(start_paused = true)]
async fn dead_node_that_registers_is_asked_at_once() {
    let config = AdminConfig { upstream_check_interval: Duration::from_secs(3600), ..AdminConfig::default() };
    let running = Running::start(config);
    running.register("/a", "10.0.0.2", 1).await;
    running.network.set("10.0.0.2:1", Behaviour::Refused);
    running.ask.send("10.0.0.2:1".to_owned()).await.unwrap();
    running.until_alive("/a", &[]).await;
    running.network.set("10.0.0.2:1", Behaviour::Alive);
    let before = Instant::now();
    running.register("/a", "10.0.0.2", 1).await;
    running.until_alive("/a", &["10.0.0.2:1"]).await;
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn unchecked_upstream_is_left_alone() {
    let running = Running::start(AdminConfig::default());
    running.rounds(1).await;
    running.register("/a", "10.0.0.2", 1).await;
    let id = running.store.store().selectors().by_name("/a").unwrap().data.id.clone().unwrap();
    let patch =
        UpstreamPatch { probing: Some(crate::admin::store::Probing::Off), ..UpstreamPatch::default() };
    running.store.submit(Command::Edit(Edit::Upstream(id, "10.0.0.2:1".to_owned(), patch))).await.unwrap();
    running.network.set("10.0.0.2:1", Behaviour::Refused);
    running.rounds(3).await;
    assert_eq!(running.alive("/a"), ["10.0.0.2:1"]);
    assert!(running.network.asked("10.0.0.2:1").is_empty());
}

#[tokio::test(start_paused = true)]
async fn long_dead_node_is_dropped_if_set() {
    let config = AdminConfig { upstream_forget_after: Duration::from_millis(1), ..AdminConfig::default() };
    let running = Running::start(config);
    running.register("/a", "10.0.0.2", 1).await;
    running.network.set("10.0.0.2:1", Behaviour::Refused);
    running.until_alive("/a", &[]).await;
    running.now_ms.fetch_add(5, Ordering::Relaxed);
    let rounds = running.rounds(1).await.rounds;
    running.rounds(rounds + 2).await;
    let store = running.store.store();
    assert_eq!(store.selectors().by_name("/a").unwrap().upstreams.as_deref(), Some(&[][..]));
}
