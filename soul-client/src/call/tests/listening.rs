//! What listeners hear.

use std::sync::{Arc, Mutex};

use super::{
    plain,
    scripted::{Does, Scripted},
    until,
};
use crate::{
    balance::Upstream,
    call::{CallEvent, ClientFactory, MemberEvent},
};

fn word(event: &CallEvent<'_>) -> String {
    match event {
        CallEvent::Started => "started".to_owned(),
        CallEvent::Sending { attempt, .. } => format!("sending {attempt}"),
        CallEvent::Failed { attempt, failed, status, .. } => {
            format!("failed {attempt} {failed:?} {status:?}")
        }
        CallEvent::Retrying { attempt, same, .. } => format!("retrying {attempt} {same}"),
        CallEvent::Succeeded { attempts, status, .. } => format!("succeeded {attempts} {status:?}"),
        CallEvent::Exhausted { kind, attempts, .. } => format!("exhausted {kind:?} {attempts}"),
    }
}

#[tokio::test]
async fn calls_are_heard_from_start_to_end() {
    let a = Scripted::start(|n| match n {
        0 => Does::Close,
        1 => Does::status(503),
        2 => Does::ok(""),
        _ => Does::Close,
    })
    .await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let lists = Arc::new(Mutex::new(Vec::new()));
    let hears_lists = Arc::clone(&lists);
    let factory = ClientFactory::builder()
        .service("orders", |_| plain().servers([Upstream::new(&*a.address)]).retries_same(1))
        .listener(|_: &str, _: &CallEvent<'_>| panic!("by design"))
        .listener(move |service: &str, event: &CallEvent<'_>| {
            hears.lock().unwrap().push(format!("{service}: {}", word(event)));
        })
        .member_listener(move |service: &str, event: &MemberEvent| {
            hears_lists.lock().unwrap().push(format!("{service}: {event:?}"));
        })
        .build()
        .unwrap();
    factory.get("lb://orders/").send().await.unwrap();
    assert_eq!(
        *heard.lock().unwrap(),
        [
            "orders: started",
            "orders: sending 1",
            "orders: failed 1 Some(Broken) None",
            "orders: retrying 2 true",
            "orders: sending 2",
            "orders: failed 2 None Some(503)",
            "orders: retrying 3 false",
            "orders: sending 3",
            "orders: succeeded 3 Some(200)",
        ]
    );
    heard.lock().unwrap().clear();
    factory.post("lb://orders/").send().await.unwrap_err();
    assert_eq!(
        *heard.lock().unwrap(),
        [
            "orders: started",
            "orders: sending 1",
            "orders: failed 1 Some(Broken) None",
            "orders: exhausted NotRepeatable 1",
        ]
    );
    let has = |text: &str| lists.lock().unwrap().iter().any(|line| line.contains(text));
    until("the list heard of", || has("ListChanged")).await;
    factory.client("orders").unwrap().membership().mark_down(&a.address);
    until("the status heard of", || has("StatusChanged")).await;
}
