//! Settings of the admin.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{
    layer::{Area, Written, settings_of},
    value::{AtLeast, Choice, Interval, ListenAddr, Password, Seconds, Token, Word},
};
use crate::admin::{AdminConfig, SHENYU_USER};

/// Settings of the admin.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[command(next_help_heading = "Admin")]
pub(super) struct AdminSettings {
    /// Where the admin listens: registration, sync and its API; port 0 takes a free one
    #[arg(long, global = true, env = "SOUL_ADMIN_LISTEN", value_name = "IP:PORT")]
    pub(super) admin_listen: Option<ListenAddr>,

    /// File that holds the token which `/api/v1` asks for; without a token only this machine may use it
    #[arg(long, global = true, env = "SOUL_API_TOKEN_FILE", value_name = "FILE")]
    pub(super) api_token_file: Option<PathBuf>,

    /// The token itself; the list of processes shows flags, so the variable or the file is the better place
    #[arg(
        long,
        global = true,
        env = "SOUL_API_TOKEN",
        value_name = "TOKEN",
        conflicts_with = "api_token_file"
    )]
    pub(super) api_token: Option<Token>,

    /// File that holds the password which clients of ShenYu must log in with; without one any login is accepted and no
    /// token is asked for. Clients of Soul never log in
    #[arg(long, global = true, env = "SOUL_SHENYU_PASSWORD_FILE", value_name = "FILE")]
    pub(super) shenyu_password_file: Option<PathBuf>,

    /// The password itself; the list of processes shows flags, so the variable or the file is the better place
    #[arg(
        long,
        global = true,
        env = "SOUL_SHENYU_PASSWORD",
        value_name = "PASSWORD",
        conflicts_with = "shenyu_password_file"
    )]
    pub(super) shenyu_password: Option<Password>,

    /// User that clients of ShenYu must log in as, once there is a password
    #[arg(long, global = true, env = "SOUL_SHENYU_USER", value_name = "NAME")]
    pub(super) shenyu_user: Option<Word>,

    /// How long a token of such a client lives, in seconds
    #[arg(long, global = true, env = "SOUL_SHENYU_TOKEN_LIFE", value_name = "SECONDS")]
    pub(super) shenyu_token_life: Option<Seconds>,

    /// The one namespace of ShenYu whose registrations are taken; those of others are refused
    #[arg(long, global = true, env = "SOUL_SHENYU_NAMESPACE", value_name = "ID")]
    pub(super) shenyu_namespace: Option<Word>,

    /// How often the admin asks every upstream whether it is alive, in seconds; 0 is never
    #[arg(long, global = true, env = "SOUL_UPSTREAM_CHECK_INTERVAL", value_name = "SECONDS")]
    pub(super) upstream_check_interval: Option<Interval>,

    /// How long such a question may take to connect, in seconds
    #[arg(long, global = true, env = "SOUL_UPSTREAM_CHECK_TIMEOUT", value_name = "SECONDS")]
    pub(super) upstream_check_timeout: Option<Seconds>,

    /// How many upstreams are asked at the same time
    #[arg(long, global = true, env = "SOUL_UPSTREAM_CHECK_CONCURRENCY", value_name = "N")]
    pub(super) upstream_check_concurrency: Option<AtLeast<1>>,

    /// After how long a dead upstream is dropped for good, in seconds; 0 is never
    #[arg(long, global = true, env = "SOUL_UPSTREAM_FORGET_AFTER", value_name = "SECONDS")]
    pub(super) upstream_forget_after: Option<Interval>,

    /// Whether upstreams may have link-local addresses, where cloud hosts keep their metadata services
    #[arg(long, global = true, env = "SOUL_ALLOW_LINK_LOCAL", value_name = "true|false")]
    pub(super) allow_link_local: Option<Choice<bool>>,

    /// How long a poll of a gateway is held when nothing changes, in seconds; Java gateways give up after 90
    #[arg(long, global = true, env = "SOUL_POLL_HOLD", value_name = "SECONDS")]
    pub(super) poll_hold: Option<Seconds>,

    /// How often the configuration is dated anew for polling gateways, in seconds; 0 is never
    #[arg(long, global = true, env = "SOUL_CONFIG_REFRESH_INTERVAL", value_name = "SECONDS")]
    pub(super) config_refresh_interval: Option<Interval>,

    /// Longest body of a request to the admin, in bytes
    #[arg(long, global = true, env = "SOUL_ADMIN_BODY_LIMIT", value_name = "BYTES")]
    pub(super) admin_body_limit: Option<AtLeast<1>>,

    /// How long the head of a request to the admin may take, and a connection be idle, in seconds
    #[arg(long, global = true, env = "SOUL_ADMIN_HEADER_TIMEOUT", value_name = "SECONDS")]
    pub(super) admin_header_timeout: Option<Seconds>,

    /// How long the body of a request to the admin may take, in seconds
    #[arg(long, global = true, env = "SOUL_ADMIN_BODY_TIMEOUT", value_name = "SECONDS")]
    pub(super) admin_body_timeout: Option<Seconds>,

    /// Most connections to the admin at once, held polls included; later ones wait
    #[arg(long, global = true, env = "SOUL_ADMIN_MAX_CONNECTIONS", value_name = "N")]
    pub(super) admin_max_connections: Option<AtLeast<1>>,
}

/// What the admin is given.
#[derive(Clone, Debug)]
pub(super) struct AdminPart {
    pub(super) config: AdminConfig,
    pub(super) api_token: Option<Token>,
    pub(super) api_token_file: Option<PathBuf>,
    pub(super) shenyu_user: String,
    pub(super) shenyu_password: Option<Password>,
    pub(super) shenyu_password_file: Option<PathBuf>,
}

impl Default for AdminPart {
    fn default() -> Self {
        Self {
            config: AdminConfig::default(),
            api_token: None,
            api_token_file: None,
            shenyu_user: SHENYU_USER.to_owned(),
            shenyu_password: None,
            shenyu_password_file: None,
        }
    }
}

impl Area for AdminSettings {
    settings_of!(AdminPart {
        admin_listen => config.listen,
        shenyu_user => shenyu_user,
        shenyu_token_life => config.shenyu_token_life,
        shenyu_namespace => config.shenyu_namespace,
        upstream_check_interval => config.upstream_check_interval,
        upstream_check_timeout => config.upstream_check_timeout,
        upstream_check_concurrency => config.upstream_check_concurrency,
        upstream_forget_after => config.upstream_forget_after,
        allow_link_local => config.allow_link_local,
        poll_hold => config.poll_hold,
        config_refresh_interval => config.refresh_interval,
        admin_body_limit => config.body_limit,
        admin_header_timeout => config.header_timeout,
        admin_body_timeout => config.body_timeout,
        admin_max_connections => config.max_connections,
    } optional {
        api_token => api_token,
        api_token_file => api_token_file,
        shenyu_password => shenyu_password,
        shenyu_password_file => shenyu_password_file,
    });
}
