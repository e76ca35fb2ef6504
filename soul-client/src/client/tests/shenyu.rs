//! The life of a client towards admins of ShenYu in this process.

use std::time::Duration;

use super::{LISTENER, until_within};
use crate::{
    Dialect, RouteState, ShenyuVersion, SoulClient, Status,
    config::{ClientConfig, ClientConfigBuilder},
    route::{Annotation, Route},
    testing::{FakeAdmin, Recorded, Reply},
};

/// Here the clock is real.
const LIMIT: Duration = Duration::from_secs(20);

const ROUTES: [Route; 2] = [Route::new(Annotation::new("/list")), Route::new(Annotation::new("/item/{id}"))];

fn config(admins: &[&FakeAdmin]) -> ClientConfigBuilder {
    admins
        .iter()
        .fold(ClientConfig::builder(), |config, admin| config.admin_url(admin.url()))
        .context_path("/orders")
        .host("192.168.1.20")
        .port(3000)
        .username(FakeAdmin::USERNAME)
        .password(FakeAdmin::PASSWORD)
        .retry_delay(Duration::from_millis(5), Duration::from_millis(20))
        .refresh_interval(Duration::ZERO)
        .heartbeat_interval(Duration::ZERO)
        .request_timeout(Duration::from_secs(5))
}

fn start(config: ClientConfigBuilder) -> SoulClient {
    let config = config.build().unwrap_or_else(|error| panic!("{}", error.chain()));
    SoulClient::builder(config)
        .routes(ROUTES)
        .start(LISTENER)
        .unwrap_or_else(|error| panic!("{}", error.chain()))
}

async fn admin(version: ShenyuVersion) -> FakeAdmin {
    FakeAdmin::start(Dialect::Shenyu(version)).await.unwrap()
}

async fn registered(client: &SoulClient) {
    client
        .registered_within(LIMIT)
        .await
        .unwrap_or_else(|error| panic!("{}\n{:#?}", error.chain(), client.status()));
}

async fn until(client: &SoulClient, what: &str, wanted: impl FnMut(&Status) -> bool) {
    until_within(LIMIT, client, what, wanted).await;
}

/// Waits for a condition on the admin's side.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(LIMIT, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited for {what}");
}

fn event(request: &Recorded) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(&request.body).ok()?;
    Some(body.get("eventType")?.as_str()?.to_owned())
}

fn is_event(request: &Recorded, wanted: &str) -> bool {
    event(request).as_deref() == Some(wanted)
}

fn cause(client: &SoulClient) -> String {
    client.status().admins[0].last_error.as_ref().map(|error| error.chain()).unwrap_or_default()
}

#[tokio::test]
async fn every_release_is_registered_with_and_left() {
    for version in ShenyuVersion::ALL {
        let admin = admin(version).await;
        let client = start(config(&[&admin]).dialect(Dialect::Shenyu(version)));
        registered(&client).await;
        assert_eq!(admin.routes(), ["/orders/item/*", "/orders/list"], "{version:?}");
        assert_eq!(admin.instances(), ["192.168.1.20:3000"], "{version:?}");
        assert_eq!(admin.logins(), usize::from(version.needs_login()), "{version:?}");

        client.offline().await.unwrap();
        let leaves =
            !matches!(version, ShenyuVersion::V2_4_0 | ShenyuVersion::V2_4_1 | ShenyuVersion::V2_4_2);
        assert_eq!(admin.instances().is_empty(), leaves, "{version:?}");
        assert!(client.status().is_stopped() && client.status().admins[0].is_offline(), "{version:?}");
        assert!(!client.status().is_registered());
    }
}

#[tokio::test]
async fn auto_finds_out_what_each_admin_is() {
    use ShenyuVersion::{V2_4_0, V2_4_1, V2_4_2, V2_4_3, V2_5, V2_6, V2_7, V2_7_0};
    for (admin, found) in [
        (Dialect::Feb2021, Dialect::Any),
        (Dialect::V2_3_0, Dialect::Any),
        (Dialect::Shenyu(V2_4_0), Dialect::Shenyu(V2_4_0)),
        // The login works there, but nothing needs it, so the two cannot be told apart.
        (Dialect::Shenyu(V2_4_1), Dialect::Shenyu(V2_4_2)),
        (Dialect::Shenyu(V2_4_2), Dialect::Shenyu(V2_4_2)),
        (Dialect::Shenyu(V2_4_3), Dialect::Shenyu(V2_4_2)),
        (Dialect::Shenyu(V2_5), Dialect::Shenyu(V2_5)),
        (Dialect::Shenyu(V2_6), Dialect::Shenyu(V2_6)),
        (Dialect::Shenyu(V2_7_0), Dialect::Shenyu(V2_7_0)),
        (Dialect::Shenyu(V2_7), Dialect::Shenyu(V2_7)),
    ] {
        let admin = FakeAdmin::start(admin).await.unwrap();
        let client = start(config(&[&admin]));
        assert_eq!(client.status().admins[0].dialect, Dialect::Auto);
        registered(&client).await;
        assert_eq!(client.status().admins[0].dialect, found, "{admin:?}");
        assert_eq!(admin.instances(), ["192.168.1.20:3000"], "{admin:?}");
        let requests = admin.take();
        let first_post = requests.iter().position(|request| request.method == "POST").unwrap();
        assert!(
            requests[first_post..].iter().all(|request| request.method == "POST"),
            "asked once: {requests:#?}"
        );
        assert!(requests.iter().all(|request| !request.query.contains("clientId")));
    }
}

#[tokio::test]
async fn auto_without_a_user_finds_what_is_open_and_says_what_is_not() {
    for (admin, found) in [
        (Dialect::Feb2021, Some(Dialect::Any)),
        (Dialect::V2_3_0, Some(Dialect::Any)),
        (Dialect::Shenyu(ShenyuVersion::V2_4_0), Some(Dialect::Shenyu(ShenyuVersion::V2_4_0))),
        (Dialect::Shenyu(ShenyuVersion::V2_4_1), Some(Dialect::Shenyu(ShenyuVersion::V2_4_1))),
        (Dialect::Shenyu(ShenyuVersion::V2_6), None),
        (Dialect::Shenyu(ShenyuVersion::V2_7), None),
    ] {
        let admin = FakeAdmin::start(admin).await.unwrap();
        let config =
            ClientConfig::builder().admin_url(admin.url()).context_path("orders").dialect(Dialect::Auto);
        let client = start(config.host("192.168.1.20").port(3000));
        match found {
            Some(found) => {
                registered(&client).await;
                assert_eq!(client.status().admins[0].dialect, found, "{admin:?}");
            }
            None => {
                until(&client, "a refusal", |status| status.admins[0].last_error.is_some()).await;
                assert!(cause(&client).contains("set `username` and `password`"), "{}", cause(&client));
                assert!(client.status().admins[0].last_error.as_ref().unwrap().is_login());
            }
        }
        assert!(admin.take().iter().all(|request| found.is_some() || request.method == "GET"));
    }
}

#[tokio::test]
async fn other_server_is_named_by_auto() {
    let admin = admin(ShenyuVersion::V2_7).await;
    admin.script(|_| Reply::Text(200, "<html>Welcome to nginx</html>".into()));
    let client = start(config(&[&admin]));
    until(&client, "a failure", |status| status.admins[0].last_error.is_some()).await;
    assert!(cause(&client).contains("expected the answer of an admin, got status 200"), "{}", cause(&client));
    // Later it is what it should be.
    admin.unscript();
    registered(&client).await;
}

#[tokio::test]
async fn instance_goes_out_last_and_only_if_a_route_was_accepted() {
    let admin = admin(ShenyuVersion::V2_7).await;
    admin.script(|request| match request.path.as_str() {
        "/shenyu-client/register-metadata" => Reply::Text(200, r#"{"code":500,"message":"no"}"#.into()),
        _ => Reply::Usual,
    });
    let client = start(config(&[&admin]).dialect(Dialect::Shenyu(ShenyuVersion::V2_7)));
    until(&client, "two rounds", |status| match &status.admins[0].routes[0].state {
        RouteState::Failed { failures, .. } => *failures > 2,
        _ => false,
    })
    .await;
    assert!(admin.requests().iter().all(|request| event(request).is_none()));
    assert!(!client.status().is_registered());

    // One route is refused for ever: the others are served all the same, and nobody says that all is well.
    admin.script(|request| match request.body.contains("/item/") {
        true => Reply::Text(200, r#"{"code":500,"message":"no"}"#.into()),
        false => Reply::Usual,
    });
    eventually("the instance", || admin.instances() == ["192.168.1.20:3000"]).await;
    assert_eq!(admin.routes(), ["/orders/list"]);
    assert!(!client.status().is_registered());
    admin.unscript();
    registered(&client).await;
    let requests = admin.take();
    let at = |what: &dyn Fn(&Recorded) -> bool| requests.iter().position(what);
    assert!(at(&|r| r.body.contains("ruleName")) < at(&|r| event(r).is_some()));
}

#[tokio::test]
async fn instance_that_was_not_accepted_is_repeated() {
    let admin = admin(ShenyuVersion::V2_6).await;
    let mut failures = 3;
    admin.script(move |request| {
        if is_event(request, "REGISTER") && failures > 0 {
            failures -= 1;
            return Reply::Text(500, "oops".into());
        }
        Reply::Usual
    });
    let client = start(config(&[&admin]));
    registered(&client).await;
    assert_eq!(admin.instances().len(), 1);
    let requests = admin.take();
    assert_eq!(requests.iter().filter(|request| is_event(request, "REGISTER")).count(), 4);
    assert_eq!(requests.iter().filter(|request| request.body.contains("ruleName")).count(), 2, "routes once");
}

#[tokio::test]
async fn token_is_shared_and_renewed_when_it_is_refused() {
    let admin = admin(ShenyuVersion::V2_7).await;
    let client = start(config(&[&admin]).refresh_interval(Duration::from_millis(20)));
    registered(&client).await;
    assert_eq!(admin.logins(), 1);
    admin.revoke_tokens();
    eventually("another login", || admin.logins() == 2).await;
    // A registration of before would say nothing, and one that is being repeated with the new token is repeated
    // only once: the next refusal must meet one that begins.
    drop(admin.take());
    eventually("a round", || admin.take().iter().any(|request| is_event(request, "REGISTER"))).await;
    assert!(client.status().is_registered());
    // A refusal in words, without the status.
    let mut refuse = true;
    admin.script(move |request| {
        if request.method == "POST" && std::mem::take(&mut refuse) {
            return Reply::Text(200, r#"{"code":600,"message":"token is error"}"#.into());
        }
        Reply::Usual
    });
    eventually("one more login", || admin.logins() == 3).await;
    client.shutdown().await;
}

#[tokio::test]
async fn token_is_renewed_before_it_ends() {
    let admin = admin(ShenyuVersion::V2_7).await;
    admin.set_token_life(Duration::from_millis(200));
    let client = start(config(&[&admin]).refresh_interval(Duration::from_millis(20)));
    registered(&client).await;
    eventually("more logins", || admin.logins() > 3).await;
    assert!(client.status().is_registered());
    assert!(admin.take().iter().all(|request| request.method == "GET" || request.token.is_some()));
}

#[tokio::test]
async fn many_requests_at_once_log_in_once() {
    let admin = admin(ShenyuVersion::V2_7).await;
    admin.script(|request| {
        if request.method == "GET" { Reply::UsualAfter(Duration::from_millis(50)) } else { Reply::Usual }
    });
    let routes = (0..100).map(|number| crate::plan::Attributes::new(format!("/r/{number}"))).collect();
    let class = crate::plan::ClassDeclaration::new(Some(crate::plan::Attributes::new("")), routes);
    let config = config(&[&admin]).dialect(Dialect::Shenyu(ShenyuVersion::V2_7)).build().unwrap();
    let declarations = crate::plan::ClassDeclarations(vec![class]);
    let client = SoulClient::builder(config).declarations(declarations).start(LISTENER).unwrap();
    registered(&client).await;
    assert_eq!((admin.logins(), admin.routes().len()), (1, 100));
    admin.revoke_tokens();
    assert!(client.offline().await.is_ok());
    assert_eq!(admin.logins(), 2);
}

#[tokio::test]
async fn wrong_password_is_told_once_and_not_tried_in_a_hurry() {
    let admin = admin(ShenyuVersion::V2_7).await;
    let client = start(config(&[&admin]).password("wrong+secret&"));
    until(&client, "a refusal", |status| status.admins[0].last_error.is_some()).await;
    let begin = tokio::time::Instant::now();
    eventually("a second login", || admin.requests().len() > 1).await;
    assert!(begin.elapsed() > Duration::from_millis(800), "{:?}", begin.elapsed());
    let error = client.status().admins[0].last_error.clone().unwrap();
    assert!(error.is_login() && error.is_retryable());
    let text = error.chain();
    assert!(text.contains("as `admin`") && text.contains("code 500: username or password error"), "{text}");
    for text in [text, format!("{:?}", client.status()), format!("{client:?}")] {
        assert!(!text.contains("secret"), "{text}");
    }
    // It is asked as it was given.
    assert_eq!(admin.requests()[0].query, "userName=admin&password=wrong%2Bsecret%26");
    assert!(admin.requests().iter().all(|request| request.method == "GET"));
}

#[tokio::test]
async fn first_admin_being_down_stops_nothing_and_catches_up() {
    let (one, two) = (admin(ShenyuVersion::V2_7).await, admin(ShenyuVersion::V2_6).await);
    one.down().await;
    let client = start(config(&[&one, &two]));
    eventually("the second admin", || two.instances().len() == 1).await;
    until(&client, "both to be known", |status| {
        status.admins[1].is_registered() && status.admins[0].last_error.is_some()
    })
    .await;
    assert!(!client.status().is_registered());
    one.up().await.unwrap();
    registered(&client).await;
    assert_eq!(one.instances(), two.instances());
    let dialects: Vec<_> = client.status().admins.iter().map(|admin| admin.dialect).collect();
    assert_eq!(dialects, [Dialect::Shenyu(ShenyuVersion::V2_7), Dialect::Shenyu(ShenyuVersion::V2_6)]);
    client.offline().await.unwrap();
    assert!(one.instances().is_empty() && two.instances().is_empty());
}

#[tokio::test]
async fn old_releases_tell_the_first_admin_that_answers() {
    let (one, two) = (admin(ShenyuVersion::V2_5).await, admin(ShenyuVersion::V2_5).await);
    let dialect = Dialect::Shenyu(ShenyuVersion::V2_5);
    let client = start(config(&[&one, &two]).dialect(dialect));
    registered(&client).await;
    client.offline().await.unwrap();
    assert!(two.take().is_empty() && one.instances().is_empty() && one.routes().len() == 2);

    one.down().await;
    let client = start(config(&[&one, &two]).dialect(dialect));
    registered(&client).await;
    assert_eq!(two.instances().len(), 1);
}

#[tokio::test]
async fn heartbeats_follow_a_registration_and_a_lost_one_brings_it_again() {
    let admin = admin(ShenyuVersion::V2_7).await;
    let client = start(config(&[&admin]).heartbeat_interval(Duration::from_millis(15)));
    eventually("beats", || admin.requests().iter().filter(|r| is_event(r, "HEARTBEAT")).count() > 2).await;
    let requests = admin.take();
    let first = |event| requests.iter().position(|request| is_event(request, event)).unwrap();
    assert!(first("REGISTER") < first("HEARTBEAT"));
    let beat = &requests[first("HEARTBEAT")];
    assert_eq!(beat.path, "/shenyu-client/register-uri");
    assert!(beat.body.contains(r#""instanceInfo":"{\"arch\":"#), "{}", beat.body);

    // Restarted empty: the lost heartbeat is followed by everything.
    admin.down().await;
    until(&client, "the loss", |status| !status.is_registered()).await;
    admin.forget();
    admin.up().await.unwrap();
    registered(&client).await;
    assert_eq!((admin.routes().len(), admin.instances().len()), (2, 1));
    client.offline().await.unwrap();
    // Nothing comes after it.
    let requests = admin.take();
    assert!(is_event(requests.last().unwrap(), "OFFLINE"), "{requests:#?}");
}

#[tokio::test]
async fn admin_that_refuses_heartbeats_is_spared_them() {
    let admin = admin(ShenyuVersion::V2_6).await;
    // Said to be 2.7, and is not.
    let dialect = Dialect::Shenyu(ShenyuVersion::V2_7);
    let client = start(
        config(&[&admin])
            .dialect(dialect)
            .heartbeat_interval(Duration::from_millis(5))
            .refresh_interval(Duration::from_millis(20)),
    );
    let beats = |requests: &[Recorded]| requests.iter().filter(|r| is_event(r, "HEARTBEAT")).count();
    eventually("three refusals", || beats(&admin.requests()) == 3).await;
    drop(admin.take());
    eventually("more rounds", || admin.requests().iter().filter(|r| is_event(r, "REGISTER")).count() > 5)
        .await;
    assert_eq!(beats(&admin.requests()), 0);
    assert!(client.status().is_registered());
}

#[tokio::test]
async fn no_registration_is_sent_after_the_farewell() {
    // Stopped in the middle of a heartbeat that the admin takes its time for.
    let admin = admin(ShenyuVersion::V2_7).await;
    let client = start(config(&[&admin]).heartbeat_interval(Duration::from_millis(5)));
    registered(&client).await;
    admin.script(|request| match is_event(request, "HEARTBEAT") {
        true => Reply::UsualAfter(Duration::from_millis(300)),
        false => Reply::Usual,
    });
    drop(admin.take());
    eventually("a heartbeat", || admin.requests().iter().any(|request| is_event(request, "HEARTBEAT"))).await;
    client.offline().await.unwrap();
    let requests = admin.take();
    assert!(is_event(requests.last().unwrap(), "OFFLINE"), "{requests:#?}");
    assert_eq!(requests.iter().filter(|request| is_event(request, "OFFLINE")).count(), 1);
    assert!(admin.instances().is_empty());
    client.offline().await.unwrap();
    assert!(admin.take().is_empty(), "once is enough");
}

#[tokio::test]
async fn every_message_arrives_in_every_namespace() {
    for (namespaces, expected) in
        [(&["n1;n2", "n3"][..], &["n1", "n2", "n3"][..]), (&[], &[crate::wire::shenyu::DEFAULT_NAMESPACE])]
    {
        let admin = admin(ShenyuVersion::V2_7).await;
        let config = config(&[&admin]).heartbeat_interval(Duration::from_millis(10));
        let client = start(namespaces.iter().fold(config, |config, id| config.namespace(*id)));
        registered(&client).await;
        let beats = |requests: &[Recorded]| requests.iter().filter(|r| is_event(r, "HEARTBEAT")).count();
        eventually("a beat for each", || beats(&admin.requests()) >= expected.len()).await;
        client.offline().await.unwrap();
        assert!(admin.instances().is_empty());

        let requests = admin.take();
        let mut told: Vec<(String, String)> = requests
            .iter()
            .filter(|request| request.method == "POST")
            .map(|request| {
                let body: serde_json::Value = serde_json::from_str(&request.body).unwrap();
                let what = body.get("eventType").or(body.get("path")).and_then(|what| what.as_str()).unwrap();
                (what.to_owned(), body["namespaceId"].as_str().expect("each names one").to_owned())
            })
            .collect();
        told.sort();
        told.dedup();
        let whats = ["/orders/item/*", "/orders/list", "HEARTBEAT", "OFFLINE", "REGISTER"];
        let wanted: Vec<_> = whats
            .iter()
            .flat_map(|what| expected.iter().map(|id| ((*what).to_owned(), (*id).to_owned())))
            .collect();
        assert_eq!(told, wanted);
    }
}

#[tokio::test]
async fn dead_admin_does_not_hold_up_the_farewell() {
    let (one, two) = (admin(ShenyuVersion::V2_7).await, admin(ShenyuVersion::V2_7).await);
    let config = config(&[&one, &two])
        .shutdown_timeout(Duration::from_millis(50))
        .offline_timeout(Duration::from_millis(200))
        .request_timeout(Duration::from_secs(60));
    let client = start(config);
    registered(&client).await;
    one.script(|_| Reply::Hang);
    let begin = std::time::Instant::now();
    let error = client.offline().await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(error.is_timeout() && error.chain().contains(&one.url()), "{}", error.chain());
    assert!(!error.chain().contains(&two.url()));
    assert!(two.instances().is_empty() && client.status().admins[1].is_offline());
}

#[tokio::test]
async fn offline_after_a_shutdown_is_an_error() {
    let admin = admin(ShenyuVersion::V2_7).await;
    let client = start(config(&[&admin]));
    registered(&client).await;
    client.shutdown().await;
    assert!(client.offline().await.unwrap_err().is_stopped());
    assert_eq!(admin.instances().len(), 1, "it was not told");
}

#[tokio::test]
async fn every_kind_of_wrong_answer_is_waited_through() {
    for (name, reply, words) in [
        ("500", Reply::Text(500, "oops".into()), "500 Internal Server Error"),
        ("HTML", Reply::Text(200, "<html>Hello".into()), "`<html>Hello`"),
        (
            "refusal",
            Reply::Text(200, r#"{"code":500,"message":"busy","data":null}"#.into()),
            "code 500: busy",
        ),
        ("401 of another kind", Reply::Text(401, "<html>who?".into()), "401 Unauthorized"),
        ("garbage", Reply::Text(200, "\u{0}\u{1}\u{fffd}{{{".into()), "expected the answer `success`"),
        ("almost", Reply::Text(200, "\"success\"".into()), "expected the answer `success`"),
        ("kept, but", Reply::KeptBut(502, String::new()), "502 Bad Gateway"),
        ("closed", Reply::Close, "register at"),
        ("never", Reply::Hang, "timed out"),
    ] {
        let admin = admin(ShenyuVersion::V2_7).await;
        let reply = reply.clone();
        admin.script(move |request| if request.method == "POST" { reply.clone() } else { Reply::Usual });
        let client = start(config(&[&admin]).request_timeout(Duration::from_millis(300)));
        until(&client, name, |status| status.admins[0].last_error.is_some()).await;
        assert!(cause(&client).contains(words), "{name}: {}", cause(&client));
        assert!(!client.status().is_registered());
        admin.unscript();
        registered(&client).await;
        assert_eq!((admin.routes().len(), admin.instances().len()), (2, 1), "{name}");
    }
}

#[tokio::test]
async fn two_hundred_routes_survive_three_restarts() {
    let admin = admin(ShenyuVersion::V2_7).await;
    let routes = (0..200).map(|number| crate::plan::Attributes::new(format!("/r/{number}"))).collect();
    let class = crate::plan::ClassDeclaration::new(Some(crate::plan::Attributes::new("")), routes);
    // A restart between two heartbeats is not noticed; the next full round makes up for it.
    let beat = Duration::from_millis(50);
    let config = config(&[&admin]).heartbeat_interval(beat).refresh_interval(2 * beat).build().unwrap();
    let declarations = crate::plan::ClassDeclarations(vec![class]);
    let client = SoulClient::builder(config).declarations(declarations).start(LISTENER).unwrap();
    for pause in [0, 20, 60] {
        registered(&client).await;
        admin.down().await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        admin.forget();
        admin.revoke_tokens();
        admin.up().await.unwrap();
        eventually("all of it", || admin.routes().len() == 200 && admin.instances().len() == 1).await;
    }
}

/// Every request of a whole life, as `tests/golden/shenyu_requests.json` has it: order, paths, headers, bodies.
#[tokio::test]
async fn whole_life_is_that_of_the_golden_requests() {
    let text = include_str!("../../../../tests/golden/shenyu_requests.json");
    let file: serde_json::Value = serde_json::from_str(text).unwrap();
    for (case, version) in file["cases"].as_array().unwrap().iter().zip(ShenyuVersion::ALL) {
        assert_eq!(case["version"], version.as_str());
        let admin = admin(version).await;
        let config = config(&[&admin])
            .app_name("orders")
            .dialect(Dialect::Shenyu(version))
            // One at a time, so that there is one order.
            .concurrency(1)
            .heartbeat_interval(Duration::from_millis(20));
        let route = |path, desc, handler| {
            Route::new(Annotation::new(path).desc(desc)).module("orders::api").handler(handler)
        };
        let routes = [route("/list", "list orders", "list"), route("/item/{id}", "one order", "item")];
        let declarations = (&crate::route::Collected::group([], routes)).into();
        let client =
            SoulClient::builder(config.build().unwrap()).declarations(declarations).start(LISTENER).unwrap();
        registered(&client).await;
        let steps = case["steps"].as_array().unwrap();
        if steps.iter().any(|step| step["what"] == "heartbeat") {
            eventually("a heartbeat", || {
                admin.requests().iter().any(|request| is_event(request, "HEARTBEAT"))
            })
            .await;
        }
        client.offline().await.unwrap();

        let mut requests = admin.take();
        requests.dedup_by(|later, earlier| is_event(later, "HEARTBEAT") && is_event(earlier, "HEARTBEAT"));
        assert_eq!(requests.len(), steps.len(), "{version:?}: {requests:#?}");
        for (request, step) in requests.iter().zip(steps) {
            let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
            assert_eq!(
                (request.method.as_str(), format!("{}{query}", request.path).as_str()),
                (step["method"].as_str().unwrap(), step["path"].as_str().unwrap()),
                "{version:?}"
            );
            assert_eq!(request.token.is_some(), step["token"].as_bool().unwrap(), "{version:?}");
            let Some(body) = step["body"].as_str() else { continue };
            assert_eq!(request.content_type.as_deref(), file["headers"]["content-type"].as_str());
            assert_eq!(comparable(&request.body), comparable(body), "{version:?}");
        }
    }
}

/// Without what differs from run to run and machine to machine; the order of members stays.
fn comparable(body: &str) -> String {
    let mut text = body.to_owned();
    for (name, end) in [("\"timeMillis\":", ','), ("\"instanceInfo\":", '}')] {
        if let Some(start) = text.find(name).map(|start| start + name.len()) {
            // The text of the machine holds braces of its own and stands last.
            let end = if end == '}' { text.len() - 1 } else { start + text[start..].find(end).unwrap_or(0) };
            text.replace_range(start..end, "…");
        }
    }
    text
}

/// The bounds of the card, for a debug build on a busy machine.
#[tokio::test(flavor = "multi_thread")]
async fn registering_is_concurrent_and_pooled() {
    for (number, delay, bound) in [(1000, 0, 5), (100, 20, 2)] {
        let admin = admin(ShenyuVersion::V2_7).await;
        admin.script(move |_| Reply::UsualAfter(Duration::from_millis(delay)));
        let routes = (0..number).map(|number| crate::plan::Attributes::new(format!("/r/{number}"))).collect();
        let class = crate::plan::ClassDeclaration::new(Some(crate::plan::Attributes::new("")), routes);
        let config = config(&[&admin]).dialect(Dialect::Shenyu(ShenyuVersion::V2_7)).build().unwrap();
        let declarations = crate::plan::ClassDeclarations(vec![class]);
        let client = SoulClient::builder(config).declarations(declarations).start(LISTENER).unwrap();
        let begin = std::time::Instant::now();
        registered(&client).await;
        let took = begin.elapsed();
        println!("{number} routes, {delay} ms an answer: {took:?}"); // shown with --nocapture
        assert!(took < Duration::from_secs(bound), "{took:?}");
        assert_eq!(admin.routes().len(), number);
    }
}
