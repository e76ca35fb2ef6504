//! `AntPathMatcher.match` and `PathMatchUtils.match`.

use serde::Deserialize;
use soul_gateway_mini::model::matching::{AntPattern, PathPatterns};
use soul_tests::vectors::{assert_none, load};

use crate::outcome::Outcome;

#[derive(Deserialize)]
struct Case {
    pattern: String,
    path: String,
    ant: Outcome,
    soul: Outcome,
}

#[test]
fn one_pattern_matches_like_springs() {
    let cases: Vec<Case> = load("ant_path");
    let mut failures = Vec::new();
    for Case { pattern, path, ant, .. } in &cases {
        let compiled = AntPattern::new(pattern);
        let found = compiled.matches(path);
        if !ant.agrees(found, &[pattern]) {
            failures.push(format!("{pattern:?} on {path:?}: expected {ant:?}, found {found:?}"));
        }
    }
    assert_none("ant_path, ant", cases.len(), &failures);
}

#[test]
fn a_list_of_patterns_matches_like_souls() {
    let cases: Vec<Case> = load("ant_path");
    let mut failures = Vec::new();
    for Case { pattern, path, soul, .. } in &cases {
        let patterns = PathPatterns::new(pattern).expect("small enough");
        let found = patterns.matches(path);
        if !soul.agrees(found, &[pattern]) {
            failures.push(format!("{pattern:?} on {path:?}: expected {soul:?}, found {found:?}"));
        }
    }
    assert_none("ant_path, soul", cases.len(), &failures);
}
