//! What is said of a handler or a class: the attributes of Soul's annotation.

use std::fmt;

/// How the gateway calls a route; decides which plugin of Soul gets the selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RpcType {
    /// Plain HTTP, `http` on the wire.
    Http,
    /// By the service's name in a Spring Cloud registry, `springCloud` on the wire.
    SpringCloud,
}

impl RpcType {
    /// Every kind that a Rust service can be registered as.
    pub const ALL: &[Self] = &[Self::Http, Self::SpringCloud];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::SpringCloud => "springCloud",
        }
    }
}

impl fmt::Display for RpcType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The attributes of Soul's annotation, the same for a handler and for a class.
///
/// # Examples
///
/// ```
/// use soul_client::route::Annotation;
///
/// const SAVE: Annotation = Annotation::new("/save").desc("Save order").register_meta_data(true);
/// assert!(SAVE.enabled);
/// assert_eq!(SAVE.rule_name, "", "the path names the rule");
/// ```
///
/// # Source
/// Soul specification, section 1.8 (`@SoulSpringMvcClient`, `@SoulSpringCloudClient`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annotation {
    /// Path below the context path (and below the path of the class), as written.
    pub path: &'static str,
    /// Name of the rule in the admin; empty: the full path is the name.
    pub rule_name: &'static str,
    /// Description shown by the admin; may be empty.
    pub desc: &'static str,
    /// `None`: what the client is, `http` or `springCloud`.
    pub rpc_type: Option<RpcType>,
    /// Whether the metadata is enabled. An admin makes selector and rule enabled in any case, as in Java.
    pub enabled: bool,
    /// Whether metadata is registered beside the rule; Soul heeds it for `http` only.
    pub register_meta_data: bool,
}

impl Annotation {
    /// An annotation with Soul's defaults: enabled, no metadata, named by its path.
    #[must_use]
    pub const fn new(path: &'static str) -> Self {
        Self { path, rule_name: "", desc: "", rpc_type: None, enabled: true, register_meta_data: false }
    }

    /// Names the rule; an empty name stands for the full path (default).
    #[must_use]
    pub const fn rule_name(mut self, rule_name: &'static str) -> Self {
        self.rule_name = rule_name;
        self
    }

    /// Describes the route for the people at the admin (default: empty).
    #[must_use]
    pub const fn desc(mut self, desc: &'static str) -> Self {
        self.desc = desc;
        self
    }

    /// Sets how the gateway calls the route (default: what the client is).
    #[must_use]
    pub const fn rpc_type(mut self, rpc_type: RpcType) -> Self {
        self.rpc_type = Some(rpc_type);
        self
    }

    /// Sets whether the metadata is enabled (default: yes); selector and rule are in any case.
    #[must_use]
    pub const fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets whether metadata is registered too (default: no).
    #[must_use]
    pub const fn register_meta_data(mut self, register_meta_data: bool) -> Self {
        self.register_meta_data = register_meta_data;
        self
    }
}
