//! Pages for those who come from elsewhere.

/// Coming from the annotations of the Java clients.
#[doc = include_str!("../docs/from-java.md")]
pub mod from_java {}

/// Coming from `shenyu-client-rust`.
#[doc = include_str!("../docs/from-shenyu-client-rust.md")]
pub mod from_shenyu_client_rust {}

/// Load balancing for those who come from Ribbon: what it covers, and what pins it.
#[cfg(feature = "call")]
#[doc = include_str!("../docs/load-balancing.md")]
pub mod load_balancing {}
