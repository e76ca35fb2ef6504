//! Taking up settings and files while the process serves.

use std::ffi::OsString;

use tracing::{error, info, warn};

use super::{App, logging::Filter};
use crate::{
    causes::chain,
    config::{Change, Settings},
};

/// What a reload starts from.
pub(super) struct Reloading {
    /// The command line; what it says counts more than what the file says, as at the start.
    args: Vec<OsString>,
    /// The settings that the parts were started with.
    started: Settings,
    /// Those that serve.
    current: Settings,
    filter: Filter,
}

impl Reloading {
    pub(super) fn new(args: Vec<OsString>, settings: &Settings, filter: Filter) -> Self {
        Self { args, started: settings.clone(), current: settings.clone(), filter }
    }

    /// Reads the settings anew, and has every part take them up that can; each is told of with how it went.
    ///
    /// Settings that cannot be read change nothing. Reading the file takes a moment, and nothing else waits for it: the parts
    /// have threads of their own.
    pub(super) fn reload(&mut self, app: &App) {
        let settings = match Settings::read(self.args.iter().cloned()) {
            Ok(settings) => settings,
            Err(error) => {
                error!(%error, "not reloaded, the settings from before stay; put them right and send SIGHUP again");
                return;
            }
        };
        for Change { setting, .. } in settings.changes_from(&self.current).iter().filter(|change| change.live)
        {
            info!(setting, "changed");
        }
        for Change { setting, .. } in
            settings.changes_from(&self.started).iter().filter(|change| !change.live)
        {
            warn!(setting, "changed, and needs a restart: the value from the start stays");
        }
        match self.filter.set(&settings.log_level) {
            Ok(()) => info!("reloaded log level"),
            Err(error) => error!(%error, "log level not reloaded, the one from before stays"),
        }
        if let Some(gateway) = &app.gateway {
            match gateway.reload(&settings.gateway) {
                Ok(parts) => {
                    for (part, reloaded) in parts {
                        match reloaded {
                            Ok(()) => info!("reloaded {part}"),
                            Err(error) => {
                                error!(error = chain(&error), "{part} not reloaded, what was there stays");
                            }
                        }
                    }
                }
                Err(error) => error!(error = chain(&error), "not reloaded, the settings from before stay"),
            }
        }
        self.current = settings;
    }
}

/// Opens the access log anew.
pub(super) fn reopen(app: &App) {
    let Some(gateway) = &app.gateway else { return };
    match gateway.reopen_log() {
        Ok(()) => info!("reopened access log"),
        Err(error) => error!(error = chain(&error), "access log not reopened, the old file is written on"),
    }
}
