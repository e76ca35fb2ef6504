//! How Soul takes an upstream's address apart before it probes it.

use serde::Deserialize;
use soul_gateway_mini::admin::probe::{CheckUrl, check_url};
use soul_tests::vectors::{assert_none, load};

#[derive(Deserialize)]
struct Case {
    url: Option<String>,
    branch: String,
    host: Option<String>,
    port: Option<u32>,
}

#[test]
fn check_url_branches() {
    let cases: Vec<Case> = load("check_url");
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let ours = parts(check_url(case.url.as_deref()));
            let expected = (case.branch.clone(), case.host.clone(), case.port);
            (ours != expected).then(|| format!("{:?}: expected {expected:?}, got {ours:?}", case.url))
        })
        .collect();
    assert_none("check_url", cases.len(), &failures);
}

fn parts(found: CheckUrl) -> (String, Option<String>, Option<u32>) {
    let (branch, host, port) = match found {
        CheckUrl::Blank => ("blank", None, None),
        CheckUrl::Connect { host, port } => ("connect", Some(host), Some(u32::from(port))),
        CheckUrl::Reachable { host } => ("reachable", Some(host), None),
        CheckUrl::Throws { parsed: None } => ("throws", None, None),
        CheckUrl::Throws { parsed: Some((host, port)) } => ("throws", Some(host), Some(port)),
    };
    (branch.to_owned(), host, port)
}
