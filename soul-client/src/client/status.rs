//! How things stand: by admin, and by route.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    address::Announced,
    config::AdminsRule,
    error::{Error, Kind},
    plan::{Registration, RegistrationPlan},
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
    /// When it last accepted something.
    pub last_success: Option<SystemTime>,
    /// Why it last did not, if the last thing it was told failed.
    pub last_error: Option<Arc<Error>>,
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
            Self::Pending | Self::Registered { .. } => 0,
        }
    }
}

impl AdminStatus {
    /// Whether this admin has every route.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.routes.iter().all(|route| route.state.is_registered())
    }
}

impl Status {
    /// Whether every route is registered where it should be: at one admin, or at each, by the rule.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.settled.iter().flatten().all(|&settled| settled)
    }

    /// Whether the client was shut down.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Why not everything is registered after `limit`.
    pub(super) fn unfinished(&self, limit: Duration) -> Error {
        let all = self.settled.iter().map(Vec::len).max().unwrap_or(0);
        let left = |lane: &Vec<bool>| lane.iter().filter(|&&settled| !settled).count();
        let left = self.settled.iter().map(left).max().unwrap_or(0);
        let error =
            Error::new(Kind::Timeout, format!("register within {limit:?}: {left} of {all} routes are left"));
        match self.admins.iter().rev().find_map(|admin| admin.last_error.clone()) {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }
}

/// Changes made by the lanes, as methods of what is watched.
impl Status {
    /// Nothing told yet. `lanes`: how many groups of admins are told, each as one.
    pub(super) fn new(urls: &[&str], admins_rule: AdminsRule, lanes: usize, plan: &RegistrationPlan) -> Self {
        let route = |registration: &Registration| RouteStatus {
            path: registration.path().into(),
            rule_name: registration.rule_name().into(),
            state: RouteState::Pending,
        };
        let routes: Vec<_> = plan.registrations().iter().map(route).collect();
        let settled = vec![vec![false; routes.len()]; lanes];
        let admin = |url: &&str| AdminStatus {
            url: (*url).to_owned(),
            announced: None,
            routes: routes.clone(),
            last_success: None,
            last_error: None,
        };
        let admins = urls.iter().map(admin).collect();
        Self { admins, admins_rule, panics: 0, settled, stopped: false }
    }

    pub(super) fn stop(&mut self) {
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
            let failures =
                admin.routes.get(route).map_or(0, |route| route.state.failures()).saturating_add(1);
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
            let routes = self.admins.get_mut(admin).map(|admin| admin.routes.iter_mut());
            for route in routes.into_iter().flatten() {
                if let RouteState::Failed { next_try, .. } = &mut route.state {
                    *next_try = Some(at);
                }
            }
        }
    }
}

impl AdminStatus {
    fn set(&mut self, route: usize, state: RouteState) {
        if let Some(route) = self.routes.get_mut(route) {
            route.state = state;
        }
    }
}
