//! Which upstream answers: the three balances of Soul, and weights.

use std::{collections::BTreeMap, net::IpAddr};

use serde_json::json;
use soul_tests::harness::{AdminApi, GatewayApi, Part, Upstream, eventually, own_address};

const PATH: &str = "/orders/order/save";

struct World {
    part: Part,
    admin: AdminApi,
    gateway: GatewayApi,
    upstreams: Vec<Upstream>,
}

async fn world(upstreams: usize) -> World {
    let part = Part::start(&["--upstream-check-interval", "0"]).await;
    let (admin, gateway) = (part.admin(), part.gateway());
    let mut started = Vec::new();
    for _ in 0..upstreams {
        let upstream = Upstream::start().await;
        admin.register("/orders", PATH, upstream.addr()).await;
        started.push(upstream);
    }
    gateway.learned("/orders", 1, upstreams).await;
    World { part, admin, gateway, upstreams: started }
}

impl World {
    /// Changes something at the admin and waits until the gateway goes by it.
    async fn change(&self, path: &str, patch: serde_json::Value) {
        let before = self.gateway.status().await["config"]["revision"].as_u64().unwrap();
        self.admin.change(path, patch).await;
        eventually("a newer configuration at the gateway", async || {
            (self.gateway.status().await["config"]["revision"].as_u64()? > before).then_some(())
        })
        .await;
    }

    async fn set_balance(&self, balance: &str) {
        let rule = self.admin.id("rules", PATH).await;
        self.change(&format!("rules/{rule}"), json!({ "loadBalance": balance })).await;
    }

    /// How many of these requests each upstream answered, in the order of registration.
    async fn shares(&self, requests: usize) -> Vec<usize> {
        let mut shares = BTreeMap::new();
        for _ in 0..requests {
            *shares.entry(self.gateway.seen(PATH).await.unwrap().served_by).or_insert(0) += 1;
        }
        let share = |upstream: &Upstream| shares.get(&upstream.addr().to_string()).copied().unwrap_or(0);
        self.upstreams.iter().map(share).collect()
    }

    /// The one upstream that answers this client.
    async fn only_one_for(&self, client: IpAddr) -> String {
        let gateway = self.gateway.from(client);
        let first = gateway.seen(PATH).await.unwrap().served_by;
        for _ in 0..10 {
            assert_eq!(gateway.seen(PATH).await.unwrap().served_by, first, "client {client}");
        }
        first
    }
}

#[tokio::test]
async fn round_robin_shares_exactly_and_by_weight() {
    let world = world(3).await;
    world.set_balance("roundRobin").await;
    assert_eq!(world.shares(30).await, [10, 10, 10]);

    let selector = world.admin.id("selectors", "/orders").await;
    for (upstream, weight) in world.upstreams.iter().zip([10, 20, 30]) {
        world
            .change(
                &format!("selectors/{selector}/upstreams/{}", upstream.addr()),
                json!({ "weight": weight }),
            )
            .await;
    }
    assert_eq!(world.shares(60).await, [10, 20, 30]);
    world.part.stop().await;
}

#[tokio::test]
async fn random_shares_by_chance() {
    let world = world(2).await;
    let shares = world.shares(200).await;
    // Registration sets `random`; less than 50 of 200 fair draws is one run in ten to the twelfth.
    assert!(shares.iter().all(|share| *share >= 50), "{shares:?}");
    let turns = world.shares(20).await;
    assert_eq!(turns.iter().sum::<usize>(), 20);
    world.part.stop().await;
}

#[tokio::test]
async fn hash_keeps_a_client_at_its_upstream_and_spreads_clients() {
    let world = world(2).await;
    world.set_balance("hash").await;
    let mut reached = BTreeMap::new();
    // Forty clients all at one of two upstreams by chance: the ring of Soul would have to be all but one-sided.
    for _ in 0..40 {
        *reached.entry(world.only_one_for(own_address()).await).or_insert(0) += 1;
    }
    if cfg!(target_os = "linux") {
        assert_eq!(reached.len(), 2, "{reached:?}");
    }
    world.part.stop().await;
}

#[tokio::test]
async fn an_upstream_without_weight_or_switched_off_is_never_chosen() {
    for patch in [json!({ "weight": 0 }), json!({ "status": false })] {
        let world = world(2).await;
        let selector = world.admin.id("selectors", "/orders").await;
        let upstream = world.upstreams[0].addr();
        world.change(&format!("selectors/{selector}/upstreams/{upstream}"), patch.clone()).await;
        for balance in ["roundRobin", "hash", "random"] {
            world.set_balance(balance).await;
            assert_eq!(world.shares(20).await, [0, 20], "{patch} {balance}");
        }
        world.part.stop().await;
    }
}
