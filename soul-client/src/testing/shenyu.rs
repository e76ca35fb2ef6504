//! The answers of a ShenYu admin (ShenYu specification, sections 1.2 to 1.6, 8.3 and 10.3).

use super::{FakeAdmin, Recorded, State, book::Owner};
use crate::{
    plan::ShenyuVersion,
    wire::shenyu::{DEFAULT_NAMESPACE, EventType, MetaDataRegisterDto, SUCCESS, UriRegisterDto, paths},
};

use ShenyuVersion::{V2_4_0, V2_4_1, V2_4_2, V2_4_3, V2_5, V2_6, V2_7, V2_7_0};

const BUSY: &str = r#"{"code":500,"message":"The system is busy, please try again later","data":null}"#;

/// What one release knows. Written again, and not taken from the plan, so that a mistake there is seen here.
struct Known {
    paths: &'static [&'static str],
    login: bool,
    /// Members of the login's data beside the token.
    login_members: &'static str,
    events: &'static [EventType],
    namespaces: bool,
    /// Unknown paths get an error page of their own, up to 2.6.
    has_404: bool,
}

fn known(version: ShenyuVersion) -> Known {
    const CLASSIC: &[&str] = &[paths::REGISTER_METADATA, paths::REGISTER_URI];
    const EVENTS: &[EventType] =
        &[EventType::Register, EventType::Updated, EventType::Deleted, EventType::Ignored];
    const WITH_OFFLINE: &[EventType] = &[
        EventType::Register,
        EventType::Updated,
        EventType::Deleted,
        EventType::Ignored,
        EventType::Offline,
    ];
    const ALL: &[EventType] = &[
        EventType::Register,
        EventType::Updated,
        EventType::Deleted,
        EventType::Ignored,
        EventType::Offline,
        EventType::Heartbeat,
    ];
    let old = Known {
        paths: CLASSIC,
        login: true,
        login_members: "",
        events: EVENTS,
        namespaces: false,
        has_404: true,
    };
    match version {
        V2_4_0 => Known { paths: &[paths::SPRING_MVC_REGISTER], login: false, ..old },
        V2_4_1 => Known { login: false, ..old },
        V2_4_2 | V2_4_3 => old,
        V2_5 => Known { login_members: r#","expiredTime":LIFE"#, ..old },
        V2_6 => Known {
            paths: &[paths::REGISTER_METADATA, paths::REGISTER_URI, paths::OFFLINE],
            login_members: r#","expiredTime":LIFE"#,
            events: WITH_OFFLINE,
            ..old
        },
        V2_7_0 => Known {
            paths: &[paths::REGISTER_METADATA, paths::REGISTER_URI, paths::OFFLINE],
            login_members: r#","clientId":null,"expiredTime":LIFE"#,
            events: ALL,
            namespaces: true,
            has_404: false,
            ..old
        },
        V2_7 => Known {
            paths: &[paths::REGISTER_METADATA, paths::REGISTER_URI, paths::OFFLINE, paths::REGISTER_MCP],
            login_members: r#","clientId":null,"expiredTime":LIFE"#,
            events: ALL,
            namespaces: true,
            has_404: false,
            ..old
        },
    }
}

pub(super) fn answer(state: &mut State, version: ShenyuVersion, request: &Recorded) -> (u16, String) {
    let known = known(version);
    let (method, path) = (request.method.as_str(), request.path.as_str());
    if path == paths::LOGIN {
        return if method == "GET" {
            login(state, request, known.login_members, version == V2_4_1)
        } else {
            wrong_method(method)
        };
    }
    if known.login && !state.knows_token(request) {
        return (401, "{\"code\":600,\"message\":\"token is error\"}\n".to_owned());
    }
    if !known.paths.contains(&path) {
        return if known.has_404 {
            (404, format!(r#"{{"status":404,"error":"Not Found","message":"","path":"{path}"}}"#))
        } else {
            (200, BUSY.to_owned())
        };
    }
    if method != "POST" {
        return wrong_method(method);
    }
    let done = match path {
        paths::REGISTER_METADATA | paths::SPRING_MVC_REGISTER => meta_data(state, version, &known, request),
        _ => instance(state, version, &known, request),
    };
    match done {
        Ok(()) => (200, SUCCESS.to_owned()),
        Err(error) => {
            (200, format!(r#"{{"code":500,"message":"JSON parse error: {}","data":null}}"#, error.line()))
        }
    }
}

fn wrong_method(method: &str) -> (u16, String) {
    let text = format!("{method} method is not supported for this request. Supported methods are POST ");
    (200, format!(r#"{{"code":500,"message":"{text}","data":null}}"#))
}

/// What is dropped is answered with `success`, too.
fn meta_data(
    state: &mut State,
    version: ShenyuVersion,
    known: &Known,
    request: &Recorded,
) -> serde_json::Result<()> {
    let body: MetaDataRegisterDto = serde_json::from_str(&request.body)?;
    let needed = [&body.app_name, &body.path, &body.rule_name, &body.rpc_type];
    if needed.into_iter().any(|text| text.as_deref().is_none_or(|text| text.trim().is_empty())) {
        return Ok(());
    }
    let Some(owner) = owner(known, body.namespace_id, body.context_path) else { return Ok(()) };
    let path = body.path.unwrap_or_default();
    if path.chars().count() > 64 {
        return Ok(());
    }
    state.book.route(&owner, &body.rule_name.unwrap_or_default(), &path);
    if let (V2_4_0, Some(host), Some(port)) = (version, body.host, body.port) {
        state.book.instance(&owner, &format!("{host}:{port}"));
    }
    Ok(())
}

fn instance(
    state: &mut State,
    version: ShenyuVersion,
    known: &Known,
    request: &Recorded,
) -> serde_json::Result<()> {
    use serde::de::Error;

    let body: UriRegisterDto = serde_json::from_str(&request.body)?;
    let event = body.event_type.unwrap_or(EventType::Register);
    if !known.events.contains(&event) {
        return Err(serde_json::Error::custom("unknown event"));
    }
    let blank = |text: &Option<String>| text.as_deref().is_none_or(|text| text.trim().is_empty());
    if blank(&body.context_path) || blank(&body.rpc_type) || blank(&body.host) || body.port.is_none() {
        return Ok(());
    }
    let Some(owner) = owner(known, body.namespace_id, body.context_path) else { return Ok(()) };
    let address = format!("{}:{}", body.host.unwrap_or_default(), body.port.unwrap_or_default());
    match (event, version) {
        (EventType::Offline, _) | (EventType::Deleted, V2_4_3 | V2_5) => state.book.gone(&owner, &address),
        (EventType::Register, _) | (EventType::Deleted, V2_4_1 | V2_4_2) => {
            state.book.instance(&owner, &address)
        }
        // A heartbeat makes nothing; the others are ignored.
        _ => {}
    }
    Ok(())
}

fn owner(known: &Known, namespace: Option<String>, context_path: Option<String>) -> Option<Owner> {
    let namespace = match namespace {
        _ if !known.namespaces => String::new(),
        None => DEFAULT_NAMESPACE.to_owned(),
        Some(blank) if blank.trim().is_empty() => return None,
        Some(id) => id,
    };
    Some(Owner { namespace, context_path: context_path.unwrap_or_default() })
}

/// `GET /platform/login`.
pub(super) fn login(state: &mut State, request: &Recorded, members: &str, trips: bool) -> (u16, String) {
    let value = |name: &str| {
        let mut pairs = request.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| decode(value))
    };
    let right = value("userName").as_deref() == Some(FakeAdmin::USERNAME)
        && value("password").as_deref() == Some(FakeAdmin::PASSWORD);
    if !right {
        let (code, message) =
            if trips { (404, "not found exception") } else { (500, "username or password error") };
        return (200, format!(r#"{{"code":{code},"message":"{message}","data":null}}"#));
    }
    state.logins += 1;
    let members = members.replace("LIFE", &state.token_life_ms.to_string());
    let token = state.good_token();
    let data =
        format!(r#"{{"id":"1","userName":"admin","role":1,"enabled":true,"token":"{token}"{members}}}"#);
    (200, format!(r#"{{"code":200,"message":"login dashboard user success","data":{data}}}"#))
}

impl State {
    fn good_token(&self) -> String {
        format!("token-{}", self.token)
    }

    pub(super) fn knows_token(&self, request: &Recorded) -> bool {
        request.token.as_deref() == Some(&self.good_token())
    }
}

/// Decodes a value of a query.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut left = text.bytes();
    while let Some(byte) = left.next() {
        let hex = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => match (hex(left.next()), hex(left.next())) {
                (Some(high), Some(low)) => bytes.extend(u8::try_from(high * 16 + low).ok()),
                _ => bytes.push(byte),
            },
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
