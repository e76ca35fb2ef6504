//! Log lines on stderr: text for people, JSON for machines.

use std::{
    fmt,
    io::{self, IsTerminal as _},
};

use tracing_subscriber::{EnvFilter, reload};

use crate::config::{LogFilter, LogFormat, Settings};

/// What decides which lines are logged, to be changed while the process runs.
pub(super) struct Filter(Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>);

impl Filter {
    /// Logs by another filter from now on.
    ///
    /// # Errors
    /// When logging is not this process's own to set.
    pub(super) fn set(&self, filter: &LogFilter) -> Result<(), reload::Error> {
        (self.0)(read(filter))
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").finish_non_exhaustive()
    }
}

/// Starts logging as the settings say. A second call in one process changes nothing.
pub(super) fn start(settings: &Settings) -> Filter {
    let terminal = io::stderr().is_terminal();
    // A reader of the log that goes away must not take the process along: what cannot be written is dropped, and not
    // complained of on the same stderr, where the complaint would be a panic of whoever logs.
    let lines = tracing_subscriber::fmt()
        .with_env_filter(read(&settings.log_level))
        .with_writer(io::stderr)
        .with_ansi(terminal)
        .log_internal_errors(false);
    let json = match settings.log_format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let (filter, started) = if json {
        let lines = lines.json().flatten_event(true).with_filter_reloading();
        let handle = lines.reload_handle();
        (Filter(Box::new(move |filter| handle.reload(filter))), lines.try_init())
    } else {
        let lines = lines.with_filter_reloading();
        let handle = lines.reload_handle();
        (Filter(Box::new(move |filter| handle.reload(filter))), lines.try_init())
    };
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started already");
    }
    filter
}

fn read(filter: &LogFilter) -> EnvFilter {
    // OK to fall back: the settings have read the same text before.
    EnvFilter::try_new(&filter.0).unwrap_or_else(|_| EnvFilter::new("info"))
}
