//! What is counted. Without the feature `metrics` every method here does nothing.

#[cfg(feature = "metrics")]
use crate::metrics as names;
use crate::{config::ClientConfig, transport::SendError};

#[cfg(not(feature = "metrics"))]
#[path = "metrics/names.rs"]
#[allow(dead_code, unreachable_pub, reason = "with the feature they are part of the API")]
mod names;

/// What an admin is told to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Route,
    Instance,
}

impl Told {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Instance => "instance",
        }
    }
}

/// Why a client logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginReason {
    /// There was no token.
    First,
    /// There was one, near its end or past it.
    Expiry,
    /// The admin refused the one there was.
    Refused,
}

impl LoginReason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Expiry => "expiry",
            Self::Refused => "refused",
        }
    }
}

/// Counts for one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    /// Tells apart the clients of one process.
    #[cfg(feature = "metrics")]
    context_path: std::sync::Arc<str>,
}

impl Meter {
    #[cfg_attr(not(feature = "metrics"), allow(unused_variables, reason = "nothing is counted"))]
    pub(crate) fn new(config: &ClientConfig) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            context_path: config.context_path().unwrap_or_default().into(),
        }
    }

    /// A registration leaves for an admin.
    ///
    /// - `again`: the last one of the same failed there.
    pub(crate) fn attempt(&self, admin: &str, told: Told, again: bool) {
        let labels = [("admin", admin), ("kind", told.as_str())];
        self.count(names::REGISTRATION_ATTEMPTS, &labels);
        if again {
            self.count(names::REGISTRATION_RETRIES, &labels);
        }
    }

    /// What came of it.
    pub(crate) fn registration(&self, admin: &str, told: Told, result: &Result<(), SendError>) {
        let labels = [("admin", admin), ("kind", told.as_str()), ("result", word(result))];
        self.count(names::REGISTRATIONS, &labels);
    }

    pub(crate) fn heartbeat(&self, admin: &str, result: &Result<(), SendError>) {
        self.count(names::HEARTBEATS, &[("admin", admin), ("result", word(result))]);
    }

    pub(crate) fn detection<T>(&self, admin: &str, result: &Result<T, SendError>) {
        self.count(names::DETECTIONS, &[("admin", admin), ("result", word(result))]);
    }

    pub(crate) fn login<T>(&self, admin: &str, reason: LoginReason, result: &Result<T, SendError>) {
        let labels = [("admin", admin), ("reason", reason.as_str()), ("result", word(result))];
        self.count(names::LOGINS, &labels);
    }

    /// The admin was told that this instance leaves.
    pub(crate) fn farewell(&self, admin: &str, accepted: bool) {
        let result = if accepted { "accepted" } else { "failed" };
        self.count(names::FAREWELLS, &[("admin", admin), ("result", result)]);
    }

    pub(crate) fn panic(&self) {
        self.count(names::PANICS, &[]);
    }

    /// Keeps the gauges at what the status says, until its client is gone.
    #[cfg(feature = "metrics")]
    pub(crate) async fn follow(self, mut status: tokio::sync::watch::Receiver<crate::Status>) {
        loop {
            // Of the status only numbers are taken out, so that no recorder is waited for while it is locked.
            let admins: Vec<_> = status.borrow_and_update().admins.iter().map(gauges::Numbers::of).collect();
            for numbers in &admins {
                numbers.show(&self.context_path);
            }
            // What was changed last is still given before the end.
            if status.changed().await.is_err() {
                return;
            }
        }
    }

    #[cfg(feature = "metrics")]
    fn count(&self, name: &'static str, labels: &[(&'static str, &str)]) {
        ::metrics::counter!(name, gauges::with_context(&self.context_path, labels)).increment(1);
    }

    #[cfg(not(feature = "metrics"))]
    #[allow(clippy::unused_self, reason = "the same with the feature")]
    fn count(&self, name: &'static str, labels: &[(&'static str, &str)]) {
        let _ = (name, labels);
    }
}

fn word<T>(result: &Result<T, SendError>) -> &'static str {
    match result {
        Ok(_) => "accepted",
        Err(SendError::Refused(_)) => "refused",
        Err(SendError::Unanswered(_)) => "unanswered",
    }
}

#[cfg(feature = "metrics")]
mod gauges {
    use std::time::UNIX_EPOCH;

    use ::metrics::{Label, gauge};

    use super::{Told, names};
    use crate::client::{AdminStatus, RouteState};

    /// The states that a gauge tells apart, in the order of [`place`].
    const STATES: [&str; 4] = ["pending", "registered", "failed", "offline"];

    fn place(state: &RouteState) -> usize {
        match state {
            RouteState::Pending => 0,
            RouteState::Registered { .. } => 1,
            RouteState::Failed { .. } => 2,
            RouteState::Offline { .. } => 3,
        }
    }

    pub(super) fn with_context(context_path: &str, labels: &[(&'static str, &str)]) -> Vec<Label> {
        let own = Label::new("context_path", context_path.to_owned());
        let others = labels.iter().map(|&(name, value)| Label::new(name, value.to_owned()));
        std::iter::once(own).chain(others).collect()
    }

    /// How many things of one admin are in which state.
    pub(super) struct Numbers {
        admin: String,
        routes: [u32; 4],
        instances: [u32; 4],
        last_success: Option<f64>,
    }

    impl Numbers {
        pub(super) fn of(admin: &AdminStatus) -> Self {
            let mut numbers = Self {
                admin: admin.url.clone(),
                routes: [0; 4],
                instances: [0; 4],
                last_success: admin
                    .last_success
                    .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
                    .map(|since| since.as_secs_f64()),
            };
            for route in &admin.routes {
                numbers.routes[place(&route.state)] += 1;
            }
            for instance in &admin.instances {
                numbers.instances[place(&instance.state)] += 1;
            }
            numbers
        }

        /// The worst that is true of anything: who left has left, whatever else; one failure is a failure.
        fn state(&self) -> &'static str {
            let any = |place: usize| self.routes[place] + self.instances[place] > 0;
            let worst = [3, 2, 0].into_iter().find(|&place| any(place)).unwrap_or(1);
            STATES[worst]
        }

        pub(super) fn show(&self, context_path: &str) {
            for (told, numbers) in [(Told::Route, self.routes), (Told::Instance, self.instances)] {
                for (state, number) in STATES.into_iter().zip(numbers) {
                    let labels = [("admin", self.admin.as_str()), ("kind", told.as_str()), ("state", state)];
                    gauge!(names::ENTRIES, with_context(context_path, &labels)).set(number);
                }
            }
            for state in STATES {
                let labels = [("admin", self.admin.as_str()), ("state", state)];
                let is = f64::from(u8::from(state == self.state()));
                gauge!(names::ADMIN_STATE, with_context(context_path, &labels)).set(is);
            }
            if let Some(at) = self.last_success {
                let labels = [("admin", self.admin.as_str())];
                gauge!(names::LAST_SUCCESS, with_context(context_path, &labels)).set(at);
            }
        }
    }
}
