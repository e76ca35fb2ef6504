//! What can be set for the calls to a service.
//!
//! A [`ServiceConfig`] says some settings and is silent on the others. Laid over each other (a request's over the service's
//! over those for all services) they make [`Effective`] settings, in which the built-in value stands for what nobody said.

mod keys;
mod kinds;
mod read;

use std::{fmt, sync::Arc, time::Duration};

pub use self::{
    kinds::{Filters, HostHeader, ListSource, Source, Timeouts},
    read::{CallConfig, Ignored},
};
use super::{
    BudgetSettings, Discover, Filter, Refresh,
    probe::Probing,
    retry::{Methods, Retry, Statuses},
};
use crate::balance::{self, OutlierDetector, SlowStart, Upstream, policy::Policy};

/// How a value is shown and compared. Policies and filters have no equality; their text has.
trait Shown {
    fn shown(&self) -> String;
}

impl<T: fmt::Debug> Shown for T {
    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $builtin:expr;)*) => {
        /// Settings for the calls to a service, or to all; what it does not say is left to whoever stands below.
        ///
        /// # Examples
        /// ```
        /// use std::time::Duration;
        /// use soul_client::{balance::policy::LeastRequest, call::ServiceConfig};
        ///
        /// let config = ServiceConfig::default().policy(LeastRequest).read_timeout(Duration::from_secs(2)).retries_next(2);
        /// assert_eq!(config.said(), ["policy", "read_timeout", "retries_next"]);
        /// ```
        #[doc(alias = "IClientConfig")]
        #[derive(Clone, Default)]
        #[must_use = "settings do nothing until a factory has them"]
        pub struct ServiceConfig {
            $(pub(super) $name: Option<$kind>,)*
        }

        /// Every setting with the value that holds.
        #[derive(Clone)]
        #[non_exhaustive]
        pub struct Effective {
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl ServiceConfig {
            /// Names of all settings.
            pub const SETTINGS: &'static [&'static str] = &[$(stringify!($name)),*];

            /// These settings, and those of `below` where these say nothing.
            pub fn over(&self, below: &Self) -> Self {
                Self { $($name: self.$name.as_ref().or(below.$name.as_ref()).cloned(),)* }
            }

            /// Names of the settings that this says.
            #[must_use]
            pub fn said(&self) -> Vec<&'static str> {
                let mut said = Vec::new();
                $(if self.$name.is_some() { said.push(stringify!($name)); })*
                said
            }

            /// Every setting, with the built-in value for what this does not say.
            #[must_use]
            pub fn effective(&self) -> Effective {
                Effective { $($name: self.$name.clone().unwrap_or_else(|| $builtin),)* }
            }
        }

        impl Effective {
            /// Names of the settings in which two differ.
            #[must_use]
            pub fn differences(&self, other: &Self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$name.shown() != other.$name.shown() { names.push(stringify!($name)); })*
                names
            }
        }

        impl fmt::Debug for ServiceConfig {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut shown = f.debug_struct("ServiceConfig");
                $(if let Some(value) = &self.$name { shown.field(stringify!($name), &value.shown()); })*
                shown.finish_non_exhaustive()
            }
        }

        impl fmt::Debug for Effective {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Effective")$(.field(stringify!($name), &self.$name.shown()))*.finish()
            }
        }
    };
}

settings! {
    /// Who is chosen. Built in: [`PeakEwma`](balance::policy::PeakEwma).
    policy: Arc<dyn Policy> = balance::Settings::default().policy;
    /// Share of healthy upstreams below which health is not heeded; 0 is never. Built in: 0.5.
    panic_threshold: f64 = balance::Settings::default().panic_threshold;
    /// Leaves out upstreams that fail requests. Built in: [`OutlierDetector::default`].
    outliers: Option<OutlierDetector> = balance::Settings::default().outliers;
    /// Spares upstreams that come or come back. Built in: off.
    slow_start: Option<SlowStart> = None;
    /// Whether a tried upstream may be tried again when there is no other. Built in: true.
    tried_again: bool = true;
    /// Where the list comes from, if not from the registry of the factory. Built in: nothing.
    discover: Source = Source::default();
    /// The list that the configuration gives. Built in: none.
    servers: Option<Vec<Upstream>> = None;
    /// Whether that list or the registry counts. Built in: the registry.
    list_source: ListSource = ListSource::default();
    /// How the list is kept new. Built in: pushed, else polled.
    refresh: Refresh = Refresh::default();
    /// The zone of this program, for the two that follow. Built in: not known.
    zone: Option<String> = None;
    /// Whether the list is narrowed to the own zone while that is well, by [`ZoneAffinity`](crate::call::filter::ZoneAffinity). Built in: false.
    zone_affinity: bool = false;
    /// Whether it is so even while the own zone is not well. Built in: false.
    zone_exclusivity: bool = false;
    /// The list is narrowed to so many, drawn by chance, by [`Subset`](crate::call::filter::Subset). Built in: all.
    subset: Option<usize> = None;
    /// What narrows the list thereafter. Built in: nothing.
    filters: Filters = Filters::default();
    /// Active checks. Built in: whether a connection is taken, every 5 s.
    probe: Probing = Probing::default();
    /// Opening a connection. Built in: 1 s.
    connect_timeout: Duration = Timeouts::default().connect;
    /// From sending to the head of the answer, and each pause in its body. Built in: 5 s.
    read_timeout: Duration = Timeouts::default().read;
    /// The whole call with all its attempts. Built in: 30 s.
    total_timeout: Duration = Timeouts::default().total;
    /// Repeats at the same upstream. Built in: 0.
    retries_same: u32 = Retry::default().same;
    /// Further upstreams. Built in: 1.
    retries_next: u32 = Retry::default().next;
    /// Requests that may be repeated although they may have been acted on. Built in: the idempotent ones.
    retry_methods: Methods = Methods::default();
    /// Whether every method counts as one of them. Built in: false.
    retry_all_methods: bool = false;
    /// Answers that are repeated. Built in: 502, 503 and 504.
    retry_statuses: Statuses = Statuses::default();
    /// Bound of the random pause before the first repeat. Built in: 25 ms.
    backoff: Duration = Retry::default().backoff;
    /// Bound of the pause before any repeat. Built in: 250 ms.
    longest_backoff: Duration = Retry::default().longest_backoff;
    /// Longest `Retry-After` that is waited for. Built in: 1 s.
    longest_retry_after: Duration = Retry::default().longest_retry_after;
    /// Bounds the retries of all calls together. Built in: 20 %, and 10 per second, over 10 s.
    budget: Option<BudgetSettings> = Some(BudgetSettings::default());
    /// What stands in `Host`. Built in: the upstream.
    host_header: HostHeader = HostHeader::default();
    /// Whether every upstream is called over TLS, whatever the list says. Built in: false.
    secure: bool = false;
    /// The name that certificates must have and TLS says (SNI), where upstreams are addresses. Built in: the host of the upstream.
    tls_name: Option<String> = None;
    /// Idle connections kept for each upstream. Built in: 32.
    idle_connections: usize = 32;
    /// How long an idle connection is kept; shorter than servers keep theirs. Built in: 4 s.
    idle_timeout: Duration = Duration::from_secs(4);
    /// Whether a redirect is followed; it leaves the balancer. Built in: false.
    follow_redirects: bool = false;
    /// Whether a connection to a new upstream is made before it is used. Built in: false.
    prime: bool = false;
    /// What that connection asks for; any answer will do. Built in: `/`.
    prime_uri: String = "/".to_owned();
    /// Attempts for each new upstream. Built in: 10.
    prime_attempts: u32 = 10;
    /// How long the first list may be held back for it, and each new upstream later. Built in: 30 s.
    prime_time: Duration = Duration::from_secs(30);
    /// Share of the first list that must have answered before it is used. Built in: 1.
    prime_ratio: f64 = 1.0;
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $kind:ty;)*) => {
        impl ServiceConfig {
            $($(#[$doc])* pub fn $name(self, $name: $kind) -> Self {
                Self { $name: Some($name), ..self }
            })*
        }
    };
}

setters! {
    /// Sets the share of healthy upstreams below which health is not heeded; 0 is never.
    panic_threshold: f64;
    /// Sets how upstreams that fail requests are left out; `None` is off.
    outliers: Option<OutlierDetector>;
    /// Sets how upstreams that come or come back are spared; `None` is off.
    slow_start: Option<SlowStart>;
    /// Sets whether a tried upstream may be tried again when there is no other.
    tried_again: bool;
    /// Sets whether the list of the configuration or the registry counts where there are both.
    list_source: ListSource;
    /// Sets how the list is kept new.
    refresh: Refresh;
    /// Sets whether the list is narrowed to the own [`zone`](Self::zone) while that is well.
    zone_affinity: bool;
    /// Sets whether it is narrowed to it even while it is not well.
    zone_exclusivity: bool;
    /// Sets to how many the list is narrowed, drawn by chance; `None` is all.
    subset: Option<usize>;
    /// Sets the time for opening a connection.
    connect_timeout: Duration;
    /// Sets the time from sending to the head of the answer, and for each pause in its body.
    read_timeout: Duration;
    /// Sets the time of the whole call with all its attempts.
    total_timeout: Duration;
    /// Sets the repeats at the same upstream.
    retries_same: u32;
    /// Sets the number of further upstreams.
    retries_next: u32;
    /// Sets which requests may be repeated although they may have been acted on.
    retry_methods: Methods;
    /// Sets whether requests of every method may be.
    retry_all_methods: bool;
    /// Sets which answers are repeated.
    retry_statuses: Statuses;
    /// Sets what bounds the retries of all calls together; `None` is nothing.
    budget: Option<BudgetSettings>;
    /// Sets what stands in `Host`.
    host_header: HostHeader;
    /// Sets whether every upstream is called over TLS, whatever the list says.
    secure: bool;
    /// Sets the number of idle connections kept for each upstream.
    idle_connections: usize;
    /// Sets how long an idle connection is kept.
    idle_timeout: Duration;
    /// Sets whether a redirect is followed; what it leads to is not balanced.
    follow_redirects: bool;
    /// Sets the active checks.
    probe: Probing;
    /// Sets whether a connection to a new upstream is made before it is used.
    prime: bool;
    /// Sets the attempts to do so for each new upstream.
    prime_attempts: u32;
    /// Sets how long the first list may be held back for it, and each new upstream later.
    prime_time: Duration;
    /// Sets the share of the first list that must have answered before it is used.
    prime_ratio: f64;
}

impl ServiceConfig {
    /// As Spring Cloud with Ribbon: zone avoidance with Ribbon's circuit breaker, polling after 1 s and then every 30 s, 1 s to
    /// connect and 1 s to read, no active check, one further server and only for GET, no retry budget and no pause.
    pub fn ribbon() -> Self {
        let balance = balance::Settings::ribbon();
        Self {
            policy: Some(balance.policy),
            panic_threshold: Some(balance.panic_threshold),
            outliers: Some(balance.outliers),
            refresh: Some(Refresh::POLLING),
            probe: Some(Probing::ribbon()),
            connect_timeout: Some(Duration::from_secs(1)),
            read_timeout: Some(Duration::from_secs(1)),
            retries_same: Some(0),
            retries_next: Some(1),
            retry_methods: Some(Methods::only([http::Method::GET])),
            budget: Some(None),
            backoff: Some(Duration::ZERO),
            longest_backoff: Some(Duration::ZERO),
            ..Self::default()
        }
    }

    /// Sets who is chosen.
    pub fn policy(self, policy: impl Policy + 'static) -> Self {
        Self { policy: Some(Arc::new(policy)), ..self }
    }

    /// Sets who is chosen by a name of [`policy::by_name`](balance::policy::by_name).
    ///
    /// # Errors
    /// If there is none of that name; the error lists all.
    pub fn policy_named(self, name: &str) -> Result<Self, balance::policy::UnknownPolicy> {
        Ok(Self { policy: Some(balance::policy::by_name(name)?), ..self })
    }

    /// Sets where the list comes from; wins over the registry of the factory and over [`servers`](Self::servers).
    pub fn discover(self, source: impl Discover) -> Self {
        Self { discover: Some(Source(Some(Arc::new(source)))), ..self }
    }

    /// Gives the list of upstreams. A registry of the factory wins over it, unless [`list_source`](Self::list_source) says otherwise.
    #[doc(alias = "listOfServers")]
    pub fn servers(self, servers: impl IntoIterator<Item = Upstream>) -> Self {
        Self { servers: Some(Some(servers.into_iter().collect())), ..self }
    }

    /// Says in which zone this program runs.
    pub fn zone(self, zone: impl Into<String>) -> Self {
        Self { zone: Some(Some(zone.into())), ..self }
    }

    /// Adds what narrows the list.
    pub fn filter(mut self, filter: impl Filter) -> Self {
        self.filters.get_or_insert_default().0.push(Arc::new(filter));
        self
    }

    /// Sets all three times.
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        let Timeouts { connect, read, total } = timeouts;
        self.connect_timeout(connect).read_timeout(read).total_timeout(total)
    }

    /// Sets everything about retries but the budget.
    pub fn retry(self, retry: Retry) -> Self {
        Self {
            retries_same: Some(retry.same),
            retries_next: Some(retry.next),
            retry_methods: Some(retry.methods),
            retry_all_methods: Some(retry.all_methods),
            retry_statuses: Some(retry.statuses),
            backoff: Some(retry.backoff),
            longest_backoff: Some(retry.longest_backoff),
            longest_retry_after: Some(retry.longest_retry_after),
            ..self
        }
    }

    /// Sets the bound of the random pause before the first repeat, and of the pause before any.
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        Self { backoff: Some(first), longest_backoff: Some(longest), ..self }
    }

    /// Sets what a connection to a new upstream asks for.
    pub fn prime_uri(self, uri: impl Into<String>) -> Self {
        Self { prime_uri: Some(uri.into()), ..self }
    }

    /// Sets the name that certificates must have and TLS says (SNI), where upstreams are addresses.
    pub fn tls_name(self, name: impl Into<String>) -> Self {
        Self { tls_name: Some(Some(name.into())), ..self }
    }
}

impl Effective {
    /// What the balancer needs of it.
    pub(super) fn balance(&self) -> balance::Settings {
        balance::Settings {
            policy: Arc::clone(&self.policy),
            panic_threshold: self.panic_threshold,
            outliers: self.outliers.clone(),
            slow_start: self.slow_start,
            tried_again: self.tried_again,
            prefer: balance::Prefer::default(),
            parts: 1,
        }
    }

    /// How retries are made.
    #[must_use]
    pub fn retry(&self) -> Retry {
        Retry {
            same: self.retries_same,
            next: self.retries_next,
            methods: self.retry_methods.clone(),
            all_methods: self.retry_all_methods,
            statuses: self.retry_statuses.clone(),
            backoff: self.backoff,
            longest_backoff: self.longest_backoff,
            longest_retry_after: self.longest_retry_after,
        }
    }

    /// The times of a call.
    #[must_use]
    pub fn timeouts(&self) -> Timeouts {
        Timeouts { connect: self.connect_timeout, read: self.read_timeout, total: self.total_timeout }
    }
}

#[cfg(test)]
mod tests;
