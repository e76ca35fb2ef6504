//! Soul's `roundRobin`: by the counters alone, and through sets of upstreams that replace each other.

use serde::Deserialize;
use soul_client::balance::{
    Choice, LoadBalance, PickContext,
    soul::{RoundRobin, Turn},
};
use soul_tests::vectors::{assert_none, load};

use crate::node::{Node, set};

#[derive(Deserialize)]
struct Case {
    id: String,
    description: String,
    segments: Vec<Segment>,
}

#[derive(Deserialize)]
struct Segment {
    now: i64,
    advance_ms: i64,
    upstreams: Vec<Node>,
    picks: Vec<Option<String>>,
}

impl Segment {
    /// The time of each pick, and who is expected.
    fn picks(&self) -> impl Iterator<Item = (i64, Option<&str>)> {
        let times = (0..).map(|i| self.now + i * self.advance_ms);
        times.zip(self.picks.iter().map(Option::as_deref))
    }

    /// Whether the strict choice must equal Soul's: nobody is left out, and no weight changes by warm-up.
    fn is_plain(&self) -> bool {
        self.upstreams.iter().map(Node::upstream).all(|upstream| {
            upstream.takes_traffic()
                && self.picks().all(|(now, _)| upstream.weight_at(now) == upstream.weight())
        })
    }
}

#[test]
fn round_robin() {
    let cases: Vec<Case> = load("round_robin");
    let mut failures = Vec::new();
    for case in &cases {
        let mut runs = vec![("counters", by_counters(case)), ("set, Soul", by_set(case, Choice::Soul))];
        if case.segments.iter().all(Segment::is_plain) {
            runs.push(("set, Strict", by_set(case, Choice::Strict)));
        }
        for (how, outcome) in runs {
            if let Err(difference) = outcome {
                failures.push(format!("{} ({}) {how}: {difference}", case.id, case.description));
            }
        }
    }
    assert_none("round_robin", cases.len(), &failures);
}

fn by_counters(case: &Case) -> Result<(), String> {
    let mut balance = RoundRobin::new();
    for segment in &case.segments {
        let upstreams: Vec<_> = segment.upstreams.iter().map(Node::upstream).collect();
        let list = segment.upstreams.first().map_or("", |node| node.url.as_str());
        for (now, expected) in segment.picks() {
            let turns = upstreams.iter().map(|u| Turn::new(u.url(), u.weight_at(now)));
            let picked = balance.select(list, turns, now).map(|position| upstreams[position].url());
            compare(now, expected, picked)?;
        }
    }
    Ok(())
}

fn by_set(case: &Case, choice: Choice) -> Result<(), String> {
    let mut previous = None;
    for segment in &case.segments {
        let set = set(&segment.upstreams, previous.as_ref(), choice);
        for (now, expected) in segment.picks() {
            let picked = set.pick(LoadBalance::RoundRobin, &PickContext::at(now));
            compare(now, expected, picked.map(|member| member.upstream().url()))?;
        }
        previous = Some(set);
    }
    Ok(())
}

fn compare(now: i64, expected: Option<&str>, picked: Option<&str>) -> Result<(), String> {
    if picked == expected { Ok(()) } else { Err(format!("at {now}: expected {expected:?}, got {picked:?}")) }
}
