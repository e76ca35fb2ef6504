//! Properties 5 and 6 of the core, at this level: chance decides what happens in which order.

use proptest::prelude::*;

use super::*;

/// What may happen to a service.
#[derive(Clone, Debug)]
enum Step {
    /// The source says a list: a set of addresses by bits, and a weight.
    List(u8, u8),
    Confirm,
    Fail,
    Mark(u8, bool),
    Disable(u8),
    Enable(u8),
    /// Milliseconds pass.
    Pass(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (any::<u8>(), 1..4_u8).prop_map(|(set, weight)| Step::List(set, weight)),
        1 => Just(Step::Confirm),
        1 => Just(Step::Fail),
        2 => (0..8_u8, any::<bool>()).prop_map(|(who, up)| Step::Mark(who, up)),
        1 => (0..8_u8).prop_map(Step::Disable),
        1 => (0..8_u8).prop_map(Step::Enable),
        3 => (0..250_u16).prop_map(Step::Pass),
    ]
}

fn address(who: u8) -> String {
    format!("10.0.0.{who}:80")
}

/// What the writer should have come to.
#[derive(Default)]
struct Model {
    listed: Vec<Upstream>,
    disabled: BTreeSet<String>,
}

async fn run(steps: Vec<Step>) {
    let (publisher, builder) = pushed();
    let members = builder.settings(Settings { panic_threshold: 0.0, ..Settings::default() }).spawn().unwrap();
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::List(set, weight) => {
                let who = (0..8).filter(|who| set & (1 << who) != 0);
                model.listed =
                    who.map(|who| Upstream::new(address(who)).with_weight(weight.into())).collect();
                let mut list = model.listed.clone();
                fastrand::shuffle(&mut list);
                publisher.publish(list);
            }
            Step::Confirm => publisher.confirm(),
            Step::Fail => publisher.fail(DiscoverError::new("ask")),
            Step::Mark(who, true) => _ = members.mark_up(&address(who)),
            Step::Mark(who, false) => _ = members.mark_down(&address(who)),
            Step::Disable(who) => {
                members.disable(address(who));
                model.disabled.insert(address(who));
            }
            Step::Enable(who) => {
                members.enable(&address(who));
                model.disabled.remove(&address(who));
            }
            Step::Pass(time) => sleep(Duration::from_millis(time.into())).await,
        }
    }
    // 6: whatever came last is published, within the time for that.
    sleep(Duration::from_millis(201)).await;
    let off = |upstream: &Upstream| model.disabled.contains(upstream.address());
    let expected: Vec<_> = model
        .listed
        .iter()
        .cloned()
        .map(|upstream| if off(&upstream) { upstream.with_status(false) } else { upstream })
        .collect();
    let snapshot = members.balancer().snapshot();
    let published: Vec<_> = snapshot.all().iter().map(|m| m.upstream().clone()).collect();
    assert_eq!(published, expected);

    // 5: the same list again changes no state, and not even the snapshot.
    let seen: HashMap<_, _> = snapshot
        .all()
        .iter()
        .map(|m| (Arc::as_ptr(m.state()), (m.state().health(), m.state().picks())))
        .collect();
    let mut list = model.listed.clone();
    fastrand::shuffle(&mut list);
    publisher.publish(list);
    sleep(Duration::from_millis(201)).await;
    let after = members.balancer().snapshot();
    assert_eq!(after.generation(), snapshot.generation());
    for member in after.all() {
        assert_eq!(seen[&Arc::as_ptr(member.state())], (member.state().health(), member.state().picks()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn after_any_interleaving_the_last_list_is_published_and_again_changes_nothing(
        steps in proptest::collection::vec(step(), 0..40)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(run(steps));
    }
}
