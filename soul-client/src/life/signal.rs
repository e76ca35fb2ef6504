//! What ends a service from outside.

use std::{future::Future, pin::Pin, time::Duration};

use tokio::time::Instant;

use crate::error::{Error, Kind};

/// Waits until this process is asked to stop: SIGINT or SIGTERM, elsewhere Ctrl-C.
///
/// From then on such a signal no longer ends the process by itself.
///
/// # Errors
/// When the system does not let signals be waited for.
pub async fn stop_signal() -> Result<(), Error> {
    Signals::new(None)?.next().await;
    Ok(())
}

/// Within this time a second signal is the same wish as the first: `timeout` and some shells signal the process and its
/// group.
const SAME_WISH: Duration = Duration::from_millis(500);

/// What a program waits for.
pub(super) struct Signals {
    /// Instead of the system's; resolves once.
    own: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    system: Option<System>,
    first: Option<Instant>,
}

impl Signals {
    pub(super) fn new(own: Option<Pin<Box<dyn Future<Output = ()> + Send>>>) -> Result<Self, Error> {
        let system = if own.is_none() {
            let failed = |error| Error::new(Kind::Serve, "wait for signals").with_source(error);
            Some(System::new().map_err(failed)?)
        } else {
            None
        };
        Ok(Self { own, system, first: None })
    }

    pub(super) async fn next(&mut self) {
        if let Some(own) = self.own.as_mut() {
            own.await;
            self.own = None;
            return;
        }
        self.again().await;
        self.first = Some(Instant::now());
    }

    /// Another signal; there is none after one's own.
    pub(super) async fn again(&mut self) {
        let Some(system) = &mut self.system else { return std::future::pending().await };
        loop {
            system.next().await;
            if self.first.is_none_or(|first| first.elapsed() > SAME_WISH) {
                return;
            }
        }
    }
}

#[cfg(unix)]
struct System {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl System {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct System;

#[cfg(not(unix))]
impl System {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
