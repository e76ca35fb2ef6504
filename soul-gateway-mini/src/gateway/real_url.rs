//! What Soul makes of a path: the reference that our own [`context`](super::context) departs from.
//!
//! Nothing here serves a request. These are Soul's steps for a request that ends in plugin `divide`, faults
//! included, so that it can be shown what they give and where ours is meant to differ:
//!
//! | Soul | ours |
//! |---|---|
//! | decodes the path, cuts it, encodes it again | cuts the path as sent |
//! | cuts the first segment by its length: `//a/b` gives `a/b` | cuts at the border: `/b` |
//! | splits by the context path *as a regular expression* and takes the last piece | cuts the prefix once |
//! | `/httpx/y` is below `/http` | only `/http` and `/http/…` are |
//! | a path that is the context path stays whole (2.3.0) or becomes nothing (Feb-2021) | becomes `/` |
//! | Feb-2021 decodes the query; a blank one is dropped | the query as sent, a bare `?` included |
//!
//! # Source
//! Soul specification, sections 5 and 6.6: `DefaultSoulContextBuilder`, `ContextPathMappingPlugin`,
//! `RewritePlugin`, `DividePlugin`.

use std::borrow::Cow;

use soul_client::wire::soul::{ContextMappingHandle, MetaData, RewriteHandle};
use thiserror::Error;

use crate::model::matching::{
    MatchError, PathPatterns, RegexError, decode,
    java_regex::Splitter,
    text::{non_blank, trim},
};

/// Whose behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The development tree of February 2021.
    Feb2021,
    /// The release of April 2021.
    V2_3_0,
}

/// The path and its parts, Soul's `SoulContext`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The decoded path.
    pub path: String,
    /// The context path.
    pub context_path: Option<String>,
    /// The context path once more, or for RPC the application or service.
    pub module: Option<String>,
    /// The path behind the context path, or for RPC the service or method.
    pub method: Option<String>,
    /// The path for the upstream.
    pub real_url: Option<String>,
    /// `http`, `springCloud`, `dubbo` and so on.
    pub rpc_type: String,
}

/// Where Soul ends the request with an error.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RealUrlError {
    /// The path is shorter than the context path taken from it.
    #[error("path `{0}` has no first segment to cut off")]
    TooShort(String),
    /// The metadata of the path does not say whether it is enabled.
    #[error("metadata of `{0}` has no `enabled`")]
    NoEnabled(String),
    /// A pattern of the metadata cannot be evaluated.
    #[error("path of the metadata")]
    MetaData(#[source] MatchError),
    /// The path does not start with the rule's context path: Soul's code -111.
    #[error("path `{0}` does not start with context path `{1}`")]
    ContextPath(String, String),
    /// The context path, as a regular expression, cannot be used.
    #[error("context path as a regular expression")]
    Separator(#[source] RegexError),
}

/// The first step: `DefaultSoulContextBuilder`. Also tells whether metadata was attached to the request.
///
/// For 2.3.0 with the decorator of rpc type `http` alone.
///
/// # Errors
/// When Soul throws.
pub fn context(
    version: Version,
    raw_path: &str,
    metadata: &[MetaData],
) -> Result<(Context, bool), RealUrlError> {
    let path = decode::path(raw_path);
    let found = look_up(&path, metadata)?;
    let enabled = match found {
        Some(found) if found.enabled.ok_or_else(|| RealUrlError::NoEnabled(path.to_string()))? => Some(found),
        _ => None,
    };
    let context = match version {
        Version::Feb2021 => feb_2021(&path, enabled)?,
        Version::V2_3_0 => Context {
            path: path.to_string(),
            method: Some(path.to_string()),
            real_url: Some(path.to_string()),
            rpc_type: "http".to_owned(),
            ..Context::default()
        },
    };
    Ok((context, enabled.is_some()))
}

/// Metadata by its exact path, else the first whose path matches as a pattern.
fn look_up<'m>(path: &str, metadata: &'m [MetaData]) -> Result<Option<&'m MetaData>, RealUrlError> {
    let with_path = || metadata.iter().filter_map(|data| Some((data, data.path.as_deref()?)));
    if let Some((data, _)) = with_path().rfind(|(_, exact)| *exact == path) {
        return Ok(Some(data));
    }
    for (data, pattern) in with_path() {
        let patterns = PathPatterns::new(pattern).map_err(RealUrlError::MetaData)?;
        if patterns.matches(path).map_err(|reason| RealUrlError::MetaData(reason.clone()))? {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn feb_2021(path: &str, metadata: Option<&MetaData>) -> Result<Context, RealUrlError> {
    let rpc_type = metadata.and_then(|data| data.rpc_type.as_deref()).unwrap_or("http");
    match (metadata, rpc_type) {
        (Some(data), "dubbo" | "sofa") => Ok(rpc(path, data, &data.app_name, &data.service_name)),
        (Some(data), "tars" | "grpc") => Ok(rpc(path, data, &data.service_name, &data.method_name)),
        (_, "springCloud") => by_length(path, "springCloud"),
        _ => by_length(path, "http"),
    }
}

fn rpc(path: &str, data: &MetaData, module: &Option<String>, method: &Option<String>) -> Context {
    Context {
        path: path.to_owned(),
        context_path: data.context_path.clone(),
        module: module.clone(),
        method: method.clone(),
        real_url: None,
        rpc_type: data.rpc_type.clone().unwrap_or_default(),
    }
}

/// The first segment with a slash in front, and the path without as many UTF-16 units as that has.
fn by_length(path: &str, rpc_type: &str) -> Result<Context, RealUrlError> {
    let first = path.split('/').find(|segment| !segment.is_empty()).unwrap_or_default();
    let context_path = format!("/{first}");
    let units: Vec<u16> = path.encode_utf16().collect();
    let rest = units.get(context_path.encode_utf16().count()..);
    let rest = rest.map(String::from_utf16_lossy).ok_or_else(|| RealUrlError::TooShort(path.to_owned()))?;
    Ok(Context {
        path: path.to_owned(),
        context_path: Some(context_path.clone()),
        module: Some(context_path),
        method: Some(rest.clone()),
        real_url: Some(rest),
        rpc_type: rpc_type.to_owned(),
    })
}

/// The second step, if a `context_path` rule matched: `ContextPathMappingPlugin`.
///
/// # Errors
/// When the path does not start with the context path, or that is no regular expression.
pub fn map_context_path(
    version: Version,
    context: Context,
    handle: Option<&ContextMappingHandle>,
) -> Result<Context, RealUrlError> {
    let wanted = handle.and_then(|handle| Some((handle, non_blank(handle.context_path.as_deref())?)));
    let Some((handle, context_path)) = wanted.filter(|_| context.rpc_type != "dubbo") else {
        return Ok(context);
    };
    if !context.path.starts_with(context_path) {
        return Err(RealUrlError::ContextPath(context.path, context_path.to_owned()));
    }
    let real_url = match non_blank(handle.real_url.as_deref()) {
        Some(fixed) => Some(fixed.to_owned()),
        None => last_piece(&context.path, context_path)?.or(context.real_url),
    };
    let module = match version {
        Version::Feb2021 => context.module,
        Version::V2_3_0 => Some(context_path.to_owned()),
    };
    Ok(Context { context_path: Some(context_path.to_owned()), module, real_url, ..context })
}

fn last_piece(path: &str, context_path: &str) -> Result<Option<String>, RealUrlError> {
    let splitter = Splitter::new(context_path).map_err(RealUrlError::Separator)?;
    Ok(splitter.split(path).last().map(|piece| (*piece).to_owned()))
}

/// The third step, if a `rewrite` rule matched: `RewritePlugin`. The path that replaces the real url, if any.
#[must_use]
pub fn rewrite<'a>(context: &Context, handle: Option<&'a RewriteHandle>) -> Option<&'a str> {
    handle.filter(|_| context.rpc_type != "dubbo").and_then(|handle| non_blank(handle.rewrite_uri.as_deref()))
}

/// The last step: `DividePlugin`. The url for the HTTP client; `None` when divide does not run for the rpc type.
#[must_use]
pub fn http_url(
    version: Version,
    context: &Context,
    rewritten: Option<&str>,
    protocol: Option<&str>,
    upstream_url: &str,
    raw_query: Option<&str>,
) -> Option<String> {
    if context.rpc_type != "http" {
        return None;
    }
    let protocol = non_blank(protocol).unwrap_or("http://");
    let path = rewritten.or(non_blank(context.real_url.as_deref())).unwrap_or_default();
    let query = raw_query.map(|query| match version {
        Version::Feb2021 => decode::path(query),
        Version::V2_3_0 => Cow::Borrowed(query),
    });
    let query = non_blank(query.as_deref()).map(|query| format!("?{query}")).unwrap_or_default();
    Some(format!("{protocol}{}{path}{query}", trim(upstream_url)))
}
