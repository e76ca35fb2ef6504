//! Log lines on stderr: text for people, JSON for machines.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, Settings};

/// Starts logging as the settings say. A second call in one process changes nothing.
pub(super) fn start(settings: &Settings) {
    let terminal = io::stderr().is_terminal();
    // OK to fall back: the settings have read the same text before.
    let filter = EnvFilter::try_new(&settings.log_level.0).unwrap_or_else(|_| EnvFilter::new("info"));
    // A reader of the log that goes away must not take the process along: what cannot be written is dropped, and not
    // complained of on the same stderr, where the complaint would be a panic of whoever logs.
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(terminal)
        .log_internal_errors(false);
    let json = match settings.log_format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let started = if json { lines.json().flatten_event(true).try_init() } else { lines.try_init() };
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started already");
    }
}
