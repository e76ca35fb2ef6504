//! How things stand: by admin, and by route.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    address::Announced,
    config::AdminsRule,
    error::{Error, Kind},
    plan::{Dialect, Instance, Registration, RegistrationPlan},
};

/// A picture of everything that is registered, and of what is not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The admins, in the order of the configuration.
    pub admins: Vec<AdminStatus>,
    /// How they are treated.
    pub admins_rule: AdminsRule,
    /// Rounds that ended by a panic and were begun anew; anything but 0 is a defect of this crate.
    pub panics: u64,
    /// For each group of admins that is told together, and each route: whether it has been accepted there.
    settled: Vec<Vec<bool>>,
    /// Admins that did not take the message that this instance leaves.
    stayed: Vec<usize>,
    /// An admin took the message that this instance leaves.
    was_told: bool,
    /// The admins were told, or were to be, that this instance leaves.
    has_left: bool,
    stopped: bool,
}

/// What one admin was told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdminStatus {
    /// Its address.
    pub url: String,
    /// What it is told about this instance; `None` until that was found out.
    pub announced: Option<Announced>,
    /// Every route of the plan, sorted by path.
    pub routes: Vec<RouteStatus>,
    /// The instance itself, once for each namespace, where the admin is told of it apart (ShenYu).
    pub instances: Vec<InstanceStatus>,
    /// What it speaks; [`Dialect::Auto`] until that was found out.
    pub dialect: Dialect,
    /// When it last accepted something.
    pub last_success: Option<SystemTime>,
    /// Why it last did not, if the last thing it was told failed.
    pub last_error: Option<Arc<Error>>,
}

/// What one admin was told of the instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InstanceStatus {
    /// Id of the namespace.
    pub namespace: Arc<str>,
    /// Whether the admin has it.
    pub state: RouteState,
}

/// What one admin was told of one route.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RouteStatus {
    /// Full path.
    pub path: Arc<str>,
    /// Name of the rule.
    pub rule_name: Arc<str>,
    /// Whether the admin has it.
    pub state: RouteState,
}

/// Whether an admin has a route.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum RouteState {
    /// It was not told yet. An admin that is only the second choice stays so while the first one answers.
    #[default]
    Pending,
    /// It accepted the route.
    Registered {
        /// When it last did.
        at: SystemTime,
    },
    /// It was told, and did not accept.
    Failed {
        /// Why.
        cause: Arc<Error>,
        /// How often in a row.
        failures: u32,
        /// When it is told again; `None` while that is under way or not decided yet.
        next_try: Option<SystemTime>,
    },
    /// It was told that this instance leaves, or has to find that out by its probe: what it has of the route, it
    /// keeps for other instances.
    Offline {
        /// When that was said.
        at: SystemTime,
    },
}

impl RouteState {
    /// Whether the admin has the route.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        matches!(self, Self::Registered { .. })
    }

    fn failures(&self) -> u32 {
        match self {
            Self::Failed { failures, .. } => *failures,
            Self::Pending | Self::Registered { .. } | Self::Offline { .. } => 0,
        }
    }
}

impl AdminStatus {
    /// Whether this admin has every route, and the instance.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.routes
            .iter()
            .map(|route| &route.state)
            .chain(self.instances.iter().map(|instance| &instance.state))
            .all(RouteState::is_registered)
    }

    /// Whether this admin was told that the instance leaves.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.routes.iter().any(|route| matches!(route.state, RouteState::Offline { .. }))
    }
}

impl Status {
    /// Whether every route is registered where it should be: at one admin, or at each, by the rule.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.settled.iter().flatten().all(|&settled| settled)
    }

    /// Whether an admin took the message that this instance leaves, so that gateways will hear of it.
    #[must_use]
    pub fn was_told_to_leave(&self) -> bool {
        self.was_told
    }

    /// Whether the client was shut down.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Why not every admin knows that this instance has left.
    pub(super) fn not_left(&self) -> Result<(), Error> {
        if !self.has_left {
            // Stopped without that, or ended together with the runtime that it was started in.
            return Err(Error::new(Kind::Stopped, "go offline: the client was shut down"));
        }
        let told: Vec<_> = self.stayed.iter().filter_map(|&admin| self.admins.get(admin)).collect();
        let Some(cause) = told.iter().find_map(|admin| admin.last_error.clone()) else { return Ok(()) };
        let urls = told.iter().map(|admin| format!("`{}`", admin.url)).collect::<Vec<_>>().join(", ");
        let kind = if cause.is_timeout() { Kind::Timeout } else { Kind::Rejected };
        Err(Error::new(kind, format!("go offline at {urls}")).with_source(cause))
    }

    /// Why not everything is registered after `limit`.
    pub(super) fn unfinished(&self, limit: Duration) -> Error {
        let all = self.settled.iter().map(Vec::len).max().unwrap_or(0);
        let left = |lane: &Vec<bool>| lane.iter().filter(|&&settled| !settled).count();
        let left = self.settled.iter().map(left).max().unwrap_or(0);
        let error = Error::new(
            Kind::Timeout,
            format!("register within {limit:?}: {left} of {all} messages are left"),
        );
        match self.admins.iter().rev().find_map(|admin| admin.last_error.clone()) {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }
}

/// Changes made by the lanes, as methods of what is watched.
impl Status {
    /// Nothing told yet. `lanes`: how many groups of admins are told, each as one.
    pub(super) fn new(
        urls: &[&str],
        admins_rule: AdminsRule,
        lanes: usize,
        plan: &RegistrationPlan,
        dialect: Dialect,
    ) -> Self {
        let (routes, instances) = rows(plan);
        let settled = vec![vec![false; routes.len() + instances.len()]; lanes];
        let admin = |url: &&str| AdminStatus {
            url: (*url).to_owned(),
            announced: None,
            routes: routes.clone(),
            instances: instances.clone(),
            dialect,
            last_success: None,
            last_error: None,
        };
        let admins = urls.iter().map(admin).collect();
        Self {
            admins,
            admins_rule,
            panics: 0,
            settled,
            stayed: Vec::new(),
            was_told: false,
            has_left: false,
            stopped: false,
        }
    }

    /// What these admins are told from now on; what they were told before counts no more.
    pub(super) fn plan(&mut self, admins: &[usize], lane: usize, plan: &RegistrationPlan, dialect: Dialect) {
        let (routes, instances) = rows(plan);
        if let Some(settled) = self.settled.get_mut(lane) {
            *settled = vec![false; routes.len() + instances.len()];
        }
        for &admin in admins {
            let Some(admin) = self.admins.get_mut(admin) else { continue };
            admin.routes.clone_from(&routes);
            admin.instances.clone_from(&instances);
            admin.dialect = dialect;
        }
    }

    /// Whether the last try of this one at this admin failed.
    pub(super) fn has_failed(&self, admin: usize, number: usize) -> bool {
        let Some(admin) = self.admins.get(admin) else { return false };
        let instance = || Some(&admin.instances.get(number.checked_sub(admin.routes.len())?)?.state);
        let state = admin.routes.get(number).map(|route| &route.state).or_else(instance);
        state.is_some_and(|state| matches!(state, RouteState::Failed { .. }))
    }

    /// How many things are told to the admins of a lane.
    pub(super) fn rows(&self, lane: usize) -> usize {
        self.settled.get(lane).map_or(0, Vec::len)
    }

    /// This admin counts as left; `told`: there was a message for it.
    pub(super) fn left(&mut self, admin: usize, lane: usize, told: bool, result: Result<(), Arc<Error>>) {
        let at = SystemTime::now();
        self.was_told |= told && result.is_ok();
        if result.is_err() {
            self.stayed.push(admin);
        }
        let Some(admin) = self.admins.get_mut(admin) else { return };
        match result {
            Ok(()) => admin.states().for_each(|state| *state = RouteState::Offline { at }),
            Err(cause) => {
                admin.last_error = Some(Arc::clone(&cause));
                let failed = RouteState::Failed { cause, failures: 1, next_try: None };
                admin.states().for_each(|state| *state = failed.clone());
            }
        }
        if let Some(settled) = self.settled.get_mut(lane) {
            settled.fill(false);
        }
    }

    /// The end; `has_left`: after the farewell.
    pub(super) fn stop(&mut self, has_left: bool) {
        self.has_left = has_left;
        self.stopped = true;
    }

    pub(super) fn announce(&mut self, admins: &[usize], announced: &Announced) {
        for &admin in admins {
            if let Some(admin) = self.admins.get_mut(admin) {
                admin.announced = Some(announced.clone());
            }
        }
    }

    pub(super) fn accepted(&mut self, admin: usize, route: usize) {
        let at = SystemTime::now();
        if let Some(admin) = self.admins.get_mut(admin) {
            admin.last_success = Some(at);
            admin.last_error = None;
            admin.set(route, RouteState::Registered { at });
        }
    }

    pub(super) fn failed(&mut self, admin: usize, route: usize, cause: &Arc<Error>) {
        if let Some(admin) = self.admins.get_mut(admin) {
            let failures = admin.states().nth(route).map_or(0, |state| state.failures()).saturating_add(1);
            admin.last_error = Some(Arc::clone(cause));
            admin.set(route, RouteState::Failed { cause: Arc::clone(cause), failures, next_try: None });
        }
    }

    pub(super) fn settle(&mut self, lane: usize, route: usize, accepted: bool) {
        if let Some(settled) = self.settled.get_mut(lane).and_then(|routes| routes.get_mut(route)) {
            *settled = accepted;
        }
    }

    /// What failed at these admins is tried again after `delay`.
    pub(super) fn retry_in(&mut self, admins: &[usize], delay: Duration) {
        let at = SystemTime::now() + delay;
        for &admin in admins {
            let states = self.admins.get_mut(admin).map(AdminStatus::states);
            for state in states.into_iter().flatten() {
                if let RouteState::Failed { next_try, .. } = state {
                    *next_try = Some(at);
                }
            }
        }
    }
}

impl AdminStatus {
    /// In the order of what is sent: routes, and then the instance.
    fn states(&mut self) -> impl Iterator<Item = &mut RouteState> {
        let instances = self.instances.iter_mut().map(|instance| &mut instance.state);
        self.routes.iter_mut().map(|route| &mut route.state).chain(instances)
    }

    fn set(&mut self, number: usize, state: RouteState) {
        if let Some(slot) = self.states().nth(number) {
            *slot = state;
        }
    }
}

/// Nothing told yet of each.
fn rows(plan: &RegistrationPlan) -> (Vec<RouteStatus>, Vec<InstanceStatus>) {
    let route = |registration: &Registration| RouteStatus {
        path: registration.path().into(),
        rule_name: registration.rule_name().into(),
        state: RouteState::Pending,
    };
    let instance = |instance: &Instance| InstanceStatus {
        namespace: instance.namespace().into(),
        state: RouteState::Pending,
    };
    (plan.registrations().iter().map(route).collect(), plan.instances().iter().map(instance).collect())
}
