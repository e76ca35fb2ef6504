//! What callers are told when the gateway has no answer for them: Soul's JSON, with a proper status or with Soul's.

use std::time::Duration;

use serde_json::json;
use soul_tests::harness::{Part, Upstream, free_addr};

/// `/good` answers, `/slow` after its rule's timeout, `/gone` is a closed port, `/empty` has no upstream.
struct World {
    part: Part,
    slow: Upstream,
    _good: Upstream,
}

async fn world(args: &[&str]) -> World {
    let part = Part::start(&[&["--upstream-check-interval", "0"], args].concat()).await;
    let (admin, gateway) = (part.admin(), part.gateway());
    let (good, slow) = (Upstream::start().await, Upstream::slow(Duration::from_secs(20)).await);
    let (gone, empty) = (free_addr(), free_addr());
    for (context, upstream) in
        [("/good", good.addr()), ("/slow", slow.addr()), ("/gone", gone), ("/empty", empty)]
    {
        admin.register(context, &format!("{context}/order"), upstream).await;
    }
    let rule = admin.id("rules", "/slow/order").await;
    admin.change(&format!("rules/{rule}"), json!({ "timeout": 100 })).await;
    let selector = admin.id("selectors", "/empty").await;
    admin.delete(&format!("selectors/{selector}/upstreams/{empty}")).await;
    for (selector, upstreams) in [("/good", 1), ("/slow", 1), ("/gone", 1), ("/empty", 0)] {
        gateway.learned(selector, 1, upstreams).await;
    }
    World { part, slow, _good: good }
}

async fn assert_errors(world: &World, expected: &[(&str, u16, i64)]) {
    for (path, status, code) in expected {
        let (got, error) = world.part.gateway().error(path).await;
        assert_eq!((got, error["code"].as_i64()), (*status, Some(*code)), "{path}: {error}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{path}: {error}");
        assert!(error.as_object().unwrap().contains_key("data"), "{path}: {error}");
    }
}

#[tokio::test]
async fn errors_have_the_codes_of_soul_and_proper_statuses() {
    let world = world(&[]).await;
    assert_errors(
        &world,
        &[
            ("/none/x", 404, -107),
            ("/good/none", 404, -102),
            ("/empty/order", 503, -106),
            ("/gone/order", 502, -103),
            ("/slow/order", 504, -104),
        ],
    )
    .await;
    assert_eq!(world.slow.count(), 1, "a request that was late is not repeated");
    let response = world.part.gateway().get("/none/x").await.unwrap();
    assert_eq!(
        response.headers()["content-type"].to_str().unwrap().split(';').next(),
        Some("application/json")
    );
    world.part.stop().await;
}

#[tokio::test]
async fn statuses_of_soul_are_a_setting() {
    let world = world(&["--error-status", "soul"]).await;
    assert_errors(&world, &[("/none/x", 200, -107), ("/good/none", 200, -102), ("/empty/order", 200, -106)])
        .await;
    world.part.stop().await;
}
