//! What the doors of one admin have in common.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{config::AdminConfig, metrics::Metrics, probe::ProbeReport, writer::StoreHandle};

/// Settings, store, and what the doors report.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: AdminConfig,
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
            config,
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
