//! From a request's path to the url of its upstream, as Soul does it.

use serde::Deserialize;
use soul_client::wire::{
    gson,
    soul::{ContextMappingHandle, MetaData, RewriteHandle},
};
use soul_gateway_mini::gateway::real_url::{
    Context, RealUrlError, Version, context, http_url, map_context_path, rewrite,
};
use soul_tests::vectors::{assert_none, load};

use crate::backtracking::needs_backtracking;

#[derive(Deserialize)]
struct Case {
    version: String,
    id: String,
    request_uri: String,
    metadata: Vec<MetaData>,
    context_path_handle: Option<String>,
    rewrite_handle: Option<String>,
    upstream_url: String,
    protocol: Option<String>,
    #[serde(flatten)]
    expected: Expected,
}

/// What came of it. On an error the fields computed earlier stay.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Expected {
    context: Option<Fields>,
    after_context_path: Option<Fields>,
    metadata_attached: Option<bool>,
    http_url: Option<String>,
    error: Option<Answer>,
    divide_skipped: Option<bool>,
    expect: Option<String>,
    exception: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    path: String,
    context_path: Option<String>,
    module: Option<String>,
    method: Option<String>,
    real_url: Option<String>,
    rpc_type: String,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Answer {
    code: i32,
    message: String,
}

impl From<&Context> for Fields {
    fn from(context: &Context) -> Self {
        let Context { path, context_path, module, method, real_url, rpc_type } = context.clone();
        Self { path, context_path, module, method, real_url, rpc_type }
    }
}

fn run(case: &Case) -> Expected {
    let mut found = Expected::default();
    match steps(case, &mut found) {
        Ok(()) => {}
        Err(RealUrlError::ContextPath(..)) => {
            found.error = Some(Answer {
                code: -111,
                message: "the context path illegal, please check the context path mapping plugin!".to_owned(),
            });
        }
        Err(error) => {
            found.expect = Some("throws".to_owned());
            found.exception = Some(exception(&error).to_owned());
        }
    }
    found
}

fn exception(error: &RealUrlError) -> &'static str {
    match error {
        RealUrlError::TooShort(_) => "StringIndexOutOfBoundsException",
        RealUrlError::NoEnabled(_) => "NullPointerException",
        RealUrlError::MetaData(_) | RealUrlError::Separator(_) => "PatternSyntaxException",
        RealUrlError::ContextPath(..) => unreachable!("an answer, no exception"),
    }
}

fn steps(case: &Case, found: &mut Expected) -> Result<(), RealUrlError> {
    let version = match case.version.as_str() {
        "feb21" => Version::Feb2021,
        "2.3.0" => Version::V2_3_0,
        other => panic!("unknown version `{other}`"),
    };
    let (raw_path, raw_query) = match case.request_uri.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (case.request_uri.as_str(), None),
    };
    let (mut context, attached) = context(version, raw_path, &case.metadata)?;
    found.context = Some(Fields::from(&context));
    found.metadata_attached = Some(attached);
    if let Some(handle) = &case.context_path_handle {
        let handle: Option<ContextMappingHandle> = gson::from_str(handle).expect("a handle");
        context = map_context_path(version, context, handle.as_ref())?;
        found.after_context_path = Some(Fields::from(&context));
    }
    let handle = case.rewrite_handle.as_deref();
    let handle: Option<RewriteHandle> = handle.and_then(|handle| gson::from_str(handle).expect("a handle"));
    let rewritten = rewrite(&context, handle.as_ref());
    let protocol = case.protocol.as_deref();
    found.http_url = http_url(version, &context, rewritten, protocol, &case.upstream_url, raw_query);
    found.divide_skipped = found.http_url.is_none().then_some(true);
    Ok(())
}

/// Whether the context path is an expression that an engine with bounded time cannot run.
fn may_be_refused(case: &Case, found: &Expected) -> bool {
    let is_regex_error = found.exception.as_deref() == Some("PatternSyntaxException");
    let java_ran_it = case.expected.exception.is_none();
    is_regex_error && java_ran_it && case.context_path_handle.as_deref().is_some_and(needs_backtracking)
}

#[test]
fn urls_are_built_like_souls() {
    let cases: Vec<Case> = load("real_url");
    let mut failures = Vec::new();
    for case in &cases {
        let found = run(case);
        if found != case.expected && !may_be_refused(case, &found) {
            failures.push(format!("{}: expected {:?}, found {found:?}", case.id, case.expected));
        }
    }
    assert_none("real_url", cases.len(), &failures);
}
