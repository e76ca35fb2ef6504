//! Reading a registration: as tolerant of form as Soul's reader, and strict about what is needed.

use std::{
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use serde_json::{Map, Value};
use soul_client::wire::{
    gson::is_blank,
    soul::{ConditionData, MetaDataRegisterDto},
};

use super::{Dialect, Service, UnsupportedRpcType, plan::condition, rule_operator};
use crate::{
    admin::{
        probe::{is_link_local, refuse_link_local},
        problem::Problem,
    },
    model::Target,
};

/// Every rpc type that makes a rule.
const RPC_TYPES: [&str; 7] = ["http", "springCloud", "dubbo", "sofa", "tars", "grpc", "websocket"];

/// A registration that has all it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    /// Whose rules it follows.
    pub(crate) dialect: Dialect,
    /// Which service takes it.
    pub(crate) service: Service,
    /// What it says.
    pub(crate) body: MetaDataRegisterDto,
}

/// Which addresses may register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkLocal {
    /// Addresses of the own link are refused.
    Refused,
    /// They are taken.
    Allowed,
}

/// Reads a body that came to the URL of a service.
///
/// A body of 2.3.0 says `contextPath`, one of Feb-2021 `context`; with both it is treated as 2.3.0. Of a body with
/// neither the selector is named by the path's first segment, as in 2.3.0, where the context path is
/// optional. RPC bodies say `contextPath` in both versions; those of 2.3.0 also have a host, a port or
/// `registerMetaData`. Feb-2021 bodies go to the service of the URL, those of 2.3.0 to that of their `rpcType`.
///
/// # Errors
/// Every field that is missing or malformed.
pub(crate) fn read(url: Service, bytes: &[u8], link_local: LinkLocal) -> Result<Incoming, Vec<Problem>> {
    let fields = parse(bytes).map_err(|problem| vec![problem])?;
    let mut reader = Reader { fields: &fields, problems: Vec::new() };
    let (mut body, context) = reader.body();
    let context_path = body.context_path.take().filter(|path| !is_blank(path));
    let context = context.filter(|context| !is_blank(context));
    let dialect = dialect(url, &fields, context_path.is_some(), context.is_some());
    if context.is_none() && fields.contains_key("context") && !fields.contains_key("contextPath") {
        // Only Feb-2021 says `context`, and there an empty one would take every request.
        reader.need("context", None);
    }
    body.context_path = context_path.or(context);
    let service = match (dialect, body.rpc_type.as_deref()) {
        (Dialect::V230, Some("websocket")) | (Dialect::Feb2021, _) => url,
        (Dialect::V230, rpc_type) => rpc_type.and_then(|name| Service::from_str(name).ok()).unwrap_or(url),
    };
    let mut incoming = Incoming { dialect, service, body };
    reader.check(&mut incoming, link_local);
    if reader.problems.is_empty() { Ok(incoming) } else { Err(reader.problems) }
}

fn parse(bytes: &[u8]) -> Result<Map<String, Value>, Problem> {
    let bad = |why: String| Problem::new("body", why);
    let text = std::str::from_utf8(bytes).map_err(|e| bad(format!("is not UTF-8: {e}")))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(bad("must be a JSON object".to_owned())),
        Err(error) => Err(bad(format!("is no JSON: {error}"))),
    }
}

fn dialect(url: Service, fields: &Map<String, Value>, context_path: bool, context: bool) -> Dialect {
    let says = |name: &str| fields.get(name).is_some_and(|value| !value.is_null());
    let later = if url.is_rpc() {
        ["host", "port", "registerMetaData"].into_iter().any(says)
    } else {
        context_path || !context
    };
    if later { Dialect::V230 } else { Dialect::Feb2021 }
}

/// Reads fields and collects what is wrong with them.
struct Reader<'a> {
    fields: &'a Map<String, Value>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    /// The fields of either dialect, and `context`.
    fn body(&mut self) -> (MetaDataRegisterDto, Option<String>) {
        let body = MetaDataRegisterDto {
            app_name: self.text("appName"),
            context_path: self.text("contextPath"),
            path: self.text("path"),
            path_desc: self.text("pathDesc"),
            rpc_type: self.text("rpcType"),
            service_name: self.text("serviceName"),
            method_name: self.text("methodName"),
            rule_name: self.text("ruleName"),
            parameter_types: self.text("parameterTypes"),
            rpc_ext: self.text("rpcExt"),
            enabled: self.flag("enabled"),
            host: self.text("host"),
            port: self.number("port"),
            plugin_names: None,
            register_meta_data: self.flag("registerMetaData"),
        };
        (body, self.text("context"))
    }

    // === as Jackson reads: numbers and flags may be texts, texts may be numbers ===

    fn text(&mut self, field: &str) -> Option<String> {
        match self.fields.get(field)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Array(_) | Value::Object(_) => self.wrong(field, "must be a text"),
        }
    }

    fn number(&mut self, field: &str) -> Option<i32> {
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

    fn flag(&mut self, field: &str) -> bool {
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

    fn check(&mut self, incoming: &mut Incoming, link_local: LinkLocal) {
        let Incoming { dialect, service, body } = incoming;
        self.check_rpc_type(*dialect, *service, body.rpc_type.as_deref());
        self.need("path", body.path.as_deref());
        if *service == Service::SpringCloud {
            self.need("appName", body.app_name.as_deref());
        }
        if *service != Service::SpringMvc && body.context_path.is_none() {
            // Without it the metadata of 2.3.0 would make every request of the gateway one of this service.
            self.need("contextPath", None);
        }
        if service.is_rpc() {
            self.need("serviceName", body.service_name.as_deref());
            self.need("methodName", body.method_name.as_deref());
        }
        if body.rule_name.as_deref().is_none_or(is_blank) {
            body.rule_name = body.path.clone(); // what every client does before it sends
        }
        self.check_pattern(
            "path",
            body.path.as_deref().map(|path| condition(rule_operator(path), path.to_owned())),
        );
        let context = if *dialect == Dialect::Feb2021 { "context" } else { "contextPath" };
        let pattern = body.context_path.as_deref().map(|path| condition("match", format!("{path}/**")));
        self.check_pattern(context, pattern);
        if service.registers_node(*dialect) {
            self.check_host(body, link_local);
            self.check_port(body.port);
        }
    }

    fn check_rpc_type(&mut self, dialect: Dialect, service: Service, rpc_type: Option<&str>) {
        let known = match rpc_type {
            None => return self.need("rpcType", None),
            Some("websocket") => dialect == Dialect::Feb2021 || service == Service::SpringMvc,
            Some(name) => RPC_TYPES.contains(&name),
        };
        if !known {
            let soul = UnsupportedRpcType(rpc_type.map(str::to_owned)).to_string();
            let mut problem = Problem::not_one_of("rpcType", rpc_type.unwrap_or_default(), &RPC_TYPES);
            problem.problem = soul.trim().to_owned();
            self.problems.push(problem);
        }
    }

    fn need(&mut self, field: &str, value: Option<&str>) {
        let reported = self.problems.iter().any(|problem| problem.field == field);
        if value.is_none_or(is_blank) && !reported {
            self.problems.push(Problem::new(field, "is missing or empty"));
        }
    }

    /// Refuses a path that no gateway could match with.
    fn check_pattern(&mut self, field: &str, condition: Option<ConditionData>) {
        if let Some(problem) = condition.as_ref().and_then(Problem::of_condition) {
            self.problems.push(Problem::new(field, problem.problem));
        }
    }

    fn check_host(&mut self, body: &mut MetaDataRegisterDto, link_local: LinkLocal) {
        self.need("host", body.host.as_deref());
        let Some(text) = body.host.as_deref().filter(|host| !is_blank(host)) else { return };
        let text = text.trim();
        match host(text) {
            None => {
                self.problems
                    .push(Problem::new("host", format!("`{text}` is neither an IP address nor a host name")));
            }
            Some((_, Some(ip))) if is_link_local(ip) && link_local == LinkLocal::Refused => {
                self.problems.push(Problem::new("host", refuse_link_local(text)));
            }
            Some((host, _)) => body.host = Some(host),
        }
    }

    fn check_port(&mut self, port: Option<i32>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const FEB: &str = r#"{"appName":"http","context":"/http","path":"/http/order/save","pathDesc":"Save order","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/order/save","enabled":true,"registerMetaData":false}"#;

    fn read_text(text: &str) -> Result<Incoming, Vec<Problem>> {
        read(Service::SpringMvc, text.as_bytes(), LinkLocal::Refused)
    }

    fn fields(text: &str) -> Vec<String> {
        read_text(text).unwrap_err().into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn the_field_of_the_context_tells_the_dialect() {
        let both = FEB.replace(r#""context":"/http""#, r#""context":"/http","contextPath":"/http""#);
        let later = FEB.replace("context\"", "contextPath\"");
        let neither = FEB.replace(r#""context":"/http","#, "");
        for (text, dialect, context) in [
            (FEB, Dialect::Feb2021, Some("/http")),
            (&both, Dialect::V230, Some("/http")),
            (&later, Dialect::V230, Some("/http")),
            (&neither, Dialect::V230, None),
        ] {
            let incoming = read_text(text).unwrap();
            assert_eq!(
                (incoming.dialect, incoming.body.context_path.as_deref()),
                (dialect, context),
                "{text}"
            );
            assert_eq!(incoming.service, Service::SpringMvc);
        }
    }

    #[test]
    fn rpc_type_chooses_the_service_in_230_and_the_url_before() {
        let cloud = FEB.replace(r#""rpcType":"http""#, r#""rpcType":"springCloud""#);
        assert_eq!(read_text(&cloud).unwrap().service, Service::SpringMvc);
        let cloud = cloud.replace("context\"", "contextPath\"");
        assert_eq!(read_text(&cloud).unwrap().service, Service::SpringCloud);
    }

    #[test]
    fn rpc_bodies_of_the_two_versions_are_told_apart() {
        let feb = r#"{"appName":"a","contextPath":"/t","path":"/t/x","rpcType":"tars","serviceName":"s","methodName":"m","ruleName":"/t/x","enabled":true}"#;
        let incoming = read(Service::Tars, feb.as_bytes(), LinkLocal::Refused).unwrap();
        assert_eq!(incoming.dialect, Dialect::Feb2021);
        let later = feb.replace('}', r#","host":"10.0.0.2","port":1,"registerMetaData":false}"#);
        let incoming = read(Service::Tars, later.as_bytes(), LinkLocal::Refused).unwrap();
        assert_eq!((incoming.dialect, incoming.service), (Dialect::V230, Service::Tars));
    }

    #[test]
    fn numbers_flags_and_texts_may_stand_for_each_other() {
        let text = FEB
            .replace("8188", "\"8188\"")
            .replace("\"enabled\":true", "\"enabled\":\"true\"")
            .replace("\"appName\":\"http\"", "\"appName\":7,\"unknown\":[{}]")
            .replace("\"registerMetaData\":false", "\"registerMetaData\":1");
        let body = read_text(&text).unwrap().body;
        assert_eq!((body.port, body.enabled, body.register_meta_data), (Some(8188), true, true));
        assert_eq!(body.app_name.as_deref(), Some("7"));
        assert_eq!(read_text(&FEB.replace("8188", "8188.0")).unwrap().body.port, Some(8188));
    }

    #[test]
    fn missing_rule_name_is_the_path() {
        let text = FEB.replace(r#""ruleName":"/http/order/save""#, r#""ruleName":"""#);
        assert_eq!(read_text(&text).unwrap().body.rule_name.as_deref(), Some("/http/order/save"));
    }

    #[test]
    fn malformed_bodies_name_the_field() {
        for (text, expected) in [
            ("", "body"),
            ("[]", "body"),
            ("{\"path\":", "body"),
            ("null", "body"),
            (&FEB.replace("\"path\":\"/http/order/save\"", "\"path\":{}"), "path"),
            (&FEB.replace("\"path\":\"/http/order/save\"", "\"path\":\" \""), "path"),
            (&FEB.replace("\"path\":\"/http/order/save\"", "\"path\":\"/http/{a:[}/**\""), "path"),
            (&FEB.replace("\"context\":\"/http\"", "\"context\":\"/{a:(}\""), "context"),
            (&FEB.replace("\"context\":\"/http\"", "\"context\":\" \""), "context"),
            (&FEB.replace("\"context\":\"/http\"", "\"context\":null"), "context"),
            (&FEB.replace("\"host\":\"10.0.0.2\",", ""), "host"),
            (&FEB.replace("10.0.0.2", "http://10.0.0.2"), "host"),
            (&FEB.replace("10.0.0.2", "10.0.0.256"), "host"),
            (&FEB.replace("10.0.0.2", "169.254.169.254"), "host"),
            (&FEB.replace("\"port\":8188,", ""), "port"),
            (&FEB.replace("8188", "0"), "port"),
            (&FEB.replace("8188", "65536"), "port"),
            (&FEB.replace("8188", "\"x\""), "port"),
            (&FEB.replace("8188", "8188.5"), "port"),
            (&FEB.replace("8188", "99999999999"), "port"),
            (&FEB.replace("\"enabled\":true", "\"enabled\":\"yes\""), "enabled"),
            (&FEB.replace("\"rpcType\":\"http\"", "\"rpcType\":\"motan\""), "rpcType"),
            (&FEB.replace("\"rpcType\":\"http\",", ""), "rpcType"),
        ] {
            assert_eq!(fields(text), [expected], "{text}");
        }
        assert_eq!(fields("{}"), ["rpcType", "path", "host", "port"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let problems = read(Service::SpringMvc, b"{\"path\":\"\xff\"}", LinkLocal::Refused).unwrap_err();
        assert!(problems[0].to_string().contains("UTF-8"), "{problems:?}");
    }

    #[test]
    fn ipv6_hosts_get_brackets() {
        for (host, kept) in
            [("::1", "[::1]"), ("[::1]", "[::1]"), ("localhost", "localhost"), (" a.b ", "a.b")]
        {
            let body = read_text(&FEB.replace("10.0.0.2", host)).unwrap().body;
            assert_eq!(body.host.as_deref(), Some(kept));
        }
    }

    #[test]
    fn link_local_is_taken_if_allowed() {
        let text = FEB.replace("10.0.0.2", "169.254.1.1");
        assert!(read(Service::SpringMvc, text.as_bytes(), LinkLocal::Allowed).is_ok());
    }
}
