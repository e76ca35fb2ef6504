//! `OperatorJudgeFactory.judge`.

use serde::Deserialize;
use soul_client::wire::soul::ConditionData;
use soul_gateway_mini::model::matching::{MatchError, judge};
use soul_tests::vectors::{assert_none, load};

use crate::outcome::Outcome;

#[derive(Deserialize)]
struct Case {
    condition: ConditionData,
    real: Option<String>,
    expect: Outcome,
    exception: Option<String>,
}

/// What Java throws where we give this error.
fn exception(error: &MatchError) -> &'static str {
    match error {
        MatchError::Regex(_) => "PatternSyntaxException",
        _ => "NullPointerException",
    }
}

#[test]
fn every_operator_judges_like_souls() {
    let cases: Vec<Case> = load("operators");
    let mut failures = Vec::new();
    for Case { condition, real, expect, exception: thrown } in &cases {
        let found = judge(condition, real.as_deref());
        let value = condition.param_value.as_deref().unwrap_or_default();
        let same_exception =
            *expect != Outcome::Throws || found.as_ref().err().map(exception) == thrown.as_deref();
        if !expect.agrees(found.as_ref().copied(), &[value]) || !same_exception {
            failures.push(format!("{condition:?} on {real:?}: expected {expect:?}, found {found:?}"));
        }
    }
    assert_none("operators", cases.len(), &failures);
}
