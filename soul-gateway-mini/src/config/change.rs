//! What differs between two readings of the settings, and what of it takes effect without a restart.

use super::Settings;

/// A setting that has another value than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name: the flag without its dashes.
    pub setting: String,
    /// Whether it takes effect while the process runs; the others need a restart.
    pub live: bool,
}

/// The settings that take effect while the process runs.
pub(super) const LIVE: &[&str] = &[
    "access-log",
    "admin-body-limit",
    "admin-body-timeout",
    "api-token",
    "api-token-file",
    "body-idle-timeout",
    "caller-address",
    "drain-timeout",
    "error-status",
    "failover-limit",
    "forwarded",
    "gateway-check-interval",
    "gateway-check-timeout",
    "gateway-request-timeout",
    "header-read-timeout",
    "host-header",
    "http2-max-streams",
    "log-level",
    "max-body-bytes",
    "max-connections",
    "max-head-bytes",
    "max-headers",
    "max-requests",
    "min-body-rate",
    "panic-threshold",
    "path-prefix",
    "poll-hold",
    "pool-idle-timeout",
    "pool-max-idle",
    "proxy-protocol",
    "replay-body-bytes",
    "retry-budget",
    "stale-after",
    "suspect-for",
    "trusted-proxies",
    "tunnel-idle-timeout",
    "upstream-ca",
    "upstream-certificate",
    "upstream-choice",
    "upstream-connect-timeout",
    "upstream-http2",
    "upstream-key",
    "upstream-limit",
    "upstream-max-requests",
    "upstream-queue",
    "upstream-queue-timeout",
    "upstream-tls-insecure",
    "via",
];

impl Settings {
    /// The settings that have another value than in `before`, by name.
    #[must_use]
    pub fn changes_from(&self, before: &Self) -> Vec<Change> {
        let (mine, theirs) = (&self.written, &before.written);
        let names = mine.keys().chain(theirs.keys().filter(|name| !mine.contains_key(*name)));
        let changed = names.filter(|name| mine.get(*name) != theirs.get(*name));
        let mut changes: Vec<_> = changed
            .map(|name| Change { setting: name.clone(), live: LIVE.contains(&name.as_str()) })
            .collect();
        // What a secret is written as does not tell it.
        let mut secret = |setting: &str, same: bool| {
            if !same {
                changes.push(Change { setting: setting.to_owned(), live: LIVE.contains(&setting) });
            }
        };
        secret("api-token", self.admin.api_token == before.admin.api_token);
        secret("shenyu-password", self.admin.shenyu_login == before.admin.shenyu_login);
        changes.sort_by(|a, b| a.setting.cmp(&b.setting));
        changes.dedup();
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Settings {
        Settings::read(std::iter::once("soul").chain(args.iter().copied()).map(Into::into)).expect("settings")
    }

    #[test]
    fn changes_are_told_by_name_and_whether_they_need_a_restart() {
        let before = read(&["--data-dir", "memory"]);
        assert_eq!(before.changes_from(&before), []);
        let after = read(&["--data-dir", "memory", "--max-requests", "7", "--gateway-threads", "3"]);
        let change = |setting: &str, live| Change { setting: setting.to_owned(), live };
        let expected = [change("gateway-threads", false), change("max-requests", true)];
        assert_eq!(after.changes_from(&before), expected);
        assert_eq!(before.changes_from(&after), expected, "also back to what it was");
    }

    #[test]
    fn a_secret_that_changed_is_told_without_its_text() {
        let [one, two] = ["one", "two"].map(|token| read(&["--api-token", token]));
        let changes = two.changes_from(&one);
        assert_eq!(changes, [Change { setting: "api-token".to_owned(), live: true }]);
    }

    #[test]
    fn every_setting_that_takes_effect_at_once_is_one() {
        let mut written =
            super::super::layer::written::<super::super::gateway::GatewaySettings>(&Default::default());
        written.extend(super::super::layer::written::<super::super::ProcessSettings>(&Default::default()));
        written.extend(super::super::layer::written::<super::super::AdminSettings>(&Default::default()));
        // What has no default is not written.
        let unwritten = [
            "log-level",
            "access-log",
            "upstream-ca",
            "upstream-certificate",
            "upstream-key",
            "via",
            "api-token",
            "api-token-file",
        ];
        for name in LIVE.iter().filter(|name| !unwritten.contains(name)) {
            assert!(written.contains_key(*name), "{name}");
        }
        assert!(LIVE.is_sorted());
    }
}
