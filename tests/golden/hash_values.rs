//! Places on Soul's hash ring.

use serde::Deserialize;
use soul_client::balance::soul;
use soul_tests::vectors::{assert_none, load};

#[derive(Deserialize)]
struct Case {
    key: String,
    hash: u32,
}

#[test]
fn hash_values() {
    let cases: Vec<Case> = load("hash_values");
    let failures: Vec<String> = cases
        .iter()
        .filter(|case| soul::hash(&case.key) != case.hash)
        .map(|case| format!("{:?}: expected {}, got {}", case.key, case.hash, soul::hash(&case.key)))
        .collect();
    assert_none("hash_values", cases.len(), &failures);
}
