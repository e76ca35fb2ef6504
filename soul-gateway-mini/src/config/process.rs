//! Settings of the whole process.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{
    layer::{Area, Written, settings_of},
    value::{DataPlace, Interval, LogFilter, LogFormat},
};
use crate::{
    admin::{DATA_FOLDER, DataDir},
    gateway::config::DEFAULT_DRAIN_TIMEOUT,
};

/// Settings of the whole process.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[command(next_help_heading = "Process")]
pub(super) struct ProcessSettings {
    /// Folder for what must outlive the process, made when missing; `memory` keeps nothing
    #[arg(long, global = true, env = "SOUL_DATA_DIR", value_name = "PATH|memory")]
    pub(super) data_dir: Option<DataPlace>,

    /// What is logged to stderr: a level or a list of `target=level`; `RUST_LOG` is read when neither flag nor `SOUL_LOG_LEVEL` says
    #[arg(long, global = true, env = "SOUL_LOG_LEVEL", value_name = "FILTER")]
    pub(super) log_level: Option<LogFilter>,

    /// How log lines are written; `auto` is text on a terminal and JSON elsewhere
    #[arg(long, global = true, env = "SOUL_LOG_FORMAT", value_name = "auto|text|json")]
    pub(super) log_format: Option<LogFormat>,

    /// How long requests in flight may take to end after SIGINT or SIGTERM, in seconds; 0 waits for none
    #[arg(long, global = true, env = "SOUL_DRAIN_TIMEOUT", value_name = "SECONDS")]
    pub(super) drain_timeout: Option<Interval>,
}

/// What the process is given beside its parts.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) data_dir: DataDir,
    pub(super) log_level: LogFilter,
    pub(super) log_format: LogFormat,
    pub(super) drain_timeout: Duration,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            data_dir: DataDir::Path(DATA_FOLDER.into()),
            log_level: LogFilter("info".into()),
            log_format: LogFormat::Auto,
            drain_timeout: DEFAULT_DRAIN_TIMEOUT,
        }
    }
}

impl Area for ProcessSettings {
    settings_of!(Process {
        data_dir => data_dir,
        log_level => log_level,
        log_format => log_format,
        drain_timeout => drain_timeout,
    });
}
