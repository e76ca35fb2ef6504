//! Reading ShenYu's bodies: as tolerantly as its reader, and strictly about what is needed.
//!
//! A Java admin answers `success` and drops a body that lacks something; here the sender is told what it lacks.

use std::str::FromStr;

use soul_client::wire::{
    gson::is_blank,
    shenyu::{EventType, RPC_TYPE_HTTP},
    soul::MetaDataRegisterDto,
};

use crate::admin::{
    problem::Problem,
    register::{
        Dialect, Service, condition,
        fields::{LinkLocal, Reader},
        rule_pattern,
    },
    store::InstanceEvent,
};

/// A body that can be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming<T> {
    /// What is to be done.
    Wanted(T),
    /// Nothing is: why.
    Ignored(String),
}

/// A route.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) service: Service,
    pub(super) body: MetaDataRegisterDto,
}

/// An instance, and what it says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) service: Service,
    pub(super) body: MetaDataRegisterDto,
    pub(super) protocol: String,
    pub(super) event: InstanceEvent,
}

/// Reads a body of `register-metadata`.
///
/// # Errors
/// Every field that is missing or malformed, or a namespace that is not served.
pub(super) fn route(bytes: &[u8], namespace: &str) -> Result<Incoming<Route>, Vec<Problem>> {
    let mut reader = Reader::of(bytes).map_err(|problem| vec![problem])?;
    // Without the address: 2.4.0 needed it here, later releases ignore it.
    let mut body = MetaDataRegisterDto {
        context_path: context_path(&mut reader),
        path: reader.text("path").map(|path| with_slash(&path)),
        ..reader.described()
    };
    check_namespace(&mut reader, namespace);
    reader.need("rpcType", body.rpc_type.as_deref());
    reader.need("appName", body.app_name.as_deref());
    reader.need("contextPath", body.context_path.as_deref());
    reader.need("path", body.path.as_deref());
    let rpc_type = body.rpc_type.clone().unwrap_or_default();
    let Ok(service) = Service::from_str(&rpc_type) else {
        return reader.finish(Incoming::Ignored(format!("rpc type `{rpc_type}` is not registered here")));
    };
    if service.is_rpc() {
        reader.need("serviceName", body.service_name.as_deref());
        reader.need("methodName", body.method_name.as_deref());
    }
    if body.rule_name.as_deref().is_none_or(is_blank) {
        body.rule_name = body.path.clone();
    }
    let pattern = body.path.as_deref().map(|path| rule_pattern(Dialect::Shenyu, path));
    reader.check_pattern("path", pattern.map(|(operator, value)| condition(operator, value)));
    check_context(&mut reader, &body);
    reader.finish(Incoming::Wanted(Route { service, body }))
}

/// Reads a body of `register-uri` or `offline`: the event decides, whatever the path is.
///
/// # Errors
/// Every field that is missing or malformed, or a namespace that is not served.
pub(super) fn instance(
    bytes: &[u8],
    namespace: &str,
    link_local: LinkLocal,
) -> Result<Incoming<Instance>, Vec<Problem>> {
    let mut reader = Reader::of(bytes).map_err(|problem| vec![problem])?;
    // Clients not in Java leave the rpc type out when they leave.
    let rpc_type = reader.text("rpcType").filter(|rpc_type| !is_blank(rpc_type));
    let mut body = MetaDataRegisterDto {
        app_name: reader.text("appName"),
        context_path: context_path(&mut reader),
        rpc_type: Some(rpc_type.unwrap_or_else(|| RPC_TYPE_HTTP.to_owned())),
        host: reader.text("host"),
        port: reader.number("port"),
        ..MetaDataRegisterDto::default()
    };
    let protocol = protocol(&mut reader);
    let event = match event(&mut reader) {
        Ok(event) => event,
        Err(why) => return reader.finish(Incoming::Ignored(why)),
    };
    check_namespace(&mut reader, namespace);
    reader.need("contextPath", body.context_path.as_deref());
    reader.check_host(&mut body.host, link_local);
    reader.check_port(body.port);
    check_context(&mut reader, &body);
    let rpc_type = body.rpc_type.as_deref().unwrap_or_default();
    match Service::from_str(rpc_type) {
        Ok(service) => reader.finish(Incoming::Wanted(Instance { service, body, protocol, event })),
        Err(_) => {
            let why = format!("rpc type `{rpc_type}` is not registered here");
            reader.finish(Incoming::Ignored(why))
        }
    }
}

/// With a slash in front and none at the end; nothing of it left counts as missing.
fn context_path(reader: &mut Reader) -> Option<String> {
    let text = reader.text("contextPath")?;
    let name = text.trim().trim_matches('/');
    (!name.is_empty()).then(|| format!("/{name}"))
}

fn with_slash(path: &str) -> String {
    let path = path.trim();
    if path.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

/// A context path is a text there, and here a pattern: with a wildcard it would take the requests of other services.
fn check_context(reader: &mut Reader, body: &MetaDataRegisterDto) {
    let Some(path) = body.context_path.as_deref() else { return };
    let odd = |c: char| matches!(c, '*' | '?' | '{' | '}' | '#') || c.is_whitespace() || c.is_control();
    if path.contains(odd) || path.contains("//") {
        let why = "is no prefix: letters, digits, `-` and single slashes are safe, as in `/order`";
        reader.problems.push(Problem::new("contextPath", why));
    }
}

/// One namespace is served. A client of several tells each of them, so that those of the others are refused alone.
fn check_namespace(reader: &mut Reader, served: &str) {
    let Some(named) = reader.text("namespaceId").filter(|named| !is_blank(named)) else { return };
    if named.trim() != served {
        let why = format!(
            "`{named}` is not served here, only `{served}`: set `--shenyu-namespace` to serve another"
        );
        reader.problems.push(Problem::new("namespaceId", why));
    }
}

/// With `://`, which a Java admin concatenates with the address, and which some clients forget.
///
/// Gateways put it before the address, so that anything else in it would send requests elsewhere.
fn protocol(reader: &mut Reader) -> String {
    let given = reader.text("protocol").unwrap_or_default();
    let name = given.trim().trim_end_matches("://").to_ascii_lowercase();
    match name.as_str() {
        "" => "http://".to_owned(),
        "http" | "https" | "ws" | "wss" => format!("{name}://"),
        _ => {
            let shown: String = name.chars().take(64).collect();
            let why = format!("`{shown}` is nothing that a gateway speaks, expected `http://` or `https://`");
            reader.problems.push(Problem::new("protocol", why));
            String::new()
        }
    }
}

/// What is said, or why it is ignored.
fn event(reader: &mut Reader) -> Result<InstanceEvent, String> {
    let Some(word) = reader.text("eventType") else { return Ok(InstanceEvent::Listens) };
    match serde_json::from_value(word.clone().into()) {
        Ok(EventType::Register) => Ok(InstanceEvent::Listens),
        Ok(EventType::Heartbeat) => Ok(InstanceEvent::Beats),
        // Up to 2.5 instances left by `DELETED`; later clients send it after `OFFLINE`.
        Ok(EventType::Offline | EventType::Deleted) => Ok(InstanceEvent::Leaves),
        _ => Err(format!("nothing follows from event `{word}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMESPACE: &str = "649330b6-c2d7-4edc-be8e-8a54df9eb385";

    const ROUTE: &str = r#"{"appName":"orders","contextPath":"/orders","path":"/orders/list","rpcType":"http",
        "ruleName":"/orders/list","enabled":true,"registerMetaData":false,"pluginNames":[],"timeMillis":1752000000000,
        "addPrefixed":false,"namespaceId":"649330b6-c2d7-4edc-be8e-8a54df9eb385","later":{"a":[1]}}"#;

    const URI: &str = r#"{"protocol":"http://","appName":"orders","contextPath":"/orders","rpcType":"http",
        "host":"192.168.1.20","port":3000,"eventType":"REGISTER","namespaceId":"649330b6-c2d7-4edc-be8e-8a54df9eb385"}"#;

    fn read_instance(text: &str) -> Result<Incoming<Instance>, Vec<Problem>> {
        instance(text.as_bytes(), NAMESPACE, LinkLocal::Refused)
    }

    fn wanted(text: &str) -> Instance {
        match read_instance(text) {
            Ok(Incoming::Wanted(instance)) => instance,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn context_path_has_one_slash_in_front_and_none_at_the_end() {
        for context in ["/orders", "orders", "/orders/", "//orders//"] {
            let text = ROUTE.replace(r#""contextPath":"/orders""#, &format!(r#""contextPath":"{context}""#));
            let Ok(Incoming::Wanted(read)) = route(text.as_bytes(), NAMESPACE) else { panic!("{context}") };
            assert_eq!(read.body.context_path.as_deref(), Some("/orders"), "{context}");
            let text = URI.replace(r#""contextPath":"/orders""#, &format!(r#""contextPath":"{context}""#));
            assert_eq!(wanted(&text).body.context_path.as_deref(), Some("/orders"), "{context}");
        }
    }

    #[test]
    fn what_a_route_lacks_is_named() {
        for (text, field) in [
            (ROUTE.replace("\"appName\":\"orders\"", "\"appName\":\" \""), "appName"),
            (ROUTE.replace("\"contextPath\":\"/orders\"", "\"contextPath\":\"/\""), "contextPath"),
            (ROUTE.replace("\"path\":\"/orders/list\",", ""), "path"),
            (ROUTE.replace("\"rpcType\":\"http\",", ""), "rpcType"),
            (ROUTE.replace("/orders/list\",\"rpc", "/orders/{a:[}*\",\"rpc"), "path"),
            (ROUTE.replace("contextPath\":\"/orders", "contextPath\":\"/**"), "contextPath"),
            (ROUTE.replace("contextPath\":\"/orders", "contextPath\":\"/{tenant}"), "contextPath"),
            (ROUTE.replace("contextPath\":\"/orders", "contextPath\":\"/a//b"), "contextPath"),
            (ROUTE.replace("contextPath\":\"/orders", "contextPath\":\"/a b"), "contextPath"),
            (ROUTE.replace(NAMESPACE, "other"), "namespaceId"),
            (ROUTE.replace("true", "\"perhaps\""), "enabled"),
        ] {
            let problems = route(text.as_bytes(), NAMESPACE).unwrap_err();
            assert_eq!(problems[0].field, field, "{text}: {problems:?}");
            assert_eq!(problems.len(), 1, "{problems:?}");
        }
    }

    #[test]
    fn other_kinds_are_ignored() {
        for kind in ["websocket", "ai", "mcp", "motan", "brpc", "nonsense"] {
            let text = ROUTE.replace("\"http\"", &format!("\"{kind}\""));
            assert!(matches!(route(text.as_bytes(), NAMESPACE), Ok(Incoming::Ignored(_))), "{kind}");
            let text = URI.replace("\"http\"", &format!("\"{kind}\""));
            assert!(matches!(read_instance(&text), Ok(Incoming::Ignored(_))), "{kind}");
        }
    }

    #[test]
    fn the_event_decides() {
        for (event, expected) in [
            ("REGISTER", InstanceEvent::Listens),
            ("HEARTBEAT", InstanceEvent::Beats),
            ("OFFLINE", InstanceEvent::Leaves),
            ("DELETED", InstanceEvent::Leaves),
        ] {
            assert_eq!(wanted(&URI.replace("REGISTER", event)).event, expected, "{event}");
        }
        assert_eq!(wanted(&URI.replace("\"REGISTER\"", "null")).event, InstanceEvent::Listens);
        for event in ["UPDATED", "IGNORED", "TO_COME"] {
            assert!(matches!(read_instance(&URI.replace("REGISTER", event)), Ok(Incoming::Ignored(_))));
        }
    }

    #[test]
    fn what_clients_not_in_java_forget_is_filled_in() {
        for (given, expected) in [
            ("http://", "http://"),
            ("http", "http://"),
            ("https", "https://"),
            ("HTTPS://", "https://"),
            ("", "http://"),
        ] {
            let text = URI.replace("\"protocol\":\"http://\"", &format!("\"protocol\":\"{given}\""));
            assert_eq!(wanted(&text).protocol, expected, "{given}");
        }
        let bare = r#"{"contextPath":"/orders","host":"10.0.0.2","port":"80","eventType":"OFFLINE"}"#;
        let instance = wanted(bare);
        assert_eq!((instance.service, instance.event), (Service::SpringMvc, InstanceEvent::Leaves));
        assert_eq!(instance.body.port, Some(80));
    }

    #[test]
    fn what_an_instance_lacks_is_named() {
        for (text, field) in [
            (URI.replace("\"contextPath\":\"/orders\",", ""), "contextPath"),
            (URI.replace("192.168.1.20", ""), "host"),
            (URI.replace("192.168.1.20", "169.254.169.254"), "host"),
            (URI.replace("\"/orders", "\"/*"), "contextPath"),
            (URI.replace("http://", "http://elsewhere/#"), "protocol"),
            (URI.replace("http://", "javascript:"), "protocol"),
            (URI.replace("http://", "ftp://"), "protocol"),
            (URI.replace("3000", "0"), "port"),
            (URI.replace("\"port\":3000,", ""), "port"),
            (URI.replace(NAMESPACE, "other"), "namespaceId"),
            ("[1]".to_owned(), "body"),
        ] {
            let problems = read_instance(&text).unwrap_err();
            assert_eq!(problems[0].field, field, "{text}: {problems:?}");
        }
    }
}
