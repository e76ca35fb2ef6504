//! The plugins, one file each, and what Soul does alike for all of them.
//!
//! They run in the order of Soul's codes. A plugin that is switched off does nothing. A new one gets its file, its
//! table in the snapshot, and its place in this list:
//!
//! | code | plugin | does |
//! |---|---|---|
//! | 25 | `context_path` | parts the path into context path and rest |
//! | 50 | `divide` | finds the service, the rule and the upstream |

pub(super) mod context_path;
pub(super) mod divide;

use http::request;

use super::{
    ACCESS_LOG,
    context::{Parted, SoulContext},
    error::Refusal,
    peer::Peer,
};
use crate::model::matching::{
    AddressResolver, CompiledRule, CompiledSelector, MatchError, PluginTable, RequestView,
};

/// A request as the conditions of one plugin see it.
pub(super) fn view<'a>(
    head: &'a request::Parts,
    peer: &Peer,
    resolver: AddressResolver,
    context: &'a SoulContext<'a>,
) -> RequestView<'a> {
    let view = RequestView::new(
        head.method.as_str(),
        head.uri.path(),
        head.uri.query(),
        &head.headers,
        peer.address(),
    );
    view.with_resolver(resolver).with_context(context)
}

/// Soul's context of a request.
pub(super) fn soul_context<'a>(head: &'a request::Parts, parted: Option<&'a Parted<'a>>) -> SoulContext<'a> {
    SoulContext { method: head.method.as_str(), raw_path: head.uri.path(), headers: &head.headers, parted }
}

/// The selector that takes the request, logged in Soul's words if it asks for that.
fn select<'t, S, R>(
    plugin: &'static str,
    table: &'t PluginTable<S, R>,
    view: &RequestView<'_>,
) -> Result<Option<&'t CompiledSelector<S, R>>, Refusal> {
    let selector = table.select(view).map_err(broken)?;
    if let Some(selector) = selector.filter(|s| s.is_logged()) {
        tracing::debug!(target: ACCESS_LOG, "{plugin} selector success match , selector name :{}", selector.name());
    }
    Ok(selector)
}

/// The rule of `selector` that takes the request, logged in Soul's words if it asks for that.
fn rule<'t, S, R>(
    plugin: &'static str,
    selector: &'t CompiledSelector<S, R>,
    view: &RequestView<'_>,
) -> Result<Option<&'t CompiledRule<R>>, Refusal> {
    let rule = selector.rule(view).map_err(broken)?;
    if let Some(rule) = rule.filter(|r| r.is_logged()) {
        tracing::debug!(target: ACCESS_LOG, "{plugin} rule success match , rule name :{}", rule.name());
    }
    Ok(rule)
}

/// Only with the setting that keeps entries which cannot always be evaluated.
fn broken(error: &MatchError) -> Refusal {
    Refusal::Condition(error.to_string())
}
