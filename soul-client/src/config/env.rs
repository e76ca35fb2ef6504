//! Settings from the environment, all of the form `SOUL_…`.

use std::{fmt::Display, path::PathBuf, str::FromStr, time::Duration};

use super::{AdminsRule, ClientConfigBuilder, admin_url::Written};
use crate::{error::Problem, plan::Dialect, route::RpcType, secret::Secret};

/// Reads every variable that `lookup` knows. An empty one is as if it were not there, since that is how
/// scripts and container files switch a variable off.
pub(super) fn read(lookup: impl Fn(&str) -> Option<String>) -> ClientConfigBuilder {
    let mut reader = Reader { lookup, unreadable: Vec::new() };
    ClientConfigBuilder {
        admin_urls: reader.text("SOUL_ADMIN_URL").into_iter().map(Written).collect(),
        context_path: reader.text("SOUL_CONTEXT_PATH"),
        app_name: reader.text("SOUL_APP_NAME"),
        // The two others are what ShenYu's Java client looks at.
        host: ["SOUL_HOST", "docker_host_ip", "DOCKER_HOST_IP"].iter().find_map(|name| reader.text(name)),
        port: reader.parsed("port", "SOUL_PORT", "a number from 1 to 65535"),
        full: reader.parsed("full", "SOUL_FULL", "`true` or `false`"),
        rpc_type: reader.word("rpc_type", "SOUL_RPC_TYPE", RpcType::ALL, |rpc_type| rpc_type.as_str()),
        dialect: reader.word("dialect", "SOUL_DIALECT", &Dialect::ALL, Dialect::as_str),
        admins_rule: reader.word("admins_rule", "SOUL_ADMINS_RULE", &AdminsRule::ALL, AdminsRule::as_str),
        connect_timeout: reader.seconds("connect_timeout", "SOUL_CONNECT_TIMEOUT"),
        request_timeout: reader.seconds("request_timeout", "SOUL_REQUEST_TIMEOUT"),
        refresh_interval: reader.seconds("refresh_interval", "SOUL_REFRESH_INTERVAL"),
        username: reader.text("SOUL_USERNAME"),
        password: reader.text("SOUL_PASSWORD").map(Secret::from),
        password_file: reader.text("SOUL_PASSWORD_FILE").map(PathBuf::from),
        namespaces: reader.text("SOUL_NAMESPACE").into_iter().collect(),
        protocol: reader.text("SOUL_PROTOCOL"),
        add_prefixed: reader.parsed("add_prefixed", "SOUL_ADD_PREFIXED", "`true` or `false`"),
        propagation_time: reader.seconds("propagation_time", "SOUL_PROPAGATION_TIME"),
        stop_timeout: reader.seconds("stop_timeout", "SOUL_STOP_TIMEOUT"),
        preferred_networks: reader.text("SOUL_PREFERRED_NETWORKS").into_iter().collect(),
        ignored_interfaces: reader.text("SOUL_IGNORED_INTERFACES").into_iter().collect(),
        ca_file: reader.text("SOUL_CA_FILE").map(PathBuf::from),
        client_cert_file: reader.text("SOUL_CLIENT_CERT_FILE").map(PathBuf::from),
        client_key_file: reader.text("SOUL_CLIENT_KEY_FILE").map(PathBuf::from),
        proxy: reader.text("SOUL_PROXY").map(Secret::from),
        unreadable: reader.unreadable,
        ..ClientConfigBuilder::default()
    }
}

struct Reader<L> {
    lookup: L,
    unreadable: Vec<Problem>,
}

impl<L: Fn(&str) -> Option<String>> Reader<L> {
    fn text(&self, name: &str) -> Option<String> {
        (self.lookup)(name).filter(|text| !text.trim().is_empty())
    }

    fn parsed<T: FromStr>(&mut self, field: &'static str, name: &str, expected: &str) -> Option<T> {
        self.with(field, name, expected, |text| text.parse().ok())
    }

    fn seconds(&mut self, field: &'static str, name: &str) -> Option<Duration> {
        self.with(field, name, "seconds, for example `30` or `0.5`", |text| {
            text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        })
    }

    fn word<T: Copy>(
        &mut self,
        field: &'static str,
        name: &str,
        all: &[T],
        as_str: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let words = all.iter().map(|&one| format!("`{}`", as_str(one))).collect::<Vec<_>>().join(", ");
        let expected = format!("one of {words}");
        self.with(field, name, expected, |text| {
            all.iter().copied().find(|&one| as_str(one).eq_ignore_ascii_case(text))
        })
    }

    fn with<T>(
        &mut self,
        field: &'static str,
        name: &str,
        expected: impl Display,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        let value = parse(text.trim());
        if value.is_none() {
            self.unreadable.push(Problem::new(field, format!("`{name}` is `{text}`, expected {expected}")));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::config::ClientConfig;

    fn from(vars: &[(&str, &str)]) -> ClientConfigBuilder {
        let vars: HashMap<_, _> = vars.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        ClientConfig::builder().vars(move |name| vars.get(name).cloned())
    }

    #[test]
    fn every_variable_is_read() {
        let config = from(&[
            ("SOUL_ADMIN_URL", "http://a:1,http://b:2"),
            ("SOUL_CONTEXT_PATH", "/http"),
            ("SOUL_APP_NAME", "http"),
            ("SOUL_HOST", "10.0.0.2"),
            ("SOUL_PORT", "8188"),
            ("SOUL_FULL", "true"),
            ("SOUL_RPC_TYPE", "springcloud"),
            ("SOUL_DIALECT", "2.3.0"),
            ("SOUL_ADMINS_RULE", "each"),
            ("SOUL_CONNECT_TIMEOUT", "2"),
            ("SOUL_REQUEST_TIMEOUT", "3"),
            ("SOUL_REFRESH_INTERVAL", "0.5"),
        ])
        .build()
        .unwrap();
        let expected = ClientConfig::builder()
            .admin_url("http://a:1")
            .admin_url("http://b:2")
            .context_path("/http")
            .app_name("http")
            .host("10.0.0.2")
            .port(8188)
            .full(true)
            .rpc_type(RpcType::SpringCloud)
            .dialect(Dialect::V2_3_0)
            .admins_rule(AdminsRule::Each)
            .connect_timeout(Duration::from_secs(2))
            .request_timeout(Duration::from_secs(3))
            .refresh_interval(Duration::from_millis(500))
            .build()
            .unwrap();
        assert_eq!(config, expected);
    }

    #[test]
    fn builder_wins_in_either_order() {
        let vars =
            [("SOUL_ADMIN_URL", "http://env"), ("SOUL_CONTEXT_PATH", "/env"), ("SOUL_APP_NAME", "env")];
        let lookup = |name: &str| vars.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned());
        let before = ClientConfig::builder().vars(lookup).admin_url("http://own").context_path("/own");
        let after = ClientConfig::builder().admin_url("http://own").context_path("/own").vars(lookup);
        for config in [before, after] {
            let config = config.build().unwrap();
            assert_eq!(config.admin_urls().collect::<Vec<_>>(), ["http://own"]);
            assert_eq!((config.context_path(), config.app_name()), (Some("/own"), Some("env")));
        }
    }

    #[test]
    fn password_may_come_from_a_file() {
        let path = std::env::temp_dir().join(format!("soul-client-env-{}", std::process::id()));
        std::fs::write(&path, "geheim\n").unwrap();
        let path_text = path.display().to_string();
        let vars = [
            ("SOUL_ADMIN_URL", "http://a"),
            ("SOUL_CONTEXT_PATH", "/a"),
            ("SOUL_USERNAME", "u"),
            ("SOUL_PASSWORD_FILE", &path_text),
        ];
        let config = from(&vars).build().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(config.credentials().unwrap().password.expose(), "geheim");
        assert!(!format!("{config:?}").contains("geheim"));
        // What the builder is told wins over the file of the environment.
        let config = from(&vars).password("own").build().unwrap();
        assert_eq!(config.credentials().unwrap().password.expose(), "own");
    }

    #[test]
    fn bad_values_name_the_variable_and_what_is_allowed() {
        let problems = from(&[
            ("SOUL_ADMIN_URL", "http://a"),
            ("SOUL_CONTEXT_PATH", "/a"),
            ("SOUL_PORT", "80 80"),
            ("SOUL_FULL", "yes"),
            ("SOUL_DIALECT", "2.4"),
            ("SOUL_REFRESH_INTERVAL", "-1"),
        ])
        .validate();
        let text: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "`port`: `SOUL_PORT` is `80 80`, expected a number from 1 to 65535",
                "`full`: `SOUL_FULL` is `yes`, expected `true` or `false`",
                "`dialect`: `SOUL_DIALECT` is `2.4`, expected one of `auto`, `any`, `feb2021`, `2.3.0`, `shenyu-2.4.0`, `shenyu-2.4.1`, \
                 `shenyu-2.4.2`, `shenyu-2.4.3`, `shenyu-2.5`, `shenyu-2.6`, `shenyu-2.7.0`, `shenyu-2.7`",
                "`refresh_interval`: `SOUL_REFRESH_INTERVAL` is `-1`, expected seconds, for example `30` or `0.5`",
            ]
        );
    }

    #[test]
    fn empty_variable_is_none() {
        let config = from(&[("SOUL_ADMIN_URL", "http://a"), ("SOUL_CONTEXT_PATH", "/a"), ("SOUL_PORT", "")]);
        assert_eq!(config.build().unwrap().port(), None);
    }
}
