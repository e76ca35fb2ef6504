//! Pages for those who come from elsewhere.

/// Coming from the annotations of the Java clients.
///
/// [`ClientConfig::from_file`]: crate::ClientConfig::from_file
/// [`Scope`]: crate::Scope
/// [`router`]: crate::router
/// [`serve`]: crate::serve
#[doc = include_str!("../docs/links.md")]
#[doc = include_str!("../docs/from-java.md")]
pub mod from_java {}

/// Coming from `shenyu-client-rust`.
///
/// [`ClientConfig::from_file`]: crate::ClientConfig::from_file
/// [`Scope`]: crate::Scope
/// [`router`]: crate::router
/// [`serve`]: crate::serve
#[doc = include_str!("../docs/links.md")]
#[doc = include_str!("../docs/from-shenyu-client-rust.md")]
pub mod from_shenyu_client_rust {}

/// Load balancing for those who come from Ribbon: what it covers, and what pins it.
#[cfg(feature = "call")]
#[doc = include_str!("../docs/load-balancing.md")]
pub mod load_balancing {}
