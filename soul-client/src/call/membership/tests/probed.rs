//! What probes find.

use super::*;

/// Answers as told.
#[derive(Clone, Default)]
struct Told {
    dead: Arc<Mutex<Vec<String>>>,
    asked: Arc<AtomicUsize>,
}

impl Told {
    fn kill(&self, address: &str) {
        self.dead.lock().unwrap().push(address.to_owned());
    }

    fn revive(&self, address: &str) {
        self.dead.lock().unwrap().retain(|dead| dead != address);
    }
}

impl HealthCheck for Told {
    fn check<'a>(&'a self, upstream: &'a Upstream) -> BoxFuture<'a, Checked> {
        self.asked.fetch_add(1, SeqCst);
        let is_dead = self.dead.lock().unwrap().iter().any(|dead| dead == upstream.address());
        Box::pin(async move { if is_dead { Err("told".into()) } else { Ok(()) } })
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_upstream_leaves_stays_away_through_refreshes_and_returns() {
    let (publisher, builder) = pushed();
    let (told, heard) = (Told::default(), Heard::default());
    let members = builder.probing(Probing::custom(told.clone())).listener(heard.listener()).spawn().unwrap();
    publisher.publish(list(&["a:1", "b:1", "c:1"]));
    members.ready(Duration::from_secs(1)).await.unwrap();
    assert_eq!(up(&members).len(), 3, "new ones take traffic at once");
    sleep(Duration::from_secs(6)).await;
    heard.take();
    told.kill("b:1");
    sleep(Duration::from_millis(9_101)).await;
    assert_eq!(heard.take(), ["http://b:1 Down"]);
    for _ in 0..10 {
        publisher.publish(list(&["c:1", "b:1", "a:1"]));
        publisher.confirm();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(up(&members), ["a:1", "c:1"]);
    }
    told.revive("b:1");
    sleep(Duration::from_millis(3_201)).await;
    assert_eq!((heard.take(), up(&members).len()), (vec!["http://b:1 Up".to_owned()], 3));
}

#[tokio::test(start_paused = true)]
async fn the_prober_follows_the_list() {
    let (publisher, builder) = pushed();
    let (told, probers) = (Told::default(), Arc::new(Probers::default()));
    let members = builder.probing(Probing::custom(told)).probers(Arc::clone(&probers)).spawn().unwrap();
    for addresses in [&["a:1", "b:1"][..], &["b:1", "c:1", "d:1"], &[], &["a:1"]] {
        publisher.publish(list(addresses));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(probers.addresses(), addresses.len());
    }
    drop(members);
    settle().await;
    assert_eq!(probers.addresses(), 0);
}

#[tokio::test(start_paused = true)]
async fn where_a_first_check_is_required_only_who_passed_it_is_called() {
    let (publisher, builder) = pushed();
    let told = Told::default();
    told.kill("a:1");
    told.kill("b:1");
    let probing = Probing { require_first_check: true, ..Probing::custom(told.clone()) };
    let members = Arc::new(builder.probing(probing).spawn().unwrap());
    publisher.publish(list(&["a:1", "b:1"]));
    let error = members.ready(Duration::from_secs(20)).await.unwrap_err();
    assert!(error.to_string().contains("there was not a checked upstream within 20 s"), "{error}");
    let choose = || members.balancer().choose(&PickContext::at(members.clock().now_ms()));
    assert!(choose().is_none(), "not even in panic");
    told.revive("a:1");
    members.ready(Duration::from_secs(20)).await.unwrap();
    sleep(Duration::from_millis(201)).await;
    assert_eq!(choose().unwrap().upstream().address(), "a:1");
    // A newcomer is checked at once.
    publisher.publish(list(&["a:1", "b:1", "c:1"]));
    sleep(Duration::from_millis(201)).await;
    assert_eq!(up(&members), ["a:1", "c:1"]);
}

#[tokio::test(start_paused = true)]
async fn who_was_marked_by_hand_is_what_the_next_check_finds() {
    let (publisher, builder) = pushed();
    let members = builder.probing(Probing::custom(Told::default())).spawn().unwrap();
    publisher.publish(list(&["a:1", "b:1", "c:1"]));
    sleep(Duration::from_secs(6)).await;
    members.mark_down("b:1");
    assert_eq!(up(&members), ["a:1", "c:1"]);
    sleep(Duration::from_millis(6_101)).await;
    assert_eq!(up(&members).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn one_probe_serves_two_services_with_a_health_of_their_own() {
    let probers = Arc::new(Probers::default());
    let told = Told::default();
    let probing = Probing::custom(told.clone());
    let spawn = || {
        let (publisher, builder) = pushed();
        let members = builder.probing(probing.clone()).probers(Arc::clone(&probers)).spawn().unwrap();
        (publisher, members)
    };
    let (first, second) = (spawn(), spawn());
    for (publisher, _) in [&first, &second] {
        publisher.publish(list(&["a:1", "b:1", "c:1"]));
    }
    sleep(Duration::from_secs(6)).await;
    assert_eq!(probers.addresses(), 3);
    told.kill("a:1");
    sleep(Duration::from_millis(9_201)).await;
    for (_, members) in [&first, &second] {
        assert_eq!(up(members), ["b:1", "c:1"]);
    }
    // One that comes later knows at once.
    let third = spawn();
    third.0.publish(list(&["a:1", "b:1", "c:1"]));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(up(&third.1), ["b:1", "c:1"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_registry_says_can_be_the_health() {
    let (publisher, builder) = pushed();
    let heard = Heard::default();
    let members = builder.probing(Probing::registry_status()).listener(heard.listener()).spawn().unwrap();
    publisher.publish(vec![Upstream::new("a:1"), Upstream::new("b:1").with_status(false)]);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(heard.take(), ["list +2 -0 =2", "http://a:1 Up", "http://b:1 Down"]);
    publisher.publish(list(&["a:1", "b:1"]));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(heard.take(), ["list +0 -0 =2", "http://b:1 Up"]);
    assert_eq!(up(&members).len(), 2);
}

#[tokio::test]
async fn a_listener_that_closes_is_found_over_a_real_socket() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut probing = Probing::tcp();
    for every in
        [&mut probing.settings.every, &mut probing.settings.every_down, &mut probing.settings.every_in_doubt]
    {
        *every = Duration::from_millis(10);
    }
    let members = Membership::builder("orders")
        .source(StaticList::new().with("orders", [address.as_str(), "127.0.0.1:1"]))
        .settings(Settings { panic_threshold: 0.0, ..Settings::default() })
        .probing(probing)
        .spawn()
        .unwrap();
    let until = async |what: &str, wanted: &[&str]| {
        let deadline = Instant::now() + Duration::from_secs(30);
        while up(&members) != wanted {
            assert!(Instant::now() < deadline, "no {what}: {:?}", members.status());
            sleep(Duration::from_millis(10)).await;
        }
    };
    until("closed port found", &[&address]).await;
    drop(listener);
    until("death", &[]).await;
    let _listener = tokio::net::TcpListener::bind(&address).await.unwrap();
    until("return", &[&address]).await;
}
