//! Polling, and sources that fail.

use super::*;

type Answer = Result<Vec<Upstream>, &'static str>;

/// Asked when, and what it then answers.
#[derive(Clone, Default)]
struct Asked {
    at: Arc<Mutex<Vec<Duration>>>,
    answers: Arc<Mutex<Vec<Answer>>>,
}

impl Asked {
    /// A source that answers these in turn, the last one for ever, and takes a while for each.
    fn source(&self, takes: Duration) -> impl Discover {
        let (this, began) = (self.clone(), Instant::now());
        discover_fn(move |_| {
            let this = this.clone();
            async move {
                this.at.lock().unwrap().push(began.elapsed());
                sleep(takes).await;
                let mut answers = this.answers.lock().unwrap();
                let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
                answer.map_err(|error| DiscoverError::new("ask").with_source(error))
            }
        })
    }

    fn seconds(&self) -> Vec<f64> {
        self.at.lock().unwrap().iter().map(|at| (at.as_secs_f64() * 10.0).round() / 10.0).collect()
    }
}

fn polling() -> Refresh {
    Refresh::Polling { initial: Duration::from_secs(1), every: Duration::from_secs(30), jitter: 0.0 }
}

#[tokio::test(start_paused = true)]
async fn a_source_is_asked_at_once_then_after_1_s_then_30_s_after_each_answer() {
    let asked = Asked::default();
    asked.answers.lock().unwrap().push(Ok(list(&["a:1"])));
    let members = Membership::builder("orders")
        .source(asked.source(Duration::from_secs(5)))
        .probing(Probing::none())
        .refresh(polling())
        .spawn()
        .unwrap();
    sleep(Duration::from_secs(80)).await;
    assert_eq!(asked.seconds(), [0.0, 6.0, 41.0, 76.0]);
    // An answer is under way, which may be older than what was asked for.
    members.refresh_now();
    sleep(Duration::from_secs(3)).await;
    drop(members);
    sleep(Duration::from_secs(300)).await;
    assert_eq!(asked.seconds(), [0.0, 6.0, 41.0, 76.0, 81.0], "it stopped with its owner");
}

#[tokio::test(start_paused = true)]
async fn one_that_pushes_nothing_is_polled() {
    let asked = Asked::default();
    asked.answers.lock().unwrap().push(Ok(list(&["a:1"])));
    let _members = Membership::builder("orders")
        .source(asked.source(Duration::ZERO))
        .probing(Probing::none())
        .spawn()
        .unwrap();
    sleep(Duration::from_secs(20)).await;
    assert_eq!(asked.seconds().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn it_can_be_asked_now() {
    let asked = Asked::default();
    asked.answers.lock().unwrap().push(Ok(list(&["a:1"])));
    let members = Membership::builder("orders")
        .source(asked.source(Duration::ZERO))
        .probing(Probing::none())
        .refresh(polling())
        .spawn()
        .unwrap();
    sleep(Duration::from_secs(10)).await;
    members.refresh_now();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(asked.seconds(), [0.0, 1.0, 10.0]);
}

#[tokio::test(start_paused = true)]
async fn a_list_outlives_its_source_and_its_age_is_seen() {
    let asked = Asked::default();
    *asked.answers.lock().unwrap() =
        vec![Ok(list(&["a:1", "b:1"])), Err("no route"), Err("no route"), Ok(list(&["a:1"]))];
    let heard = Heard::default();
    let members = Membership::builder("orders")
        .source(asked.source(Duration::ZERO))
        .probing(Probing::none())
        .listener(heard.listener())
        .refresh(polling())
        .spawn()
        .unwrap();
    sleep(Duration::from_secs(40)).await;
    let status = members.status();
    assert_eq!((status.all, status.up, status.missed_cycles), (2, 2, 2));
    assert!(status.is_stale());
    assert_eq!(status.age, Some(Duration::from_secs(40)));
    assert_eq!(status.last_error.as_deref(), Some("ask: no route"));
    sleep(Duration::from_secs(30)).await;
    let status = members.status();
    assert_eq!((status.all, status.missed_cycles, status.is_stale(), status.last_error), (1, 0, false, None));
    assert_eq!(status.age, Some(Duration::from_secs(9)));
    assert_eq!(
        heard.take(),
        ["list +2 -0 =2", "failed: ask: no route", "recovered after 2", "list +0 -1 =1"]
    );
}

#[tokio::test(start_paused = true)]
async fn while_there_is_no_list_the_pauses_double_up_to_the_usual_one() {
    let asked = Asked::default();
    asked.answers.lock().unwrap().push(Err("no route"));
    let members = Membership::builder("orders")
        .source(asked.source(Duration::ZERO))
        .refresh(polling())
        .spawn()
        .unwrap();
    sleep(Duration::from_secs(130)).await;
    assert_eq!(asked.seconds(), [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 61.0, 91.0, 121.0]);
    assert_eq!((members.status().all, members.status().age), (0, None));
}

#[tokio::test(start_paused = true)]
async fn who_was_deregistered_is_gone_within_31_s_by_polling_alone() {
    let listed = Arc::new(Mutex::new(list(&["a:1", "b:1"])));
    let source = discover_fn({
        let listed = Arc::clone(&listed);
        move |_| std::future::ready(Ok(listed.lock().unwrap().clone()))
    });
    let members = Membership::builder("orders")
        .source(source)
        .probing(Probing::none())
        .refresh(Refresh::POLLING)
        .spawn()
        .unwrap();
    for round in 0..20 {
        *listed.lock().unwrap() = list(if round % 2 == 0 { &["a:1"] } else { &["a:1", "b:1"] });
        // At any moment of the interval.
        sleep(Duration::from_millis(30_201)).await;
        assert_eq!(all(&members).len(), 1 + round % 2, "round {round}");
        sleep(Duration::from_millis(fastrand::u64(..30_000))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_hangs_or_panics_has_failed() {
    for (hangs, error) in [(true, "no answer within 10 s"), (false, "it panicked: `by design`")] {
        let source = discover_fn(move |_| async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            panic!("by design")
        });
        let members = Membership::builder("orders").source(source).spawn().unwrap();
        sleep(Duration::from_secs(60)).await;
        let status = members.status();
        assert!(status.missed_cycles > 2, "{status:?}");
        let said = status.last_error.unwrap();
        assert_eq!(said, format!("ask a source of the program for `orders`: {error}"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_believed() {
    let (publisher, builder) = pushed();
    let members = builder.spawn().unwrap();
    publisher.publish(list(&["a:1"]));
    members.ready(Duration::from_secs(1)).await.unwrap();
    publisher.fail(DiscoverError::unknown_service("no such service"));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(all(&members), ["a:1"]);
    publisher.publish(Vec::new());
    sleep(Duration::from_secs(1)).await;
    assert!(all(&members).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_given_list_needs_no_refresh() {
    let source = StaticList::new().with("orders", ["a:1"]).with_upstreams("stock", [Upstream::new("b:1")]);
    assert!(source.has("stock") && !source.has("users"));
    let members =
        Membership::builder("orders").source(source.clone()).probing(Probing::none()).spawn().unwrap();
    members.ready(Duration::from_secs(1)).await.unwrap();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!((all(&members), members.status().is_stale()), (vec!["a:1".to_owned()], false));
    let unknown = Membership::builder("users").source(source).spawn().unwrap();
    let error = unknown.ready(Duration::from_secs(1)).await.unwrap_err();
    assert!(error.chain().contains("look for `users` in the given list"), "{}", error.chain());
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_by_who_came_and_who_went() {
    let (publisher, builder) = pushed();
    let there = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let follows = Arc::clone(&there);
    let listener = move |_: &str, event: &MemberEvent| {
        let MemberEvent::ListChanged { added, removed, .. } = event else { return };
        let mut there = follows.lock().unwrap();
        added.iter().for_each(|name| assert!(there.insert(name.clone()), "{name} came twice"));
        removed.iter().for_each(|name| assert!(there.remove(name), "{name} went twice"));
    };
    let members = builder.listener(listener).spawn().unwrap();
    for addresses in [&["a:1", "b:1"][..], &["b:1", "c:1"], &["c:1", "b:1"], &[], &["a:1"], &["d:1", "a:1"]] {
        publisher.publish(list(addresses));
        sleep(Duration::from_millis(201)).await;
        let names: Vec<_> = all(&members).iter().map(|address| format!("http://{address}")).collect();
        assert_eq!(there.lock().unwrap().iter().cloned().collect::<Vec<_>>(), names);
    }
}
