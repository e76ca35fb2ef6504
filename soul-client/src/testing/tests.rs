//! Every dialect, and every way to fail.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use super::*;
use crate::{
    AdminsRule, ClientConfig, SoulClient,
    route::{Annotation, Route},
};

const LIMIT: Duration = Duration::from_secs(30);

async fn registers(admin: &FakeAdmin, dialect: Dialect) {
    let config = ClientConfig::builder()
        .admin_url(admin.url())
        .admins_rule(AdminsRule::Each)
        .dialect(dialect)
        .context_path("/orders")
        .app_name("orders")
        .username(FakeAdmin::USERNAME)
        .password(FakeAdmin::PASSWORD)
        .request_timeout(Duration::from_millis(500))
        .retry_delay(Duration::from_millis(1), Duration::from_millis(5));
    let client = SoulClient::builder(config.build().unwrap())
        .routes(["/a", "/b"].map(|path| Route::new(Annotation::new(path))))
        .start(SocketAddr::from(([127, 0, 0, 1], 3000)))
        .unwrap();
    client.registered_within(LIMIT).await.unwrap();
    client.shutdown().await;
}

/// Its first two requests are answered so.
async fn fails_and_recovers(dialect: Dialect, reply: Reply) {
    let what = format!("{dialect}, {reply:?}");
    let admin = FakeAdmin::start(dialect).await.unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    admin.script(
        move |_| if count.fetch_add(1, Ordering::Relaxed) < 2 { reply.clone() } else { Reply::Usual },
    );
    registers(&admin, dialect).await;
    assert_eq!(admin.routes(), ["/orders/a", "/orders/b"], "{what}");
    assert_eq!(admin.instances(), ["127.0.0.1:3000"], "{what}");
    assert!(asked.load(Ordering::Relaxed) >= 2, "{what}");
}

#[tokio::test]
async fn every_dialect_fails_as_it_is_told_and_is_then_registered_with() {
    // All at once: a login that failed is waited after.
    let mut all = tokio::task::JoinSet::new();
    for dialect in Dialect::ALL {
        for reply in [
            Reply::UsualAfter(Duration::from_millis(10)),
            Reply::Text(500, "<html>oops".into()),
            Reply::Text(200, "<html>log in".into()),
            Reply::KeptBut(503, String::new()),
            Reply::Hang,
            Reply::Close,
        ] {
            all.spawn(fails_and_recovers(dialect, reply));
        }
    }
    while let Some(one) = all.join_next().await {
        one.unwrap();
    }
}

#[tokio::test]
async fn every_dialect_can_be_away_and_forget() {
    let mut all = tokio::task::JoinSet::new();
    for dialect in Dialect::ALL {
        all.spawn(async move {
            let admin = FakeAdmin::start(dialect).await.unwrap();
            registers(&admin, dialect).await;
            admin.forget();
            assert!(admin.routes().is_empty() && admin.instances().is_empty(), "{dialect}");
            admin.down().await;
            let back = async {
                tokio::task::yield_now().await;
                admin.up().await.unwrap();
            };
            tokio::join!(registers(&admin, dialect), back);
            assert_eq!(admin.routes(), ["/orders/a", "/orders/b"], "{dialect}");
        });
    }
    while let Some(one) = all.join_next().await {
        one.unwrap();
    }
}
