//! Services apart from each other, and who is listened to.

use std::{sync::Arc, time::Duration};

use super::{
    plain,
    scripted::{Does, Scripted},
    until,
};
use crate::{
    balance::{CheckSettings, Health, OutlierDetector, Upstream, policy::Maglev},
    call::{
        CallConfig, CallErrorKind, ClientFactory, DiscoverError, ListSource, ServiceConfig, Timeouts,
        discover::{StaticList, discover_fn, feed},
        probe::Probing,
    },
};

fn server(address: &str) -> [Upstream; 1] {
    [Upstream::new(address)]
}

#[tokio::test]
async fn services_know_nothing_of_each_other() {
    let a = Scripted::doing(Does::status(502)).await;
    let factory = ClientFactory::builder()
        .defaults(plain().servers(server(&a.address)).retries_next(0))
        .service("orders", |c| {
            c.outliers(Some(OutlierDetector { consecutive_failures: 1, ..Default::default() }))
        })
        .build()
        .unwrap();
    let (orders, stock) = (factory.client("orders").unwrap(), factory.client("stock").unwrap());
    for _ in 0..3 {
        orders.get("/").send().await.unwrap();
    }
    let failed = |client: &crate::call::LbClient| client.balancer().snapshot().all()[0].state().failed();
    stock.ready(Duration::from_secs(5)).await.unwrap();
    assert_eq!((failed(&orders), failed(&stock)), (3, 0));
    assert!(orders.membership().mark_down(&a.address));
    assert_eq!(orders.get("/").send().await.unwrap_err().kind(), CallErrorKind::NoInstance);
    assert_eq!(stock.get("/").send().await.unwrap().status(), 502);
    // Connections have nothing of a service in them.
    assert_eq!(orders.context.clients().len(), 1);
}

#[tokio::test]
async fn contexts_are_made_once_when_needed_or_at_once() {
    let registry = StaticList::new().with("orders", ["a:1"]).with("stock", ["b:1"]).with("new", ["c:1"]);
    let factory =
        ClientFactory::builder().discover(registry).defaults(plain()).eager(["orders"]).build().unwrap();
    assert_eq!(factory.services(), ["orders"]);
    factory.ready(Duration::from_secs(5)).await.unwrap();
    let first = factory.client("stock").unwrap();
    let second = factory.client("stock").unwrap();
    assert!(Arc::ptr_eq(first.balancer(), second.balancer()));
    assert_eq!(factory.services(), ["orders", "stock"]);
    let runtime = tokio::runtime::Handle::current();
    let client = || {
        let _entered = runtime.enter();
        Arc::as_ptr(factory.client("new").unwrap().balancer()) as usize
    };
    let many: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(client)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(many.iter().all(|one| *one == many[0]), "{many:?}");
}

#[tokio::test]
async fn a_registry_wins_over_a_list_unless_that_is_meant() {
    let list_of = |config: ServiceConfig, has_registry: bool| async move {
        let mut builder = ClientFactory::builder().service("orders", |_| config);
        if has_registry {
            builder = builder.discover(StaticList::new().with("orders", ["registry:1"]));
        }
        let client = builder.build()?.client("orders")?;
        client.ready(Duration::from_secs(5)).await?;
        let snapshot = client.balancer().snapshot();
        Ok::<_, crate::call::CallError>(snapshot.all()[0].upstream().address().to_owned())
    };
    let listed = || plain().servers(server("list:1"));
    assert_eq!(list_of(plain(), true).await.unwrap(), "registry:1");
    assert_eq!(list_of(listed(), true).await.unwrap(), "registry:1");
    assert_eq!(list_of(listed(), false).await.unwrap(), "list:1");
    assert_eq!(list_of(listed().list_source(ListSource::Static), true).await.unwrap(), "list:1");
    let own = StaticList::new().with("orders", ["own:1"]);
    assert_eq!(list_of(listed().discover(own), true).await.unwrap(), "own:1");

    for (key, list) in [
        ("com.netflix.loadbalancer.ConfigurationBasedServerList", "list:1"),
        ("com.netflix.niws.loadbalancer.DiscoveryEnabledNIWSServerList", "registry:1"),
    ] {
        let pairs =
            [("orders.ribbon.listOfServers", "list:1"), ("orders.ribbon.NIWSServerListClassName", key)];
        let config = CallConfig::from_pairs(pairs).unwrap().service("orders");
        assert_eq!(list_of(config.over(&plain()), true).await.unwrap(), list);
    }

    let error = list_of(plain(), false).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::UnknownService);
    assert!(error.to_string().contains("give the factory a registry with `discover`"), "{error}");
    let error = list_of(plain().list_source(ListSource::Static), true).await.unwrap_err();
    assert!(error.to_string().contains("set `servers`"), "{error}");
}

#[tokio::test]
async fn an_unknown_service_and_a_silent_registry_are_told_apart() {
    let registry = discover_fn(|service| async move {
        Err(match service.as_str() {
            "unknown" => DiscoverError::unknown_service("look for `unknown` in the registry"),
            _ => DiscoverError::new("ask the registry").with_source("no route"),
        })
    });
    let quick = plain().read_timeout(Duration::from_millis(50));
    // It is told as soon as the registry has said so, and not when the time for an answer is over.
    let hour = Duration::from_secs(3600);
    let factory = ClientFactory::builder()
        .discover(registry)
        .defaults(quick)
        .service("unknown", |c| c.read_timeout(hour).total_timeout(hour))
        .build()
        .unwrap();
    let error = factory.get("lb://unknown/").send().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::UnknownService, "{}", error.chain());
    assert!(error.chain().contains("look for `unknown` in the registry"), "{}", error.chain());
    let error = factory.get("lb://orders/").send().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoInstance);
    assert!(error.chain().contains("ask the registry: no route"), "{}", error.chain());
}

#[tokio::test]
async fn a_request_wins_over_the_service_over_defaults_over_what_is_built_in() {
    let seconds = Duration::from_secs;
    let a = Scripted::doing(Does::Hang).await;
    let config = CallConfig::from_pairs([
        ("ribbon.ReadTimeout", "11000"),
        ("ribbon.ConnectTimeout", "12000"),
        ("orders.ribbon.ReadTimeout", "13000"),
        ("ribbon.MaxAutoRetries", "9"),
    ])
    .unwrap();
    let factory = ClientFactory::builder()
        .config(config)
        .defaults(plain().servers(server(&a.address)).retries_same(4))
        .service("stock", |c| c.read_timeout(seconds(14)))
        .build()
        .unwrap();
    let of = |service: &str| factory.client(service).unwrap().config();
    let (orders, stock, other) = (of("orders"), of("stock"), of("other"));
    assert_eq!(
        (orders.read_timeout, stock.read_timeout, other.read_timeout),
        (seconds(13), seconds(14), seconds(11))
    );
    assert_eq!((orders.connect_timeout, other.connect_timeout), (seconds(12), seconds(12)));
    assert_eq!(orders.retries_same, 4, "the program wins over its configuration");
    assert_eq!(orders.total_timeout, Timeouts::default().total, "nobody said it");

    let millis = Duration::from_millis;
    let request = factory.get("lb://orders/").read_timeout(millis(30)).connect_timeout(millis(30));
    let error = request.retry(crate::call::Retry::never()).send().await.unwrap_err();
    assert_eq!((error.is_timeout(), error.situation().attempts, a.count()), (true, 1, 1));

    let error = factory.get("lb://orders/").config(&ServiceConfig::default().policy(Maglev)).send().await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Config);
    assert!(error.to_string().contains("`policy` holds for a whole service"), "{error}");
}

#[tokio::test]
async fn settings_change_at_run_time_and_only_what_they_change_is_made_anew() {
    let (a, b) = (Scripted::doing(Does::ok("")).await, Scripted::doing(Does::ok("")).await);
    let factory =
        ClientFactory::builder().service("orders", |_| plain().servers(server(&a.address))).build().unwrap();
    let client = factory.client("orders").unwrap();
    client.get("/").send().await.unwrap();
    let (before, membership) = (client.balancer().snapshot(), client.membership());
    let state = Arc::clone(before.all()[0].state());

    let times = plain().servers(server(&a.address)).read_timeout(Duration::from_secs(2));
    assert_eq!(factory.configure("orders", times.clone()).unwrap(), ["read_timeout"]);
    assert_eq!(client.config().read_timeout, Duration::from_secs(2));
    assert!(Arc::ptr_eq(&before, &client.balancer().snapshot()));
    assert!(Arc::ptr_eq(&membership, &client.membership()));

    let policy = times.clone().policy(Maglev);
    assert_eq!(factory.configure("orders", policy.clone()).unwrap(), ["policy"]);
    assert_eq!(format!("{:?}", client.balancer().snapshot().settings().policy), "Maglev");
    assert!(Arc::ptr_eq(&state, client.balancer().snapshot().all()[0].state()));
    assert!(Arc::ptr_eq(&membership, &client.membership()));

    let list = policy.servers(server(&a.address).into_iter().chain(server(&b.address)));
    assert_eq!(factory.configure("orders", list).unwrap(), ["servers"]);
    assert!(!Arc::ptr_eq(&membership, &client.membership()));
    until("both listed", || client.balancer().snapshot().all().len() == 2).await;
    let kept = client.balancer().snapshot();
    assert!(kept.all().iter().any(|m| Arc::ptr_eq(m.state(), &state)), "what was known of it is still known");
    assert_eq!(state.picks(), 1);

    // What cannot be is refused, and what was before holds.
    let error = factory.configure("orders", plain()).unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::UnknownService);
    assert_eq!(client.get("/").send().await.unwrap().status(), 200);

    factory.configure_defaults(ServiceConfig::default().retries_next(7)).unwrap();
    assert_eq!(client.config().retries_next, 7);
    factory.reload(CallConfig::from_pairs([("orders.ribbon.MaxAutoRetries", "3")]).unwrap()).unwrap();
    assert_eq!(client.config().retries_same, 3);
}

#[tokio::test]
async fn a_list_is_kept_while_its_source_is_replaced_by_one_that_is_silent() {
    let a = Scripted::doing(Does::ok("")).await;
    let factory =
        ClientFactory::builder().service("orders", |_| plain().servers(server(&a.address))).build().unwrap();
    let client = factory.client("orders").unwrap();
    client.get("/").send().await.unwrap();
    let silent = discover_fn(|_| async { Err(DiscoverError::new("ask nobody")) });
    factory.configure("orders", plain().discover(silent)).unwrap();
    for _ in 0..5 {
        assert_eq!(client.get("/").send().await.unwrap().status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_list_is_waited_for_as_long_as_was_said() {
    let (publisher, lists) = feed();
    let settings = plain().discover(lists).read_timeout(Duration::from_secs(5));
    let factory = ClientFactory::builder().service("orders", |_| settings).build().unwrap();
    let client = factory.client("orders").unwrap();
    let soon = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(20)).await;
        publisher.publish(vec![Upstream::new("a:1")]);
        publisher
    });
    assert!(client.ready(Duration::from_secs(10)).await.is_err());
    client.ready(Duration::from_secs(60)).await.unwrap();
    factory.ready(Duration::ZERO).await.unwrap();
    drop(soon.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_former_source_writes_no_more_however_long_it_is_held() {
    let ((former, of_former), (latter, of_latter)) = (feed(), feed());
    let factory =
        ClientFactory::builder().service("orders", |_| plain().discover(of_former)).build().unwrap();
    let client = factory.client("orders").unwrap();
    former.publish(vec![Upstream::new("a:1")]);
    client.ready(Duration::from_secs(5)).await.unwrap();
    // As a call under way does.
    let held = client.membership();
    factory.configure("orders", plain().discover(of_latter)).unwrap();
    latter.publish(vec![Upstream::new("b:1")]);
    let listed = || {
        let snapshot = client.balancer().snapshot();
        snapshot.all().iter().map(|m| m.upstream().address().to_owned()).collect::<Vec<_>>()
    };
    until("the latter's", || listed() == ["b:1"]).await;
    for i in 0..20 {
        former.publish(vec![Upstream::new(format!("a:{i}"))]);
        tokio::time::sleep(Duration::from_millis(250)).await;
        assert_eq!(listed(), ["b:1"]);
    }
    drop(held);
}

#[tokio::test]
async fn what_checks_found_is_forgotten_when_there_are_none_any_more() {
    let every = Duration::from_millis(20);
    let checks =
        CheckSettings { every, every_in_doubt: every, every_down: every, ..CheckSettings::default() };
    let dead = super::scripted::nobody().await;
    let settings = plain().servers(server(&dead)).probe(Probing { settings: checks, ..Probing::tcp() });
    let factory = ClientFactory::builder().service("orders", |_| settings.clone()).build().unwrap();
    let client = factory.client("orders").unwrap();
    let health = || client.balancer().snapshot().all().first().map(|m| m.state().health());
    until("down", || health() == Some(Health::Down)).await;
    assert_eq!(factory.configure("orders", settings.probe(Probing::none())).unwrap(), ["probe"]);
    assert_eq!(health(), Some(Health::Unknown));
    assert_eq!(client.balancer().snapshot().up().len(), 1);
}

#[tokio::test]
async fn the_own_zone_and_a_subset_are_kept_to_by_configuration() {
    let zones = ["eu", "eu", "us", "us", "us"].into_iter().enumerate();
    let list: Vec<_> =
        zones.map(|(i, zone)| Upstream::new(format!("{zone}-{i}:1")).with_zone(zone)).collect();
    let listed = |pairs: &[(&str, &str)]| {
        let config = CallConfig::from_pairs(pairs.iter().copied()).unwrap();
        let builder = ClientFactory::builder().defaults(plain().servers(list.clone())).config(config);
        async move {
            let client = builder.build()?.client("orders")?;
            client.ready(Duration::from_secs(5)).await?;
            let snapshot = client.balancer().snapshot();
            let names = snapshot.all().iter().map(|m| m.upstream().address().to_owned());
            Ok::<Vec<_>, crate::call::CallError>(names.collect())
        }
    };
    let eu = ["eu-0:1", "eu-1:1"];
    let affinity = ("ribbon.EnableZoneAffinity", "true");
    assert_eq!(listed(&[("soul.call.zone", "eu"), affinity]).await.unwrap(), eu);
    assert_eq!(listed(&[("soul.call.zone", "asia"), affinity]).await.unwrap().len(), 5);
    let exclusive = ("orders.ribbon.EnableZoneExclusivity", "true");
    assert_eq!(listed(&[("soul.call.zone", "asia"), exclusive]).await.unwrap().len(), 0);
    assert_eq!(listed(&[("soul.call.zone", "eu")]).await.unwrap().len(), 5);
    assert_eq!(listed(&[("soul.call.subset", "3")]).await.unwrap().len(), 3);
    let error = listed(&[affinity]).await.unwrap_err();
    assert!(error.to_string().contains("set `zone`"), "{error}");
}

#[test]
fn outside_of_a_runtime_there_is_an_error_and_no_panic() {
    let factory =
        ClientFactory::builder().service("orders", |_| plain().servers(server("a:1"))).build().unwrap();
    let error = factory.client("orders").unwrap_err();
    assert!(error.chain().contains("Tokio runtime"), "{}", error.chain());
    for name in ["", "a b", "a/b", "a:1"] {
        assert_eq!(factory.client(name).unwrap_err().kind(), CallErrorKind::InvalidUri, "{name}");
    }
}

#[cfg(feature = "rustls")]
#[tokio::test]
async fn certificates_and_names_are_those_of_tls_name() {
    // Nothing listens: what matters is where it wanted to connect, under which name.
    let dead = super::scripted::nobody().await;
    let factory = ClientFactory::builder()
        .service("orders", |_| plain().servers(server(&dead)).secure(true).tls_name("orders.internal"))
        .build()
        .unwrap();
    let error = factory.get("lb://orders/").send().await.unwrap_err();
    assert!(error.chain().contains(&format!("`https://{dead}`")), "{}", error.chain());
    assert!(error.chain().to_lowercase().contains("refused"), "{}", error.chain());
}
