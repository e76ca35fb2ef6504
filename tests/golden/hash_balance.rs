//! Soul's `hash`: by the ring alone, and through the set of upstreams.

use serde::Deserialize;
use soul_client::balance::{
    Key, LoadBalance, PickContext,
    soul::{Ring, hash},
};
use soul_tests::vectors::{assert_none, load};

use crate::node::{Node, choices, set};

#[derive(Deserialize)]
struct Case {
    id: String,
    upstreams: Vec<String>,
    weights: Option<Vec<i32>>,
    statuses: Option<Vec<bool>>,
    selections: Vec<(Option<String>, Option<String>)>,
}

impl Case {
    fn nodes(&self) -> Vec<Node> {
        let node = |(i, url): (usize, &String)| Node {
            url: url.clone(),
            weight: self.weights.as_ref().map_or(50, |weights| weights[i]),
            status: self.statuses.as_ref().is_none_or(|statuses| statuses[i]),
            timestamp: 0,
            warmup: 0,
        };
        self.upstreams.iter().enumerate().map(node).collect()
    }
}

#[test]
fn hash_balance() {
    let cases: Vec<Case> = load("hash_balance");
    let failures: Vec<String> = cases.iter().flat_map(check).collect();
    assert_none("hash_balance", cases.len(), &failures);
}

fn check(case: &Case) -> Vec<String> {
    let mut failures = Vec::new();
    let ring = Ring::new(case.upstreams.iter().map(String::as_str));
    let nodes = case.nodes();
    for (ip, expected) in &case.selections {
        let place = hash(ip.as_deref().unwrap_or("null"));
        let owner = ring.owner(place).map(|owner| case.upstreams[owner].as_str());
        if owner != expected.as_deref() {
            failures.push(format!("{} {ip:?}: expected {expected:?}, ring {owner:?}", case.id));
        }
    }
    for choice in choices(&nodes) {
        let set = set(&nodes, None, choice);
        for (ip, expected) in &case.selections {
            let mut context = PickContext::at(0);
            if let Some(ip) = ip {
                context = context.key(Key::Text(ip));
            }
            let picked = set.pick(LoadBalance::Hash, &context).map(|member| member.upstream().url());
            if picked != expected.as_deref() {
                failures.push(format!("{} {ip:?}: expected {expected:?}, {choice:?} {picked:?}", case.id));
            }
        }
    }
    failures
}
