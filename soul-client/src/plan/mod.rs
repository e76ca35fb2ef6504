//! What this process wants registered: a pure function of configuration and annotations.
//!
//! [`RegistrationPlan::new`] follows the Java clients exactly, oddities included, and says for every
//! annotation which body goes to which endpoint. It does no I/O, reads no clock and knows no address but the
//! one it is given. The plan is sorted and free of repeats; what was declared twice is told by
//! [`RegistrationPlan::repeats`] with both places.
//!
//! | room | holds |
//! |---|---|
//! | `properties` | what a configuration says, as text: the input |
//! | `declaration` | annotated classes and routes with owned text: the other input |
//! | `dialect` | the seam: what differs from admin to admin |
//! | `soul_feb2021`, `soul_2_3_0`, `soul_any`, `shenyu` | one dialect each |
//! | `zookeeper` | the same plan as nodes of a ZooKeeper registry |

mod declaration;
mod dialect;
mod java;
mod plan_error;
mod properties;
mod registration;
mod shenyu;
mod soul_2_3_0;
mod soul_any;
mod soul_feb2021;
pub mod zookeeper;

pub use declaration::{Attributes, ClassDeclaration};
pub use dialect::Dialect;
pub use plan_error::PlanError;
pub use properties::Properties;
pub use registration::{Registration, Repeat};
pub use shenyu::{Heartbeat, Instance, Leave, ShenyuVersion};

use std::collections::BTreeSet;

use crate::wire::soul::{is_pattern, paths::SPRING_MVC_REGISTER};
use dialect::{Draft, Mode};

/// Everything one instance of a service registers, in a fixed order.
///
/// # Examples
///
/// ```
/// use soul_client::plan::{ClassDeclarations, Dialect, Properties, RegistrationPlan};
/// use soul_client::route::{Annotation, Collected, Route};
///
/// let mut properties = Properties::new(Dialect::Feb2021, "10.0.0.2");
/// properties.server_lists = Some("http://localhost:9095".into());
/// properties.context_path = Some("/http".into());
/// properties.app_name = Some("http".into());
/// properties.port = Some("8188".into());
///
/// let routes = Collected::group([], [Route::new(Annotation::new("/order/save").desc("Save order"))]);
/// let plan = RegistrationPlan::new(&properties, &ClassDeclarations::from(&routes))?;
/// assert_eq!(plan.registrations()[0].endpoint(), Some("/soul-client/springmvc-register"));
/// assert_eq!(
///     plan.registrations()[0].body(),
///     r#"{"appName":"http","context":"/http","path":"/http/order/save","pathDesc":"Save order","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/order/save","enabled":true,"registerMetaData":false}"#
/// );
/// # Ok::<(), soul_client::plan::PlanError>(())
/// ```
///
/// # Source
/// Soul specification, sections 1.3 to 1.12.
#[derive(Clone, Debug, PartialEq)]
pub struct RegistrationPlan {
    servers: Vec<String>,
    registrations: Vec<Registration>,
    instances: Vec<Instance>,
    repeats: Vec<Repeat>,
    failures: Vec<PlanError>,
}

impl RegistrationPlan {
    /// Turns annotations into registrations, or the whole context path into one (full mode).
    ///
    /// # Errors
    /// When the properties lack what the Java client of this dialect insists on. What cannot be expressed of
    /// a single route is no error of the plan but one of its [`failures`](Self::failures).
    pub fn new(properties: &Properties, classes: &ClassDeclarations) -> Result<Self, PlanError> {
        if properties.is_full() {
            return Self::full(properties);
        }
        Self::annotated(properties, classes)
    }

    /// The part of the plan that reads annotations: nothing in full mode, though the properties are checked
    /// all the same, as the Java client's annotation processor does.
    ///
    /// # Errors
    /// As [`RegistrationPlan::new`].
    pub fn annotated(properties: &Properties, classes: &ClassDeclarations) -> Result<Self, PlanError> {
        let rules = properties.dialect.rules();
        rules.check(properties, Mode::Annotations)?;
        if properties.is_full() {
            return Self::of(properties, Vec::new());
        }
        let drafts = classes.0.iter().flat_map(|class| drafts_of(class, rules.skips_unannotated()));
        Self::of(properties, drafts.flat_map(|draft| rules.register_all(properties, &draft)).collect())
    }

    /// The part of the plan that registers the whole context path: nothing unless in full mode.
    ///
    /// # Errors
    /// As [`RegistrationPlan::new`].
    pub fn full(properties: &Properties) -> Result<Self, PlanError> {
        let rules = properties.dialect.rules();
        if properties.is_full() || rules.checks_idle_full_mode() {
            rules.check(properties, Mode::Full)?;
        }
        let whole = properties.is_full().then(|| rules.register_all(properties, &Draft::full()));
        Self::of(properties, whole.unwrap_or_default())
    }

    fn of(properties: &Properties, results: Vec<Result<Registration, PlanError>>) -> Result<Self, PlanError> {
        let mut failures = Vec::new();
        let mut declared = Vec::with_capacity(results.len());
        for (order, result) in results.into_iter().enumerate() {
            match result {
                Ok(registration) => declared.push(registration.declared(order)),
                Err(error) => failures.push(error),
            }
        }
        let (registrations, repeats) = registration::sort_and_part(declared);
        let rules = properties.dialect.rules();
        let instances = if registrations.is_empty() { Vec::new() } else { rules.instances(properties)? };
        let servers = rules.servers(properties);
        Ok(Self { servers, registrations, instances, repeats, failures })
    }

    /// The registrations, sorted by path; no two have the same path, rule name and kind.
    #[must_use]
    pub fn registrations(&self) -> &[Registration] {
        &self.registrations
    }

    /// What is said of the instance itself, one for each namespace, after all registrations; empty where these
    /// say it, as with Soul.
    #[must_use]
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// Those whose bodies also take the instance out, at an admin that knows
    /// [`OFFLINE`](crate::wire::soul::paths::OFFLINE) beyond Soul: one for each selector that it is in. Empty with ShenYu,
    /// where [`Instance::leave`] does.
    #[must_use]
    pub fn farewells(&self) -> Vec<&Registration> {
        // Without a context path selectors are named by the first segment; with one all paths begin alike.
        let selector = |r: &&Registration| r.path().split('/').find(|s| !s.is_empty()).map(str::to_owned);
        let mut told = BTreeSet::new();
        let of_soul = self.registrations.iter().filter(|r| r.endpoint() == Some(SPRING_MVC_REGISTER));
        of_soul.filter(|registration| told.insert(selector(registration))).collect()
    }

    /// What was declared again and is therefore left out; a Java client would send it too.
    #[must_use]
    pub fn repeats(&self) -> &[Repeat] {
        &self.repeats
    }

    /// What could not be turned into a registration; a Java client loses these in its worker thread.
    #[must_use]
    pub fn failures(&self) -> &[PlanError] {
        &self.failures
    }

    /// The admins, in the order in which they are tried, exactly as the Java client reads the setting.
    #[must_use]
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// Whether there is nothing to register.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.registrations.is_empty()
    }

    /// Registrations whose variables Soul does not take for what they are in a router: it reads `{id}` without a `*` in
    /// the path, and `:id` in any case, as the literal text, and a rest (`{*rest}`) as one segment. They are sent as
    /// written, as the Java client sends them.
    pub fn literal_variables(&self) -> impl Iterator<Item = &Registration> {
        self.registrations.iter().filter(|registration| {
            let path = registration.path();
            let mut segments = path.split('/');
            (path.contains('{') && !is_pattern(path)) || segments.any(shenyu::template::is_foreign_to_soul)
        })
    }

    /// Registrations that an admin of ShenYu 2.5 or later takes for the beginning of paths, because they end with a slash:
    /// their rule matches everything below, and not the path without the slash.
    ///
    /// # Source
    /// ShenYu specification, section 2.1.
    pub fn open_ended(&self) -> impl Iterator<Item = &Registration> {
        self.registrations.iter().filter(|r| r.namespace().is_some() && r.path().ends_with('/'))
    }

    /// Rule names that several paths share: an admin keeps the rule of whichever comes first and passes
    /// over the others, silently.
    #[must_use]
    pub fn shared_rule_names(&self) -> Vec<(&Registration, &Registration)> {
        let mut by_name: Vec<&Registration> = self.registrations.iter().collect();
        let key = |registration: &Registration| {
            (registration.rule_name().to_owned(), registration.namespace().map(str::to_owned))
        };
        by_name.sort_by_cached_key(|registration| key(registration));
        by_name
            .windows(2)
            .filter(|pair| key(pair[0]) == key(pair[1]))
            .map(|pair| (pair[0], pair[1]))
            .collect()
    }
}

/// Every annotated class of a program; made from [`Collected`](crate::route::Collected) or by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassDeclarations(pub Vec<ClassDeclaration>);

/// The scan: one draft for a class that is a wildcard, else one for each route of it.
fn drafts_of(class: &ClassDeclaration, skip_unannotated: bool) -> Vec<Draft<'_>> {
    match &class.annotation {
        None if skip_unannotated => Vec::new(),
        Some(annotation) if is_pattern(&annotation.path) => vec![Draft::route("", annotation)],
        annotation => {
            let prefix = annotation.as_ref().map_or("", |annotation| &annotation.path);
            class.routes.iter().map(|route| Draft::route(prefix, route)).collect()
        }
    }
}

#[cfg(test)]
mod tests;
