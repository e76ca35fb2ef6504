//! Weights during warm-up.

use serde::Deserialize;
use soul_client::balance::soul;
use soul_tests::vectors::{assert_none, load};

use crate::node::Node;

#[derive(Debug, Deserialize)]
struct Case {
    now: i64,
    timestamp: i64,
    warmup: i32,
    weight: i32,
    status: bool,
    expect: i32,
}

#[test]
fn warmup_weight() {
    let cases: Vec<Case> = load("warmup_weight");
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let Case { now, timestamp, warmup, weight, status, expect } = *case;
            let pure = soul::effective_weight(now, status, weight, timestamp, warmup);
            let node = Node { url: "10.0.0.2:8188".to_owned(), weight, status, timestamp, warmup };
            let of_upstream = node.upstream().weight_at(now);
            (pure != expect || of_upstream != expect)
                .then(|| format!("{case:?}: got {pure} and {of_upstream}"))
        })
        .collect();
    assert_none("warmup_weight", cases.len(), &failures);
}
