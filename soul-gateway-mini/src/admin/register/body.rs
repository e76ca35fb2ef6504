//! Reading a registration: as tolerant of form as Soul's reader, and strict about what is needed.

use std::str::FromStr;

use soul_client::wire::{gson::is_blank, soul::MetaDataRegisterDto};

use super::{
    Dialect, Service, UnsupportedRpcType, condition,
    fields::{LinkLocal, Reader},
    rule_operator,
};
use crate::admin::problem::Problem;

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
    let mut reader = Reader::of(bytes).map_err(|problem| vec![problem])?;
    let (mut body, context) = fields(&mut reader);
    let context_path = body.context_path.take().filter(|path| !is_blank(path));
    let context = context.filter(|context| !is_blank(context));
    let dialect = dialect(url, &reader, context_path.is_some(), context.is_some());
    if context.is_none() && reader.has("context") && !reader.has("contextPath") {
        // Only Feb-2021 says `context`, and there an empty one would take every request.
        reader.need("context", None);
    }
    body.context_path = context_path.or(context);
    let service = match (dialect, body.rpc_type.as_deref()) {
        (Dialect::V230, Some("websocket")) | (Dialect::Feb2021, _) => url,
        (_, rpc_type) => rpc_type.and_then(|name| Service::from_str(name).ok()).unwrap_or(url),
    };
    let mut incoming = Incoming { dialect, service, body };
    check(&mut reader, &mut incoming, link_local);
    reader.finish(incoming)
}

fn dialect(url: Service, reader: &Reader, context_path: bool, context: bool) -> Dialect {
    let later = if url.is_rpc() {
        ["host", "port", "registerMetaData"].into_iter().any(|field| reader.says(field))
    } else {
        context_path || !context
    };
    if later { Dialect::V230 } else { Dialect::Feb2021 }
}

/// The fields of either dialect, and `context`.
fn fields(reader: &mut Reader) -> (MetaDataRegisterDto, Option<String>) {
    let body = MetaDataRegisterDto {
        context_path: reader.text("contextPath"),
        path: reader.text("path"),
        host: reader.text("host"),
        port: reader.number("port"),
        ..reader.described()
    };
    (body, reader.text("context"))
}

/// What is needed.
fn check(reader: &mut Reader, incoming: &mut Incoming, link_local: LinkLocal) {
    let Incoming { dialect, service, body } = incoming;
    check_rpc_type(reader, *dialect, *service, body.rpc_type.as_deref());
    reader.need("path", body.path.as_deref());
    if *service == Service::SpringCloud {
        reader.need("appName", body.app_name.as_deref());
    }
    if *service != Service::SpringMvc && body.context_path.is_none() {
        // Without it the metadata of 2.3.0 would make every request of the gateway one of this service.
        reader.need("contextPath", None);
    }
    if service.is_rpc() {
        reader.need("serviceName", body.service_name.as_deref());
        reader.need("methodName", body.method_name.as_deref());
    }
    if body.rule_name.as_deref().is_none_or(is_blank) {
        body.rule_name = body.path.clone(); // what every client does before it sends
    }
    reader.check_pattern(
        "path",
        body.path.as_deref().map(|path| condition(rule_operator(path), path.to_owned())),
    );
    let context = if *dialect == Dialect::Feb2021 { "context" } else { "contextPath" };
    let pattern = body.context_path.as_deref().map(|path| condition("match", format!("{path}/**")));
    reader.check_pattern(context, pattern);
    if service.registers_node(*dialect) {
        reader.check_host(&mut body.host, link_local);
        reader.check_port(body.port);
    }
}

fn check_rpc_type(reader: &mut Reader, dialect: Dialect, service: Service, rpc_type: Option<&str>) {
    let known = match rpc_type {
        None => return reader.need("rpcType", None),
        Some("websocket") => dialect == Dialect::Feb2021 || service == Service::SpringMvc,
        Some(name) => RPC_TYPES.contains(&name),
    };
    if !known {
        let soul = UnsupportedRpcType(rpc_type.map(str::to_owned)).to_string();
        let mut problem = Problem::not_one_of("rpcType", rpc_type.unwrap_or_default(), &RPC_TYPES);
        problem.problem = soul.trim().to_owned();
        reader.problems.push(problem);
    }
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
