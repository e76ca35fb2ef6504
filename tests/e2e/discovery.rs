//! A caller that learns upstreams from an admin, and asks them itself whether they live.

use std::{net::SocketAddr, time::Duration};

use http_service::Service;
use soul_client::{
    ClientConfig, Dialect,
    call::{
        Membership, MembershipStatus,
        discover::AdminDiscover,
        probe::{HttpCheck, Probing},
    },
};
use soul_tests::harness::{Running, Upstream, eventually, free_addr, text};

use crate::program;

const PATH: &str = "/orders/order/save";

/// An admin as a process that keeps its data, without checks of its own: what is found here, the caller found.
async fn admin_at(addr: SocketAddr, data: &std::path::Path) -> Running {
    let listen = addr.to_string();
    let args =
        ["admin", "--admin-listen", &listen, "--data-dir", text(data), "--upstream-check-interval", "0"];
    program().start(&args).await
}

fn orders(admins: &[SocketAddr], probing: Probing) -> Membership {
    let urls: Vec<_> = admins.iter().map(|addr| format!("http://{addr}")).collect();
    let source = AdminDiscover::new(&urls.join(",")).unwrap();
    Membership::builder("orders").source(source).probing(probing).spawn().unwrap()
}

async fn until(members: &Membership, what: &str, wanted: impl Fn(&MembershipStatus) -> bool) {
    eventually(what, async || wanted(&members.status()).then_some(())).await;
}

fn soon(mut probing: Probing) -> Probing {
    let settings = &mut probing.settings;
    for pause in [&mut settings.every, &mut settings.every_down, &mut settings.every_in_doubt] {
        *pause = Duration::from_millis(50);
    }
    probing
}

#[tokio::test]
async fn upstreams_outlive_an_admin_that_is_killed_and_comes_back() {
    let (addr, data) = (free_addr(), tempfile::tempdir().unwrap());
    let mut admin = admin_at(addr, data.path()).await;
    let upstreams = [Upstream::start().await, Upstream::start().await, Upstream::start().await];
    admin.admin().register("/orders", PATH, upstreams[0].addr()).await;

    let members = orders(&[addr], Probing::none());
    members.ready(Duration::from_secs(30)).await.unwrap();
    assert_eq!(members.status().all, 1);
    admin.admin().register("/orders", PATH, upstreams[1].addr()).await;
    until(&members, "second upstream", |status| status.all == 2 && !status.is_stale()).await;

    admin.kill().await;
    let is_refused =
        |status: &MembershipStatus| status.last_error.as_deref().is_some_and(|e| e.contains("refused"));
    until(&members, "a refused connection", is_refused).await;
    let status = members.status();
    assert_eq!((status.all, status.up, status.is_stale(), status.age.is_some()), (2, 2, true, true));

    let admin = admin_at(addr, data.path()).await;
    until(&members, "an answer", |status| status.missed_cycles == 0).await;
    assert_eq!(members.status().all, 2);
    admin.admin().register("/orders", PATH, upstreams[2].addr()).await;
    until(&members, "third upstream", |status| status.all == 3).await;
    drop(admin);
}

#[tokio::test]
async fn an_admin_that_lost_its_store_takes_nobody_away() {
    let (addr, [before, after]) = (free_addr(), [(); 2].map(|()| tempfile::tempdir().unwrap()));
    let mut admin = admin_at(addr, before.path()).await;
    let upstream = Upstream::start().await;
    admin.admin().register("/orders", PATH, upstream.addr()).await;
    let members = orders(&[addr], Probing::none());
    members.ready(Duration::from_secs(30)).await.unwrap();
    admin.kill().await;
    let _admin = admin_at(addr, after.path()).await;
    let is_unknown = |error: &str| error.contains("no selector of `divide` that is named `/orders`");
    until(&members, "an admin without it", |status| status.last_error.as_deref().is_some_and(is_unknown))
        .await;
    assert_eq!(members.status().all, 1);
}

#[tokio::test]
async fn another_admin_is_followed_when_one_is_killed() {
    let addrs = [free_addr(), free_addr()];
    let data = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut first = admin_at(addrs[0], data[0].path()).await;
    let second = admin_at(addrs[1], data[1].path()).await;
    let upstreams = [Upstream::start().await, Upstream::start().await];
    for admin in [&first, &second] {
        admin.admin().register("/orders", PATH, upstreams[0].addr()).await;
    }
    let members = orders(&addrs, Probing::none());
    members.ready(Duration::from_secs(30)).await.unwrap();
    first.kill().await;
    second.admin().register("/orders", PATH, upstreams[1].addr()).await;
    until(&members, "what the second admin says", |status| status.all == 2).await;
}

#[tokio::test]
async fn the_caller_finds_a_dead_upstream_that_the_admin_still_lists() {
    let (addr, data) = (free_addr(), tempfile::tempdir().unwrap());
    let admin = admin_at(addr, data.path()).await;
    let (staying, mut leaving) = (Upstream::start().await, Upstream::start().await);
    for upstream in [&staying, &leaving] {
        admin.admin().register("/orders", PATH, upstream.addr()).await;
    }
    for check in [Probing::tcp(), Probing::custom(HttpCheck::new(PATH).host("orders.example"))] {
        let members = orders(&[addr], soon(check));
        until(&members, "both", |status| status.up == 2).await;
        let addr = leaving.stop().await;
        until(&members, "one less", |status| status.up == 1).await;
        assert_eq!(members.status().all, 2, "the admin lists it still");
        leaving = Upstream::start_at(addr, Duration::ZERO).await;
        until(&members, "its return", |status| status.up == 2).await;
    }
}

#[tokio::test]
async fn instances_that_register_as_in_shenyu_are_learnt_with_a_login_and_leave_by_push() {
    const PASSWORD: &str = "a&b c";
    let listen = free_addr().to_string();
    let args = ["admin", "--admin-listen", &listen, "--data-dir", "memory", "--upstream-check-interval", "0"];
    let admin = program().env("SOUL_SHENYU_PASSWORD", PASSWORD).start(&args).await;
    let config = ClientConfig::builder()
        .admin_url(admin.address("admin"))
        .dialect(Dialect::Auto)
        .username("admin")
        .password(PASSWORD)
        .context_path("/http")
        .app_name("http")
        .build()
        .unwrap();
    let start = async || Service::start("127.0.0.1:0".parse().unwrap(), config.clone()).await.unwrap();
    let services = [start().await, start().await];
    for service in &services {
        service.client().registered_within(Duration::from_secs(30)).await.unwrap();
    }
    let source = AdminDiscover::of(&config).unwrap();
    let members = Membership::builder("http").source(source).probing(Probing::none()).spawn().unwrap();
    until(&members, "both instances", |status| status.up == 2).await;
    services[0].client().offline().await.unwrap();
    until(&members, "one less", |status| status.up == 1 && !status.is_stale()).await;
}
