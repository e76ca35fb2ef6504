//! Soul's `random`: which branch, which bound, and who is chosen for which number.

use std::cell::RefCell;

use serde::Deserialize;
use soul_client::balance::{LoadBalance, PickContext, soul};
use soul_tests::vectors::{assert_none, load};

use crate::node::{Node, choices, set};

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Branch {
    None,
    Single,
    Uniform,
    Weighted,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    now: i64,
    upstreams: Vec<Node>,
    branch: Branch,
    bound: Option<u32>,
    picks: Vec<(Option<u32>, Option<String>)>,
}

#[test]
fn random_balance_rules() {
    let cases: Vec<Case> = load("random_balance_rules");
    let failures: Vec<String> = cases.iter().flat_map(check).collect();
    assert_none("random_balance_rules", cases.len(), &failures);
}

fn check(case: &Case) -> Vec<String> {
    let mut failures = Vec::new();
    // One number is drawn, below the stated bound, or none.
    let draws = matches!(case.branch, Branch::Uniform | Branch::Weighted);
    let bounds: &[u32] = if draws { case.bound.as_slice() } else { &[] };
    for (drawn, expected) in &case.picks {
        let mut verify = |how: &str, picked: Option<&str>, asked: &[u32]| {
            if picked != expected.as_deref() || asked != bounds {
                failures.push(format!(
                    "{} {drawn:?}: expected {expected:?} of {bounds:?}, {how} {picked:?} of {asked:?}",
                    case.id
                ));
            }
        };
        let asked = RefCell::new(Vec::new());
        let source = |bound| {
            asked.borrow_mut().push(bound);
            drawn.unwrap_or(0)
        };
        let weights = case.upstreams.iter().map(|node| node.upstream().weight_at(case.now));
        let picked = soul::random(weights, source).map(|position| case.upstreams[position].url.as_str());
        verify("function", picked, &asked.take());
        for choice in choices(&case.upstreams) {
            let set = set(&case.upstreams, None, choice);
            let picked = set.pick(LoadBalance::Random, &PickContext::at(case.now).random(&source));
            verify(&format!("{choice:?}"), picked.map(|member| member.upstream().url()), &asked.take());
        }
    }
    failures
}
