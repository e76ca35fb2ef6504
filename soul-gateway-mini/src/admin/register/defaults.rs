//! The values that registration fills in: specification, sections 2.4 and 2.5.

use serde::Serialize;
use soul_client::wire::{
    gson,
    soul::{ContextMappingHandle, DivideRuleHandle, SpringCloudHandle, is_pattern},
};
use thiserror::Error;

use super::Dialect;

/// A registration whose rpc type has no rule handle; the text is Soul's, space included.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(" this rpc type can not support {}", .0.as_deref().unwrap_or("null"))]
pub struct UnsupportedRpcType(pub Option<String>);

/// The handle of a `springCloud` selector.
#[must_use]
pub fn spring_cloud_handle(service_id: Option<&str>) -> String {
    text(&SpringCloudHandle { service_id: service_id.map(str::to_owned) })
}

/// The handle of a new rule.
///
/// # Shape
/// - `key`: the rpc type in Feb-2021, the plugin of the service that took the registration in 2.3.0.
/// - `path`: the registered path; for `context_path` the segment to strip.
///
/// # Errors
/// Feb-2021 knows the rpc types by name and fails for any other; 2.3.0 takes every other plugin like `springCloud`.
pub fn rule_handle(
    dialect: Dialect,
    key: Option<&str>,
    path: Option<&str>,
) -> Result<String, UnsupportedRpcType> {
    let path = path.map(str::to_owned);
    Ok(match (dialect, key) {
        (Dialect::Feb2021, Some("http")) | (Dialect::V230, Some("divide")) => {
            text(&DivideRuleHandle::registered())
        }
        (_, Some("dubbo" | "sofa")) => text(&Retrying { retries: 0, load_balance: "random", timeout: 3000 }),
        (Dialect::Feb2021, Some("springCloud" | "tars" | "grpc" | "websocket")) => {
            text(&Timed { path, timeout: 3000 })
        }
        (Dialect::Feb2021, _) => return Err(UnsupportedRpcType(key.map(str::to_owned))),
        (Dialect::V230, Some("context_path")) => {
            text(&ContextMappingHandle { context_path: path, real_url: None })
        }
        (Dialect::V230, _) => text(&Timed { path, timeout: 3000 }),
    })
}

/// The operator of a new rule's condition, by the rule of [`is_pattern`].
#[must_use]
pub fn rule_operator(path: &str) -> &'static str {
    if is_pattern(path) { "match" } else { "=" }
}

/// `/` and the first segment of a path that is not empty; `/` alone if there is none.
#[must_use]
pub fn context_segment(path: &str) -> String {
    format!("/{}", path.split('/').find(|segment| !segment.is_empty()).unwrap_or_default())
}

/// The Gson text of a handle.
fn text<T: Serialize>(handle: &T) -> String {
    // The types of this file are plain structs of texts and numbers, which have no value Gson refuses.
    gson::to_soul(handle).unwrap_or_default()
}

/// Rule handle of `dubbo` and `sofa`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Retrying {
    retries: i32,
    load_balance: &'static str,
    timeout: i64,
}

/// Rule handle of `springCloud`, `tars`, `grpc` and `websocket`.
#[derive(Serialize)]
struct Timed {
    path: Option<String>,
    timeout: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_is_that_of_a_pattern() {
        for (path, operator) in [("/a*", "match"), ("/**", "="), ("/http/**", "match"), ("/a/{id}", "=")] {
            assert_eq!(rule_operator(path), operator, "{path}");
        }
    }

    #[test]
    fn context_is_first_segment() {
        for (path, context) in
            [("/http/order", "/http"), ("//a/b", "/a"), ("a/b", "/a"), ("/", "/"), ("", "/")]
        {
            assert_eq!(context_segment(path), context, "{path}");
        }
    }
}
