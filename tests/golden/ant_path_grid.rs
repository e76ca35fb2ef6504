//! `AntPathMatcher.match` over small alphabets.

use serde::Deserialize;
use soul_gateway_mini::model::matching::{AntPattern, PathPatterns};
use soul_tests::vectors::{assert_none, load};

#[derive(Deserialize)]
struct Case {
    pattern: String,
    #[serde(rename = "match")]
    matching: Vec<String>,
    no_match: Vec<String>,
}

impl Case {
    fn pairs(&self) -> impl Iterator<Item = (&str, bool)> {
        let yes = self.matching.iter().map(|path| (path.as_str(), true));
        yes.chain(self.no_match.iter().map(|path| (path.as_str(), false)))
    }
}

#[test]
fn every_combination_matches_like_springs() {
    let cases: Vec<Case> = load("ant_path_grid");
    let (mut pairs, mut failures) = (0, Vec::new());
    for case in &cases {
        let one = AntPattern::new(&case.pattern);
        let list = PathPatterns::new(&case.pattern).expect("small enough");
        for (path, expected) in case.pairs() {
            pairs += 1;
            if one.matches(path) != Ok(expected) {
                failures.push(format!("{:?} on {path:?}: expected {expected}", case.pattern));
            }
            // The empty list has no pattern, where the empty pattern matches the empty path.
            let listed = expected && !case.pattern.is_empty();
            if list.matches(path) != Ok(listed) {
                failures.push(format!("list {:?} on {path:?}: expected {listed}", case.pattern));
            }
        }
    }
    assert_none("ant_path_grid", pairs, &failures);
}
