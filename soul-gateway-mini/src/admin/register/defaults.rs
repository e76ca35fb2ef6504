//! The values that registration fills in: specification, sections 2.4 and 2.5.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
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
/// - `key`: the rpc type in Feb-2021, the plugin of the service that took the registration otherwise.
/// - `path`: the registered path; for `context_path` the segment to strip.
///
/// # Errors
/// Feb-2021 knows the rpc types by name and fails for any other; the others take every other plugin like `springCloud`.
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
        (Dialect::Shenyu, Some("divide")) => text(&Shenyu::DEFAULT),
        (_, Some("dubbo" | "sofa")) => text(&Retrying { retries: 0, load_balance: "random", timeout: 3000 }),
        (Dialect::Feb2021, Some("springCloud" | "tars" | "grpc" | "websocket")) => {
            text(&Timed { path, timeout: 3000 })
        }
        (Dialect::Feb2021, _) => return Err(UnsupportedRpcType(key.map(str::to_owned))),
        (Dialect::V230 | Dialect::Shenyu, Some("context_path")) => {
            text(&ContextMappingHandle { context_path: path, real_url: None })
        }
        (Dialect::V230 | Dialect::Shenyu, _) => text(&Timed { path, timeout: 3000 }),
    })
}

/// The operator of a new rule's condition, by the rule of [`is_pattern`].
#[must_use]
pub fn rule_operator(path: &str) -> &'static str {
    if is_pattern(path) { "match" } else { "=" }
}

/// Operator and value of a new rule's condition.
///
/// ShenYu's clients write a path as it stands in a request, percent signs and all, and its admin makes `/**` of every
/// run of variables. Its operators `startsWith` and `pathPattern` become `match` here, as it wrote itself
/// until 2.4: the gateways that learn from this admin speak Soul's sync, and those of Java fail on words they do not know.
///
/// # Source
/// ShenYu specification, sections 1.9 and 2.1.
#[must_use]
pub fn rule_pattern(dialect: Dialect, path: &str) -> (&'static str, String) {
    if dialect != Dialect::Shenyu {
        return (rule_operator(path), path.to_owned());
    }
    let plain = percent_decode_str(path).decode_utf8().unwrap_or(Cow::Borrowed(path));
    let path = without_variables(&plain);
    if path.ends_with('/') {
        return ("match", format!("{path}**"));
    }
    (if path.ends_with("/**") { "match" } else { rule_operator(&path) }, path)
}

/// The path with `/**` for every run of segments that are variables.
fn without_variables(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut in_a_run = false;
    for segment in path.split('/') {
        let variable = segment.starts_with('{') && segment.ends_with('}');
        match (variable, in_a_run) {
            (true, true) => {}
            (true, false) => kept.push("**"),
            (false, _) => kept.push(segment),
        }
        in_a_run = variable;
    }
    kept.join("/")
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

/// Rule handle of `divide` with ShenYu since 2.5; Soul's gateways know the first, third and fourth of its fields
/// (ShenYu specification, section 2.3).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shenyu {
    load_balance: &'static str,
    retry_strategy: &'static str,
    retry: i32,
    timeout: i64,
    header_max_size: i32,
    request_max_size: i32,
}

impl Shenyu {
    const DEFAULT: Self = Self {
        load_balance: "random",
        retry_strategy: "current",
        retry: 3,
        timeout: 3000,
        header_max_size: 0,
        request_max_size: 0,
    };
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
    fn shenyus_patterns_in_souls_words() {
        for (path, operator, value) in [
            ("/orders/list", "=", "/orders/list"),
            ("/orders/item/*", "match", "/orders/item/*"),
            ("/orders/**", "match", "/orders/**"),
            ("/**", "match", "/**"),
            ("/orders/", "match", "/orders/**"),
            ("/orders/{id}", "match", "/orders/**"),
            ("/orders/%7Bid%7D", "match", "/orders/**"),
            ("/a/{x}/{y}/b/{z}", "match", "/a/**/b/**"),
            ("/a/{x}/b", "match", "/a/**/b"),
            ("/a/b{x}", "=", "/a/b{x}"),
            ("/%E8%AE%A2%E5%8D%95", "=", "/订单"),
            ("/100%", "=", "/100%"),
            ("/%FF", "=", "/%FF"),
        ] {
            assert_eq!(rule_pattern(Dialect::Shenyu, path), (operator, value.to_owned()), "{path}");
        }
        assert_eq!(rule_pattern(Dialect::V230, "/a/{id}"), ("=", "/a/{id}".to_owned()));
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
