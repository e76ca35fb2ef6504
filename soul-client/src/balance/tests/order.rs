//! Soul's exact order of `roundRobin`, with and without a plan.

use proptest::prelude::*;

use super::{super::*, *};
use crate::balance::soul::{RoundRobin, Turn};

/// What happens to a list.
#[derive(Clone, Debug)]
enum Step {
    Pick { after_ms: i64, times: usize },
    Flip(usize),
    Refresh(i32),
}

fn any_step() -> impl Strategy<Value = Step> {
    let pause = prop_oneof![Just(0_i64), 1..2_000_i64, 50_000..200_000_i64];
    prop_oneof![
        6 => (pause, 1_usize..40).prop_map(|(after_ms, times)| Step::Pick { after_ms, times }),
        3 => (0_usize..6).prop_map(Step::Flip),
        1 => (1..1_000_i32).prop_map(Step::Refresh),
    ]
}

/// The order as Soul works it out: all counters, for each choice.
fn expected<'u>(
    model: &mut RoundRobin,
    nodes: &'u [DivideUpstream],
    down: &[bool],
    now_ms: i64,
) -> Option<&'u str> {
    let up: Vec<_> = nodes.iter().zip(down).filter(|(_, down)| !**down).map(|(node, _)| node).collect();
    let turn = |node: &&'u DivideUpstream| {
        Turn::new(node.upstream_url.as_deref().unwrap(), Upstream::from(*node).weight_at(now_ms))
    };
    let list = up.first()?.upstream_url.as_deref().unwrap();
    model.select(list, up.iter().map(turn), now_ms).map(|i| up[i].upstream_url.as_deref().unwrap())
}

proptest! {
    #[test]
    fn the_plan_gives_the_order_of_the_counters(
        weights in prop::collection::vec(prop_oneof![3 => 1..12_i32, 1 => Just(50), 1 => Just(0)], 1..6),
        warming in prop::collection::vec(prop::bool::weighted(0.2), 6),
        steps in prop::collection::vec(any_step(), 1..30),
    ) {
        let mut nodes: Vec<_> = weights.iter().enumerate().map(|(i, &w)| DivideUpstream {
            timestamp: if warming[i] { NOW - 3_000 } else { 0 },
            warmup: 60_000,
            ..node(&format!("10.0.0.{i}:80"), w)
        }).collect();
        let mut set = build(&nodes, None, Choice::Soul);
        let mut model = RoundRobin::new();
        let (mut now, mut down) = (NOW, vec![false; nodes.len()]);
        for step in steps {
            match step {
                Step::Pick { after_ms, times } => {
                    now += after_ms;
                    for _ in 0..times {
                        let picked = set.pick(LoadBalance::RoundRobin, &PickContext::at(now));
                        prop_assert_eq!(url(picked), expected(&mut model, &nodes, &down, now));
                    }
                }
                Step::Flip(i) => {
                    let i = i % nodes.len();
                    down[i] = !down[i];
                    let health = if down[i] { Health::Down } else { Health::Up };
                    set.members()[i].state().set_health(health);
                }
                Step::Refresh(warmup) => {
                    // Plays no part where there is no warm-up, but the list differs.
                    for (node, warming) in nodes.iter_mut().zip(&warming) {
                        if !warming {
                            node.warmup = warmup;
                        }
                    }
                    set = build(&nodes, Some(&set), Choice::Soul);
                }
            }
        }
    }
}

#[test]
fn many_of_equal_weight_have_a_plan_too() {
    let nodes: Vec<_> = (0..3_000).map(|i| node(&format!("n{i}"), 50)).collect();
    let set = strict(&nodes);
    for round in 0..2 {
        for node in &nodes {
            let picked = set.pick(LoadBalance::RoundRobin, &PickContext::at(NOW));
            assert_eq!(url(picked), node.upstream_url.as_deref(), "round {round}");
        }
    }
}
