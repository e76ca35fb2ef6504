//! What the doors of one admin have in common.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{config::AdminConfig, metrics::Metrics, probe::ProbeReport, writer::StoreHandle};

/// Settings, store, and what the doors report.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) config: ArcSwap<AdminConfig>,
    /// The address that is really listened on.
    pub(crate) address: SocketAddr,
    pub(crate) store: StoreHandle,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) started: Instant,
    /// Cancelled when the admin stops: held polls are answered then.
    pub(crate) stopping: CancellationToken,
    /// Addresses to probe at once; absent when probing is off.
    pub(crate) probes: Option<mpsc::Sender<String>>,
    /// The last round of probing.
    pub(crate) probe_report: watch::Receiver<ProbeReport>,
}

impl Shared {
    /// The settings, as they are now.
    pub(crate) fn config(&self) -> Arc<AdminConfig> {
        self.config.load_full()
    }

    /// Takes up what of other settings takes effect while the admin runs.
    pub(crate) fn take_up(&self, config: &AdminConfig) {
        let mut new = AdminConfig::clone(&self.config.load());
        new.api_token.clone_from(&config.api_token);
        new.poll_hold = config.poll_hold;
        new.body_limit = config.body_limit;
        new.body_timeout = config.body_timeout;
        new.drain_timeout = config.drain_timeout;
        self.config.store(Arc::new(new));
    }

    /// An admin in memory without sockets.
    #[cfg(test)]
    pub(crate) fn for_test(config: AdminConfig) -> Self {
        use super::{clock::Clock, config::DataDir, writer};

        let config = AdminConfig { data: DataDir::Memory, ..config };
        let metrics = Arc::new(Metrics::new());
        let ids = super::store::Snowflake::new(1, 1);
        let persist = Box::new(super::persist::Memory);
        let (store, writer) = writer::open(persist, ids, Clock::system(), Arc::clone(&metrics)).unwrap();
        let stopping = CancellationToken::new();
        tokio::spawn(writer.run(stopping.clone()));
        let address = config.listen;
        let (_, probe_report) = watch::channel(ProbeReport::default());
        Self {
            config: ArcSwap::from_pointee(config),
            address,
            store,
            metrics,
            started: Instant::now(),
            stopping,
            probes: None,
            probe_report,
        }
    }

    /// Has an address probed at once.
    pub(crate) fn probe(&self, url: String) {
        if let Some(probes) = &self.probes {
            // A full queue means that many others are waiting: the next round, which takes all, is as soon.
            let _ = probes.try_send(url);
        }
    }
}
