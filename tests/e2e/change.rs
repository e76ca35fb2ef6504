//! Changes under load: requests go on as if nothing had happened.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use soul_tests::harness::{GatewayApi, Part, Upstream, eventually};

const PATH: &str = "/orders/order/save";

/// Callers that never cease.
struct Load {
    over: Arc<AtomicBool>,
    callers: Vec<tokio::task::JoinHandle<usize>>,
}

impl Load {
    fn start(gateway: &GatewayApi, callers: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let caller = |_| {
            let (gateway, over) = (gateway.clone(), Arc::clone(&over));
            tokio::spawn(async move {
                let mut answered = 0;
                while !over.load(Ordering::Relaxed) {
                    let response = gateway.get(PATH).await.expect("the gateway answers");
                    assert_eq!(response.status(), 200, "{:?}", response.text().await);
                    response.bytes().await.expect("the answer is whole");
                    answered += 1;
                }
                answered
            })
        };
        Self { callers: (0..callers).map(caller).collect(), over }
    }

    /// Ends it, and gives how many requests were answered; fails if one was not.
    async fn end(self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        let mut answered = 0;
        for caller in self.callers {
            answered += caller.await.expect("no request was lost");
        }
        answered
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_lost_while_everything_changes() {
    // Two processes' worth of parts: the gateway learns by long polling, as over a network.
    let admin = Part::start(&["admin", "--upstream-check-interval", "0.1"]).await;
    let url = admin.admin_url();
    let gateway = Part::start(&["gateway", "--admin", &url]).await;
    let (api, seen) = (admin.admin(), gateway.gateway());
    let staying = Upstream::start().await;
    api.register("/orders", PATH, staying.addr()).await;
    seen.learned("/orders", 1, 1).await;

    let load = Load::start(&seen, 4);
    let rule = api.id("rules", PATH).await;
    let selector = api.id("selectors", "/orders").await;
    // They leave the configuration, not the machine: requests of a moment ago may still be with them.
    let mut left = Vec::new();
    for round in 0..20 {
        let balance = ["random", "roundRobin", "hash"][round % 3];
        api.change(&format!("rules/{rule}"), json!({ "loadBalance": balance, "timeout": 3000 + round }))
            .await;
        // Rules and selectors come and go beside the one in use, and so does an upstream of it.
        api.register("/others", &format!("/others/{round}"), staying.addr()).await;
        let coming = Upstream::start().await;
        api.register("/orders", PATH, coming.addr()).await;
        seen.learned("/orders", 1, 2).await;
        api.delete(&format!("selectors/{selector}/upstreams/{}", coming.addr())).await;
        seen.learned("/orders", 1, 1).await;
        left.push(coming);
        let others = api.id("selectors", "/others").await;
        api.delete(&format!("selectors/{others}")).await;
    }
    let answered = load.end().await;
    assert!(answered > 100, "{answered}");
    gateway.stop().await;
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_lost_when_an_upstream_dies_and_the_rule_lets_them_be_repeated() {
    let part = Part::start(&["--upstream-check-interval", "0.1"]).await;
    let (api, gateway) = (part.admin(), part.gateway());
    let (staying, dying) = (Upstream::start().await, Upstream::start().await);
    for upstream in [&staying, &dying] {
        api.register("/orders", PATH, upstream.addr()).await;
    }
    let rule = api.id("rules", PATH).await;
    api.change(&format!("rules/{rule}"), json!({ "retry": 2 })).await;
    gateway.learned("/orders", 1, 2).await;
    let load = Load::start(&gateway, 4);
    eventually("requests at both", async || (staying.count() > 50 && dying.count() > 50).then_some(())).await;
    // The rule lets requests be repeated: those that the death cut off are answered by the other.
    dying.stop().await;
    gateway.learned("/orders", 1, 1).await;
    assert!(load.end().await > 100);
    part.stop().await;
}

#[tokio::test]
async fn a_change_is_live_at_a_polling_gateway_at_once() {
    let admin = Part::start(&["admin"]).await;
    let url = admin.admin_url();
    let gateway = Part::start(&["gateway", "--admin", &url]).await;
    let upstream = Upstream::start().await;
    admin.admin().register("/orders", PATH, upstream.addr()).await;
    gateway.gateway().learned("/orders", 1, 1).await;
    let rule = admin.admin().id("rules", PATH).await;
    let change = format!("rules/{rule}");
    for _ in 0..5 {
        for (enabled, status) in [(false, 404), (true, 200)] {
            admin.admin().change(&change, json!({ "enabled": enabled })).await;
            soul_tests::harness::eventually_within(
                Duration::from_secs(2),
                "the change at the gateway",
                async || (gateway.gateway().get(PATH).await?.status() == status).then_some(()),
            )
            .await;
        }
    }
    gateway.stop().await;
    admin.stop().await;
}
