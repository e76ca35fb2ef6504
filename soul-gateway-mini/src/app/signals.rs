//! The signals that the process heeds.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// To end, by the signal of this name.
    End(&'static str),
    /// To read the settings anew: SIGHUP.
    Reload,
    /// To open the access log anew: SIGUSR1.
    Reopen,
}

/// SIGINT, SIGTERM, SIGHUP and SIGUSR1, from the moment this is made.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    user: Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Wanted {
        tokio::select! {
            _ = self.interrupt.recv() => Wanted::End("SIGINT"),
            _ = self.terminate.recv() => Wanted::End("SIGTERM"),
            _ = self.hangup.recv() => Wanted::Reload,
            _ = self.user.recv() => Wanted::Reopen,
        }
    }
}

/// Ctrl-C, where there are no signals.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Wanted {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Wanted::End("Ctrl-C"),
            Err(_) => std::future::pending().await,
        }
    }
}

impl Signals {
    /// Waits for one that ends the process, and gives its name; others have nothing to act on then.
    pub(super) async fn end(&mut self) -> &'static str {
        loop {
            if let Wanted::End(signal) = self.next().await {
                return signal;
            }
        }
    }
}
