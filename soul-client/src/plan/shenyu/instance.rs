//! One instance of the service, as an admin is told of it.

/// The bodies about one instance in one namespace; they differ in their event and in nothing else, since what
/// takes an instance out must repeat what put it in (ShenYu specification, section 1.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    pub(super) endpoint: &'static str,
    pub(super) namespace: String,
    pub(super) register: String,
    pub(super) heartbeat: Option<String>,
    pub(super) leave: Option<Leave>,
}

/// What takes an instance out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leave {
    /// Path below the admin's address.
    pub endpoint: &'static str,
    /// JSON text.
    pub body: String,
}

impl Instance {
    /// Path below the admin's address that the registration and the heartbeat are posted to.
    #[must_use]
    pub fn endpoint(&self) -> &'static str {
        self.endpoint
    }

    /// Id of the namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// JSON text that says the instance listens; it goes out after all routes, and once the port is open.
    #[must_use]
    pub fn register(&self) -> &str {
        &self.register
    }

    /// JSON text that says it still does; `None` where the release knows none.
    #[must_use]
    pub fn heartbeat(&self) -> Option<&str> {
        self.heartbeat.as_deref()
    }

    /// What takes it out; `None` where only the admin's probe does.
    #[must_use]
    pub fn leave(&self) -> Option<&Leave> {
        self.leave.as_ref()
    }
}
