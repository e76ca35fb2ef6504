//! The answers of a Soul admin (Soul specification, section 1; ShenYu specification, sections 10.2 and 10.3).

use serde::Deserialize;

use super::{Recorded, State, book::Owner, shenyu::login};
use crate::{
    plan::Dialect,
    wire::{shenyu::SUCCESS, soul::paths},
};

/// What is common to every registration body of either release.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    context: Option<String>,
    context_path: Option<String>,
    path: Option<String>,
    rule_name: Option<String>,
    host: Option<String>,
    port: Option<i32>,
}

pub(super) fn answer(state: &mut State, dialect: Dialect, request: &Recorded) -> (u16, String) {
    let later = dialect == Dialect::V2_3_0;
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", crate::wire::shenyu::paths::LOGIN) if later => login(state, request, "", false),
        ("GET", crate::wire::shenyu::paths::LOGIN) => {
            (200, r#"{"code":200,"message":"success","data":{"userName":"admin"}}"#.to_owned())
        }
        ("POST", paths::SPRING_MVC_REGISTER | paths::SPRING_CLOUD_REGISTER) => register(state, request),
        (_, paths::SPRING_MVC_REGISTER | paths::SPRING_CLOUD_REGISTER) => (
            200,
            r#"{"code":500,"message":"The system is busy, please try again later","data":null}"#.to_owned(),
        ),
        (_, path) if later && !state.knows_token(request) => {
            (401, format!(r#"{{"code":401,"message":"token is error","path":"{path}"}}"#))
        }
        (_, path) => (404, format!(r#"{{"status":404,"error":"Not Found","message":"","path":"{path}"}}"#)),
    }
}

fn register(state: &mut State, request: &Recorded) -> (u16, String) {
    let Ok(body) = serde_json::from_str::<Body>(&request.body) else {
        return (200, r#"{"code":500,"message":"bad body","data":null}"#.to_owned());
    };
    let context_path = body.context.or(body.context_path).unwrap_or_default();
    let owner = Owner { namespace: String::new(), context_path };
    let path = body.path.unwrap_or_default();
    state.book.route(&owner, body.rule_name.as_deref().unwrap_or(&path), &path);
    if let (Some(host), Some(port)) = (body.host, body.port) {
        state.book.instance(&owner, &format!("{host}:{port}"));
    }
    (200, SUCCESS.to_owned())
}
