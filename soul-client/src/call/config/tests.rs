//! Who is listened to, setting by setting; and the keys.

use std::collections::HashSet;

use super::*;
use crate::{
    balance::policy::{Maglev, RoundRobin},
    call::{CallError, CallErrorKind, discover::StaticList, filter::filter_fn},
};

/// Two different values of one setting.
type Two = (&'static str, fn(ServiceConfig) -> ServiceConfig, fn(ServiceConfig) -> ServiceConfig);

const S: Duration = Duration::from_secs(77);
const T: Duration = Duration::from_secs(78);

const VALUES: &[Two] = &[
    ("policy", |c| c.policy(Maglev), |c| c.policy(RoundRobin)),
    ("panic_threshold", |c| c.panic_threshold(0.1), |c| c.panic_threshold(0.2)),
    ("outliers", |c| c.outliers(None), |c| c.outliers(Some(OutlierDetector::ribbon()))),
    ("slow_start", |c| c.slow_start(Some(SlowStart::over(S))), |c| c.slow_start(Some(SlowStart::over(T)))),
    ("tried_again", |c| c.tried_again(false), |c| c.tried_again(true)),
    ("discover", |c| c.discover(StaticList::new()), |c| c.discover(StaticList::new())),
    ("servers", |c| c.servers([Upstream::new("a:1")]), |c| c.servers([Upstream::new("b:1")])),
    ("list_source", |c| c.list_source(ListSource::Static), |c| c.list_source(ListSource::Registry)),
    ("refresh", |c| c.refresh(Refresh::every(S)), |c| c.refresh(Refresh::every(T))),
    ("zone", |c| c.zone("a"), |c| c.zone("b")),
    ("zone_affinity", |c| c.zone_affinity(true), |c| c.zone_affinity(false)),
    ("zone_exclusivity", |c| c.zone_exclusivity(true), |c| c.zone_exclusivity(false)),
    ("subset", |c| c.subset(Some(7)), |c| c.subset(Some(8))),
    ("filters", |c| c.filter(filter_fn(|l, _| l)), |c| c.filter(filter_fn(|l, _| l))),
    ("probe", |c| c.probe(Probing::none()), |c| c.probe(Probing::registry_status())),
    ("connect_timeout", |c| c.connect_timeout(S), |c| c.connect_timeout(T)),
    ("read_timeout", |c| c.read_timeout(S), |c| c.read_timeout(T)),
    ("total_timeout", |c| c.total_timeout(S), |c| c.total_timeout(T)),
    ("retries_same", |c| c.retries_same(7), |c| c.retries_same(8)),
    ("retries_next", |c| c.retries_next(7), |c| c.retries_next(8)),
    (
        "retry_methods",
        |c| c.retry_methods(Methods::only([])),
        |c| c.retry_methods(Methods::only([http::Method::GET])),
    ),
    ("retry_all_methods", |c| c.retry_all_methods(true), |c| c.retry_all_methods(false)),
    (
        "retry_statuses",
        |c| c.retry_statuses(Statuses::only([])),
        |c| c.retry_statuses(Statuses::only([http::StatusCode::OK])),
    ),
    ("backoff", |c| ServiceConfig { backoff: Some(S), ..c }, |c| ServiceConfig { backoff: Some(T), ..c }),
    (
        "longest_backoff",
        |c| ServiceConfig { longest_backoff: Some(S), ..c },
        |c| ServiceConfig { longest_backoff: Some(T), ..c },
    ),
    (
        "longest_retry_after",
        |c| ServiceConfig { longest_retry_after: Some(S), ..c },
        |c| ServiceConfig { longest_retry_after: Some(T), ..c },
    ),
    (
        "budget",
        |c| c.budget(None),
        |c| c.budget(Some(BudgetSettings { ratio: 0.7, ..BudgetSettings::default() })),
    ),
    ("host_header", |c| c.host_header(HostHeader::Service), |c| c.host_header(HostHeader::Upstream)),
    ("secure", |c| c.secure(true), |c| c.secure(false)),
    ("tls_name", |c| c.tls_name("a"), |c| c.tls_name("b")),
    ("idle_connections", |c| c.idle_connections(7), |c| c.idle_connections(8)),
    ("idle_timeout", |c| c.idle_timeout(S), |c| c.idle_timeout(T)),
    ("follow_redirects", |c| c.follow_redirects(true), |c| c.follow_redirects(false)),
    ("prime", |c| c.prime(true), |c| c.prime(false)),
    ("prime_uri", |c| c.prime_uri("/a"), |c| c.prime_uri("/b")),
    ("prime_attempts", |c| c.prime_attempts(7), |c| c.prime_attempts(8)),
    ("prime_time", |c| c.prime_time(S), |c| c.prime_time(T)),
    ("prime_ratio", |c| c.prime_ratio(0.1), |c| c.prime_ratio(0.2)),
];

#[test]
fn every_setting_is_taken_from_the_first_who_says_it() {
    let names: Vec<_> = VALUES.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ServiceConfig::SETTINGS);
    let silent = ServiceConfig::default();
    let same = |a: &ServiceConfig, b: &ServiceConfig| a.effective().differences(&b.effective()).is_empty();
    for (name, first, second) in VALUES {
        let (first, second) = (first(ServiceConfig::default()), second(ServiceConfig::default()));
        assert_eq!((first.said(), second.said()), (vec![*name], vec![*name]));
        assert_eq!(first.effective().differences(&second.effective()), [*name]);
        // Request, service, defaults, built in.
        for (request, service, defaults, holds) in [
            (&first, &second, &second, &first),
            (&silent, &first, &second, &first),
            (&silent, &silent, &first, &first),
            (&silent, &second, &first, &second),
            (&silent, &silent, &silent, &silent),
        ] {
            assert!(same(&request.over(&service.over(defaults)), holds), "{name}");
        }
    }
}

#[test]
fn setters_for_several_say_several() {
    let said = |config: ServiceConfig| config.said();
    assert_eq!(
        said(ServiceConfig::default().timeouts(Timeouts::default())),
        ["connect_timeout", "read_timeout", "total_timeout"]
    );
    let retry = Retry { same: 3, next: 4, backoff: S, ..Retry::default() };
    let config = ServiceConfig::default().retry(retry.clone());
    assert_eq!(config.effective().retry(), retry);
    assert_eq!(config.said().len(), 8);
}

#[test]
fn built_in_values_are_those_of_the_design() {
    let built_in = ServiceConfig::default().effective();
    assert!(format!("{:?}", built_in.policy).starts_with("PeakEwma"));
    assert_eq!((built_in.retries_same, built_in.retries_next), (0, 1));
    assert_eq!(built_in.backoff, Duration::from_millis(25));
    assert_eq!(
        built_in.budget,
        Some(BudgetSettings { ratio: 0.2, min_per_second: 10, window: Duration::from_secs(10) })
    );
    assert_eq!(
        (built_in.connect_timeout, built_in.total_timeout),
        (Duration::from_secs(1), Duration::from_secs(30))
    );
    assert_eq!((built_in.host_header, built_in.list_source), (HostHeader::Upstream, ListSource::Registry));
}

#[test]
fn the_preset_is_ribbon_in_spring() {
    let ribbon = ServiceConfig::ribbon().effective();
    assert!(format!("{:?}", ribbon.policy).starts_with("ZoneAvoidance"));
    assert_eq!(ribbon.refresh, Refresh::POLLING);
    assert_eq!(
        (ribbon.connect_timeout, ribbon.read_timeout),
        (Duration::from_secs(1), Duration::from_secs(1))
    );
    assert_eq!(format!("{:?}", ribbon.probe.check), "None");
    assert_eq!((ribbon.retries_same, ribbon.retries_next, ribbon.budget), (0, 1, None));
    assert!(ribbon.retry().repeats(&http::Method::GET) && !ribbon.retry().repeats(&http::Method::PUT));
    assert_eq!(ribbon.outliers, Some(OutlierDetector::ribbon()));
}

fn ribbon(pairs: &[(&str, &str)]) -> Result<Effective, CallError> {
    CallConfig::from_pairs(pairs.iter().map(|(key, value)| (format!("orders.ribbon.{key}"), *value)))
        .map(|config| config.service("orders").over(config.defaults()).effective())
}

#[test]
fn each_of_ribbons_keys_says_what_it_said_there() {
    let config = ribbon(&[
        ("NFLoadBalancerRuleClassName", "com.netflix.loadbalancer.BestAvailableRule"),
        ("listOfServers", "a:1, https://b:2 ,c:3/base"),
        ("ConnectTimeout", "250"),
        ("ReadTimeout", " 1500 "),
        ("MaxAutoRetries", "2"),
        ("MaxAutoRetriesNextServer", "3"),
        ("OkToRetryOnAllOperations", "TRUE"),
        ("ServerListRefreshInterval", "5000"),
        ("ServerListUpdaterClassName", "com.netflix.loadbalancer.PollingServerListUpdater"),
        ("NFLoadBalancerPingInterval", "7"),
        ("NFLoadBalancerPingClassName", "com.netflix.loadbalancer.DummyPing"),
        ("EnablePrimeConnections", "true"),
        ("PrimeConnectionsURI", "/warm"),
        ("MaxRetriesPerServerPrimeConnection", "9"),
        ("MaxTotalTimeToPrimeConnections", "30000"),
        ("MinPrimeConnectionsRatio", "0.5"),
        ("IsSecure", "true"),
        ("FollowRedirects", "true"),
        ("MaxConnectionsPerHost", "50"),
        ("ConnIdleEvictTimeMilliSeconds", "3000"),
        ("retryableStatusCodes", "500,503"),
        ("BackoffInterval", "10"),
    ])
    .unwrap();
    assert_eq!(format!("{:?}", config.policy), "BestAvailable");
    let bases: Vec<_> = config.servers.unwrap().iter().map(|u| u.base_url().to_owned()).collect();
    assert_eq!(bases, ["a:1", "https://b:2", "c:3/base"]);
    let ms = Duration::from_millis;
    assert_eq!((config.connect_timeout, config.read_timeout), (ms(250), ms(1500)));
    assert_eq!((config.retries_same, config.retries_next, config.retry_all_methods), (2, 3, true));
    assert_eq!(config.refresh, Refresh::every(ms(5000)));
    assert_eq!(
        (format!("{:?}", config.probe.check), config.probe.settings.every),
        ("None".to_owned(), ms(7000))
    );
    assert_eq!((config.prime, &*config.prime_uri, config.prime_attempts), (true, "/warm", 10));
    assert_eq!((config.prime_time, config.prime_ratio), (ms(30_000), 0.5));
    assert_eq!((config.secure, config.follow_redirects, config.idle_connections), (true, true, 50));
    assert_eq!((config.idle_timeout, config.backoff), (ms(3000), ms(10)));
    assert!(config.retry_statuses.contains(http::StatusCode::INTERNAL_SERVER_ERROR));
    assert!(!config.retry_statuses.contains(http::StatusCode::BAD_GATEWAY));
}

#[test]
fn our_keys_and_ribbons_are_of_one_table() {
    let mut seen = HashSet::new();
    for key in keys::KEYS {
        assert!(seen.insert((format!("{:?}", key.dialect), keys::relaxed(key.name))), "{} twice", key.name);
    }
    let config = CallConfig::from_pairs([
        ("soul.call.policy", "maglev"),
        ("soul.call.clients.orders.readTimeoutMs", "20"),
        ("soul.call.clients.orders.retry_budget", "off"),
        ("soul.call.clients.order.v1.host-header", "service"),
        ("soul.call.retry-methods", "get, post"),
        ("soul.call.slow-start-ms", "1000"),
        ("soul.call.list-source", "static"),
        ("soul.call.probe", "none"),
        ("soul.call.probe-interval-ms", "500"),
        ("soul.call.consecutive-failures", "9"),
        ("soul.call.panic-threshold", "0"),
    ])
    .unwrap();
    assert_eq!(config.services().collect::<Vec<_>>(), ["order.v1", "orders"]);
    let orders = config.service("orders").over(config.defaults()).effective();
    assert_eq!((orders.read_timeout, orders.budget), (Duration::from_millis(20), None));
    assert!(orders.retry().repeats(&http::Method::POST) && !orders.retry().repeats(&http::Method::PUT));
    assert_eq!(orders.outliers.unwrap().consecutive_failures, 9);
    assert_eq!(config.service("order.v1").effective().host_header, HostHeader::Service);
}

#[test]
fn mistakes_are_told_all_at_once_with_the_nearest_key_or_what_is_expected() {
    let error = CallConfig::from_pairs([
        ("orders.ribbon.MaxAutoRetry", "1"),
        ("ribbon.ConectTimeout", "1"),
        ("soul.call.conect-timeout", "1"),
        ("orders.ribbon.ReadTimeout", "1s"),
        ("orders.ribbon.NFLoadBalancerRuleClassName", "MyRule"),
        ("orders.ribbon.TrustStore", "trust.jks"),
        ("or ders.ribbon.ReadTimeout", "1"),
        ("somebody.elses", "1"),
    ])
    .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Config);
    let text = error.to_string();
    for part in [
        "`orders.ribbon.MaxAutoRetry` is not known, did you mean `MaxAutoRetries`?",
        "`ribbon.ConectTimeout` is not known, did you mean `ConnectTimeout`?",
        "`soul.call.conect-timeout` is not known, did you mean `connect-timeout-ms`?",
        "`orders.ribbon.ReadTimeout` is `1s`: expected milliseconds, for example `1000`",
        "`orders.ribbon.NFLoadBalancerRuleClassName` is `MyRule`: unknown load balance `MyRule`",
        "`orders.ribbon.TrustStore` has no counterpart here: set it with `ClientFactoryBuilder::http`",
        "`or ders.ribbon.ReadTimeout` names a service `or ders` with ` ` in it",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("somebody"), "{text}");
}

#[test]
fn ribbons_filters_are_read_and_know_the_own_zone() {
    let narrowed = |pairs: &[(&str, &str)]| {
        let config = ribbon(pairs).unwrap();
        (config.zone_affinity, config.zone_exclusivity, config.subset)
    };
    let class = "NIWSServerListFilterClassName";
    for (pairs, expected) in [
        (&[("EnableZoneAffinity", "true")][..], (true, false, None)),
        (&[("EnableZoneExclusivity", "true")], (false, true, None)),
        (&[(class, "com.netflix.loadbalancer.ZoneAffinityServerListFilter")], (false, false, None)),
        (&[(class, "ZoneAffinityServerListFilter"), ("EnableZoneAffinity", "true")], (true, false, None)),
        (
            &[(class, "org.springframework.cloud.netflix.ribbon.ZonePreferenceServerListFilter")],
            (true, false, None),
        ),
        (&[(class, "com.netflix.loadbalancer.ServerListSubsetFilter")], (false, false, Some(20))),
        (&[("ServerListSubsetFilter.size", "7"), (class, "ServerListSubsetFilter")], (false, false, Some(7))),
        (&[(class, "ServerListSubsetFilter"), ("ServerListSubsetFilter.size", "7")], (false, false, Some(7))),
    ] {
        assert_eq!(narrowed(pairs), expected, "{pairs:?}");
    }
    let error = ribbon(&[(class, "com.example.MyFilter")]).unwrap_err();
    assert!(error.to_string().contains("see `ServiceConfig::filter`"), "{error}");
    let ours = CallConfig::from_pairs([
        ("soul.call.zone", "eu-1"),
        ("soul.call.zone-affinity", "true"),
        ("soul.call.subset", "9"),
    ]);
    let ours = ours.unwrap().defaults().effective();
    assert_eq!((ours.zone.as_deref(), ours.zone_affinity, ours.subset), (Some("eu-1"), true, Some(9)));
    for nonsense in ["-1", "nan", "inf", "all"] {
        let error = CallConfig::from_pairs([("soul.call.retry-budget", nonsense)]).unwrap_err();
        assert!(error.to_string().contains("retries for each call"), "{error}");
    }
}

#[test]
fn keys_that_change_nothing_are_listed() {
    let config =
        CallConfig::from_pairs([("ribbon.MaxTotalConnections", "200"), ("ribbon.AppName", "x")]).unwrap();
    let ignored: Vec<_> = config.ignored().iter().map(|i| i.key.as_str()).collect();
    assert_eq!(ignored, ["ribbon.MaxTotalConnections", "ribbon.AppName"]);
    assert!(config.defaults().said().is_empty());
}

#[test]
fn the_environment_is_read() {
    let config = CallConfig::from_vars([
        ("RIBBON_CONNECTTIMEOUT", "100"),
        ("ORDER_SERVICE_RIBBON_READTIMEOUT", "200"),
        ("SOUL_CALL_TOTAL_TIMEOUT_MS", "300"),
        ("SOUL_CALL_CLIENTS_ORDER_SERVICE_RETRIES_NEXT", "4"),
        ("SOUL_CALL_POLICY", ""),
        ("SOUL_ADMIN_URL", "http://localhost:9095"),
        ("PATH", "/bin"),
    ])
    .unwrap();
    let service = config.service("order-service").over(config.defaults()).effective();
    let ms = Duration::from_millis;
    assert_eq!(
        (service.connect_timeout, service.read_timeout, service.total_timeout),
        (ms(100), ms(200), ms(300))
    );
    assert_eq!(service.retries_next, 4);
    let error = CallConfig::from_vars([("SOUL_CALL_CLIENTS_ORDERS_RETRIES_NEX", "4")]).unwrap_err();
    assert!(error.to_string().contains("is not known"), "{error}");
}

#[test]
fn files_are_read() {
    let config = CallConfig::from_properties(
        "# comment\n! comment\n\nribbon.ReadTimeout=100\n  orders.ribbon.ConnectTimeout : 200\n\
         orders.ribbon.listOfServers = a:1,\\\n   b:2\n",
    )
    .unwrap();
    let orders = config.service("orders").over(config.defaults()).effective();
    assert_eq!(
        (orders.read_timeout, orders.connect_timeout),
        (Duration::from_millis(100), Duration::from_millis(200))
    );
    assert_eq!(orders.servers.unwrap().len(), 2);
    for (path, text) in [("/no/such.properties", "cannot be read"), ("/no/such", "cannot be read")] {
        let error = CallConfig::from_file(path).unwrap_err();
        assert!(error.chain().contains(text), "{}", error.chain());
    }
}

#[cfg(feature = "file")]
#[test]
fn yaml_and_toml_are_read_as_spring_does() {
    let yaml = "orders:\n  ribbon:\n    listOfServers: [a:1, b:2]\n    ReadTimeout: 100\nspring:\n  application:\n    name: shop\n";
    let toml = "[orders.ribbon]\nlistOfServers = [\"a:1\", \"b:2\"]\nReadTimeout = 100\n";
    for (name, text) in [("application.yml", yaml), ("application.toml", toml)] {
        let pairs = crate::config::file_pairs(std::path::Path::new(name), text).unwrap();
        let orders = CallConfig::from_pairs(pairs).unwrap().service("orders").effective();
        assert_eq!(orders.read_timeout, Duration::from_millis(100));
        assert_eq!(orders.servers.unwrap().len(), 2);
    }
}
