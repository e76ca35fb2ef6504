//! What differs from release to release, as data: a release more is a name and a row more.

use std::time::Duration;

use crate::wire::shenyu::paths;

/// A line of releases of ShenYu whose admins are told the same, named by the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShenyuVersion {
    /// 2.4.0: one message, no login.
    V2_4_0,
    /// 2.4.1: routes and instances apart, no login.
    V2_4_1,
    /// 2.4.2: with login.
    V2_4_2,
    /// 2.4.3: an instance can be taken out.
    V2_4_3,
    /// 2.5.0 and 2.5.1.
    V2_5,
    /// 2.6.0 and 2.6.1: with `offline`, and every admin is told.
    V2_6,
    /// 2.7.0 to 2.7.0.2: with namespaces and a first heartbeat.
    V2_7_0,
    /// 2.7.0.3 and later: with a heartbeat that shows on the dashboard.
    V2_7,
}

/// How often an instance says that it is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Heartbeat {
    /// From the registration to the first.
    pub first: Duration,
    /// Between two.
    pub period: Duration,
}

impl ShenyuVersion {
    /// Every line of releases, oldest first.
    pub const ALL: [Self; 8] = [
        Self::V2_4_0,
        Self::V2_4_1,
        Self::V2_4_2,
        Self::V2_4_3,
        Self::V2_5,
        Self::V2_6,
        Self::V2_7_0,
        Self::V2_7,
    ];

    /// The word for it in a setting.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.profile().name
    }

    /// Whether an admin of this line wants a login.
    #[must_use]
    pub const fn needs_login(self) -> bool {
        self.profile().login
    }

    /// Whether the Java clients of this line tell every admin, and not just the first that answers.
    #[must_use]
    pub const fn tells_every_admin(self) -> bool {
        self.profile().broadcast
    }

    /// Whether an admin of this line can be told that an instance leaves.
    #[must_use]
    pub const fn takes_a_farewell(self) -> bool {
        !matches!(self.profile().leaving, Leaving::ByProbeOnly)
    }

    /// How often an instance says that it is still there; `None`: never.
    #[must_use]
    pub const fn heartbeat(self) -> Option<Heartbeat> {
        self.profile().heartbeat
    }

    pub(in crate::plan) const fn profile(self) -> &'static Profile {
        match self {
            Self::V2_4_0 => &V2_4_0,
            Self::V2_4_1 => &V2_4_1,
            Self::V2_4_2 => &V2_4_2,
            Self::V2_4_3 => &V2_4_3,
            Self::V2_5 => &V2_5,
            Self::V2_6 => &V2_6,
            Self::V2_7_0 => &V2_7_0,
            Self::V2_7 => &V2_7,
        }
    }
}

/// Where an admin learns the address of an instance from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Recipient {
    /// From each route.
    MetaData,
    /// From a message of its own.
    Uri,
}

/// How an instance is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Leaving {
    /// Not at all: the admin's probe finds the closed port.
    ByProbeOnly,
    /// By `DELETED` at `register-uri`; earlier releases take that for a registration, later ones ignore it.
    Deleted,
    /// By `OFFLINE` at `offline`.
    Offline,
}

/// Source: ShenYu specification, sections 1.3, 1.5, 1.8, 1.10, 1.11 and 1.14.
#[derive(Debug)]
pub(in crate::plan) struct Profile {
    name: &'static str,
    login: bool,
    pub(super) upstream_from: Recipient,
    pub(super) leaving: Leaving,
    pub(super) heartbeat: Option<Heartbeat>,
    /// Whether a heartbeat describes the machine.
    pub(super) instance_info: bool,
    pub(super) namespaces: bool,
    broadcast: bool,
    /// Whether gateways compare the path as it stands in the request, percent signs and all.
    pub(super) sees_encoded_paths: bool,
}

impl Profile {
    pub(super) fn meta_data_endpoint(&self) -> &'static str {
        match self.upstream_from {
            Recipient::MetaData => paths::SPRING_MVC_REGISTER,
            Recipient::Uri => paths::REGISTER_METADATA,
        }
    }
}

const V2_4_0: Profile = Profile {
    name: "shenyu-2.4.0",
    login: false,
    upstream_from: Recipient::MetaData,
    leaving: Leaving::ByProbeOnly,
    heartbeat: None,
    instance_info: false,
    namespaces: false,
    broadcast: false,
    sees_encoded_paths: false,
};

const V2_4_1: Profile = Profile { name: "shenyu-2.4.1", upstream_from: Recipient::Uri, ..V2_4_0 };

const V2_4_2: Profile = Profile { name: "shenyu-2.4.2", login: true, ..V2_4_1 };

const V2_4_3: Profile = Profile { name: "shenyu-2.4.3", leaving: Leaving::Deleted, ..V2_4_2 };

const V2_5: Profile = Profile { name: "shenyu-2.5", ..V2_4_3 };

const V2_6: Profile = Profile {
    name: "shenyu-2.6",
    leaving: Leaving::Offline,
    broadcast: true,
    sees_encoded_paths: true,
    ..V2_5
};

/// The heartbeat of these has no effect, but the Java client of the time sends it, too.
const V2_7_0: Profile = Profile {
    name: "shenyu-2.7.0",
    heartbeat: Some(Heartbeat { first: Duration::from_secs(30), period: Duration::from_secs(30) }),
    namespaces: true,
    ..V2_6
};

const V2_7: Profile = Profile {
    name: "shenyu-2.7",
    heartbeat: Some(Heartbeat { first: Duration::from_secs(30), period: Duration::from_secs(10) }),
    instance_info: true,
    ..V2_7_0
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_line_has_its_own_name() {
        let names: BTreeSet<_> = ShenyuVersion::ALL.iter().map(|version| version.as_str()).collect();
        assert_eq!(names.len(), ShenyuVersion::ALL.len());
        assert!(names.iter().all(|name| name.starts_with("shenyu-2.")), "{names:?}");
    }
}
