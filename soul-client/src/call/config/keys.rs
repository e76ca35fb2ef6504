//! Which keys a configuration may have, and what each means.

use std::{str::FromStr, time::Duration};

use http::{Method, StatusCode};

use super::{HostHeader, ListSource, ServiceConfig};
use crate::{
    balance::{OutlierDetector, SlowStart, Upstream, policy},
    call::{
        BudgetSettings, Methods, Refresh, Statuses,
        probe::{HttpCheck, Probing},
    },
};

/// Whose key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `orders.ribbon.ConnectTimeout`.
    Ribbon,
    /// `soul.call.clients.orders.connect-timeout-ms`.
    Ours,
}

/// What a key does.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// Says a setting; the error says what is expected.
    Set(fn(&mut ServiceConfig, &str) -> Result<(), String>),
    /// Nothing here corresponds to it, and leaving it out changes nothing that anyone would miss: why.
    Ignored(&'static str),
    /// Nothing here corresponds to it, and leaving it out would be a surprise: what to do instead.
    Refused(&'static str),
}

use Dialect::{Ours, Ribbon};
use Meaning::{Ignored, Refused, Set};

pub(super) struct Key {
    pub(super) dialect: Dialect,
    pub(super) name: &'static str,
    pub(super) meaning: Meaning,
}

const fn key(dialect: Dialect, name: &'static str, meaning: Meaning) -> Key {
    Key { dialect, name, meaning }
}

/// How many Ribbon's `ServerListSubsetFilter` keeps.
const SUBSET: usize = 20;

const NO_LIMIT: &str = "connections are opened as they are needed; idle ones are kept by `idle-connections`";
const BY_REQWEST: &str = "the HTTP client sees to it";
const NAMES: &str = "the name of a service is what its source of lists calls it";
const CLASSES: &str = "there are no classes to choose";
const GIVE_A_CLIENT: &str = "set it with `ClientFactoryBuilder::http`";

/// Every key there is: ours, and those that Ribbon's documentation has.
pub(super) const KEYS: &[Key] = &[
    // Whom to call.
    key(Ribbon, "listOfServers", Set(servers)),
    key(Ours, "servers", Set(servers)),
    key(Ribbon, "NIWSServerListClassName", Set(list_class)),
    key(Ours, "list-source", Set(list_source)),
    key(Ribbon, "ServerListRefreshInterval", Set(refresh)),
    key(Ours, "refresh-interval-ms", Set(refresh)),
    key(Ribbon, "ServerListUpdaterClassName", Set(updater_class)),
    key(Ribbon, "IsSecure", Set(|c, v| put(&mut c.secure, flag(v)))),
    key(Ours, "secure", Set(|c, v| put(&mut c.secure, flag(v)))),
    key(Ours, "tls-name", Set(|c, v| put(&mut c.tls_name, Ok(Some(v.to_owned()))))),
    // To whom the list is narrowed.
    key(Ours, "zone", Set(|c, v| put(&mut c.zone, Ok(Some(v.to_owned()))))),
    key(Ribbon, "EnableZoneAffinity", Set(|c, v| put(&mut c.zone_affinity, flag(v)))),
    key(Ours, "zone-affinity", Set(|c, v| put(&mut c.zone_affinity, flag(v)))),
    key(Ribbon, "EnableZoneExclusivity", Set(|c, v| put(&mut c.zone_exclusivity, flag(v)))),
    key(Ours, "zone-exclusivity", Set(|c, v| put(&mut c.zone_exclusivity, flag(v)))),
    key(Ribbon, "NIWSServerListFilterClassName", Set(filter_class)),
    key(Ribbon, "ServerListSubsetFilter.size", Set(|c, v| put(&mut c.subset, number(v).map(Some)))),
    key(Ours, "subset", Set(|c, v| put(&mut c.subset, number(v).map(Some)))),
    // How to choose.
    key(Ribbon, "NFLoadBalancerRuleClassName", Set(rule)),
    key(Ours, "policy", Set(rule)),
    key(Ours, "panic-threshold", Set(|c, v| put(&mut c.panic_threshold, share(v)))),
    key(Ours, "consecutive-failures", Set(consecutive_failures)),
    key(Ours, "slow-start-ms", Set(slow_start)),
    key(Ours, "tried-again", Set(|c, v| put(&mut c.tried_again, flag(v)))),
    // Whether they live.
    key(Ribbon, "NFLoadBalancerPingClassName", Set(ping_class)),
    key(Ours, "probe", Set(probe)),
    key(Ribbon, "NFLoadBalancerPingInterval", Set(|c, v| probe_every(c, seconds(v)))),
    key(Ours, "probe-interval-ms", Set(|c, v| probe_every(c, millis(v)))),
    // Times.
    key(Ribbon, "ConnectTimeout", Set(|c, v| put(&mut c.connect_timeout, millis(v)))),
    key(Ours, "connect-timeout-ms", Set(|c, v| put(&mut c.connect_timeout, millis(v)))),
    key(Ribbon, "ReadTimeout", Set(|c, v| put(&mut c.read_timeout, millis(v)))),
    key(Ours, "read-timeout-ms", Set(|c, v| put(&mut c.read_timeout, millis(v)))),
    key(Ours, "total-timeout-ms", Set(|c, v| put(&mut c.total_timeout, millis(v)))),
    // Retries.
    key(Ribbon, "MaxAutoRetries", Set(|c, v| put(&mut c.retries_same, count(v)))),
    key(Ours, "retries-same", Set(|c, v| put(&mut c.retries_same, count(v)))),
    key(Ribbon, "MaxAutoRetriesNextServer", Set(|c, v| put(&mut c.retries_next, count(v)))),
    key(Ours, "retries-next", Set(|c, v| put(&mut c.retries_next, count(v)))),
    key(Ribbon, "OkToRetryOnAllOperations", Set(|c, v| put(&mut c.retry_all_methods, flag(v)))),
    key(Ours, "retry-all-methods", Set(|c, v| put(&mut c.retry_all_methods, flag(v)))),
    key(Ours, "retry-methods", Set(|c, v| put(&mut c.retry_methods, methods(v)))),
    // Spring's.
    key(Ribbon, "retryableStatusCodes", Set(|c, v| put(&mut c.retry_statuses, statuses(v)))),
    key(Ours, "retry-statuses", Set(|c, v| put(&mut c.retry_statuses, statuses(v)))),
    key(Ribbon, "BackoffInterval", Set(|c, v| put(&mut c.backoff, millis(v)))),
    key(Ours, "backoff-ms", Set(|c, v| put(&mut c.backoff, millis(v)))),
    key(Ours, "longest-backoff-ms", Set(|c, v| put(&mut c.longest_backoff, millis(v)))),
    key(Ours, "longest-retry-after-ms", Set(|c, v| put(&mut c.longest_retry_after, millis(v)))),
    key(Ours, "retry-budget", Set(budget)),
    // Requests and connections.
    key(Ours, "host-header", Set(host_header)),
    key(Ribbon, "FollowRedirects", Set(|c, v| put(&mut c.follow_redirects, flag(v)))),
    key(Ours, "follow-redirects", Set(|c, v| put(&mut c.follow_redirects, flag(v)))),
    key(Ribbon, "MaxConnectionsPerHost", Set(|c, v| put(&mut c.idle_connections, number(v)))),
    key(Ribbon, "MaxHttpConnectionsPerHost", Set(|c, v| put(&mut c.idle_connections, number(v)))),
    key(Ours, "idle-connections", Set(|c, v| put(&mut c.idle_connections, number(v)))),
    key(Ribbon, "ConnIdleEvictTimeMilliSeconds", Set(|c, v| put(&mut c.idle_timeout, millis(v)))),
    key(Ours, "idle-timeout-ms", Set(|c, v| put(&mut c.idle_timeout, millis(v)))),
    // Connections that are made beforehand.
    key(Ribbon, "EnablePrimeConnections", Set(|c, v| put(&mut c.prime, flag(v)))),
    key(Ours, "prime", Set(|c, v| put(&mut c.prime, flag(v)))),
    key(Ribbon, "PrimeConnectionsURI", Set(prime_uri)),
    key(Ours, "prime-uri", Set(prime_uri)),
    key(Ribbon, "MaxRetriesPerServerPrimeConnection", Set(prime_retries)),
    key(Ours, "prime-attempts", Set(|c, v| put(&mut c.prime_attempts, count(v)))),
    key(Ribbon, "MaxTotalTimeToPrimeConnections", Set(|c, v| put(&mut c.prime_time, millis(v)))),
    key(Ours, "prime-time-ms", Set(|c, v| put(&mut c.prime_time, millis(v)))),
    key(Ribbon, "MinPrimeConnectionsRatio", Set(|c, v| put(&mut c.prime_ratio, share(v)))),
    key(Ours, "prime-ratio", Set(|c, v| put(&mut c.prime_ratio, share(v)))),
    // Of Ribbon, without a counterpart.
    key(
        Ribbon,
        "zoneAffinity.maxLoadPerServer",
        Refused("add the filter `ZoneAffinity` with its limits by type"),
    ),
    key(
        Ribbon,
        "zoneAffinity.maxBlackOutServesrPercentage",
        Refused("add the filter `ZoneAffinity` with its limits by type"),
    ),
    key(
        Ribbon,
        "zoneAffinity.minAvailableServers",
        Refused("add the filter `ZoneAffinity` with its limits by type"),
    ),
    key(
        Ribbon,
        "ActiveConnectionsLimit",
        Refused("set the policy `AvailabilityFiltering { limit }` by type"),
    ),
    key(Ribbon, "RulePredicateClasses", Refused("add a filter with `ServiceConfig::filter`")),
    key(Ribbon, "RequestSpecificRetryOn", Ignored("retries are decided for each request")),
    key(Ribbon, "NFLoadBalancerClassName", Ignored(CLASSES)),
    key(Ribbon, "NFLoadBalancerStatsClassName", Ignored(CLASSES)),
    key(Ribbon, "ClientClassName", Ignored(CLASSES)),
    key(Ribbon, "PrimeConnectionsClassName", Ignored(CLASSES)),
    key(Ribbon, "VipAddressResolverClassName", Ignored(CLASSES)),
    key(Ribbon, "InitializeNFLoadBalancer", Ignored("a balancer is there when it is needed")),
    key(
        Ribbon,
        "NFLoadBalancerMaxTotalPingTime",
        Ignored("checks are made at the same time, each with a timeout"),
    ),
    key(Ribbon, "AppName", Ignored(NAMES)),
    key(Ribbon, "Version", Ignored(NAMES)),
    key(Ribbon, "VipAddress", Ignored(NAMES)),
    key(Ribbon, "DeploymentContextBasedVipAddresses", Ignored(NAMES)),
    key(Ribbon, "PrioritizeVipAddressBasedServers", Ignored(NAMES)),
    key(Ribbon, "UseIPAddrForServer", Ignored(NAMES)),
    key(Ribbon, "TargetRegion", Ignored(NAMES)),
    key(Ribbon, "Port", Ignored("the list has the ports")),
    key(Ribbon, "SecurePort", Ignored("the list has the ports")),
    key(Ribbon, "ForceClientPortConfiguration", Ignored("the list has the ports")),
    key(Ribbon, "MaxTotalConnections", Ignored(NO_LIMIT)),
    key(Ribbon, "MaxTotalHttpConnections", Ignored(NO_LIMIT)),
    key(Ribbon, "EnableConnectionPool", Ignored(NO_LIMIT)),
    key(Ribbon, "PoolMaxThreads", Ignored(NO_LIMIT)),
    key(Ribbon, "PoolMinThreads", Ignored(NO_LIMIT)),
    key(Ribbon, "PoolKeepAliveTime", Ignored(NO_LIMIT)),
    key(Ribbon, "PoolKeepAliveTimeUnits", Ignored(NO_LIMIT)),
    key(Ribbon, "ConnectionManagerTimeout", Ignored(NO_LIMIT)),
    key(Ribbon, "ConnectionPoolCleanerTaskEnabled", Ignored(NO_LIMIT)),
    key(Ribbon, "ConnectionCleanerRepeatInterval", Ignored(NO_LIMIT)),
    key(Ribbon, "StaleCheckingEnabled", Ignored(BY_REQWEST)),
    key(Ribbon, "ReceiveBufferSize", Ignored(BY_REQWEST)),
    key(Ribbon, "SendBufferSize", Ignored(BY_REQWEST)),
    key(Ribbon, "Linger", Ignored(BY_REQWEST)),
    key(Ribbon, "RequestIdHeaderName", Ignored("a listener hears of every attempt")),
    key(
        Ribbon,
        "EnableMarkingServerDownOnReachingFailureLimit",
        Ignored("upstreams that fail are always left out for a while"),
    ),
    key(Ribbon, "ServerDownFailureLimit", Set(consecutive_failures)),
    key(Ribbon, "ServerDownStatWindowInMillis", Ignored("failures count in a row, not in a time")),
    key(Ribbon, "GZipPayload", Refused("compress the body before it is sent")),
    key(Ribbon, "EnableGZIPContentEncodingFilter", Refused(GIVE_A_CLIENT)),
    key(Ribbon, "ProxyHost", Refused(GIVE_A_CLIENT)),
    key(Ribbon, "ProxyPort", Refused(GIVE_A_CLIENT)),
    key(Ribbon, "KeyStore", Refused(GIVE_A_CLIENT)),
    key(Ribbon, "KeyStorePassword", Refused(GIVE_A_CLIENT)),
    key(Ribbon, "TrustStore", Refused(GIVE_A_CLIENT)),
    key(Ribbon, "TrustStorePassword", Refused(GIVE_A_CLIENT)),
    key(Ribbon, "IsClientAuthRequired", Refused(GIVE_A_CLIENT)),
    key(Ribbon, "CustomSSLSocketFactoryClassName", Refused(GIVE_A_CLIENT)),
    key(Ribbon, "IsHostnameValidationRequired", Refused("host names are always checked; see `tls-name`")),
    key(Ribbon, "IgnoreUserTokenInConnectionPoolForSecureClient", Ignored(BY_REQWEST)),
];

/// `ConnectTimeout`, `connect-timeout` and `CONNECT_TIMEOUT` are one key, as in Spring.
pub(super) fn relaxed(key: &str) -> String {
    key.chars().filter(|letter| !matches!(letter, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// The key of a name; the error is the nearest there is.
pub(super) fn find(dialect: Dialect, name: &str) -> Result<&'static Key, &'static str> {
    let wanted = relaxed(name);
    let known = || KEYS.iter().filter(|key| key.dialect == dialect);
    known().find(|key| relaxed(key.name) == wanted).ok_or_else(|| {
        let likeness = |key: &&Key| strsim::jaro_winkler(&relaxed(key.name), &wanted);
        let nearest = known().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        nearest.map_or("", |key| key.name)
    })
}

/// Of a name of the environment, which has the service before the key: where the key begins, and the key.
pub(super) fn find_at_end(name: &str) -> Option<(usize, &'static Key)> {
    let starts = name.match_indices('_').map(|(at, _)| at + 1);
    let found = starts.filter_map(|at| find(Ours, &name[at..]).ok().map(|key| (at, key)));
    // The longest: of `ORDERS_RETRIES_NEXT` not `NEXT`, should there ever be one.
    found.min_by_key(|(at, _)| *at)
}

type Wrong = String;

fn put<T>(place: &mut Option<T>, value: Result<T, Wrong>) -> Result<(), Wrong> {
    *place = Some(value?);
    Ok(())
}

fn parsed<T: FromStr>(text: &str, expected: &str) -> Result<T, Wrong> {
    text.parse().map_err(|_| format!("expected {expected}"))
}

fn flag(text: &str) -> Result<bool, Wrong> {
    parsed(&text.to_ascii_lowercase(), "`true` or `false`")
}

fn count(text: &str) -> Result<u32, Wrong> {
    parsed(text, "a number from 0 on")
}

fn number(text: &str) -> Result<usize, Wrong> {
    parsed(text, "a number from 0 on")
}

fn millis(text: &str) -> Result<Duration, Wrong> {
    parsed(text, "milliseconds, for example `1000`").map(Duration::from_millis)
}

fn seconds(text: &str) -> Result<Duration, Wrong> {
    parsed(text, "seconds, for example `30`").map(Duration::from_secs)
}

fn share(text: &str) -> Result<f64, Wrong> {
    let expected = "a share from 0 to 1";
    parsed(text, expected).and_then(|share: f64| {
        if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(format!("expected {expected}")) }
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn methods(text: &str) -> Result<Methods, Wrong> {
    let method = |word: &str| parsed::<Method>(&word.to_ascii_uppercase(), "methods, for example `GET, PUT`");
    Ok(Methods::only(words(text).map(method).collect::<Result<Vec<_>, _>>()?))
}

fn statuses(text: &str) -> Result<Statuses, Wrong> {
    let status = |word| parsed::<StatusCode>(word, "codes, for example `502, 503`");
    Ok(Statuses::only(words(text).map(status).collect::<Result<Vec<_>, _>>()?))
}

/// An address of Ribbon's list may have a scheme; one without says nothing of it, and the request decides.
fn servers(config: &mut ServiceConfig, text: &str) -> Result<(), Wrong> {
    let servers = words(text).map(|address| match address.split_once("://") {
        Some((scheme, address)) => Upstream::new(address).with_protocol(&format!("{scheme}://")),
        None => Upstream::new(address).with_protocol(""),
    });
    put(&mut config.servers, Ok(Some(servers.collect())))
}

fn list_class(config: &mut ServiceConfig, class: &str) -> Result<(), Wrong> {
    let is_static = simple(class) == "ConfigurationBasedServerList";
    put(&mut config.list_source, Ok(if is_static { ListSource::Static } else { ListSource::Registry }))
}

fn list_source(config: &mut ServiceConfig, text: &str) -> Result<(), Wrong> {
    let source = match text {
        "registry" => Ok(ListSource::Registry),
        "static" => Ok(ListSource::Static),
        _ => Err("expected `registry` or `static`".to_owned()),
    };
    put(&mut config.list_source, source)
}

fn refresh(config: &mut ServiceConfig, text: &str) -> Result<(), Wrong> {
    put(&mut config.refresh, millis(text).map(Refresh::every))
}

fn updater_class(config: &mut ServiceConfig, class: &str) -> Result<(), Wrong> {
    match simple(class) {
        // The interval may have been said already, or will be.
        "PollingServerListUpdater" => config.refresh = config.refresh.or(Some(Refresh::POLLING)),
        "EurekaNotificationServerListUpdater" => config.refresh = Some(Refresh::Watch),
        _ => {
            let expected = "expected `PollingServerListUpdater` or `EurekaNotificationServerListUpdater`, which stands for any push";
            return Err(expected.to_owned());
        }
    }
    Ok(())
}

/// The filter of zones does what `EnableZoneAffinity` and `EnableZoneExclusivity` say, here as there; Spring's needs no such word.
fn filter_class(config: &mut ServiceConfig, class: &str) -> Result<(), Wrong> {
    match simple(class) {
        "ZoneAffinityServerListFilter" | "DefaultNIWSServerListFilter" => {}
        "ZonePreferenceServerListFilter" => config.zone_affinity = config.zone_affinity.or(Some(true)),
        // The size may have been said already, or will be.
        "ServerListSubsetFilter" => config.subset = config.subset.or(Some(Some(SUBSET))),
        _ => {
            let expected = "expected `ZoneAffinityServerListFilter`, `DefaultNIWSServerListFilter`, \
                `ZonePreferenceServerListFilter` or `ServerListSubsetFilter`; for one of your own see `ServiceConfig::filter`";
            return Err(expected.to_owned());
        }
    }
    Ok(())
}

/// A class without its package.
fn simple(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

fn rule(config: &mut ServiceConfig, name: &str) -> Result<(), Wrong> {
    put(&mut config.policy, policy::by_name(name).map_err(|error| error.to_string()))
}

fn consecutive_failures(config: &mut ServiceConfig, text: &str) -> Result<(), Wrong> {
    let consecutive_failures = count(text)?;
    let outliers = config.outliers.take().flatten().unwrap_or_default();
    put(&mut config.outliers, Ok(Some(OutlierDetector { consecutive_failures, ..outliers })))
}

fn slow_start(config: &mut ServiceConfig, text: &str) -> Result<(), Wrong> {
    let window = millis(text)?;
    put(&mut config.slow_start, Ok((!window.is_zero()).then(|| SlowStart::over(window))))
}

fn budget(config: &mut ServiceConfig, text: &str) -> Result<(), Wrong> {
    let budget = match text {
        "off" => Ok(None),
        share => {
            let expected = "retries for each call, for example `0.2`, or `off`";
            let ratio = parsed(share, expected)?;
            if !(0.0..=1000.0).contains(&ratio) {
                return Err(format!("expected {expected}"));
            }
            Ok(Some(BudgetSettings { ratio, ..BudgetSettings::default() }))
        }
    };
    put(&mut config.budget, budget)
}

fn ping_class(config: &mut ServiceConfig, class: &str) -> Result<(), Wrong> {
    let kind = match simple(class) {
        "DummyPing" | "NoOpPing" | "PingConstant" => Ok(Probing::none()),
        "NIWSDiscoveryPing" => Ok(Probing::registry_status()),
        "PingUrl" => http_probe(),
        _ => Err("expected `DummyPing`, `NoOpPing`, `NIWSDiscoveryPing` or `PingUrl`".to_owned()),
    };
    probe_by(config, kind)
}

/// The interval may have been said before.
fn probe_by(config: &mut ServiceConfig, kind: Result<Probing, Wrong>) -> Result<(), Wrong> {
    let kind = kind?;
    let settings = config.probe.as_ref().map_or(kind.settings, |probe| probe.settings);
    put(&mut config.probe, Ok(Probing { settings, ..kind }))
}

fn probe(config: &mut ServiceConfig, text: &str) -> Result<(), Wrong> {
    let kind = match text {
        "none" => Ok(Probing::none()),
        "registry" => Ok(Probing::registry_status()),
        "tcp" => Ok(Probing::tcp()),
        "http" => http_probe(),
        _ => Err("expected `none`, `registry`, `tcp` or `http`".to_owned()),
    };
    probe_by(config, kind)
}

fn probe_every(config: &mut ServiceConfig, every: Result<Duration, Wrong>) -> Result<(), Wrong> {
    let mut probe = config.probe.take().unwrap_or_default();
    probe.settings.every = every?;
    put(&mut config.probe, Ok(probe))
}

fn host_header(config: &mut ServiceConfig, text: &str) -> Result<(), Wrong> {
    let host_header = match text {
        "upstream" => Ok(HostHeader::Upstream),
        "service" => Ok(HostHeader::Service),
        _ => Err("expected `upstream` or `service`".to_owned()),
    };
    put(&mut config.host_header, host_header)
}

fn prime_uri(config: &mut ServiceConfig, text: &str) -> Result<(), Wrong> {
    let is_path = text.starts_with('/');
    put(
        &mut config.prime_uri,
        is_path.then(|| text.to_owned()).ok_or("expected a path that begins with `/`".to_owned()),
    )
}

/// Ribbon counts what follows the first attempt.
fn prime_retries(config: &mut ServiceConfig, text: &str) -> Result<(), Wrong> {
    put(&mut config.prime_attempts, count(text).map(|retries| retries.saturating_add(1)))
}

/// Asks for `/`, as Ribbon does without a suffix.
fn http_probe() -> Result<Probing, Wrong> {
    Ok(Probing::custom(HttpCheck::new("/")))
}
