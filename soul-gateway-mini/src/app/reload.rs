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

    /// Reads the settings anew, and has every part take them up that can.
    ///
    /// All or nothing: with a setting that cannot be read, or a file of one that cannot be used, everything stays as it was.
    /// Reading the files takes a moment. Requests do not wait for it, since lanes have threads of their own; admin, status,
    /// synchronisation and probes share this one, and do.
    pub(super) fn reload(&mut self, app: &App) {
        let settings = match Settings::read(self.args.iter().cloned()) {
            Ok(settings) => settings,
            Err(error) => return refused(&error.to_string()),
        };
        // First those that may refuse.
        let reloaded = match app.gateway.as_ref().map(|gateway| gateway.reload(&settings.gateway)) {
            Some(Ok(parts)) => parts,
            Some(Err(error)) => return refused(&chain(&error)),
            None => Vec::new(),
        };
        if let Some(Err(error)) = app.admin.as_ref().map(|admin| admin.reload(&settings.admin)) {
            // OK to go on: the settings have been checked by the same rules when they were read.
            error!(error = chain(&error), "the admin keeps its settings");
        }
        if let Err(error) = self.filter.set(&settings.log_level) {
            error!(%error, "the log keeps its level");
        }
        self.tell(&settings);
        info!(?reloaded, "reloaded, all parts that can go by the new settings");
        self.current = settings;
    }

    /// Tells what is different.
    fn tell(&self, settings: &Settings) {
        let before = settings.changes_from(&self.current);
        for Change { setting, .. } in before.iter().filter(|change| change.live) {
            info!(setting, "changed");
        }
        let started = settings.changes_from(&self.started);
        for Change { setting, .. } in started.iter().filter(|change| !change.live) {
            warn!(setting, "changed, and needs a restart: the value from the start stays");
        }
    }
}

fn refused(why: &str) {
    error!(error = why, "not reloaded, the old settings serve on; put this right and send SIGHUP again");
}

/// Opens the access log anew.
pub(super) fn reopen(app: &App) {
    let Some(gateway) = &app.gateway else { return };
    match gateway.reopen_log() {
        Ok(()) => info!("reopened access log"),
        Err(error) => error!(error = chain(&error), "access log not reopened, the old file is written on"),
    }
}
