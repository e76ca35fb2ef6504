//! Reading the fields of a JSON body as tolerantly as Jackson does, and collecting what is wrong with them.

use std::net::{IpAddr, Ipv6Addr};

use serde_json::{Map, Value};
use soul_client::wire::{
    gson::is_blank,
    soul::{ConditionData, MetaDataRegisterDto},
};

use crate::{
    admin::{
        probe::{is_link_local, refuse_link_local},
        problem::Problem,
    },
    model::Target,
};

/// Which addresses may register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkLocal {
    /// Addresses of the own link are refused.
    Refused,
    /// They are taken.
    Allowed,
}

/// The fields of one body.
pub(crate) struct Reader {
    fields: Map<String, Value>,
    pub(crate) problems: Vec<Problem>,
}

impl Reader {
    /// The fields of a JSON object.
    ///
    /// # Errors
    /// For bytes that are none.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, Problem> {
        let bad = |why: String| Problem::new("body", why);
        let text = std::str::from_utf8(bytes).map_err(|e| bad(format!("is not UTF-8: {e}")))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Ok(Self { fields, problems: Vec::new() }),
            Ok(_) => Err(bad("must be a JSON object".to_owned())),
            Err(error) => Err(bad(format!("is no JSON: {error}"))),
        }
    }

    /// What was read, unless something is wrong.
    ///
    /// # Errors
    /// Every problem.
    pub(crate) fn finish<T>(self, read: T) -> Result<T, Vec<Problem>> {
        if self.problems.is_empty() { Ok(read) } else { Err(self.problems) }
    }

    /// Whether the field is there, whatever its value.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    /// Whether the field has a value.
    pub(crate) fn says(&self, field: &str) -> bool {
        self.fields.get(field).is_some_and(|value| !value.is_null())
    }

    /// What every dialect says of a route in the same fields; the rest is empty.
    pub(crate) fn described(&mut self) -> MetaDataRegisterDto {
        MetaDataRegisterDto {
            app_name: self.text("appName"),
            path_desc: self.text("pathDesc"),
            rpc_type: self.text("rpcType"),
            service_name: self.text("serviceName"),
            method_name: self.text("methodName"),
            rule_name: self.text("ruleName"),
            parameter_types: self.text("parameterTypes"),
            rpc_ext: self.text("rpcExt"),
            enabled: self.flag("enabled"),
            register_meta_data: self.flag("registerMetaData"),
            ..MetaDataRegisterDto::default()
        }
    }

    // === as Jackson reads: numbers and flags may be texts, texts may be numbers ===

    pub(crate) fn text(&mut self, field: &str) -> Option<String> {
        match self.fields.get(field)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Array(_) | Value::Object(_) => self.wrong(field, "must be a text"),
        }
    }

    pub(crate) fn number(&mut self, field: &str) -> Option<i32> {
        let number = match self.fields.get(field)? {
            Value::Null => return None,
            Value::Number(number) => number.as_i64().or_else(|| integral(number.as_f64()?)),
            Value::String(text) if is_blank(text) => return None,
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number.and_then(|number| i32::try_from(number).ok()) {
            None => self.wrong(field, "must be a whole number of 32 bits"),
            number => number,
        }
    }

    pub(crate) fn flag(&mut self, field: &str) -> bool {
        let flag = match self.fields.get(field) {
            None | Some(Value::Null) => Some(false),
            Some(Value::Bool(flag)) => Some(*flag),
            Some(Value::Number(number)) => number.as_i64().map(|number| number != 0),
            Some(Value::String(text)) => match text.trim() {
                "true" | "True" | "TRUE" => Some(true),
                "false" | "False" | "FALSE" | "" => Some(false),
                _ => None,
            },
            Some(_) => None,
        };
        flag.or_else(|| self.wrong(field, "must be true or false")).unwrap_or_default()
    }

    fn wrong<T>(&mut self, field: &str, why: &str) -> Option<T> {
        self.problems.push(Problem::new(field, why));
        None
    }

    // === what is needed ===

    /// A field that must not be blank.
    pub(crate) fn need(&mut self, field: &str, value: Option<&str>) {
        let reported = self.problems.iter().any(|problem| problem.field == field);
        if value.is_none_or(is_blank) && !reported {
            self.problems.push(Problem::new(field, "is missing or empty"));
        }
    }

    /// Refuses a path that no gateway could match with.
    pub(crate) fn check_pattern(&mut self, field: &str, condition: Option<ConditionData>) {
        if let Some(problem) = condition.as_ref().and_then(Problem::of_condition) {
            self.problems.push(Problem::new(field, problem.problem));
        }
    }

    /// Refuses what is no host, and writes an IPv6 address as it stands before a port.
    pub(crate) fn check_host(&mut self, field: &mut Option<String>, link_local: LinkLocal) {
        self.need("host", field.as_deref());
        let Some(text) = field.as_deref().filter(|host| !is_blank(host)) else { return };
        let text = text.trim();
        match host(text) {
            None => {
                self.problems
                    .push(Problem::new("host", format!("`{text}` is neither an IP address nor a host name")));
            }
            Some((_, Some(ip))) if is_link_local(ip) && link_local == LinkLocal::Refused => {
                self.problems.push(Problem::new("host", refuse_link_local(text)));
            }
            Some((host, _)) => *field = Some(host),
        }
    }

    /// Refuses what is no port.
    pub(crate) fn check_port(&mut self, port: Option<i32>) {
        match port {
            Some(1..=65535) => {}
            None => self.need("port", None),
            Some(port) => {
                self.problems.push(Problem::new("port", format!("`{port}` must be from 1 to 65535")));
            }
        }
    }
}

/// A host as it stands before a port, and the address it is if it is one; `None` for anything else.
fn host(text: &str) -> Option<(String, Option<IpAddr>)> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = inner.parse::<Ipv6Addr>() {
        return Some((format!("[{ip}]"), Some(ip.into())));
    }
    let target: Target = format!("{text}:1").parse().ok()?;
    let ip = target.host().parse().ok();
    let numeric = text.split('.').all(|part| part.bytes().all(|b| b.is_ascii_digit()));
    // What looks like an address and is none is a slip, not a name. Leading zeros are Java's to read.
    let octets = || text.split('.').filter(|part| part.parse::<u8>().is_ok()).count();
    let slip = numeric && ip.is_none() && octets() != 4;
    (target.host() == text && !slip).then(|| (text.to_owned(), ip))
}

/// A fraction of zero is a whole number.
fn integral(number: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}
