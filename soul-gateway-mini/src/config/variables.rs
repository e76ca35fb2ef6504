//! Environment variables that look like settings and are none.

use std::env;

use super::{Role, cli::command, nearest, place::Places};

const PREFIX: &str = "SOUL_";

/// What services read of the environment by the SDK. It means nothing here, so that one environment may serve services, admin and
/// gateway, as in a compose file; none of these is a setting of this program, as a test shows.
const OF_SERVICES: [&str; 26] = [
    ADMIN_OF_SERVICES,
    "SOUL_ADD_PREFIXED",
    "SOUL_ADMINS_RULE",
    "SOUL_APP_NAME",
    "SOUL_CA_FILE",
    "SOUL_CLIENT_CERT_FILE",
    "SOUL_CLIENT_KEY_FILE",
    "SOUL_CONNECT_TIMEOUT",
    "SOUL_CONTEXT_PATH",
    "SOUL_DIALECT",
    "SOUL_FULL",
    "SOUL_HOST",
    "SOUL_IGNORED_INTERFACES",
    "SOUL_NAMESPACE",
    "SOUL_PASSWORD",
    "SOUL_PASSWORD_FILE",
    "SOUL_PORT",
    "SOUL_PREFERRED_NETWORKS",
    "SOUL_PROPAGATION_TIME",
    "SOUL_PROTOCOL",
    "SOUL_PROXY",
    "SOUL_REFRESH_INTERVAL",
    "SOUL_REQUEST_TIMEOUT",
    "SOUL_RPC_TYPE",
    "SOUL_STOP_TIMEOUT",
    "SOUL_USERNAME",
];

/// Where services find their admin. A gateway alone is told by another one, and these two are easily taken for each other.
const ADMIN_OF_SERVICES: &str = "SOUL_ADMIN_URL";

/// The beginning of those by which services call each other.
const OF_CALLS: &str = "SOUL_CALL_";

/// Variables that look like settings and are none, each with the setting it is most like: a slip of the pen would
/// otherwise go unnoticed. It may be somebody else's, so this is no error.
pub(super) fn unknown(role: Role, places: &Places) -> Vec<(String, String)> {
    let command = command();
    let known: Vec<_> = command.get_arguments().filter_map(|arg| arg.get_env()?.to_str()).collect();
    let asks_elsewhere = role == Role::Gateway && !places.has("admin");
    let of_services = |name: &str| match name {
        ADMIN_OF_SERVICES => !asks_elsewhere,
        name => OF_SERVICES.contains(&name) || name.starts_with(OF_CALLS),
    };
    // One that is empty says nothing, whatever it is called.
    let of_settings =
        env::vars_os().filter(|(_, value)| !value.is_empty()).filter_map(|(name, _)| name.into_string().ok());
    of_settings
        .filter(|name| name.starts_with(PREFIX) && !known.contains(&name.as_str()) && !of_services(name))
        .filter_map(|name| {
            let names = known.iter().map(|known| known.trim_start_matches(PREFIX));
            let near = nearest(name.trim_start_matches(PREFIX), names)?;
            Some((name.clone(), format!("{PREFIX}{near}")))
        })
        .collect()
}
