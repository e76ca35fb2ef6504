//! The command line: flags and their environment variables, subcommands, help.

use std::{collections::BTreeMap, env, ffi::OsString, path::PathBuf};

use clap::{
    Arg, ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};

use super::{
    Role,
    admin::AdminSettings,
    error::ConfigError,
    gateway::GatewaySettings,
    layer::written,
    place::{Places, variable},
    process::ProcessSettings,
};

/// A small Soul admin and gateway.
///
/// Without a subcommand both run in one process, and the gateway learns its configuration from the admin next
/// to it. Once it serves, one line goes to stdout: `ready admin=http://… gateway=http://… status=http://…`.
#[derive(Parser, Debug)]
#[command(name = "soul-gateway-mini", version, max_term_width = 110, after_long_help = AFTER_HELP)]
pub(super) struct Cli {
    #[command(subcommand)]
    part: Option<Part>,

    /// File of settings: TOML, its keys are the long flags without the leading dashes
    #[arg(long, global = true, env = "SOUL_CONFIG", value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    #[command(flatten)]
    pub(super) process: ProcessSettings,

    #[command(flatten)]
    pub(super) admin: AdminSettings,

    #[command(flatten)]
    pub(super) gateway: GatewaySettings,
}

#[derive(Subcommand, Debug, Clone, Copy)]
enum Part {
    /// Runs the admin alone
    Admin,
    /// Runs the gateway alone; it takes requests once the first configuration is in
    Gateway,
}

const AFTER_HELP: &str = "\
A flag beats its environment variable, that beats the file, that beats the default. Flags may stand before or \
after the subcommand.

SIGHUP reads the settings anew and opens the access log anew, SIGUSR1 only the latter; what needs a restart is named in \
the log.

Exit codes: 0 after SIGINT or SIGTERM and draining, 1 when it cannot run, 2 for a bad setting, 130 at a second \
signal.";

/// What `-h` shows, so that it fits a screen; `--help` shows all.
const SHORT_HELP: [&str; 12] = [
    "data-dir",
    "log-level",
    "log-format",
    "admin-listen",
    "api-token-file",
    "shenyu-password-file",
    "upstream-check-interval",
    "gateway-listen",
    "status-listen",
    "admin",
    "error-status",
    "gateway-check-interval",
];

/// The command with the default of every setting in its help.
pub(super) fn command() -> Command {
    let defaults = shown_defaults();
    let command = <Cli as clap::CommandFactory>::command().mut_args(|arg| {
        // An empty variable counts as none: that is how scripts and container files switch one off.
        let empty = arg.get_env().and_then(env::var_os).is_some_and(|value| value.is_empty());
        let arg = if empty { arg.env(None::<&str>) } else { arg };
        let arg = arg.hide_env_values(true).allow_negative_numbers(true);
        if arg.get_env().is_none() || arg.get_long() == Some("config") {
            return arg;
        }
        let short = arg.get_long().is_some_and(|flag| SHORT_HELP.contains(&flag));
        let arg = arg.hide_short_help(!short);
        let default = arg.get_long().and_then(|flag| defaults.get(flag));
        let default = default.map_or("none", String::as_str);
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.help(format!("{help} [default: {default}]"))
    });
    let (admin, gateway) = (hidden::<GatewaySettings>(&command), hidden::<AdminSettings>(&command));
    let part = |others| |part: Command| part.args(others).after_long_help(AFTER_HELP);
    command.mut_subcommand("admin", part(admin)).mut_subcommand("gateway", part(gateway))
}

/// The settings of a part that does not run. The other one knows them, so that it can say whose they are, and does not show them.
fn hidden<A: Args>(command: &Command) -> Vec<Arg> {
    let area = A::augment_args(Command::new(""));
    let of_area = |arg: &&Arg| area.get_arguments().any(|other| other.get_id() == arg.get_id());
    command.get_arguments().filter(of_area).map(|arg| arg.clone().hide(true)).collect()
}

/// Flag and default of every setting that has one, as they are written in the file.
fn shown_defaults() -> BTreeMap<String, String> {
    let mut shown = written::<ProcessSettings>(&Default::default());
    shown.extend(written::<AdminSettings>(&Default::default()));
    shown.extend(written::<GatewaySettings>(&Default::default()));
    shown
}

/// Reads flags and environment; tells which of them said what.
///
/// # Errors
/// An unknown flag, a bad value in a flag or a variable, a flag of a part that does not run; also `--help` and
/// `--version`.
pub(super) fn read<I>(args: I) -> Result<(Role, Cli, Places), ConfigError>
where
    I: IntoIterator<Item = OsString>,
{
    let args: Vec<OsString> = args.into_iter().collect();
    let matches = command().try_get_matches_from(&args).map_err(|error| name_variable(error, &args))?;
    let cli = Cli::from_arg_matches(&matches)?;
    let role = match cli.part {
        None => Role::Both,
        Some(Part::Admin) => Role::Admin,
        Some(Part::Gateway) => Role::Gateway,
    };
    let matches = matches.subcommand().map_or(&matches, |(_, matches)| matches);
    refuse_misplaced(role, matches)?;
    Ok((role, cli, Places::of_command(matches)))
}

/// Refuses flags of a part that does not run. Only flags: one environment and one file may serve both parts.
fn refuse_misplaced(role: Role, matches: &ArgMatches) -> Result<(), ConfigError> {
    match role {
        Role::Both => {
            let remedy =
                "the gateway learns from the admin in its own process; `soul-gateway-mini gateway` takes it";
            refuse(matches, "admin", "--admin", None, remedy)?;
            let remedy = "an admin is not handed over; `soul-gateway-mini gateway` takes it";
            refuse(matches, "takeover", "--takeover", None, remedy)
        }
        Role::Admin => {
            let remedy = "it is a setting of the gateway, which does not run";
            refuse_area::<GatewaySettings>(matches, "admin", remedy)
        }
        Role::Gateway => {
            let remedy = "it is a setting of the admin, which does not run";
            refuse_area::<AdminSettings>(matches, "gateway", remedy)
        }
    }
}

fn refuse_area<A: Args>(
    matches: &ArgMatches,
    subcommand: &'static str,
    remedy: &'static str,
) -> Result<(), ConfigError> {
    let area = A::augment_args(Command::new(""));
    area.get_arguments().try_for_each(|arg| {
        let flag = format!("--{}", arg.get_long().unwrap_or_default());
        refuse(matches, arg.get_id().as_str(), &flag, Some(subcommand), remedy)
    })
}

fn refuse(
    matches: &ArgMatches,
    id: &str,
    flag: &str,
    subcommand: Option<&'static str>,
    remedy: &'static str,
) -> Result<(), ConfigError> {
    match matches.value_source(id) {
        Some(ValueSource::CommandLine) => {
            Err(ConfigError::Misplaced { flag: flag.to_owned(), subcommand, remedy })
        }
        _ => Ok(()),
    }
}

/// clap names the flag even when the bad value came from the environment: names the variable instead.
fn name_variable(error: clap::Error, args: &[OsString]) -> ConfigError {
    if error.kind() == ErrorKind::InvalidUtf8 {
        return unreadable(error, args);
    }
    let (Some(ContextValue::String(shown)), ErrorKind::ValueValidation | ErrorKind::InvalidValue) =
        (error.get(ContextKind::InvalidArg), error.kind())
    else {
        return error.into();
    };
    let flag = shown.split_whitespace().next().unwrap_or_default();
    let on_command_line = args.iter().any(|arg| {
        let arg = arg.to_string_lossy();
        arg == flag || arg.strip_prefix(flag).is_some_and(|rest| rest.starts_with('='))
    });
    let variable = variable(flag.trim_start_matches('-'));
    match (on_command_line, env::var(&variable)) {
        (false, Ok(value)) => ConfigError::Environment { variable, value, expected: expected(&error) },
        _ => error.into(),
    }
}

/// clap names nothing at all when a text is not UTF-8: names the argument, or else the variable, but not its value, which
/// nobody could read and which may be a secret.
fn unreadable(error: clap::Error, args: &[OsString]) -> ConfigError {
    let no_text = |what: String| ConfigError::Contradiction(format!("{what} is not UTF-8"));
    if let Some(at) = args.iter().position(|arg| arg.to_str().is_none()) {
        let before = at.checked_sub(1).and_then(|at| args[at].to_str()).filter(|arg| arg.starts_with("--"));
        return no_text(
            before.map_or_else(|| format!("argument {at}"), |flag| format!("the value of `{flag}`")),
        );
    }
    let variable = command()
        .get_arguments()
        .filter_map(clap::Arg::get_env)
        .find(|name| env::var_os(name).is_some_and(|value| value.to_str().is_none()))
        .map(|name| format!("environment variable `{}`", name.to_string_lossy()));
    variable.map_or_else(|| error.into(), no_text)
}

/// What is allowed, in the words of the value's type or of clap's list of names.
fn expected(error: &clap::Error) -> String {
    if let Some(source) = std::error::Error::source(error) {
        return source.to_string();
    }
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(names)) => format!("expected {}", names.join(", ")),
        _ => error.to_string(),
    }
}
