//! What is refused at start, and what is found out.

use super::{
    LISTENER, ROUTES, builder, config,
    scripted::{Reply, Scripted},
};
use crate::{
    AddressReason, SoulClient,
    plan::{Attributes, ClassDeclaration, ClassDeclarations},
    route,
};

#[tokio::test]
async fn nothing_to_register_is_an_error_with_the_hint() {
    let config = config().admin_url("http://one").build().unwrap();
    let error = SoulClient::builder(config.clone()).routes([]).start(LISTENER).unwrap_err();
    assert!(error.is_config() && error.to_string().contains(route::EMPTY_HINT), "{error}");
    // Nothing is annotated in this test program either.
    assert!(SoulClient::start(config, LISTENER).is_err());
}

#[tokio::test]
async fn full_mode_needs_no_route() {
    let config = config().admin_url("http://one").full(true).build().unwrap();
    let transport = Scripted::new(|_| Reply::Accept);
    let client = SoulClient::builder(config).routes([]);
    let client = client.start_over(transport.clone(), fastrand::Rng::new(), LISTENER).unwrap();
    client.registered().await.unwrap();
    assert_eq!(transport.take_names(), ["one/**"]);
}

#[test]
fn start_outside_of_a_runtime_is_an_error() {
    let error = builder(config().admin_url("http://one")).start(LISTENER).unwrap_err();
    assert!(error.is_config() && error.to_string().contains("Tokio runtime"), "{error}");
}

#[tokio::test]
async fn unknown_kind_names_the_route() {
    let mut route = Attributes::new("/a");
    route.rpc_type = Some("motan".into());
    let class = ClassDeclaration::new(Some(Attributes::new("")), vec![route]);
    let config = config().admin_url("http://one").build().unwrap();
    let client = SoulClient::builder(config).declarations(ClassDeclarations(vec![class]));
    let error = client.start(LISTENER).unwrap_err();
    assert!(error.to_string().contains("`motan` of `/http/a` is unknown"), "{error}");
}

#[tokio::test]
async fn announces_the_bound_address_and_port() {
    let config =
        crate::ClientConfig::builder().admin_url("http://one").context_path("/http").build().unwrap();
    let transport = Scripted::new(|_| Reply::Accept);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = SoulClient::builder(config).routes(ROUTES);
    let client = client.start_over(transport, fastrand::Rng::new(), address).unwrap();
    client.registered().await.unwrap();
    let announced = client.status().admins[0].announced.clone().unwrap();
    assert_eq!((announced.to_string(), announced.reason()), (address.to_string(), &AddressReason::Listener));
}
