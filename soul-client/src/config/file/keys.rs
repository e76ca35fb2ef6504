//! What each key means.

use std::{path::PathBuf, str::FromStr, time::Duration};

use super::{
    flat::{Entry, resolve},
    nearest,
};
use crate::{
    config::{AdminsRule, ClientConfigBuilder, admin_url::Written},
    error::Problem,
    plan::Dialect,
    route::RpcType,
};

/// Sections in which an unknown key is a mistake.
const OURS: [&str; 6] = [
    "soul.http.",
    "soul.springcloud.",
    "soul.client.",
    "soul.rust.",
    "shenyu.register.",
    "shenyu.client.http.",
];

/// Makes settings of what a file says.
pub(super) fn settings(
    entries: Vec<Entry>,
    name: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> ClientConfigBuilder {
    let mut reader = Reader { builder: ClientConfigBuilder::default(), file: name, application: None };
    for mut entry in entries {
        let is_ours = OURS.iter().any(|section| entry.key.starts_with(section));
        let is_known = matches!(entry.key.as_str(), "shenyu.namespace" | "spring.application.name")
            || entry.key.starts_with("shenyu.client.props.")
            || matches!(entry.key.as_str(), "shenyu.client.registertype" | "shenyu.client.serverlists");
        if !is_ours && !is_known {
            continue;
        }
        match resolve(&entry.value, &lookup) {
            Ok(value) => entry.value = value,
            Err(variable) => {
                reader.problem("file", &entry, &format!("needs the variable `{variable}`, which is not set"));
                continue;
            }
        }
        // An empty value is as if it were not there, as in the environment.
        if !entry.value.trim().is_empty() {
            reader.take(&entry);
        }
    }
    reader.finish()
}

struct Reader<'a> {
    builder: ClientConfigBuilder,
    file: &'a str,
    /// `spring.application.name`, for want of an `appName`.
    application: Option<String>,
}

impl Reader<'_> {
    fn take(&mut self, entry: &Entry) {
        let value = || entry.value.trim().to_owned();
        let key = entry.key.as_str();
        if key.starts_with("soul.rust.") {
            return self.own(entry);
        }
        if key.starts_with("shenyu.") && self.builder.dialect.is_none() {
            self.builder.dialect = Some(Dialect::Auto);
        }
        if key.starts_with("soul.springcloud.") {
            self.builder.rpc_type = Some(RpcType::SpringCloud);
        }
        let last = key.rsplit('.').next().unwrap_or_default();
        match (section(key), last) {
            (Section::Application, _) => self.application = Some(value()),
            (Section::Namespace, _) => self.builder.namespaces.push(value()),
            (Section::Flat, "adminurl") | (Section::Register, "serverlists") => {
                self.builder.admin_urls.push(Written(value()));
            }
            (Section::Register, "registertype") if entry.value.trim().eq_ignore_ascii_case("http") => {}
            (Section::Register, "registertype") => {
                let text = format!("is `{}`, and this client registers over `http` only", entry.value);
                self.problem("file", entry, &text);
            }
            (Section::Flat | Section::Props, "contextpath") => self.builder.context_path = Some(value()),
            (Section::Flat | Section::Props, "appname") => self.builder.app_name = Some(value()),
            (Section::Flat | Section::Props, "host") => self.host(value()),
            (Section::Flat | Section::Props, "port") => self.port(entry),
            (Section::Flat | Section::Props, "full" | "isfull") => {
                self.builder.full = self.parsed(entry, "full", "`true` or `false`");
            }
            (Section::Props, "protocol") => self.builder.protocol = Some(value()),
            (Section::Props, "addprefixed") => {
                self.builder.add_prefixed = self.parsed(entry, "add_prefixed", "`true` or `false`");
            }
            (Section::Props, "username") => self.builder.username = Some(value()),
            (Section::Props, "password") => self.builder.password = Some(entry.value.clone().into()),
            (Section::Props, "passwordfile") => self.builder.password_file = Some(PathBuf::from(value())),
            (Section::Props, "aessecretkey" | "aessecretiv") => {
                self.problem(
                    "file",
                    entry,
                    "is not supported: an admin of 2.7.1 takes the password as it is, too",
                );
            }
            _ => self.unknown(entry),
        }
    }

    /// What Java has no key for, by the names of the builder.
    fn own(&mut self, entry: &Entry) {
        let value = || entry.value.trim().to_owned();
        match entry.key.trim_start_matches("soul.rust.") {
            "username" => self.builder.username = Some(value()),
            "password" => self.builder.password = Some(entry.value.clone().into()),
            "passwordfile" => self.builder.password_file = Some(PathBuf::from(value())),
            "namespace" => self.builder.namespaces.push(value()),
            "protocol" => self.builder.protocol = Some(value()),
            "dialect" => self.builder.dialect = self.word(entry, "dialect", &Dialect::ALL, Dialect::as_str),
            "adminsrule" => {
                self.builder.admins_rule =
                    self.word(entry, "admins_rule", &AdminsRule::ALL, AdminsRule::as_str);
            }
            "rpctype" => self.builder.rpc_type = self.word(entry, "rpc_type", RpcType::ALL, RpcType::as_str),
            "preferrednetworks" => self.builder.preferred_networks.push(value()),
            "ignoredinterfaces" => self.builder.ignored_interfaces.push(value()),
            "cafile" => self.builder.ca_file = Some(PathBuf::from(value())),
            "clientcertfile" => self.builder.client_cert_file = Some(PathBuf::from(value())),
            "clientkeyfile" => self.builder.client_key_file = Some(PathBuf::from(value())),
            "proxy" => self.builder.proxy = Some(value().into()),
            "concurrency" => self.builder.concurrency = self.parsed(entry, "concurrency", "a number"),
            "connecttimeout" => self.builder.connect_timeout = self.seconds(entry, "connect_timeout"),
            "requesttimeout" => self.builder.request_timeout = self.seconds(entry, "request_timeout"),
            "refreshinterval" => self.builder.refresh_interval = self.seconds(entry, "refresh_interval"),
            "heartbeatinterval" => {
                self.builder.heartbeat_interval = self.seconds(entry, "heartbeat_interval")
            }
            "shutdowntimeout" => self.builder.shutdown_timeout = self.seconds(entry, "shutdown_timeout"),
            "offlinetimeout" => self.builder.offline_timeout = self.seconds(entry, "offline_timeout"),
            "propagationtime" => self.builder.propagation_time = self.seconds(entry, "propagation_time"),
            "stoptimeout" => self.builder.stop_timeout = self.seconds(entry, "stop_timeout"),
            _ => self.unknown(entry),
        }
    }

    /// A pattern such as `192.168.*` chooses the network card in ShenYu.
    fn host(&mut self, host: String) {
        if host.contains('*') {
            self.builder.preferred_networks.push(host);
        } else {
            self.builder.host = Some(host);
        }
    }

    /// 0 and less stand for the port of the server in ShenYu.
    fn port(&mut self, entry: &Entry) {
        let is_left_open = entry.value.trim().parse::<i64>().is_ok_and(|port| port <= 0);
        if !is_left_open {
            self.builder.port = self.parsed(entry, "port", "a number from 1 to 65535");
        }
    }

    fn parsed<T: FromStr>(&mut self, entry: &Entry, field: &'static str, expected: &str) -> Option<T> {
        let value = entry.value.trim().to_ascii_lowercase().parse().ok();
        if value.is_none() {
            self.problem(field, entry, &format!("is `{}`, expected {expected}", entry.value));
        }
        value
    }

    fn seconds(&mut self, entry: &Entry, field: &'static str) -> Option<Duration> {
        let seconds: f64 = self.parsed(entry, field, "seconds, for example `30` or `0.5`")?;
        let time = Duration::try_from_secs_f64(seconds).ok();
        if time.is_none() {
            self.problem(field, entry, &format!("is `{}`, expected seconds from 0 on", entry.value));
        }
        time
    }

    fn word<T: Copy>(
        &mut self,
        entry: &Entry,
        field: &'static str,
        all: &[T],
        as_str: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let found = all.iter().copied().find(|&one| as_str(one).eq_ignore_ascii_case(entry.value.trim()));
        if found.is_none() {
            let words = all.iter().map(|&one| format!("`{}`", as_str(one))).collect::<Vec<_>>().join(", ");
            self.problem(field, entry, &format!("is `{}`, expected one of {words}", entry.value));
        }
        found
    }

    fn unknown(&mut self, entry: &Entry) {
        let text = match nearest::key(&entry.written) {
            Some(key) => format!("is not known: did you mean `{key}`?"),
            None => "is not known".to_owned(),
        };
        self.problem("file", entry, &text);
    }

    fn problem(&mut self, field: &'static str, entry: &Entry, text: &str) {
        let text = format!("`{}` in `{}` {text}", entry.written, self.file);
        self.builder.unreadable.push(Problem::new(field, text));
    }

    fn finish(mut self) -> ClientConfigBuilder {
        self.builder.app_name = self.builder.app_name.take().or(self.application);
        self.builder
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// `spring.application.name`.
    Application,
    /// `shenyu.namespace`.
    Namespace,
    /// Soul of February 2021: all in one place.
    Flat,
    /// Where to register.
    Register,
    /// What to register.
    Props,
    Other,
}

fn section(key: &str) -> Section {
    match key.rsplit_once('.').map_or("", |(section, _)| section) {
        "spring.application" => Section::Application,
        "shenyu" => Section::Namespace,
        "soul.http" | "soul.springcloud" => Section::Flat,
        "soul.client" | "shenyu.register" | "shenyu.client" => Section::Register,
        "soul.client.props"
        | "shenyu.register.props"
        | "shenyu.client.props"
        | "shenyu.client.http.props" => Section::Props,
        _ => Section::Other,
    }
}
