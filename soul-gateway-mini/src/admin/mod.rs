//! The control side: what services registered, what operators changed, and how gateways learn it.
//!
//! | door | module |
//! |---|---|
//! | `/soul-client/*-register`, `/soul-client/offline` | [`register`] |
//! | `/platform/login`, `/shenyu-client/*` | `shenyu` |
//! | `/configs/fetch`, `/configs/listener` | `fetch`, `long_poll` |
//! | `/api/v1` | `api` |
//! | `/healthz`, `/readyz`, `/metrics`, `/status` | `status` |
//!
//! Every door that changes something sends a command to `writer`, which applies it to the [`store`], makes it
//! durable by `persist`, and has `publish` make the new image. [`probe`] is a door of its own: it asks the upstreams.

mod answer;
mod api;
mod body;
mod clock;
mod config;
mod error;
mod fetch;
mod http;
mod long_poll;
mod metrics;
mod persist;
mod problem;
mod publish;
mod render;
mod serve;
mod shared;
mod shenyu;
mod status;
mod writer;

pub mod probe;
pub mod register;
pub mod store;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use config::*;
pub use error::AdminError;
pub use persist::PersistError;
pub use problem::Problem;

use clock::Clock;
use http::Doors;
use metrics::Metrics;
use persist::{Embedded, Memory, Persist};
use probe::{ProbeReport, Prober, TcpConnect};
use serve::{End, Limits};
use shared::Shared;
use store::Snowflake;
use writer::{StoreHandle, Writer};

use crate::model::ConfigImage;

/// A running admin. Dropping it stops it without waiting; [`Admin::shutdown`] waits.
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Connections, probing, dating.
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Ends connections that outlive the time to drain.
    abort: CancellationToken,
    writer: JoinHandle<()>,
    stop_writer: CancellationToken,
}

impl Admin {
    /// Opens the store, listens, and starts to probe.
    ///
    /// Must be called in a tokio runtime with time and I/O.
    ///
    /// # Errors
    /// For settings that cannot work, a store that cannot be opened, an address that cannot be listened on.
    ///
    /// # Examples
    /// ```
    /// use soul_gateway_mini::admin::{Admin, AdminConfig, DataDir};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = AdminConfig { listen: "127.0.0.1:0".parse()?, data: DataDir::Memory, ..AdminConfig::default() };
    /// let admin = Admin::start(config).await?;
    /// println!("admin on http://{}", admin.local_addr());
    /// admin.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start(config: AdminConfig) -> Result<Self, AdminError> {
        config.validate().map_err(AdminError::Config)?;
        let clock = Clock::system();
        let metrics = Arc::new(Metrics::new());
        let (store, writer) = open(&config, clock.clone(), Arc::clone(&metrics)).await?;
        let bind = |source| AdminError::Bind { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        tracing::info!(%address, data = %config.data, revision = store.store().revision(), "the admin listens");
        if !address.ip().to_canonical().is_loopback() {
            tracing::warn!(%address, "whoever reaches this address can register services and read the configuration");
        }

        let (tasks, stop, stop_writer) =
            (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let (report, probe_report) = watch::channel(ProbeReport::default());
        let probes = config.checks_upstreams().then(|| {
            let check = Arc::new(TcpConnect::new(config.allow_link_local));
            let (prober, ask) =
                Prober::new(&config, store.clone(), check, clock.clone(), Arc::clone(&metrics), report);
            tasks.spawn(prober.run(stop.clone()));
            ask
        });
        tasks.spawn(date(config.refresh_interval, store.clone(), stop.clone()));
        let shared = Arc::new(Shared {
            config: ArcSwap::from_pointee(config.clone()),
            address,
            store,
            metrics: Arc::clone(&metrics),
            started: Instant::now(),
            stopping: stop.clone(),
            probes,
            probe_report,
        });
        let limits = Limits {
            connections: config.max_connections,
            header_timeout: config.header_timeout,
            write_timeout: config.write_timeout,
        };
        let abort = CancellationToken::new();
        let accept = serve::run(
            listener,
            Arc::new(Doors::new(Arc::clone(&shared))),
            limits,
            metrics,
            tasks.clone(),
            End { stop: stop.clone(), abort: abort.clone() },
        );
        tasks.spawn(accept);
        let writer = tokio::spawn(writer.run(stop_writer.clone()));
        Ok(Self { address, shared, tasks, stop, abort, writer, stop_writer })
    }

    /// The address that is listened on, with the real port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The configuration as gateways get it, now and after every change. It stays readable when the admin is gone.
    #[must_use]
    pub fn image(&self) -> watch::Receiver<Arc<ConfigImage>> {
        self.shared.store.image()
    }

    /// Takes up settings while it serves: the token of the API, the hold of a poll, the limits of a body, the time to drain. All
    /// others stay as they were: they need a restart.
    ///
    /// # Errors
    /// When a setting cannot work; then nothing changes.
    pub fn reload(&self, config: &AdminConfig) -> Result<(), AdminError> {
        config.validate().map_err(AdminError::Config)?;
        self.shared.take_up(config);
        Ok(())
    }

    /// Stops listening, answers the polls, lets requests in flight end within the time to drain, and closes the store.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        self.tasks.close();
        let limit = self.shared.config().drain_timeout;
        if timeout(limit, self.tasks.wait()).await.is_err() {
            tracing::warn!(?limit, "requests are cut off: they took too long to end");
            self.abort.cancel();
            self.tasks.wait().await;
        }
        self.stop_writer.cancel();
        if let Err(error) = (&mut self.writer).await {
            tracing::error!(%error, "the writer of the store failed");
        }
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        for token in [&self.stop, &self.abort, &self.stop_writer] {
            token.cancel();
        }
    }
}

/// Opens the store of the settings.
async fn open(
    config: &AdminConfig,
    clock: Clock,
    metrics: Arc<Metrics>,
) -> Result<(StoreHandle, Writer), AdminError> {
    let data = config.data.clone();
    let ids = Snowflake::new(fastrand::u8(..), fastrand::u8(..));
    let opened = tokio::task::spawn_blocking(move || {
        let persist: Box<dyn Persist> = match &data {
            DataDir::Memory => Box::new(Memory),
            DataDir::Path(folder) => Box::new(Embedded::open(folder)?),
        };
        writer::open(persist, ids, clock, metrics)
    });
    let opened = opened.await.map_err(AdminError::Interrupted)?;
    opened.map_err(|error| AdminError::open(error, config.data.to_string()))
}

/// Dates the groups from time to time.
async fn date(every: Duration, store: StoreHandle, stop: CancellationToken) {
    if every.is_zero() {
        return;
    }
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await; // the first is at once, and the groups are new
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => store.refresh().await,
        }
    }
}

#[cfg(test)]
mod tests;
