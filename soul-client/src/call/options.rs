//! What one call wants to be different.

use std::fmt;

use super::{config::ServiceConfig, prefer::Preference};

/// What one call wants to be different, and what tells it from others.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until a call has them"]
pub struct CallOptions {
    pub(super) key: Option<String>,
    pub(super) preference: Preference,
    pub(super) overrides: ServiceConfig,
}

impl CallOptions {
    /// Nothing is different.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what policies by key hash: calls with the same go to the same upstream.
    pub fn hash_key(self, key: impl fmt::Display) -> Self {
        Self { key: Some(key.to_string()), ..self }
    }

    /// Prefers upstreams whose metadata has this word as its `hint`, as long as there are any.
    #[doc(alias = "X-SC-LB-Hint")]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.metadata("hint", hint)
    }

    /// Prefers upstreams whose metadata has this as their `version`, as long as there are any.
    pub fn version(self, version: impl Into<String>) -> Self {
        self.metadata("version", version)
    }

    /// Prefers upstreams whose metadata has this word on something, as long as there are any. Several are wanted all at once.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.preference.metadata.push((key.into(), value.into()));
        self
    }

    /// Prefers upstreams of a zone, as long as there are any.
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.preference.zone = Some(zone.into());
        self
    }

    /// Prefers one upstream, by its address `host:port`, as long as it may be chosen: the instance that answered before.
    #[doc(alias = "SameInstancePreference")]
    pub fn same_instance(mut self, address: impl Into<String>) -> Self {
        self.preference.address = Some(address.into());
        self
    }

    /// Says settings for this call only, over those of the service. What a whole service shares, such as its policy, cannot be said here.
    pub fn config(self, config: &ServiceConfig) -> Self {
        Self { overrides: config.over(&self.overrides), ..self }
    }
}
