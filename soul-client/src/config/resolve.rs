//! What a builder comes to: one layer of settings over the other, and the defaults where none says anything.

use std::path::PathBuf;

use super::{AdminUrl, AdminsRule, ClientConfig, ClientConfigBuilder, Tls, admin_url::Written};
use crate::{
    address::{Network, Wishes},
    backoff::Bounds,
    error::Problem,
    plan::Dialect,
    route::RpcType,
    secret::Secret,
    transport::Credentials,
};

impl ClientConfigBuilder {
    /// These settings, and where they say nothing those of `under`.
    pub(super) fn over(self, under: Self) -> Self {
        Self {
            admin_urls: if self.admin_urls.is_empty() { under.admin_urls } else { self.admin_urls },
            context_path: self.context_path.or(under.context_path),
            app_name: self.app_name.or(under.app_name),
            host: self.host.or(under.host),
            port: self.port.or(under.port),
            full: self.full.or(under.full),
            rpc_type: self.rpc_type.or(under.rpc_type),
            dialect: self.dialect.or(under.dialect),
            admins_rule: self.admins_rule.or(under.admins_rule),
            connect_timeout: self.connect_timeout.or(under.connect_timeout),
            request_timeout: self.request_timeout.or(under.request_timeout),
            refresh_interval: self.refresh_interval.or(under.refresh_interval),
            retry_delay: self.retry_delay.or(under.retry_delay),
            concurrency: self.concurrency.or(under.concurrency),
            shutdown_timeout: self.shutdown_timeout.or(under.shutdown_timeout),
            username: self.username.or(under.username),
            // A file that was set here wins over a password from underneath, and the other way round.
            password_file: if self.password.is_some() {
                None
            } else {
                self.password_file.clone().or(under.password_file)
            },
            password: if self.password_file.is_some() {
                self.password
            } else {
                self.password.or(under.password)
            },
            namespaces: if self.namespaces.is_empty() { under.namespaces } else { self.namespaces },
            protocol: self.protocol.or(under.protocol),
            add_prefixed: self.add_prefixed.or(under.add_prefixed),
            offline_timeout: self.offline_timeout.or(under.offline_timeout),
            heartbeat_interval: self.heartbeat_interval.or(under.heartbeat_interval),
            propagation_time: self.propagation_time.or(under.propagation_time),
            stop_timeout: self.stop_timeout.or(under.stop_timeout),
            ca_file: self.ca_file.or(under.ca_file),
            client_cert_file: self.client_cert_file.or(under.client_cert_file),
            client_key_file: self.client_key_file.or(under.client_key_file),
            proxy: self.proxy.or(under.proxy),
            preferred_networks: if self.preferred_networks.is_empty() {
                under.preferred_networks
            } else {
                self.preferred_networks
            },
            ignored_interfaces: if self.ignored_interfaces.is_empty() {
                under.ignored_interfaces
            } else {
                self.ignored_interfaces
            },
            environment: None,
            file: None,
            unreadable: Vec::new(),
        }
    }

    /// Fills in the defaults.
    pub(super) fn resolve(self, problems: &mut Vec<Problem>) -> ClientConfig {
        let credentials = credentials(self.username.as_deref(), self.password, self.password_file, problems);
        let client = match (self.client_cert_file, self.client_key_file) {
            (Some(chain), Some(key)) => Some((chain, key)),
            (None, None) => None,
            (chain, _) => {
                let field = if chain.is_some() { "client_key_file" } else { "client_cert_file" };
                problems
                    .push(Problem::new(field, "is missing: a client certificate needs both of its files"));
                None
            }
        };
        let dialect =
            self.dialect.unwrap_or(if self.username.is_some() { Dialect::Auto } else { Dialect::Any });
        let lenient = matches!(dialect, Dialect::Auto | Dialect::Shenyu(_));
        let (context_path, app_name) = if lenient {
            normal(self.context_path, self.app_name)
        } else {
            (self.context_path, self.app_name)
        };
        let (min, max) = self.retry_delay.unwrap_or(ClientConfig::DEFAULT_RETRY_DELAY);
        let refresh = self.refresh_interval.unwrap_or(ClientConfig::DEFAULT_REFRESH_INTERVAL);
        ClientConfig {
            admin_urls: admins(&self.admin_urls, problems),
            context_path,
            app_name,
            host: self.host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty()),
            port: self.port,
            full: self.full.unwrap_or(false),
            rpc_type: self.rpc_type.unwrap_or(RpcType::Http),
            dialect,
            admins_rule: self.admins_rule.unwrap_or_else(|| AdminsRule::of(dialect)),
            connect_timeout: self.connect_timeout.unwrap_or(ClientConfig::DEFAULT_CONNECT_TIMEOUT),
            request_timeout: self.request_timeout.unwrap_or(ClientConfig::DEFAULT_REQUEST_TIMEOUT),
            refresh_interval: Some(refresh).filter(|interval| !interval.is_zero()),
            retry_delay: Bounds { min, max },
            concurrency: self.concurrency.unwrap_or(ClientConfig::DEFAULT_CONCURRENCY),
            shutdown_timeout: self.shutdown_timeout.unwrap_or(ClientConfig::DEFAULT_SHUTDOWN_TIMEOUT),
            credentials,
            namespaces: listed(&self.namespaces, ';'),
            protocol: self.protocol.unwrap_or_else(|| "http://".to_owned()),
            add_prefixed: self.add_prefixed.unwrap_or(false),
            offline_timeout: self.offline_timeout.unwrap_or(ClientConfig::DEFAULT_OFFLINE_TIMEOUT),
            heartbeat_interval: self.heartbeat_interval,
            propagation_time: self.propagation_time.unwrap_or(ClientConfig::DEFAULT_PROPAGATION_TIME),
            stop_timeout: self.stop_timeout.unwrap_or(ClientConfig::DEFAULT_STOP_TIMEOUT),
            tls: Tls { ca_file: self.ca_file, client },
            proxy: self.proxy,
            wishes: Wishes {
                preferred: networks(&self.preferred_networks, problems),
                ignored: listed(&self.ignored_interfaces, ','),
            },
        }
    }
}

/// As the Java starters of ShenYu make them: a slash in front and none at the end, and one named by the other.
fn normal(context_path: Option<String>, app_name: Option<String>) -> (Option<String>, Option<String>) {
    let bare = |text: &String| Some(text.trim().trim_matches('/').to_owned()).filter(|text| !text.is_empty());
    let name = app_name.as_ref().and_then(bare);
    let path = match &context_path {
        // What is there and says nothing is a mistake to be told.
        Some(text) if bare(text).is_none() && !text.trim().is_empty() => return (context_path, app_name),
        text => text.as_ref().and_then(bare).or_else(|| name.clone()),
    };
    (path.as_ref().map(|path| format!("/{path}")), app_name.or(path))
}

fn credentials(
    username: Option<&str>,
    password: Option<Secret>,
    file: Option<PathBuf>,
    problems: &mut Vec<Problem>,
) -> Option<Credentials> {
    let password = match (password, file) {
        (Some(password), _) => Some(password),
        (None, Some(file)) => match Secret::read(&file) {
            Ok(password) => Some(password),
            Err(problem) => {
                problems.push(problem);
                return None;
            }
        },
        (None, None) => None,
    };
    match (username, password) {
        (Some(username), Some(password)) => Some(Credentials { username: username.to_owned(), password }),
        (Some(username), None) => {
            let text = format!("is missing: set that of the user `{username}`, or `password_file`");
            problems.push(Problem::new("password", text));
            None
        }
        (None, Some(_)) => {
            problems.push(Problem::new("username", "is missing: set the user that the password belongs to"));
            None
        }
        (None, None) => None,
    }
}

fn networks(lists: &[String], problems: &mut Vec<Problem>) -> Vec<Network> {
    let mut networks = Vec::new();
    for text in listed(lists, ',') {
        match Network::parse(&text) {
            Ok(network) => networks.push(network),
            Err(text) => problems.push(Problem::new("preferred_networks", text)),
        }
    }
    networks
}

/// The pieces of lists, each once.
fn listed(lists: &[String], separator: char) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in
        lists.iter().flat_map(|list| list.split(separator)).map(str::trim).filter(|piece| !piece.is_empty())
    {
        if !pieces.iter().any(|known| known == piece) {
            pieces.push(piece.to_owned());
        }
    }
    pieces
}

/// Each address once, in the order given.
fn admins(lists: &[Written], problems: &mut Vec<Problem>) -> Vec<AdminUrl> {
    let mut admins: Vec<AdminUrl> = Vec::new();
    let mut refused = false;
    for text in lists.iter().flat_map(|list| list.0.split(',')).map(str::trim).filter(|text| !text.is_empty())
    {
        match AdminUrl::parse(text) {
            Ok(url) if !admins.contains(&url) => admins.push(url),
            Ok(_) => {}
            Err(text) => {
                refused = true;
                problems.push(Problem::new("admin_url", text));
            }
        }
    }
    if admins.is_empty() && !refused {
        let text = "is missing: set the address of the admin, for example `http://localhost:9095`";
        problems.push(Problem::new("admin_url", text));
    }
    admins
}
