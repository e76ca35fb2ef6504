//! The names, also for a build that counts nothing.

/// Registrations that were sent, by `admin` and `kind`: a route, or the instance. One that was given up at the end of
/// the client has no result.
pub const REGISTRATION_ATTEMPTS: &str = "soul_client_registration_attempts_total";

/// What came of them, by `admin`, `kind` and `result`.
pub const REGISTRATIONS: &str = "soul_client_registrations_total";

/// Those among the attempts whose predecessor at the same admin failed, by `admin` and `kind`.
pub const REGISTRATION_RETRIES: &str = "soul_client_registration_retries_total";

/// Heartbeats, by `admin` and `result`.
pub const HEARTBEATS: &str = "soul_client_heartbeats_total";

/// Questions what kind of admin it is ([`Dialect::Auto`](crate::Dialect::Auto)), by `admin` and `result`. They come before a
/// registration, and in its place while nobody answers.
pub const DETECTIONS: &str = "soul_client_detections_total";

/// Logins, by `admin`, `reason` and `result`. All but those for the reason `first` renew a token.
pub const LOGINS: &str = "soul_client_logins_total";

/// Messages that this instance leaves, by `admin` and `result` (`accepted`, `failed`); not sent where an admin knows no
/// such message.
pub const FAREWELLS: &str = "soul_client_farewells_total";

/// Rounds and registrations that panicked and were begun anew; anything but 0 is a defect of this crate.
pub const PANICS: &str = "soul_client_panics_total";

/// A gauge: how many routes and instances are in which `state`, by `admin` and `kind`. After the end of a client it
/// stays as it was last.
pub const ENTRIES: &str = "soul_client_entries";

/// A gauge: 1 for the `state` that an `admin` is in, 0 for the others.
pub const ADMIN_STATE: &str = "soul_client_admin_state";

/// A gauge: when an `admin` last accepted something, in seconds since 1970. Its age is `time() -` this, in the words of
/// Prometheus.
pub const LAST_SUCCESS: &str = "soul_client_last_success_timestamp_seconds";
