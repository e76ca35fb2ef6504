//! The process: reads its settings, wires the parts, announces them, runs until a signal, drains.

mod descriptors;
mod error;
mod inherit;
mod logging;
mod reload;
mod signals;
#[cfg_attr(not(unix), path = "app/takeover_none.rs")]
mod takeover;

use std::{
    ffi::OsString,
    future::pending,
    io::{self, Write as _},
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    pin::pin,
    process::ExitCode,
    time::Duration,
};

use tracing::{error, info, warn};

pub use self::error::AppError;
use self::{
    reload::Reloading,
    signals::{Signals, Wanted},
    takeover::{Predecessor, Successors, Turn},
};
use crate::{
    admin::{Admin, DataDir},
    causes::chain,
    config::{Role, Settings},
    gateway::{Drained, Gateway, GatewayConfig, GatewaySource, Sockets},
};

/// How long calls of the system that cannot be stopped are waited for at the end.
const LEFTOVERS: Duration = Duration::from_millis(500);

/// Exit code at a second signal: what shells report for a program that Ctrl-C ended.
const EXIT_AT_ONCE: i32 = 130;

/// The whole program: `args` begins with its name, as from [`std::env::args_os`].
///
/// Exit codes: 0 after a signal and draining, 1 when it cannot run, 2 for a setting that cannot work, and for a file named by one that
/// cannot be used, 130 at a second signal.
#[must_use]
pub fn main<I>(args: I) -> ExitCode
where
    I: IntoIterator<Item = OsString>,
{
    let args: Vec<OsString> = args.into_iter().collect();
    let settings = match Settings::read(args.iter().cloned()) {
        Ok(settings) => settings,
        Err(error) => return ExitCode::from(error.report()),
    };
    let reloading = Reloading::new(args, &settings, logging::start(&settings));
    descriptors::raise_limit();
    let sockets = inherit::sockets();
    // One thread: requests have threads of their own, and what takes long is done aside.
    let outcome = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let outcome = runtime.block_on(run(settings, sockets, reloading));
            // The parts have ended. What may be left is the system looking up a name, which cannot be stopped.
            runtime.shutdown_timeout(LEFTOVERS);
            outcome
        }
        Err(error) => Err(AppError::Runtime(error)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // OK to ignore: when stderr is gone there is nobody left to tell, and the exit code still says it.
            let _ = writeln!(io::stderr(), "error: {}", chain(&error));
            ExitCode::from(error.exit_code())
        }
    }
}

/// From the first part to the last: builds, announces, reloads when told to, drains.
async fn run(
    settings: Settings,
    sockets: Vec<TcpListener>,
    mut reloading: Reloading,
) -> Result<(), AppError> {
    // Before anything starts: a signal that comes meanwhile must not be lost.
    let mut signals = Signals::listen().map_err(AppError::Runtime)?;
    info!(version = env!("CARGO_PKG_VERSION"), data_dir = %whole(&settings.data_dir), "start");
    for (variable, near) in &settings.unknown_variables {
        warn!(variable, "no such setting, did you mean `{near}`?");
    }
    let app = tokio::select! {
        app = App::build_on(sockets, settings) => app?,
        signal = signals.end() => {
            info!(signal, "stop before anything was served");
            return Ok(());
        }
    };
    announce(&app.ready_line());
    let end = {
        let mut relieved = pin!(app.relieved());
        loop {
            tokio::select! {
                wanted = signals.next() => match wanted {
                    Wanted::End(signal) => break End::Signal(signal),
                    Wanted::Reload => reloading.reload(&app),
                    Wanted::Reopen => reload::reopen(&app),
                },
                () = &mut relieved => break End::Relieved,
            }
        }
    };
    match end {
        End::Signal(signal) => info!(signal, "drain; a second signal ends at once"),
        End::Relieved => info!("another gateway has taken over, drain"),
    }
    let at_once = async {
        if let End::Relieved = end {
            // Whoever starts the next one and then ends this one must not cut off what it still answers.
            let signal = signals.end().await;
            info!(signal, "it drains already; another signal ends at once");
        }
        signals.end().await
    };
    tokio::select! {
        () = app.end(end) => info!("stop"),
        signal = at_once => {
            error!(signal, "stop without draining");
            std::process::exit(EXIT_AT_ONCE);
        }
    }
    Ok(())
}

/// Why the process ends.
#[derive(Clone, Copy)]
enum End {
    /// By the signal of this name.
    Signal(&'static str),
    /// Another one serves by the same sockets.
    Relieved,
}

/// The folder as it is found from anywhere, for whoever reads the log.
fn whole(data_dir: &DataDir) -> DataDir {
    match data_dir {
        DataDir::Memory => DataDir::Memory,
        DataDir::Path(path) => DataDir::Path(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
    }
}

/// Tells scripts that wait for it. One write, so that the line arrives whole.
fn announce(line: &str) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        error!(%error, "print the ready line to stdout");
    }
}

/// The parts of this process, serving.
#[derive(Debug)]
pub struct App {
    admin: Option<Admin>,
    gateway: Option<Gateway>,
    successors: Option<Successors>,
}

impl App {
    /// Starts the parts that the settings ask for, and returns once they serve.
    ///
    /// A gateway alone serves once it has a configuration: from an admin, or the one kept on disk when no admin
    /// answers. Until then its port is closed, so that whoever balances over gateways passes it over.
    ///
    /// # Errors
    /// When a part cannot start; the parts started before it are stopped again.
    pub async fn build(settings: Settings) -> Result<Self, AppError> {
        Self::build_on(Vec::new(), settings).await
    }

    /// The same; the gateway uses those of the open sockets that listen where its settings say. One that is told of a gateway
    /// to take over from asks that one first.
    ///
    /// # Errors
    /// As [`build`](Self::build). The other gateway serves on then.
    pub async fn build_on(sockets: Vec<TcpListener>, settings: Settings) -> Result<Self, AppError> {
        let Settings { role, admin, gateway, admins, takeover, .. } = settings;
        let takeover = takeover.filter(|_| role == Role::Gateway);
        let admin = match role {
            Role::Both | Role::Admin => Some(Admin::start(admin).await?),
            Role::Gateway => None,
        };
        let source = match (role, &admin) {
            (Role::Admin, _) => return Ok(Self { admin, gateway: None, successors: None }),
            (_, Some(admin)) => GatewaySource::Local(admin.image()),
            (_, None) => GatewaySource::Admins(admins),
        };
        let app = Self { admin, gateway: None, successors: None };
        let sockets = inherit::sorted(sockets, gateway.status_listen);
        match taking_over(takeover, sockets, gateway, source).await {
            Ok((gateway, successors)) => Ok(Self { gateway: Some(gateway), successors, ..app }),
            Err(error) => {
                app.shutdown().await;
                Err(error)
            }
        }
    }

    /// Where the admin listens, if one runs.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Admin::local_addr)
    }

    /// Where the gateway takes requests, if one runs.
    #[must_use]
    pub fn gateway_addr(&self) -> Option<SocketAddr> {
        self.gateway.as_ref().map(Gateway::local_addr)
    }

    /// Where the gateway tells its state, if one runs.
    #[must_use]
    pub fn status_addr(&self) -> Option<SocketAddr> {
        self.gateway.as_ref().map(Gateway::status_addr)
    }

    /// `ready admin=http://… gateway=http://… status=http://…`, with the parts that run.
    fn ready_line(&self) -> String {
        let secure = self.gateway.as_ref().is_some_and(Gateway::speaks_tls);
        let parts = [
            ("admin=http", self.admin_addr()),
            (if secure { "gateway=https" } else { "gateway=http" }, self.gateway_addr()),
            ("status=http", self.status_addr()),
        ];
        let running = parts.iter().filter_map(|(name, addr)| addr.map(|addr| format!(" {name}://{addr}")));
        format!("ready{}", running.collect::<String>())
    }

    /// Returns once another gateway has taken over from the one in here; never without `--takeover`.
    async fn relieved(&self) {
        match (&self.gateway, &self.successors) {
            (Some(gateway), Some(successors)) => {
                successors.relieved(|| gateway.sockets(), || gateway.take_back()).await;
            }
            _ => pending().await,
        }
    }

    /// Stops the parts: the gateway drains first, so that it knows the upstreams to the end.
    pub async fn shutdown(self) {
        self.end(End::Signal("none")).await;
    }

    async fn end(self, end: End) {
        if let Some(gateway) = self.gateway {
            let drained = match end {
                End::Signal(_) => gateway.shutdown().await,
                End::Relieved => gateway.hand_over().await,
            };
            if let Drained::CutOff { connections } = drained {
                warn!(connections, "requests were cut off: they took longer than `--drain-timeout`");
            }
        }
        if let Some(admin) = self.admin {
            admin.shutdown().await;
        }
    }
}

/// A gateway that accepts requests, in place of the one that was told of, if there was one, and where the next one asks.
async fn taking_over(
    takeover: Option<PathBuf>,
    sockets: Sockets,
    config: GatewayConfig,
    source: GatewaySource,
) -> Result<(Gateway, Option<Successors>), AppError> {
    let Some(path) = takeover else { return Ok((serving(sockets, config, source).await?, None)) };
    let failed = |source| AppError::Takeover { path: path.clone(), source };
    let turn = Turn::take(&path).await.map_err(failed)?;
    let (sockets, predecessor) = match takeover::ask(&path).await.map_err(failed)? {
        Some((sockets, predecessor)) => {
            info!(sockets = sockets.requests.len(), "take over from another gateway");
            (sockets, Some(predecessor))
        }
        None => (sockets, None),
    };
    let gateway = serving(sockets, config, source).await?;
    // First, so that somebody is found there at any time.
    let successors = Successors::listen(&path).map_err(failed)?;
    if let Some(Err(error)) = predecessor.map(Predecessor::relieve) {
        warn!(%error, "the gateway before this one has ended by itself");
    }
    drop(turn);
    Ok((gateway, Some(successors)))
}

/// A gateway that accepts requests.
async fn serving(
    sockets: Sockets,
    config: GatewayConfig,
    source: GatewaySource,
) -> Result<Gateway, AppError> {
    let gateway = Gateway::start_on(sockets, config, source).await?;
    info!(status = %gateway.status_addr(), "wait for the first configuration");
    if gateway.ready().await { Ok(gateway) } else { Err(AppError::NotServing) }
}
