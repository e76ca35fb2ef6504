//! What a client counts, for whichever recorder the program has (feature `metrics`).
//!
//! The numbers go to the [`metrics`](https://docs.rs/metrics) facade: which exporter they leave by is the program's choice,
//! not that of a library, and a program without a recorder pays next to nothing. A recorder must be installed before the
//! client starts; [`describe`] tells it what the names mean.
//!
//! | name | kind | labels | says |
//! |---|---|---|---|
//! | [`soul_client_registration_attempts_total`](REGISTRATION_ATTEMPTS) | counter | `admin`, `kind` | registrations sent |
//! | [`soul_client_registrations_total`](REGISTRATIONS) | counter | `admin`, `kind`, `result` | what came of them |
//! | [`soul_client_registration_retries_total`](REGISTRATION_RETRIES) | counter | `admin`, `kind` | sent again after a failure |
//! | [`soul_client_heartbeats_total`](HEARTBEATS) | counter | `admin`, `result` | heartbeats |
//! | [`soul_client_detections_total`](DETECTIONS) | counter | `admin`, `result` | questions what an admin is, before registering |
//! | [`soul_client_logins_total`](LOGINS) | counter | `admin`, `reason`, `result` | logins and renewals of a token |
//! | [`soul_client_farewells_total`](FAREWELLS) | counter | `admin`, `result` | messages that the instance leaves |
//! | [`soul_client_panics_total`](PANICS) | counter | | rounds that were begun anew |
//! | [`soul_client_entries`](ENTRIES) | gauge | `admin`, `kind`, `state` | routes and instances in each state |
//! | [`soul_client_admin_state`](ADMIN_STATE) | gauge | `admin`, `state` | 1 for the state that an admin is in |
//! | [`soul_client_last_success_timestamp_seconds`](LAST_SUCCESS) | gauge | `admin` | when it last accepted something |
//!
//! | label | values |
//! |---|---|
//! | `context_path` | on each: that of the client, which tells apart several in one process |
//! | `admin` | address of the admin |
//! | `kind` | `route`, `instance` |
//! | `result` | `accepted`; `refused`: an admin said no; `unanswered`: nobody answered, or something that is no admin |
//! | `reason` | `first`: there was no token; `expiry`: there was one near its end; `refused`: the admin refused the one there was |
//! | `state` | `pending`, `registered`, `failed`, `offline`; of an admin the worst that is true of anything it was told |
//!
//! # Examples
//!
//! ```
//! // Once, after a recorder was installed, such as that of `metrics-exporter-prometheus`:
//! soul_client::metrics::describe();
//! // An alert: `time() - soul_client_last_success_timestamp_seconds > 120`
//! assert_eq!(soul_client::metrics::LAST_SUCCESS, "soul_client_last_success_timestamp_seconds");
//! ```

mod names;

#[cfg(test)]
mod tests;

pub use names::{
    ADMIN_STATE, DETECTIONS, ENTRIES, FAREWELLS, HEARTBEATS, LAST_SUCCESS, LOGINS, PANICS,
    REGISTRATION_ATTEMPTS, REGISTRATION_RETRIES, REGISTRATIONS,
};

use ::metrics::{Unit, describe_counter, describe_gauge};

/// Tells the recorder of the program what each name means.
pub fn describe() {
    for (name, text) in [
        (REGISTRATION_ATTEMPTS, "Registrations sent to an admin."),
        (REGISTRATIONS, "Registrations by what came of them."),
        (REGISTRATION_RETRIES, "Registrations sent again after a failure."),
        (HEARTBEATS, "Heartbeats by what came of them."),
        (DETECTIONS, "Questions what kind of admin it is."),
        (LOGINS, "Logins at an admin, and renewals of a token."),
        (FAREWELLS, "Messages that this instance leaves."),
        (PANICS, "Rounds of registration that panicked and were begun anew."),
    ] {
        describe_counter!(name, Unit::Count, text);
    }
    for (name, unit, text) in [
        (ENTRIES, Unit::Count, "Routes and instances by state."),
        (ADMIN_STATE, Unit::Count, "1 for the state that an admin is in."),
        (LAST_SUCCESS, Unit::Seconds, "When an admin last accepted something, since 1970."),
    ] {
        describe_gauge!(name, unit, text);
    }
}
