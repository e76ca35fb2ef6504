//! How the configuration is learned: times and limits.

use std::time::Duration;

/// How long an admin may take to accept a connection.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long an admin may hold a poll. Admins hold 60 s and Java gateways wait 90 s.
pub const DEFAULT_POLL_TIMEOUT: Duration = Duration::from_secs(90);

/// How long the whole of a fetched configuration may take to arrive.
pub const DEFAULT_FETCH_TIMEOUT: Duration = Duration::from_secs(30);

/// First pause after no admin answered; doubled at each further failure, and jittered.
pub const DEFAULT_BACKOFF_MIN: Duration = Duration::from_millis(500);

/// Longest pause between two attempts while no admin answers.
pub const DEFAULT_BACKOFF_MAX: Duration = Duration::from_secs(15);

/// Age of the last contact with an admin from which the configuration is shown as stale.
pub const DEFAULT_STALE_AFTER: Duration = Duration::from_secs(5 * 60);

/// How long a starting gateway waits for an admin before it serves the configuration kept on disk.
pub const DEFAULT_KEPT_AFTER: Duration = Duration::from_secs(2);

/// Settings of the synchronisation; [`Default`] is what the documentation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncConfig {
    /// How long an admin may take to accept a connection.
    pub connect_timeout: Duration,
    /// How long an admin may hold a poll; above its hold time, which is 60 s in Soul.
    pub poll_timeout: Duration,
    /// How long the whole of a fetched configuration may take to arrive.
    pub fetch_timeout: Duration,
    /// First pause after no admin answered.
    pub backoff_min: Duration,
    /// Longest pause between two attempts while no admin answers.
    pub backoff_max: Duration,
    /// Age of the last contact from which the configuration is shown as stale.
    pub stale_after: Duration,
    /// How long a starting gateway waits for an admin before it serves the kept configuration.
    pub kept_after: Duration,
}

impl Default for SyncConfig {
    fn default() -> Self {
        Self {
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            poll_timeout: DEFAULT_POLL_TIMEOUT,
            fetch_timeout: DEFAULT_FETCH_TIMEOUT,
            backoff_min: DEFAULT_BACKOFF_MIN,
            backoff_max: DEFAULT_BACKOFF_MAX,
            stale_after: DEFAULT_STALE_AFTER,
            kept_after: DEFAULT_KEPT_AFTER,
        }
    }
}

impl SyncConfig {
    /// Lists every value that cannot work, with its field called as `name` says; empty when all is well.
    pub(crate) fn problems_by(&self, name: &dyn Fn(&str) -> String) -> Vec<String> {
        let mut found = Vec::new();
        for (field, value) in [
            ("connect_timeout", self.connect_timeout),
            ("poll_timeout", self.poll_timeout),
            ("fetch_timeout", self.fetch_timeout),
            ("backoff_min", self.backoff_min),
            ("stale_after", self.stale_after),
        ] {
            if value.is_zero() {
                found.push(format!("{} is zero, give a time above it", name(field)));
            }
        }
        if self.backoff_max < self.backoff_min {
            found.push(format!("{} is below {}", name("backoff_max"), name("backoff_min")));
        }
        found
    }
}
