//! Names of the plugins that admin and gateway know by heart.

/// Shares plain HTTP between the upstreams of a selector.
pub(crate) const DIVIDE: &str = "divide";

/// Says what of a path is its service's context path.
pub(crate) const CONTEXT_PATH: &str = "context_path";
