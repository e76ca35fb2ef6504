//! Where settings were written, so that a mistake is told in the words of whoever made it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use clap::{ArgMatches, parser::ValueSource};

use super::{admin::AdminSettings, file::FileSettings, gateway::GatewaySettings, layer};

/// Where each setting was written. Settings are named as in the file: the flag without its dashes.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Those of the command line and of the environment.
    said: BTreeMap<String, ValueSource>,
    /// The file, and what it holds.
    file: Option<(PathBuf, BTreeSet<String>)>,
}

impl Places {
    /// Those of flags and variables.
    pub(super) fn of_command(matches: &ArgMatches) -> Self {
        let source =
            |id: &clap::Id| Some((id.as_str().replace('_', "-"), matches.value_source(id.as_str())?));
        Self { said: matches.ids().filter_map(source).collect(), file: None }
    }

    /// Adds those of the file.
    pub(super) fn with_file(mut self, path: PathBuf, settings: &FileSettings) -> Self {
        let FileSettings { process, admin, gateway } = settings;
        let keys = [layer::keys(process), layer::keys(admin), layer::keys(gateway)];
        self.file = Some((path, keys.into_iter().flatten().collect()));
        self
    }

    /// Whether anybody has said something about a setting.
    pub(super) fn has(&self, setting: &str) -> bool {
        self.said.contains_key(setting) || self.file.as_ref().is_some_and(|(_, keys)| keys.contains(setting))
    }

    /// What to name in an error: the flag, the variable, or the key and its file; the flag also where nobody wrote it.
    pub(super) fn of(&self, setting: &str) -> String {
        match (self.said.get(setting), &self.file) {
            (Some(ValueSource::EnvVariable), _) => format!("`{}`", variable(setting)),
            (None, Some((path, keys))) if keys.contains(setting) => {
                format!("`{setting}` in `{}`", path.display())
            }
            _ => format!("`--{setting}`"),
        }
    }

    /// The same for a field of [`GatewayConfig`](crate::gateway::GatewayConfig).
    pub(super) fn of_gateway(&self, field: &str) -> String {
        self.of_field(field, layer::setting::<GatewaySettings>(field))
    }

    /// The same for a field of [`AdminConfig`](crate::admin::AdminConfig).
    pub(super) fn of_admin(&self, field: &str) -> String {
        let setting = match field {
            "data" => Some("data-dir".to_owned()),
            "shenyu_login" => Some("shenyu-password".to_owned()),
            field => layer::setting::<AdminSettings>(field),
        };
        self.of_field(field, setting)
    }

    /// A field that is no setting keeps its own name.
    fn of_field(&self, field: &str, setting: Option<String>) -> String {
        setting.map_or_else(|| format!("`{field}`"), |setting| self.of(&setting))
    }
}

/// The environment variable of a setting.
pub(super) fn variable(setting: &str) -> String {
    format!("SOUL_{}", setting.replace('-', "_").to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(said: &[(&str, ValueSource)], file: &str) -> Places {
        let said = said.iter().map(|(setting, source)| ((*setting).to_owned(), *source)).collect();
        let keys = file.split(' ').map(str::to_owned).collect();
        Places { said, file: Some(("soul.toml".into(), keys)) }
    }

    #[test]
    fn a_field_is_named_as_it_was_written() {
        let flag = ("via", ValueSource::CommandLine);
        let variable = ("upstream-max-requests", ValueSource::EnvVariable);
        let places = places(&[flag, variable], "via upstream-max-requests sync-backoff-max poll-hold");
        for (field, name) in [
            ("via", "`--via`"),
            ("upstream_max_requests", "`SOUL_UPSTREAM_MAX_REQUESTS`"),
            ("sync.backoff_max", "`sync-backoff-max` in `soul.toml`"),
            ("connect_timeout", "`--upstream-connect-timeout`"),
            ("sync.connect_timeout", "`--sync-connect-timeout`"),
            ("max_connections", "`--max-connections`"),
            ("no_setting", "`no_setting`"),
        ] {
            assert_eq!(places.of_gateway(field), name);
        }
        for (field, name) in [
            ("poll_hold", "`poll-hold` in `soul.toml`"),
            ("max_connections", "`--admin-max-connections`"),
            ("api_token", "`--api-token`"),
            ("shenyu_login", "`--shenyu-password`"),
            ("data", "`--data-dir`"),
        ] {
            assert_eq!(places.of_admin(field), name);
        }
    }
}
