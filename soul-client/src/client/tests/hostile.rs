//! Admins that are wrong in ways that cost something: secrets, or a flood of requests.

use std::time::Duration;

use super::{LISTENER, until_within};
use crate::{
    Dialect, ShenyuVersion, SoulClient, Status,
    config::{ClientConfig, ClientConfigBuilder},
    plan::{Attributes, ClassDeclaration, ClassDeclarations},
    testing::{FakeAdmin, Recorded, Reply},
};

/// Here the clock is real.
const LIMIT: Duration = Duration::from_secs(20);

/// Two words that stand nowhere else.
const PASSWORD: &str = "wren-nest-91";
const TOKEN: &str = "otter.holt.77";

const SHENYU: Dialect = Dialect::Shenyu(ShenyuVersion::V2_7);

fn config(admin: &FakeAdmin) -> ClientConfigBuilder {
    ClientConfig::builder()
        .admin_url(admin.url())
        .context_path("/orders")
        .host("192.168.1.20")
        .port(3000)
        .username(FakeAdmin::USERNAME)
        .password(PASSWORD)
        .retry_delay(Duration::from_millis(5), Duration::from_millis(20))
        .refresh_interval(Duration::ZERO)
        .heartbeat_interval(Duration::ZERO)
        .request_timeout(Duration::from_secs(5))
}

fn start(config: ClientConfigBuilder, routes: usize) -> SoulClient {
    let config = config.build().unwrap_or_else(|error| panic!("{}", error.chain()));
    let routes = (0..routes).map(|number| Attributes::new(format!("/r/{number}"))).collect();
    let class = ClassDeclaration::new(Some(Attributes::new("")), routes);
    SoulClient::builder(config).declarations(ClassDeclarations(vec![class])).start(LISTENER).unwrap()
}

async fn until(client: &SoulClient, what: &str, wanted: impl FnMut(&Status) -> bool) {
    until_within(LIMIT, client, what, wanted).await;
}

fn logged_in(token: &str) -> String {
    format!(
        r#"{{"code":200,"message":"login dashboard user success","data":{{"token":"{token}","expiredTime":86400000}}}}"#
    )
}

fn logins(admin: &FakeAdmin) -> usize {
    admin.requests().iter().filter(|request| request.path == "/platform/login").count()
}

#[tokio::test]
async fn login_that_gives_no_token_is_not_repeated_in_a_hurry() {
    let admin = FakeAdmin::start(SHENYU).await.unwrap();
    admin.script(|_| Reply::Text(200, r#"{"code":200,"message":"fine","data":{}}"#.into()));
    let client = start(config(&admin).dialect(SHENYU), 200);
    let failed_often =
        |status: &Status| format!("{:?}", status.admins[0].routes[199].state).contains("failures: 3,");
    until(&client, "three failures of each route", failed_often).await;
    client.shutdown().await;
    assert!(logins(&admin) <= 3, "{} logins", logins(&admin));
}

#[tokio::test]
async fn tokens_that_live_no_time_are_not_asked_for_in_a_hurry() {
    let admin = FakeAdmin::start(SHENYU).await.unwrap();
    admin.set_token_life(Duration::from_millis(1));
    let client = start(config(&admin).dialect(SHENYU).password(FakeAdmin::PASSWORD), 200);
    client.registered_within(LIMIT).await.unwrap();
    // As many as there were seconds, on a machine as slow as it may be.
    assert!(logins(&admin) <= 20, "{} logins", logins(&admin));
}

#[tokio::test]
async fn tokens_that_are_always_refused_are_not_asked_for_in_a_hurry() {
    let admin = FakeAdmin::start(SHENYU).await.unwrap();
    let mut given = 0;
    admin.script(move |request| match request.path.as_str() {
        "/platform/login" => {
            given += 1;
            Reply::Text(200, logged_in(&format!("{TOKEN}.{given}")))
        }
        _ => Reply::Text(401, r#"{"code":600,"message":"token is error"}"#.into()),
    });
    let client = start(config(&admin).dialect(SHENYU), 200);
    let failed_often =
        |status: &Status| format!("{:?}", status.admins[0].routes[199].state).contains("failures: 3,");
    until(&client, "three failures of each route", failed_often).await;
    client.shutdown().await;
    assert!(logins(&admin) <= 4, "{} logins", logins(&admin));
    assert!(admin.requests().len() < 60, "{} requests", admin.requests().len());
}

/// What a server says that repeats what it was sent.
fn repeated(text: &str, request: &Recorded) -> Reply {
    let token = request.token.as_deref().unwrap_or("no token");
    let text = text.replace("TOKEN", token).replace("LOGIN", &format!("{}{}", request.query, PASSWORD));
    let status = if text.starts_with('<') { 500 } else { 200 };
    Reply::Text(status, text)
}

#[tokio::test]
async fn what_an_admin_repeats_of_the_secrets_is_not_repeated() {
    let given = logged_in(TOKEN);
    for said in [r#"{"code":500,"message":"no such user: LOGIN"}"#, "<html>/platform/login?LOGIN", &given] {
        for after in [
            "<html>X-Access-Token: TOKEN".to_owned(),
            r#"{"code":500,"message":"what is TOKEN?"}"#.to_owned(),
            r#"{"code":600,"message":"bad token TOKEN"}"#.to_owned(),
            format!("<{}TOKEN", "x".repeat(190)),
        ] {
            for dialect in [SHENYU, Dialect::Auto] {
                let admin = FakeAdmin::start(SHENYU).await.unwrap();
                let (said, words) = (said.to_owned(), after.clone());
                admin.script(move |request| match request.path.as_str() {
                    "/platform/login" => repeated(&said, request),
                    _ => repeated(&words, request),
                });
                let client = start(config(&admin).dialect(dialect), 2);
                until(&client, "a failure", |status| status.admins[0].last_error.is_some()).await;
                let status = client.status();
                let shown = status.admins[0].last_error.as_ref().unwrap().chain();
                let all = format!("{shown} {status:?} {client:?}");
                for secret in [PASSWORD, TOKEN, &TOKEN[..8]] {
                    assert!(!all.contains(secret), "{dialect}: {shown}");
                }
            }
        }
    }
}

#[test]
fn farewell_of_a_client_whose_runtime_is_gone_is_an_error() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (own, other) = (runtime(), runtime());
    let admin = other.block_on(FakeAdmin::start(Dialect::Any)).unwrap();
    let client = own.block_on(async { start(config(&admin).dialect(Dialect::Any), 2) });
    other.block_on(client.registered_within(LIMIT)).unwrap();
    own.shutdown_timeout(LIMIT);
    assert!(other.block_on(client.registered()).is_ok());
    let said = other.block_on(client.offline());
    assert!(
        said.as_ref().is_err_and(crate::Error::is_stopped),
        "{said:?}, and it has {:?}",
        admin.instances()
    );
    other.block_on(client.shutdown());
}

#[tokio::test]
async fn ten_thousand_routes_are_registered_and_left() {
    let admin = FakeAdmin::start(SHENYU).await.unwrap();
    let client = start(config(&admin).dialect(SHENYU).password(FakeAdmin::PASSWORD), 10_000);
    client.registered_within(Duration::from_secs(300)).await.unwrap();
    client.offline().await.unwrap();
    assert_eq!(admin.routes().len(), 10_000);
}
