//! A dead upstream leaves, a returning one is taken back: by the admin's probe, and by the gateway's own.

use std::time::Duration;

use soul_tests::harness::{Part, Upstream, eventually, free_addr};

use crate::program;

const PATH: &str = "/orders/order/save";

/// Both upstreams answer, one dies and nobody is sent there any more, it returns and answers again: `rounds` times.
async fn dies_and_returns(part: &Part, mut leaving: Upstream, staying: &Upstream, rounds: usize) {
    let gateway = part.gateway();
    let served_by = async |upstream: &Upstream| {
        let addr = upstream.addr().to_string();
        eventually("an answer of that upstream", async || {
            (gateway.seen(PATH).await?.served_by == addr).then_some(())
        })
        .await;
    };
    for _ in 0..rounds {
        served_by(staying).await;
        served_by(&leaving).await;
        let addr = leaving.stop().await;
        eventually("a gateway that passes it over", async || {
            let selector = gateway.selector("/orders").await?;
            let all = selector["upstreams"].as_array()?;
            let usable = |url: &str| all.iter().any(|u| u["url"] == url && u["health"] != "down");
            (!usable(&addr.to_string()) && usable(&staying.addr().to_string())).then_some(())
        })
        .await;
        for _ in 0..50 {
            let seen = gateway.seen(PATH).await.expect("no request fails after the probe");
            assert_eq!(seen.served_by, staying.addr().to_string());
        }
        leaving = Upstream::start_at(addr, Duration::ZERO).await;
    }
    served_by(&leaving).await;
    served_by(staying).await;
}

#[tokio::test]
async fn the_admin_takes_a_dead_upstream_out_and_back_in() {
    let part = Part::start(&["--upstream-check-interval", "0.1"]).await;
    let (staying, leaving) = (Upstream::start().await, Upstream::start().await);
    for upstream in [&staying, &leaving] {
        part.admin().register("/orders", PATH, upstream.addr()).await;
    }
    part.gateway().learned("/orders", 1, 2).await;
    dies_and_returns(&part, leaving, &staying, 2).await;
    part.stop().await;
}

#[tokio::test]
async fn the_probe_of_the_gateway_does_the_same_without_the_admin() {
    let part = Part::start(&["--upstream-check-interval", "0", "--gateway-check-interval", "0.1"]).await;
    let (staying, leaving) = (Upstream::start().await, Upstream::start().await);
    for upstream in [&staying, &leaving] {
        part.admin().register("/orders", PATH, upstream.addr()).await;
    }
    part.gateway().learned("/orders", 1, 2).await;
    dies_and_returns(&part, leaving, &staying, 2).await;
    assert_eq!(part.admin().upstreams("/orders").await.len(), 2, "the admin still has both");
    part.stop().await;
}

#[tokio::test]
async fn when_the_last_upstream_dies_there_is_none_and_it_still_returns() {
    let part = Part::start(&["--upstream-check-interval", "0.1"]).await;
    let upstream = Upstream::start().await;
    part.admin().register("/orders", PATH, upstream.addr()).await;
    part.gateway().learned("/orders", 1, 1).await;
    let addr = upstream.stop().await;
    part.gateway().learned("/orders", 1, 0).await;
    let (status, error) = part.gateway().error(PATH).await;
    assert_eq!((status, error["code"].as_i64()), (503, Some(-106)), "{error}");
    let _upstream = Upstream::start_at(addr, Duration::ZERO).await;
    eventually("an answer", async || part.gateway().seen(PATH).await).await;
    part.stop().await;
}

#[tokio::test]
async fn an_upstream_that_is_down_when_it_registers_is_found_out() {
    let part = Part::start(&["--upstream-check-interval", "0.1"]).await;
    let addr = free_addr();
    let up = Upstream::start().await;
    part.admin().register("/orders", PATH, up.addr()).await;
    part.admin().register("/orders", PATH, addr).await;
    eventually("a handle without it", async || {
        (part.admin().upstreams("/orders").await == [up.addr().to_string()]).then_some(())
    })
    .await;
    part.stop().await;
}

/// Those who know Soul look for these words.
#[tokio::test]
async fn the_log_of_the_admin_tells_of_a_turn_in_souls_words() {
    let listen = free_addr().to_string();
    let args =
        ["admin", "--data-dir", "memory", "--admin-listen", &listen, "--upstream-check-interval", "0.1"];
    let mut admin = program().start(&args).await;
    let addr = free_addr();
    admin.admin().register("/orders", PATH, addr).await;
    admin.logged(&format!("check the url={addr} is fail")).await;
    let _upstream = Upstream::start_at(addr, Duration::ZERO).await;
    admin.logged(&format!("UpstreamCacheManager check success the url: {addr}")).await;
}
