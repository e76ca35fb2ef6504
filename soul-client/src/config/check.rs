//! What a configuration must hold; every rule says its remedy.

use std::{net::IpAddr, time::Duration};

use super::{AdminsRule, ClientConfig};
use crate::{error::Problem, plan::Dialect, route::RpcType, wire::gson};

/// Adds every problem of `config`.
pub(super) fn all(config: &ClientConfig, problems: &mut Vec<Problem>) {
    let mut report = |field, problem: Option<String>| {
        problems.extend(problem.map(|text| Problem::new(field, text)));
    };
    report("context_path", context_path(config));
    report("app_name", app_name(config));
    report("host", config.host.as_deref().and_then(host));
    report(
        "port",
        (config.port == Some(0)).then(|| "0 is no port: leave it out to announce the listener's".into()),
    );
    report("dialect", dialect(config));
    report("admins_rule", admins_rule(config));
    report(
        "protocol",
        (!matches!(config.protocol.as_str(), "http://" | "https://"))
            .then(|| format!("`{}` is unknown, expected `http://` or `https://`", config.protocol)),
    );
    report("propagation_time", too_long(config.propagation_time));
    report("stop_timeout", not_zero(config.stop_timeout).or_else(|| too_long(config.stop_timeout)));
    report("heartbeat_interval", config.heartbeat_interval.and_then(never_or_period));
    report("proxy", config.proxy.as_ref().and_then(|proxy| proxy_address(proxy.expose())));
    report("shutdown_timeout", too_long(config.shutdown_timeout));
    report("offline_timeout", not_zero(config.offline_timeout).or_else(|| too_long(config.offline_timeout)));
    report("connect_timeout", not_zero(config.connect_timeout).or_else(|| too_long(config.connect_timeout)));
    report("request_timeout", not_zero(config.request_timeout).or_else(|| too_long(config.request_timeout)));
    report("retry_delay", retry_delay(config));
    report("refresh_interval", config.refresh_interval.and_then(never_or_period));
    report(
        "concurrency",
        (config.concurrency == 0).then(|| "0 would register nothing: set 1 or more".into()),
    );
}

fn context_path(config: &ClientConfig) -> Option<String> {
    let Some(text) = config.context_path.as_deref().filter(|text| !gson::is_blank(text)) else {
        // Only the client of 2.3.0 does without, and only where it names single routes.
        let optional = config.dialect == Dialect::V2_3_0 && !config.full;
        let missing = "is missing: set the prefix that names the service, for example `/order`";
        return (!optional).then(|| missing.to_owned());
    };
    let bare = text.trim_matches('/');
    if text.chars().any(|c| c.is_whitespace() || matches!(c, '?' | '#' | '*' | '{' | '}')) {
        return Some(format!(
            "`{text}` contains a character that no prefix has: letters, digits, `-` and `/` are safe"
        ));
    }
    if bare.is_empty() || bare.contains("//") {
        return Some(format!("`{text}` has an empty segment: name the service, for example `/order`"));
    }
    (text.len() != bare.len() + 1 || text.ends_with('/'))
        .then(|| format!("`{text}` must start with one `/` and not end with it: write `/{bare}`"))
}

fn dialect(config: &ClientConfig) -> Option<String> {
    let version = config.dialect.shenyu()?;
    (version.needs_login() && config.credentials.is_none()).then(|| {
        format!("`{}` lets nobody register without a login: set `username` and `password`", version.as_str())
    })
}

fn admins_rule(config: &ClientConfig) -> Option<String> {
    let mixed = config.dialect == Dialect::Auto
        && config.admins_rule == AdminsRule::FirstThatAnswers
        && config.admin_urls.len() > 1;
    mixed.then(|| {
        "`first` needs admins of one kind, and `auto` finds out the kind of each: set `each`, or the `dialect`".into()
    })
}

fn app_name(config: &ClientConfig) -> Option<String> {
    match config.app_name.as_deref() {
        Some(name) if gson::is_blank(name) => Some("is blank: name the application, or leave it out".into()),
        None if config.rpc_type == RpcType::SpringCloud => {
            Some("is missing: `springCloud` finds the service by it, set its name in the registry".into())
        }
        _ => None,
    }
}

fn host(host: &str) -> Option<String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(ip) if ip.is_unspecified() => {
            Some(format!("`{host}` means any address: set the one that the gateway reaches this instance at"))
        }
        Ok(_) => None,
        Err(_) if host.chars().any(|c| c == '/' || c == ':' || c.is_whitespace()) => Some(format!(
            "`{host}` is no host: write the address or name only, without scheme, port and path"
        )),
        Err(_) => None,
    }
}

/// The address itself is not repeated: it may hold a password.
fn proxy_address(text: &str) -> Option<String> {
    let good = reqwest::Url::parse(text).is_ok_and(|url| url.scheme() == "http" && url.has_host());
    (!good).then(|| "is no address of a proxy: write `http://host:port`".to_owned())
}

fn not_zero(timeout: Duration) -> Option<String> {
    timeout.is_zero().then(|| "0 leaves no time at all: set a second or more".to_owned())
}

fn retry_delay(config: &ClientConfig) -> Option<String> {
    let bounds = config.retry_delay;
    if bounds.min < SHORTEST_WAIT {
        return Some(format!(
            "the shortest wait is {:?}, which would hardly pause: set some milliseconds or more",
            bounds.min
        ));
    }
    if bounds.min > bounds.max {
        return Some(format!(
            "the shortest wait {:?} exceeds the longest {:?}: swap them",
            bounds.min, bounds.max
        ));
    }
    too_long(bounds.max)
}

/// Anything shorter is a mistake in the unit, and would keep the admin busy.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// Zero turns it off.
fn never_or_period(period: Duration) -> Option<String> {
    let hasty = !period.is_zero() && period < SHORTEST_WAIT;
    let hasty = hasty.then(|| format!("{period:?} is less than a millisecond: set seconds, or 0 for never"));
    hasty.or_else(|| too_long(period))
}

/// A wait of more than a day is a mistake in the unit; the arithmetic of waiting also relies on the bound.
fn too_long(wait: Duration) -> Option<String> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    (wait > DAY).then(|| format!("{wait:?} is more than a day: set seconds or minutes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ClientConfigBuilder;

    fn good() -> ClientConfigBuilder {
        ClientConfig::builder().admin_url("http://localhost:9095").context_path("/http").app_name("http")
    }

    #[test]
    fn good_configurations() {
        for config in [
            good(),
            good().context_path("/a/b").host("10.0.0.2"),
            good().host("::1").port(1),
            good().host("[2001:db8::7]"),
            good().host("orders.local").refresh_interval(Duration::ZERO),
            good().host(" "),
            ClientConfig::builder().admin_url("http://a").context_path("/订单"),
            ClientConfig::builder().admin_url("http://a").dialect(Dialect::V2_3_0),
        ] {
            assert_eq!(config.validate(), [], "{config:?}");
        }
    }

    #[test]
    fn each_problem_names_its_field_and_remedy() {
        let second = Duration::from_secs(1);
        for (config, field, remedy) in [
            (
                ClientConfig::builder().context_path("/http"),
                "admin_url",
                "for example `http://localhost:9095`",
            ),
            (ClientConfig::builder().context_path("/http").admin_url(" , "), "admin_url", "is missing"),
            (good().admin_url("admin:9095"), "admin_url", "write `http://admin:9095`"),
            (good().context_path(" "), "context_path", "for example `/order`"),
            (good().context_path("http"), "context_path", "write `/http`"),
            (good().context_path("/http/"), "context_path", "write `/http`"),
            (good().context_path("//http"), "context_path", "write `/http`"),
            (good().context_path("/"), "context_path", "empty segment"),
            (good().context_path("/a//b"), "context_path", "empty segment"),
            (good().context_path("/a b"), "context_path", "letters, digits"),
            (good().context_path("/**"), "context_path", "letters, digits"),
            (good().context_path("").dialect(Dialect::V2_3_0).full(true), "context_path", "is missing"),
            (good().app_name(" "), "app_name", "leave it out"),
            (
                ClientConfig::builder()
                    .admin_url("http://a")
                    .context_path("/a")
                    .rpc_type(RpcType::SpringCloud),
                "app_name",
                "springCloud",
            ),
            (good().host("http://10.0.0.2"), "host", "without scheme"),
            (good().host("10.0.0.2:80"), "host", "without scheme, port"),
            (good().host("0.0.0.0"), "host", "any address"),
            (good().port(0), "port", "leave it out"),
            (good().connect_timeout(Duration::ZERO), "connect_timeout", "set a second"),
            (good().request_timeout(Duration::ZERO), "request_timeout", "set a second"),
            (good().connect_timeout(Duration::MAX), "connect_timeout", "more than a day"),
            (good().request_timeout(Duration::MAX), "request_timeout", "more than a day"),
            (good().offline_timeout(Duration::MAX), "offline_timeout", "more than a day"),
            (good().shutdown_timeout(Duration::MAX), "shutdown_timeout", "more than a day"),
            (good().retry_delay(Duration::ZERO, second), "retry_delay", "set some milliseconds"),
            (good().retry_delay(Duration::from_nanos(1), second), "retry_delay", "set some milliseconds"),
            (good().retry_delay(second * 2, second), "retry_delay", "swap"),
            (good().refresh_interval(Duration::from_nanos(30)), "refresh_interval", "0 for never"),
            (good().heartbeat_interval(Duration::from_micros(10)), "heartbeat_interval", "0 for never"),
            (good().retry_delay(second, Duration::MAX), "retry_delay", "more than a day"),
            (good().refresh_interval(Duration::MAX), "refresh_interval", "more than a day"),
            (good().concurrency(0), "concurrency", "1 or more"),
        ] {
            let problems = config.validate();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert_eq!(problems[0].field(), field, "{problems:?}");
            assert!(problems[0].text().contains(remedy), "{problems:?}");
        }
    }

    #[test]
    fn all_problems_are_listed_at_once() {
        let config = ClientConfig::builder().admin_url("a:1,ftp://b").context_path("x").port(0);
        let error = config.build().unwrap_err();
        let fields: Vec<_> = error.problems().iter().map(Problem::field).collect();
        assert_eq!(fields, ["admin_url", "admin_url", "context_path", "port"]);
    }

    #[test]
    fn same_admin_twice_is_one() {
        let config = good().admin_url("http://b:1, http://localhost:9095/,http://b:1/").build().unwrap();
        assert_eq!(config.admin_urls().collect::<Vec<_>>(), ["http://localhost:9095", "http://b:1"]);
    }
}
