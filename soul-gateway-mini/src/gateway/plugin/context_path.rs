//! Plugin `context_path`, code 25: what of the path is the gateway's business, and what is the service's
//! (specification, sections 5.2 and 5.3).

use http::request;

use super::{rule, select, soul_context, view};
use crate::{
    gateway::{
        context::{Parted, PathPrefix, part},
        error::Refusal,
        peer::Peer,
    },
    model::{CONTEXT_PATH, matching::AddressResolver},
    sync::Snapshot,
};

/// Parts the path: by the plugin's rule for the request, else by the setting.
///
/// # Errors
/// When a rule matches whose context path the request's path does not begin with.
pub(in crate::gateway) fn execute<'a>(
    snapshot: &'a Snapshot,
    head: &'a request::Parts,
    peer: &Peer,
    resolver: AddressResolver,
    prefix: PathPrefix,
) -> Result<Parted<'a>, Refusal> {
    let mapping = match snapshot.context_path() {
        Some(table) if prefix != PathPrefix::FirstSegment && !table.is_empty() => {
            let context = soul_context(head, None);
            let view = view(head, peer, resolver, &context);
            match select(CONTEXT_PATH, table, &view)? {
                Some(selector) => {
                    rule(CONTEXT_PATH, selector, &view)?.and_then(|rule| rule.payload().as_ref())
                }
                None => None,
            }
        }
        _ => None,
    };
    part(head.uri.path(), prefix, mapping).map_err(Refusal::ContextPath)
}
