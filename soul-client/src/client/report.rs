//! What of the life of a lane stands in the log: the first failure, then rarely, then the recovery.

use std::{sync::Arc, time::Duration};

use super::announce::Subject;
use crate::{
    address::Announced,
    error::Error,
    plan::{Dialect, Registration, RegistrationPlan},
};

/// Counts failures, and speaks when there is something new to say.
#[derive(Debug)]
pub(super) struct Reporter {
    /// Addresses of the admins of the lane.
    admins: String,
    failed_rounds: u32,
    said_registered: bool,
    said_dialect: Option<Dialect>,
}

impl Reporter {
    pub(super) fn new(admins: &[(usize, String)]) -> Self {
        let admins = admins.iter().map(|(_, url)| url.as_str()).collect::<Vec<_>>().join(", ");
        Self { admins, failed_rounds: 0, said_registered: false, said_dialect: None }
    }

    /// What is announced to whom, once for each address.
    pub(super) fn announcing(
        &self,
        subject: &Subject,
        announced: &Announced,
        routes: usize,
        doubt: Option<&str>,
    ) {
        tracing::info!(
            routes,
            app_name = subject.config.app_name().unwrap_or_default(),
            context_path = subject.config.context_path().unwrap_or_default(),
            address = %announced,
            because = %announced.reason(),
            admins = self.admins,
            "registering with the soul admin"
        );
        let listener = subject.listener.port();
        if announced.port() != listener {
            tracing::warn!(
                announced = announced.port(),
                listener,
                "the announced port is not that of the listener, which is right only if something maps one to the other"
            );
        }
        if let Some(doubt) = doubt {
            tracing::warn!(address = %announced, "{doubt}; set `host` to an IPv4 address that the gateway reaches");
        }
    }

    pub(super) fn failed(&mut self, left: usize, cause: Option<&Arc<Error>>, retry_in: Duration) {
        self.failed_rounds = self.failed_rounds.saturating_add(1);
        let rounds = self.failed_rounds;
        let cause = cause.map_or_else(|| "the attempt was given up".to_owned(), |cause| cause.chain());
        if is_due(rounds) {
            tracing::warn!(routes = left, admins = self.admins, rounds, ?retry_in, "not registered: {cause}");
        } else {
            tracing::debug!(
                routes = left,
                admins = self.admins,
                rounds,
                ?retry_in,
                "still not registered: {cause}"
            );
        }
    }

    pub(super) fn succeeded(&mut self, routes: usize, accepted_by: &str) {
        match (self.said_registered, self.failed_rounds) {
            (true, 0) => tracing::debug!(routes, admin = accepted_by, "registration repeated"),
            (_, 0) => tracing::info!(routes, admin = accepted_by, "registered"),
            (_, rounds) => tracing::info!(routes, admin = accepted_by, rounds, "registered after failures"),
        }
        self.said_registered = true;
        self.failed_rounds = 0;
    }

    /// What an admin turned out to speak. It is asked anew after each failure, and mostly is what it was.
    pub(super) fn detected(&mut self, dialect: Dialect) {
        if self.said_dialect.replace(dialect) == Some(dialect) {
            tracing::debug!(admins = self.admins, %dialect, "found out that the admin is what it was");
        } else {
            tracing::info!(admins = self.admins, %dialect, "found out what the admin is");
        }
    }

    /// A heartbeat did not arrive; what follows is a registration, which has its own words.
    pub(super) fn missed_beat(&self, cause: &Error) {
        tracing::debug!(admins = self.admins, "heartbeat failed, registering again: {}", cause.chain());
    }

    pub(super) fn beats_refused(&self, cause: &Error) {
        tracing::warn!(
            admins = self.admins,
            "the admin registers this instance and refuses its heartbeats, so there are none any more: {}",
            cause.chain()
        );
    }

    pub(super) fn panicked(&self) {
        tracing::error!(admins = self.admins, "a round of registration panicked, the next one starts afresh");
    }
}

/// Whether the n-th failure in a row is worth a line: the first, second, fourth, eighth…
fn is_due(rounds: u32) -> bool {
    rounds.is_power_of_two()
}

/// What is odd about a plan: said once, at start.
pub(super) fn odd(plan: &RegistrationPlan, has_app_name: bool) {
    for repeat in plan.repeats() {
        tracing::warn!("{repeat}");
    }
    for (first, other) in plan.shared_rule_names() {
        tracing::warn!(
            "the rule name `{}` is shared by `{}` ({}) and `{}` ({}): an admin keeps the first it hears of",
            first.rule_name(),
            first.path(),
            place_of(first),
            other.path(),
            place_of(other),
        );
    }
    for registration in plan.literal_variables() {
        tracing::warn!(
            "Soul does not read `{}` ({}) as a router does, so requests are not matched: write `*` for a variable and \
             `/**` for a tail, or let the annotation mount the handler",
            registration.path(),
            place_of(registration),
        );
    }
    for registration in plan.open_ended() {
        tracing::warn!(
            "ShenYu from 2.5 on takes `{}` ({}) for the beginning of paths, as if it ended with `/**`: leave the slash at its end out",
            registration.path(),
            place_of(registration),
        );
    }
    if !has_app_name && plan.registrations().iter().any(Registration::has_meta_data) {
        tracing::warn!("a Java admin refuses metadata without an application: set `app_name`");
    }
}

fn place_of(registration: &Registration) -> String {
    registration.place().map_or_else(|| "unknown place".to_owned(), |place| place.to_string())
}

#[cfg(test)]
mod tests {
    use super::is_due;

    #[test]
    fn failures_are_told_first_and_then_rarely() {
        let told: Vec<_> = (1..=1000).filter(|&rounds| is_due(rounds)).collect();
        assert_eq!(told, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
    }
}
