//! The seam between what is registered and what an admin wants to read.

use super::{
    Attributes, Instance, PlanError, Properties, Registration,
    shenyu::{Shenyu, ShenyuVersion, template},
    soul_2_3_0::Soul230,
    soul_any::SoulAny,
    soul_feb2021::SoulFeb2021,
};

/// Which admin the bodies are written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// Bodies that a Feb-2021 admin and a 2.3.0 admin both understand in full (default).
    #[default]
    Any,
    /// Exactly the bodies of the Java client of February 2021 (2.2.1).
    Feb2021,
    /// Exactly the bodies of the Java client 2.3.0.
    V2_3_0,
    /// What an admin of Apache ShenYu reads.
    Shenyu(ShenyuVersion),
    /// Found out for each admin, without registering anything. A plan for it is one for the latest ShenYu,
    /// whose rules are the strictest.
    ///
    /// Two releases cannot be told from 2.4.2 and are treated as such: 2.4.1 with a user, which loses nothing by
    /// it, and 2.4.3, which is then told no farewell, since 2.4.2 takes the same message for a registration. There the
    /// admin's probe takes the instance out.
    Auto,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 12] = [
        Self::Auto,
        Self::Any,
        Self::Feb2021,
        Self::V2_3_0,
        Self::Shenyu(ShenyuVersion::V2_4_0),
        Self::Shenyu(ShenyuVersion::V2_4_1),
        Self::Shenyu(ShenyuVersion::V2_4_2),
        Self::Shenyu(ShenyuVersion::V2_4_3),
        Self::Shenyu(ShenyuVersion::V2_5),
        Self::Shenyu(ShenyuVersion::V2_6),
        Self::Shenyu(ShenyuVersion::V2_7_0),
        Self::Shenyu(ShenyuVersion::V2_7),
    ];

    /// The word for it in a setting.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Feb2021 => "feb2021",
            Self::V2_3_0 => "2.3.0",
            Self::Shenyu(version) => version.as_str(),
            Self::Auto => "auto",
        }
    }

    /// The one place that knows which room belongs to which dialect.
    pub(super) fn rules(self) -> Box<dyn Rules> {
        match self {
            Self::Any => Box::new(SoulAny),
            Self::Feb2021 => Box::new(SoulFeb2021),
            Self::V2_3_0 => Box::new(Soul230),
            Self::Shenyu(version) => Box::new(Shenyu(version.profile())),
            Self::Auto => Box::new(Shenyu(ShenyuVersion::V2_7.profile())),
        }
    }

    /// Which ShenYu; `None` for Soul and for what is not known yet.
    #[must_use]
    pub const fn shenyu(self) -> Option<ShenyuVersion> {
        match self {
            Self::Shenyu(version) => Some(version),
            _ => None,
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a dialect decides.
pub(super) trait Rules: Sync {
    /// Whether the properties suffice, as the Java client checks them.
    fn check(&self, properties: &Properties, mode: Mode) -> Result<(), PlanError>;

    /// Whether the full-mode part checks the properties even when it has nothing to do.
    fn checks_idle_full_mode(&self) -> bool;

    /// Whether a class without an annotation is passed over.
    fn skips_unannotated(&self) -> bool;

    /// The admins of the properties, in order.
    fn servers(&self, properties: &Properties) -> Vec<String>;

    /// The registration of one route, class or context path.
    fn register(&self, properties: &Properties, draft: &Draft<'_>) -> Result<Registration, PlanError>;

    /// The same, once for each namespace where there are several.
    fn register_all(
        &self,
        properties: &Properties,
        draft: &Draft<'_>,
    ) -> Vec<Result<Registration, PlanError>> {
        vec![self.register(properties, draft)]
    }

    /// What is said of the instance itself, where routes do not say it.
    fn instances(&self, _: &Properties) -> Result<Vec<Instance>, PlanError> {
        Ok(Vec::new())
    }
}

/// What is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Annotations.
    Annotations,
    /// The whole context path at once.
    Full,
}

/// One registration to be, before a dialect writes it.
pub(super) struct Draft<'a> {
    pub(super) mode: Mode,
    /// Path of the class, empty if there is none.
    prefix: &'a str,
    /// `None` in full mode.
    attributes: Option<&'a Attributes>,
}

impl<'a> Draft<'a> {
    pub(super) fn route(prefix: &'a str, attributes: &'a Attributes) -> Self {
        Self { mode: Mode::Annotations, prefix, attributes: Some(attributes) }
    }

    pub(super) fn full() -> Self {
        Self { mode: Mode::Full, prefix: "", attributes: None }
    }

    /// Context path, class path and route path, one after the other: no slash is added or taken away. The path of a
    /// mounted handler is that of a router instead, joined as routers join it and with wildcards for its variables.
    pub(super) fn path_below(&self, context_path: &str) -> String {
        if self.attributes.is_some_and(|attributes| attributes.mounted) {
            let path = template::join(&[context_path, self.prefix, self.path()]);
            return template::pattern(&path).unwrap_or(path);
        }
        [context_path, self.prefix, self.path()].concat()
    }

    pub(super) fn path(&self) -> &str {
        self.attributes.map_or("/**", |attributes| &attributes.path)
    }

    pub(super) fn prefix(&self) -> &str {
        self.prefix
    }

    pub(super) fn module(&self) -> &str {
        self.attributes.map_or("", |attributes| &attributes.module)
    }

    pub(super) fn handler(&self) -> &str {
        self.attributes.map_or("", |attributes| &attributes.handler)
    }

    pub(super) fn rule_name(&self) -> &str {
        self.attributes.map_or("", |attributes| &attributes.rule_name)
    }

    /// Absent in full mode.
    pub(super) fn desc(&self) -> Option<String> {
        self.attributes.map(|attributes| attributes.desc.clone().into_owned())
    }

    pub(super) fn rpc_type(&self, properties: &Properties) -> String {
        let own = self.attributes.and_then(|attributes| attributes.rpc_type.as_deref());
        own.unwrap_or(properties.rpc_type.as_str()).to_owned()
    }

    pub(super) fn enabled(&self) -> bool {
        self.attributes.is_none_or(|attributes| attributes.enabled)
    }

    pub(super) fn register_meta_data(&self) -> bool {
        self.attributes.is_some_and(|attributes| attributes.register_meta_data)
    }

    pub(super) fn place(&self) -> Option<crate::route::Place> {
        self.attributes.and_then(|attributes| attributes.place)
    }
}
