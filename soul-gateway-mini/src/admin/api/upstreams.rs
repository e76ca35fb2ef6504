//! Upstreams of a selector: shown, put in, changed, taken out.

use std::sync::Arc;

use axum::{
    extract::{RawQuery, Request, State},
    http::HeaderMap,
    response::Response,
};
use soul_client::wire::soul::DivideUpstream;

use super::{
    fields::{Fields, query},
    reply::{Failure, Made, Reply, Segments, object, submit},
    selectors::view,
    views::UpstreamView,
};
use crate::{
    admin::{
        probe::{is_link_local, refuse_link_local},
        problem::Problem,
        shared::Shared,
        store::{Edit, Probing, UpstreamPatch},
    },
    model::Target,
};

type Shares = State<Arc<Shared>>;

/// Largest weight; the sum of many still fits Soul's 32 bits.
const WEIGHT_MAX: i32 = 1_000_000;
/// Longest warm-up: a day, in milliseconds.
const WARMUP_MAX_MS: i32 = 86_400_000;
/// What may stand before an address.
const PROTOCOLS: [&str; 4] = ["http://", "https://", "h2c://", "grpc://"];

pub(super) async fn list(
    State(shared): Shares,
    Segments(id): Segments<String>,
    RawQuery(text): RawQuery,
) -> Result<Response, Failure> {
    let (page, []) = query(text.as_deref(), [])?;
    let store = shared.store.store();
    let row =
        store.selectors().by_id(&id).ok_or_else(|| Failure::not_found(format!("no selector `{id}`")))?;
    Ok(Reply::list(&store, &page, row.upstreams.iter().flatten().map(UpstreamView::of)))
}

pub(super) async fn create(
    State(shared): Shares,
    Segments(id): Segments<String>,
    request: Request,
) -> Result<Response, Failure> {
    let (headers, fields) = object(&shared, request).await?;
    let mut fields = Fields::new(fields);
    let upstream = new(&mut fields, shared.config().allow_link_local);
    fields.finish()?;
    // Without a problem there is an upstream.
    let (entry, probing) = upstream.unwrap_or_default();
    submit(&shared, &headers, Edit::NewUpstream(id, entry, probing), Made::Changed, view).await
}

pub(super) async fn change(
    State(shared): Shares,
    Segments((id, url)): Segments<(String, String)>,
    request: Request,
) -> Result<Response, Failure> {
    let (headers, fields) = object(&shared, request).await?;
    let mut fields = Fields::new(fields);
    let patch = patch(&mut fields);
    fields.finish_patch()?;
    submit(&shared, &headers, Edit::Upstream(id, url, patch), Made::Changed, view).await
}

pub(super) async fn delete(
    State(shared): Shares,
    Segments((id, url)): Segments<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    submit(&shared, &headers, Edit::DeleteUpstream(id, url), Made::Changed, view).await
}

/// Reads a new upstream; what is not said is as registration has it.
pub(super) fn new(fields: &mut Fields, allow_link_local: bool) -> Option<(DivideUpstream, Probing)> {
    let url = fields.name("url").map(|url| url.trim().to_owned());
    let patch = patch(fields);
    let url = fields.need("url", url)?;
    if let Some(why) = bad_address(&url, allow_link_local) {
        fields.refuse(Problem::new("url", why));
    }
    let default = DivideUpstream::registered(url);
    let entry = DivideUpstream {
        weight: patch.weight.unwrap_or(default.weight),
        status: patch.status.unwrap_or(default.status),
        warmup: patch.warmup.unwrap_or(default.warmup),
        protocol: patch.protocol.or(default.protocol),
        ..default
    };
    Some((entry, patch.probing.unwrap_or_default()))
}

fn bad_address(url: &str, allow_link_local: bool) -> Option<String> {
    // Both are understood where Java clients wrote them. Gateways put the protocol in front of what stands here.
    if url.contains("://") {
        return Some(format!("`{url}` must be without a scheme, which is said by `protocol`"));
    }
    if url.rsplit_once(':').is_none_or(|(_, port)| port.ends_with(']')) {
        return Some(format!("`{url}` must name a port: `{url}:80`"));
    }
    match url.parse::<Target>() {
        Err(error) => Some(error.to_string()),
        Ok(target) => {
            let link_local = target.host().parse().is_ok_and(is_link_local);
            (link_local && !allow_link_local).then(|| refuse_link_local(url))
        }
    }
}

fn patch(fields: &mut Fields) -> UpstreamPatch {
    let protocol = fields.text("protocol");
    if let Some(text) = protocol.as_deref().filter(|text| !PROTOCOLS.contains(text)) {
        fields.refuse(Problem::not_one_of("protocol", text, &PROTOCOLS));
    }
    UpstreamPatch {
        weight: fields.number("weight", 0..=WEIGHT_MAX),
        status: fields.flag("status"),
        warmup: fields.number("warmup", 0..=WARMUP_MAX_MS),
        protocol,
        probing: fields.flag("check").map(|check| if check { Probing::On } else { Probing::Off }),
    }
}
