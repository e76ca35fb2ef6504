//! Settings from maps, the environment and files.

use std::{collections::BTreeMap, path::Path};

use super::{
    ServiceConfig,
    keys::{self, Dialect, Key, Meaning},
};
use crate::call::{CallError, CallErrorKind, uri::check_name};

/// Prefix of our own keys.
const OURS: &str = "soul.call.";

/// What stands between a service and one of Ribbon's keys.
const RIBBON: &str = ".ribbon.";

/// A key of Ribbon's that changes nothing here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ignored {
    /// The key, as written.
    pub key: String,
    /// Why nothing is missing.
    pub reason: &'static str,
}

/// Settings for all services and for single ones, as a configuration has them.
///
/// | key | for |
/// |---|---|
/// | `ribbon.ConnectTimeout` | all services, by Ribbon's names |
/// | `orders.ribbon.ConnectTimeout` | one service |
/// | `soul.call.connect-timeout-ms` | all services, by ours |
/// | `soul.call.clients.orders.connect-timeout-ms` | one service |
///
/// Keys are as lenient as Spring's: upper and lower case, `-` and `_` do not matter. Keys of another form belong to somebody
/// else and are passed over; of these forms, an unknown one is a mistake.
///
/// In the environment a service is written in capitals with `_` for `-`: `ORDERS_RIBBON_CONNECTTIMEOUT`, `RIBBON_CONNECTTIMEOUT`,
/// `SOUL_CALL_CONNECT_TIMEOUT_MS`, `SOUL_CALL_CLIENTS_ORDERS_CONNECT_TIMEOUT_MS`.
///
/// # Examples
/// ```
/// use soul_client::call::CallConfig;
///
/// let config = CallConfig::from_pairs([
///     ("ribbon.MaxAutoRetries", "1"),
///     ("orders.ribbon.listOfServers", "10.0.0.2:8188, 10.0.0.3:8188"),
///     ("orders.ribbon.NFLoadBalancerRuleClassName", "com.netflix.loadbalancer.BestAvailableRule"),
/// ])?;
/// assert_eq!(config.service("orders").said(), ["policy", "servers"]);
///
/// let error = CallConfig::from_pairs([("orders.ribbon.MaxAutoRetry", "1")]).unwrap_err();
/// assert!(error.to_string().contains("did you mean `MaxAutoRetries`"));
/// # Ok::<(), soul_client::call::CallError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallConfig {
    defaults: ServiceConfig,
    services: BTreeMap<String, ServiceConfig>,
    ignored: Vec<Ignored>,
}

impl CallConfig {
    /// Reads keys and values.
    ///
    /// # Errors
    /// If a key is not known or a value is not allowed; the error names all such keys, with the nearest known one or what is
    /// expected.
    pub fn from_pairs<K: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, CallError> {
        let mut reader = Reader::default();
        for (key, value) in pairs {
            let (written, value) = (key.as_ref(), value.as_ref().trim());
            if let Some((dialect, service, name)) = split(written) {
                reader.take(written, service, keys::find(dialect, name), value);
            }
        }
        reader.finish()
    }

    /// Reads the environment.
    ///
    /// # Errors
    /// As [`from_pairs`](Self::from_pairs).
    pub fn from_env() -> Result<Self, CallError> {
        // A variable that is no text is nobody's key.
        let vars = std::env::vars_os();
        Self::from_vars(
            vars.filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok())),
        )
    }

    /// Reads variables, as [`from_env`](Self::from_env) does. An empty one is as if it were not there.
    ///
    /// # Errors
    /// As [`from_pairs`](Self::from_pairs).
    pub fn from_vars<K: AsRef<str>, V: AsRef<str>>(
        vars: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, CallError> {
        let mut reader = Reader::default();
        for (name, value) in vars {
            let (name, value) = (name.as_ref(), value.as_ref().trim());
            if value.is_empty() {
                continue;
            }
            if let Some(rest) = name.strip_prefix("SOUL_CALL_CLIENTS_") {
                match keys::find_at_end(rest) {
                    Some((at, key)) => reader.take(name, &service_of(&rest[..at - 1]), Ok(key), value),
                    None => reader.take(name, "", keys::find(Dialect::Ours, rest), value),
                }
            } else if let Some(rest) = name.strip_prefix("SOUL_CALL_") {
                reader.take(name, "", keys::find(Dialect::Ours, rest), value);
            } else if let Some(rest) = name.strip_prefix("RIBBON_") {
                reader.take(name, "", keys::find(Dialect::Ribbon, rest), value);
            } else if let Some((service, rest)) = name.rsplit_once("_RIBBON_") {
                reader.take(name, &service_of(service), keys::find(Dialect::Ribbon, rest), value);
            }
        }
        reader.finish()
    }

    /// Reads a text in the format of Java's `.properties`.
    ///
    /// # Errors
    /// As [`from_pairs`](Self::from_pairs).
    pub fn from_properties(text: &str) -> Result<Self, CallError> {
        Self::from_pairs(properties(text))
    }

    /// Reads a file, `.properties`, or with the feature `file` also `.yml`, `.yaml` or `.toml`.
    ///
    /// # Errors
    /// If the file cannot be read, and as [`from_pairs`](Self::from_pairs).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, CallError> {
        let path = path.as_ref();
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            CallError::new(CallErrorKind::Config, "")
                .with_detail(format!("`{shown}` cannot be read"))
                .with_source(error)
        })?;
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("properties") => Self::from_properties(&text),
            #[cfg(feature = "file")]
            Some("yml" | "yaml" | "toml") => {
                let pairs = crate::config::file_pairs(path, &text).map_err(|problem| wrong(&[problem]))?;
                Self::from_pairs(pairs)
            }
            _ if cfg!(feature = "file") => {
                Err(wrong(&[format!("`{shown}` ends in none of `.properties`, `.yml`, `.yaml`, `.toml`")]))
            }
            _ => Err(wrong(&[format!(
                "`{shown}` does not end in `.properties`; for YAML and TOML turn on the feature `file`"
            )])),
        }
    }

    /// These settings, and those of `below` where these say nothing.
    #[must_use = "it is the result that has both"]
    pub fn over(mut self, below: &Self) -> Self {
        self.defaults = self.defaults.over(&below.defaults);
        for (service, config) in &below.services {
            let own = self.services.entry(service.clone()).or_default();
            *own = own.over(config);
        }
        self.ignored.extend(below.ignored.iter().cloned());
        self
    }

    /// What is said for all services.
    pub fn defaults(&self) -> &ServiceConfig {
        &self.defaults
    }

    /// What is said for one service.
    pub fn service(&self, name: &str) -> ServiceConfig {
        self.services.get(name).cloned().unwrap_or_default()
    }

    /// Names of the services for which anything is said.
    pub fn services(&self) -> impl Iterator<Item = &str> {
        self.services.keys().map(String::as_str)
    }

    /// Keys of Ribbon's that change nothing here.
    #[must_use]
    pub fn ignored(&self) -> &[Ignored] {
        &self.ignored
    }
}

/// Whose key it is, the service (empty for all), and the rest; `None` if it is somebody else's.
fn split(key: &str) -> Option<(Dialect, &str, &str)> {
    if let Some(rest) = key.strip_prefix(OURS) {
        let of_service = rest.strip_prefix("clients.").and_then(|rest| rest.rsplit_once('.'));
        let (service, name) = of_service.unwrap_or(("", rest));
        return Some((Dialect::Ours, service, name));
    }
    if let Some(name) = key.strip_prefix(&RIBBON[1..]) {
        return Some((Dialect::Ribbon, "", name));
    }
    let (service, name) = key.rsplit_once(RIBBON)?;
    Some((Dialect::Ribbon, service, name))
}

fn service_of(variable: &str) -> String {
    variable.to_ascii_lowercase().replace('_', "-")
}

fn wrong(problems: &[String]) -> CallError {
    CallError::new(CallErrorKind::Config, "").with_detail(problems.join("; "))
}

#[derive(Default)]
struct Reader {
    config: CallConfig,
    problems: Vec<String>,
}

impl Reader {
    fn take(&mut self, written: &str, service: &str, key: Result<&Key, &str>, value: &str) {
        if !service.is_empty()
            && let Err(remedy) = check_name(service)
        {
            self.problems.push(format!("`{written}` {remedy}"));
            return;
        }
        match key.map(|key| key.meaning) {
            Ok(Meaning::Set(set)) => {
                let config = match service {
                    "" => &mut self.config.defaults,
                    _ => self.config.services.entry(service.to_owned()).or_default(),
                };
                if let Err(expected) = set(config, value) {
                    self.problems.push(format!("`{written}` is `{value}`: {expected}"));
                }
            }
            Ok(Meaning::Ignored(reason)) => {
                self.config.ignored.push(Ignored { key: written.to_owned(), reason });
            }
            Ok(Meaning::Refused(remedy)) => {
                self.problems.push(format!("`{written}` has no counterpart here: {remedy}"));
            }
            Err(nearest) => {
                self.problems.push(format!("`{written}` is not known, did you mean `{nearest}`?"));
            }
        }
    }

    fn finish(self) -> Result<CallConfig, CallError> {
        if self.problems.is_empty() { Ok(self.config) } else { Err(wrong(&self.problems)) }
    }
}

/// Keys and values of a `.properties`: comments, either separator, lines that go on behind a backslash.
fn properties(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut lines = text.lines().map(str::trim_start);
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = line.to_owned();
        while whole.ends_with('\\') {
            whole.pop();
            match lines.next() {
                Some(more) => whole.push_str(more),
                None => break,
            }
        }
        let (key, value) = whole.split_once(['=', ':']).unwrap_or((&whole, ""));
        pairs.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    pairs
}
