//! Under lints that many teams deny, the expansion adds nothing to complain about.

#![forbid(unsafe_code)]
#![deny(
    missing_docs,
    unreachable_pub,
    dead_code,
    unused,
    nonstandard_style,
    rust_2018_idioms,
    let_underscore,
    single_use_lifetimes,
    unit_bindings,
    unused_qualifications,
    unused_results,
    clippy::all,
    clippy::pedantic
)]

use soul_client::soul_client;

/// Paths and handlers.
pub(crate) const ROUTES: &[(&str, &str)] =
    &[("/strict", "strict"), ("/strict/associated", "associated"), ("/strict/in-class", "in_class")];

/// A handler.
#[soul_client(path = "/strict", desc = "strict")]
pub(crate) fn strict() {}

/// A controller.
pub(crate) struct Strict;

impl Strict {
    /// A handler.
    #[soul_client(path = "/strict/associated")]
    pub(crate) fn associated() {}
}

/// A class.
#[soul_client(path = "/strict-class")]
pub(crate) mod class {
    /// A handler.
    #[soul_client::soul_client(path = "/strict/in-class")]
    pub(crate) fn in_class() {}
}

#[test]
fn functions_are_callable() {
    strict();
    Strict::associated();
    class::in_class();
}
