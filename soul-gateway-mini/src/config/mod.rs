//! Settings: flags, environment and file are three ways to write the same ones.
//!
//! `process`, `admin` and `gateway` define them, `value` reads their texts, `cli` and `file` are the places they are written, and
//! [`Settings`] is the outcome: complete, checked, the same whatever the way.

mod admin;
mod change;
mod cli;
mod error;
mod file;
mod gateway;
mod layer;
mod place;
mod process;
mod value;
mod variables;

use std::{collections::BTreeMap, env, ffi::OsString, fs, path::PathBuf, str::FromStr};

use admin::{AdminPart, AdminSettings};

pub use change::Change;
pub use error::{ConfigError, FileMistake};
use file::FileSettings;
use gateway::{GatewayPart, GatewaySettings};
use layer::Area;
use place::Places;
use process::{Process, ProcessSettings};
use url::Url;
pub use value::{BadValue, LogFilter, LogFormat};
use value::{Password, Token};

use crate::{
    admin::{AdminConfig, DataDir, ShenyuLogin},
    gateway::GatewayConfig,
};

/// Which parts this process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Admin and gateway; the gateway learns from the admin directly.
    Both,
    /// The admin alone.
    Admin,
    /// The gateway alone.
    Gateway,
}

/// Everything this process was told, complete and checked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Which parts run.
    pub role: Role,
    /// Folder of what must outlive the process.
    pub data_dir: DataDir,
    /// What is logged.
    pub log_level: LogFilter,
    /// How it is logged.
    pub log_format: LogFormat,
    /// Settings of the admin, should one run.
    pub admin: AdminConfig,
    /// Settings of the gateway, should one run.
    pub gateway: GatewayConfig,
    /// Admins that a gateway without one in its process learns from.
    pub admins: Vec<Url>,
    /// Socket file by which a gateway alone takes over from another, and hands over.
    pub takeover: Option<PathBuf>,
    /// Environment variables that look like settings and are none, each with the one it is most like.
    pub unknown_variables: Vec<(String, String)>,
    /// All of them by name, as they are written; secrets are not told.
    written: BTreeMap<String, String>,
}

impl Settings {
    /// Reads the command line, the environment and, where one is named, the file.
    ///
    /// `args` begins with the name of the program.
    ///
    /// # Errors
    /// On any setting that is unknown, misplaced or not allowed; also on `--help` and `--version`, see
    /// [`ConfigError::report`].
    pub fn read<I>(args: I) -> Result<Self, ConfigError>
    where
        I: IntoIterator<Item = OsString>,
    {
        let (role, said, mut places) = cli::read(args)?;
        let mut file = FileSettings::default();
        if let Some(path) = said.config {
            file = file::read(&path)?;
            places = places.with_file(path, &file);
        }
        let process: Process = layered([file.process, rust_log()?, said.process]);
        let admin: AdminPart = layered([file.admin, said.admin]);
        let gateway: GatewayPart = layered([file.gateway, said.gateway]);
        let mut written = layer::written::<ProcessSettings>(&process);
        written.extend(layer::written::<AdminSettings>(&admin));
        written.extend(layer::written::<GatewaySettings>(&gateway));
        let GatewayPart { config: mut gateway, admins, takeover } = gateway;
        let mut admin = with_secrets(admin, &places)?;
        if let DataDir::Path(folder) = &process.data_dir {
            admin.data = DataDir::Path(folder.join("admin"));
            gateway.data_dir = Some(folder.join("gateway"));
        } else {
            admin.data = DataDir::Memory;
        }
        admin.drain_timeout = process.drain_timeout;
        gateway.drain_timeout = process.drain_timeout;
        check(&admin, &gateway, &places)?;
        let Process { data_dir, log_level, log_format, .. } = process;
        let unknown_variables = variables::unknown(role, &places);
        Ok(Self {
            role,
            data_dir,
            log_level,
            log_format,
            admin,
            gateway,
            admins,
            takeover,
            unknown_variables,
            written,
        })
    }
}

/// The default with the layers over it, the lowest first.
fn layered<A: Area, const N: usize>(layers: [A; N]) -> A::Config {
    let mut config = A::Config::default();
    layers.into_iter().for_each(|layer| layer.apply(&mut config));
    config
}

/// The admin's configuration with its secrets, read from the files if there are some.
fn with_secrets(part: AdminPart, places: &Places) -> Result<AdminConfig, ConfigError> {
    let AdminPart {
        mut config,
        api_token,
        api_token_file,
        shenyu_user,
        shenyu_password,
        shenyu_password_file,
    } = part;
    config.api_token =
        secret("--api-token-file", api_token, api_token_file, places)?.map(|Token(token)| token);
    let password = secret("--shenyu-password-file", shenyu_password, shenyu_password_file, places)?;
    config.shenyu_login = password.map(|Password(password)| ShenyuLogin { user: shenyu_user, password });
    Ok(config)
}

/// A secret that is given itself, or by a file of it; `setting` is the flag of the latter.
fn secret<S>(
    setting: &'static str,
    given: Option<S>,
    file: Option<PathBuf>,
    places: &Places,
) -> Result<Option<S>, ConfigError>
where
    S: FromStr<Err = BadValue>,
{
    let Some(file) = file else { return Ok(given) };
    if given.is_some() {
        let file = setting.trim_start_matches('-');
        let itself = file.trim_end_matches("-file");
        let (itself, file) = (places.of(itself), places.of(file));
        return Err(ConfigError::Contradiction(format!("{itself} and {file} are both given; leave one out")));
    }
    let text = fs::read_to_string(&file).map_err(|source| ConfigError::Unreadable {
        file: file.clone(),
        setting,
        source,
    })?;
    let bad = |bad: BadValue| ConfigError::Contradiction(format!("{} (`{setting}`): {bad}", file.display()));
    text.parse().map(Some).map_err(bad)
}

/// Refuses values that cannot work, such as those that are fine alone and not together.
fn check(admin: &AdminConfig, gateway: &GatewayConfig, places: &Places) -> Result<(), ConfigError> {
    let mut problems = gateway.problems_by(&|field| places.of_gateway(field));
    for problem in admin.validate().err().unwrap_or_default() {
        problems.push(format!("{} {}", places.of_admin(&problem.field), problem.problem));
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::Contradiction(problems.join("; "))) }
}

/// What `RUST_LOG` says: it lies under the variable of `--log-level`, for those used to it.
fn rust_log() -> Result<ProcessSettings, ConfigError> {
    let log_level = match env::var("RUST_LOG") {
        Ok(value) if !value.trim().is_empty() => match value.parse::<LogFilter>() {
            Ok(filter) => Some(filter),
            Err(bad) => {
                let expected = bad.to_string();
                return Err(ConfigError::Environment { variable: "RUST_LOG".to_owned(), value, expected });
            }
        },
        _ => None,
    };
    Ok(ProcessSettings { log_level, ..ProcessSettings::default() })
}

/// The name most like `text`, if any is like it.
fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.8;

    names
        .map(|name| (strsim::jaro_winkler(text, name), name))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
