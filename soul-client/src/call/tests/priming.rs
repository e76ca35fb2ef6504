//! Connections that are made before an upstream is used.

use std::{sync::Arc, time::Duration};

use super::{
    plain,
    scripted::{Does, Scripted, nobody},
    until,
};
use crate::{
    balance::Upstream,
    call::{
        ClientFactory, LbClient, ServiceConfig,
        discover::{BoxFuture, Discover, Feed, Listed, Publisher, feed},
    },
};

/// A source that says what the test says.
struct Told(Publisher);

impl Discover for Told {
    fn fetch<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Listed> {
        let listed = self.0.now().upstreams.unwrap_or_default().to_vec();
        Box::pin(async move { Ok(listed) })
    }

    fn watch(&self, _: &str) -> Option<Feed> {
        Some(self.0.subscribe())
    }
}

fn primed(config: ServiceConfig) -> (Publisher, LbClient) {
    let (publisher, _) = feed();
    let source = Arc::new(Told(publisher.clone()));
    let factory = ClientFactory::builder()
        .service("orders", |_| config.prime(true).prime_uri("/warm").discover(source))
        .build()
        .unwrap();
    (publisher, factory.client("orders").unwrap())
}

fn list(addresses: &[&str]) -> Vec<Upstream> {
    addresses.iter().map(|&address| Upstream::new(address)).collect()
}

fn known(client: &LbClient) -> usize {
    client.balancer().snapshot().all().len()
}

#[tokio::test]
async fn the_first_call_finds_a_connection_and_a_newcomer_is_used_when_it_has_one() {
    // Any answer will do.
    let a = Scripted::doing(Does::status(404)).await;
    let (publisher, client) = primed(plain());
    publisher.publish(list(&[&a.address]));
    client.ready(Duration::from_secs(10)).await.unwrap();
    assert_eq!((a.count(), a.connections()), (1, 1));
    assert!(a.seen()[0].starts_with("GET /warm HTTP/1.1"), "{:?}", a.seen());
    client.get("/api").send().await.unwrap();
    assert_eq!((a.count(), a.connections()), (2, 1), "the connection is there already");

    // It answers from its third request on.
    let b = Scripted::start(|n| if n < 2 { Does::Close } else { Does::ok("") }).await;
    publisher.publish(list(&[&a.address, &b.address]));
    until("the newcomer listed", || known(&client) == 2).await;
    assert_eq!(b.count(), 3);

    publisher.publish(list(&[&b.address]));
    until("the other gone", || known(&client) == 1).await;
    assert_eq!(b.count(), 3, "who was connected to is not connected to again");
}

#[tokio::test]
async fn the_first_list_waits_for_its_share() {
    let (a, hangs) = (Scripted::doing(Does::ok("")).await, Scripted::doing(Does::Hang).await);
    let (publisher, client) = primed(plain().prime_ratio(0.5).prime_time(Duration::from_secs(600)));
    publisher.publish(list(&[&a.address, &hangs.address]));
    client.ready(Duration::from_secs(10)).await.unwrap();
    assert_eq!((known(&client), client.get("/").send().await.unwrap().upstream_address()), (1, &*a.address));
}

#[tokio::test]
async fn one_that_cannot_be_connected_to_is_used_when_its_attempts_are_over() {
    let dead = nobody().await;
    let (publisher, client) = primed(plain().prime_attempts(2));
    publisher.publish(list(&[&dead]));
    client.ready(Duration::from_secs(10)).await.unwrap();
    assert_eq!(known(&client), 1);

    // Or its time.
    let hangs = Scripted::doing(Does::Hang).await;
    let (publisher, client) = primed(plain().prime_time(Duration::from_millis(50)));
    publisher.publish(list(&[&hangs.address]));
    client.ready(Duration::from_secs(10)).await.unwrap();
    assert_eq!(known(&client), 1);
    publisher.publish(Vec::new());
    until("nobody listed", || known(&client) == 0).await;
}
