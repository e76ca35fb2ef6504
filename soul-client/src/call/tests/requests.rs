//! What arrives at an upstream, and what comes back.

use serde_json::{Value, json};

use super::{
    orders, plain,
    scripted::{Does, Scripted},
};
use crate::{
    balance::{Upstream, policy::RingHash},
    call::{ClientFactory, HostHeader},
};

fn head(request: &str) -> (&str, Vec<String>) {
    let (line, headers) = request.split_once("\r\n").unwrap();
    (line, headers.to_lowercase().lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn the_target_arrives_as_it_was_written() {
    let a = Scripted::doing(Does::ok("")).await;
    let client = orders(&[&a.address], |c| c);
    for target in ["/api/a%2Fb%2f?x=%26&&y=1;2", "/", "/a//b/", "/%C3%A4?q"] {
        client.get(target).send().await.unwrap();
        client.get(format!("lb://orders{target}#part")).send().await.unwrap();
        for request in a.seen().iter().rev().take(2) {
            assert_eq!(head(request).0, format!("GET {target} HTTP/1.1"));
        }
    }
    client.get("lb://orders").send().await.unwrap();
    assert_eq!(head(a.seen().last().unwrap()).0, "GET / HTTP/1.1");
    client.get("lb://me:s%20cret@orders/api").send().await.unwrap();
    let seen = a.seen();
    let (_, headers) = head(seen.last().unwrap());
    assert!(headers.contains(&"authorization: basic bwu6cybjcmv0".to_owned()), "{headers:?}");
}

#[tokio::test]
async fn a_base_path_of_the_upstream_comes_first() {
    let a = Scripted::doing(Does::ok("")).await;
    let client = orders(&[&format!("{}/base", a.address)], |c| c);
    client.get("/api?x").send().await.unwrap();
    assert_eq!(head(&a.seen()[0]).0, "GET /base/api?x HTTP/1.1");
}

#[tokio::test]
async fn host_is_rewritten_or_kept() {
    let a = Scripted::doing(Does::ok("")).await;
    let rewritten = format!("host: {}", a.address);
    for (setting, own, host) in [
        (HostHeader::Upstream, None, rewritten.as_str()),
        (HostHeader::Upstream, Some("else"), rewritten.as_str()),
        (HostHeader::Service, None, "host: orders"),
        (HostHeader::Service, Some("else"), "host: else"),
    ] {
        let client = orders(&[&a.address], |c| c.host_header(setting));
        let mut request = client.get("/api");
        if let Some(own) = own {
            request = request.header("host", own);
        }
        request.send().await.unwrap();
        let seen = a.seen();
        let (_, headers) = head(seen.last().unwrap());
        let hosts: Vec<_> = headers.iter().filter(|line| line.starts_with("host:")).collect();
        assert_eq!(hosts, [host], "{setting:?} {own:?}");
    }
}

#[tokio::test]
async fn bodies_of_both_ways() {
    let a = Scripted::doing(Does::ok(r#"{"id":7}"#)).await;
    let client = orders(&[&a.address], |c| c);
    let answer = client.post("/save").json(&json!({"name": "a"})).bearer_auth("token").send().await.unwrap();
    assert_eq!(answer.json::<Value>().await.unwrap(), json!({"id": 7}));
    let seen = a.seen();
    assert!(seen[0].ends_with("\r\n\r\n{\"name\":\"a\"}"), "{seen:?}");
    let (line, headers) = head(&seen[0]);
    assert_eq!(line, "POST /save HTTP/1.1");
    assert!(headers.contains(&"content-type: application/json".to_owned()), "{headers:?}");
    assert!(headers.contains(&"authorization: bearer token".to_owned()), "{headers:?}");

    let error = client.get("/save").send().await.unwrap().json::<Vec<u8>>().await.unwrap_err();
    assert!(error.to_string().contains("is not the JSON that was wanted"), "{error}");

    let mut answer = client.get("/").send().await.unwrap();
    let mut whole = Vec::new();
    while let Some(chunk) = answer.chunk().await.unwrap() {
        whole.extend_from_slice(&chunk);
    }
    assert_eq!(whole, br#"{"id":7}"#);
}

#[tokio::test]
async fn requests_of_reqwest_are_called_by_their_host() {
    let a = Scripted::doing(Does::ok("hello")).await;
    let client = orders(&[&a.address], |c| c);
    let request = reqwest::Client::new().post("http://orders/api?x=1").body("order").build().unwrap();
    let answer = client.execute(request).await.unwrap();
    assert_eq!((answer.attempts(), answer.upstream_address()), (1, a.address.as_str()));
    assert!(a.seen()[0].starts_with("POST /api?x=1 HTTP/1.1") && a.seen()[0].ends_with("order"));
    let other = reqwest::Client::new().get("http://stock/api").build().unwrap();
    let error = client.execute(other).await.unwrap_err();
    assert!(error.chain().contains("this client calls `orders`"), "{}", error.chain());
}

#[tokio::test]
async fn an_address_finds_its_service() {
    let a = Scripted::doing(Does::ok("a")).await;
    let b = Scripted::doing(Does::ok("b")).await;
    let factory = ClientFactory::builder()
        .defaults(plain())
        .service("orders", |c| c.servers([Upstream::new(&*a.address)]))
        .service("stock", |c| c.servers([Upstream::new(&*b.address)]))
        .build()
        .unwrap();
    assert_eq!(factory.get("lb://orders/").send().await.unwrap().text().await.unwrap(), "a");
    assert_eq!(factory.post("http://stock/").send().await.unwrap().text().await.unwrap(), "b");
    let error = factory.get("orders/api").send().await.unwrap_err();
    assert!(error.chain().contains("write `lb://orders/api`"), "{}", error.chain());
    assert_eq!(factory.services(), ["orders", "stock"]);
}

#[tokio::test]
async fn a_key_a_hint_and_an_instance_decide_who_answers() {
    let servers = [
        Scripted::doing(Does::ok("")).await,
        Scripted::doing(Does::ok("")).await,
        Scripted::doing(Does::ok("")).await,
    ];
    let list = servers.iter().enumerate();
    let list: Vec<_> = list
        .map(|(i, s)| Upstream::new(&*s.address).with_metadata("hint", if i == 1 { "blue" } else { "green" }))
        .collect();
    let factory = ClientFactory::builder()
        .service("orders", |_| plain().policy(RingHash::default()).servers(list))
        .build()
        .unwrap();
    let client = factory.client("orders").unwrap();
    let mut reached = std::collections::HashSet::new();
    for key in 0..30 {
        let first = client.get("/").hash_key(key).send().await.unwrap().upstream_address().to_owned();
        for _ in 0..3 {
            let again = client.get("/").hash_key(key).send().await.unwrap();
            assert_eq!(again.upstream_address(), first);
        }
        reached.insert(first);
    }
    assert_eq!(reached.len(), 3);
    for _ in 0..6 {
        assert_eq!(client.get("/").hint("blue").send().await.unwrap().upstream_address(), servers[1].address);
        let same = client.get("/").same_instance(&servers[2].address).send().await.unwrap();
        assert_eq!(same.upstream_address(), servers[2].address);
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_unless_it_is_to_be_followed() {
    let a = Scripted::start(|n| match n {
        0 | 1 => Does::Answer(302, "location: /there\r\n", String::new()),
        _ => Does::ok("there"),
    })
    .await;
    let client = orders(&[&a.address], |c| c);
    assert_eq!(client.get("/").send().await.unwrap().status(), 302);
    let client = orders(&[&a.address], |c| c.follow_redirects(true));
    assert_eq!(client.get("/").send().await.unwrap().text().await.unwrap(), "there");
}
