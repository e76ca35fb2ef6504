//! `MatchStrategyUtils.match` with the values taken from a request.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde::Deserialize;
use soul_client::wire::soul::ConditionData;
use soul_gateway_mini::model::matching::{AddressResolver, Conditions, ContextFields, Field, RequestView};
use soul_tests::vectors::{assert_none, load};

use crate::outcome::Outcome;

#[derive(Deserialize)]
struct Case {
    match_mode: Option<i32>,
    conditions: Option<Vec<Option<ConditionData>>>,
    resolver: String,
    request: Request,
    expect: Outcome,
}

#[derive(Debug, Deserialize)]
struct Request {
    method: String,
    uri: String,
    headers: Vec<(String, String)>,
    remote_ip: String,
    context: Option<Context>,
}

#[derive(Debug, Deserialize)]
struct Context(BTreeMap<String, Option<String>>);

impl ContextFields for Context {
    fn field(&self, name: &str) -> Field<'_> {
        match self.0.get(name).and_then(Option::as_deref) {
            // The one field of Java's class that is no string; the vectors show its text.
            Some(_) if name == "startDateTime" => Field::NotText,
            Some(text) => Field::Text(text.into()),
            None => Field::Absent,
        }
    }
}

fn headers(pairs: &[(String, String)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
        (name, HeaderValue::from_str(value).expect("a header value"))
    });
    pairs.fold(HeaderMap::new(), |mut headers, (name, value)| {
        headers.append(name, value);
        headers
    })
}

/// Whether ours comes to the same; the answer as text if not.
fn check(case: &Case) -> Result<(), String> {
    let request = &case.request;
    let uri: Uri = request.uri.parse().expect("a uri");
    let headers = headers(&request.headers);
    let peer = request.remote_ip.parse().expect("an address");
    let resolver = match case.resolver.as_str() {
        "default" => AddressResolver::Peer,
        "forwarded" => AddressResolver::Forwarded,
        other => panic!("unknown resolver `{other}`"),
    };
    let mut view =
        RequestView::new(&request.method, uri.path(), uri.query(), &headers, peer).with_resolver(resolver);
    if let Some(context) = &request.context {
        view = view.with_context(context);
    }
    let conditions = Conditions::compile(case.match_mode, case.conditions.as_deref());
    let found = conditions.hold(&view);
    let values = case.conditions.iter().flatten().flatten().filter_map(|one| one.param_value.as_deref());
    if case.expect.agrees(found, &values.collect::<Vec<_>>()) {
        return Ok(());
    }
    let Case { match_mode, conditions, resolver, request, expect } = case;
    let asked = format!("mode {match_mode:?} {conditions:?} ({resolver}) on {request:?}");
    Err(format!("{asked}: expected {expect:?}, found {found:?}"))
}

#[test]
fn conditions_are_joined_like_souls() {
    let cases: Vec<Case> = load("match_mode");
    let failures: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert_none("match_mode", cases.len(), &failures);
}
