//! Upstreams behind TLS, by address, whose certificates are of one name.

use std::{sync::Arc, time::Duration};

use rcgen::{CertificateParams, KeyPair};
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig, crypto,
        pki_types::{CertificateDer, PrivateKeyDer},
    },
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    plain,
    scripted::{Does, Scripted},
};
use crate::{
    balance::Upstream,
    call::{CallErrorKind, ClientFactory, HostHeader, LbClient, ServiceConfig},
};

/// A certificate of a name, signed by itself, and its key.
fn certificate(name: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()))
}

/// Takes TLS off in front of an upstream, if it is called by the name; gives the address.
async fn in_front_of(
    upstream: &Scripted,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
) -> (String, AbortOnDropHandle<()>) {
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, behind) = (listener.local_addr().unwrap().to_string(), upstream.address.clone());
    let task = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            connections.spawn(async move {
                // A caller that does not trust it goes away.
                let Ok(mut outside) = acceptor.accept(stream).await else { return };
                assert_eq!(outside.get_ref().1.server_name(), Some("orders.internal"));
                let mut inside = tokio::net::TcpStream::connect(behind).await.unwrap();
                drop(tokio::io::copy_bidirectional(&mut outside, &mut inside).await);
            });
        }
    });
    (address, AbortOnDropHandle::new(task))
}

fn orders(
    addresses: &[&str],
    trusted: &[&CertificateDer<'static>],
    config: impl FnOnce(ServiceConfig) -> ServiceConfig,
) -> LbClient {
    let roots: Vec<_> = trusted.iter().map(|der| reqwest::Certificate::from_der(der).unwrap()).collect();
    let servers: Vec<_> = addresses.iter().map(|&address| Upstream::new(address)).collect();
    let factory = ClientFactory::builder()
        .http(move |builder| builder.tls_certs_only(roots.clone()))
        .service("orders", |_| {
            config(plain().servers(servers).secure(true).connect_timeout(Duration::from_secs(10)))
        })
        .build()
        .unwrap();
    factory.client("orders").unwrap()
}

#[tokio::test]
async fn the_handshake_is_made_under_the_name_that_is_set() {
    let (a, b) = (Scripted::doing(Does::ok("a")).await, Scripted::doing(Does::ok("b")).await);
    let ((of_a, key_a), (of_b, key_b)) = (certificate("orders.internal"), certificate("orders.internal"));
    let (at_a, _a) = in_front_of(&a, of_a.clone(), key_a).await;
    let (at_b, _b) = in_front_of(&b, of_b.clone(), key_b).await;

    let client = orders(&[&at_a, &at_b], &[&of_a, &of_b], |c| c.tls_name("orders.internal"));
    for _ in 0..4 {
        let answer = client.post("/api?x").body("order").send().await.unwrap();
        let (whom, attempts) = (answer.upstream_address().to_owned(), answer.attempts());
        let text = answer.text().await.unwrap();
        assert_eq!((attempts, text.as_str()), (1, if whom == at_a { "a" } else { "b" }), "{whom}");
    }
    assert_eq!((a.count(), b.count()), (2, 2), "under one name each is reached at its own address");
    let request = a.seen()[0].to_lowercase();
    assert!(request.contains(&format!("host: {at_a}\r\n")) && request.ends_with("order"), "{request}");

    // The name of the service for those that tell virtual hosts apart.
    let client =
        orders(&[&at_a], &[&of_a], |c| c.tls_name("orders.internal").host_header(HostHeader::Service));
    client.get("/").send().await.unwrap();
    assert!(a.seen().last().unwrap().to_lowercase().contains("host: orders\r\n"));
}

#[tokio::test]
async fn who_has_not_the_certificate_gets_nothing_and_another_is_asked() {
    let (a, b) = (Scripted::doing(Does::ok("a")).await, Scripted::doing(Does::ok("b")).await);
    let ((of_a, key_a), (of_b, key_b)) = (certificate("else.internal"), certificate("orders.internal"));
    let (at_a, _a) = in_front_of(&a, of_a.clone(), key_a).await;
    let (at_b, _b) = in_front_of(&b, of_b.clone(), key_b).await;

    // A name that the certificate has not; nothing was sent, so even a POST goes on.
    let client = orders(&[&at_a, &at_b], &[&of_a, &of_b], |c| c.tls_name("orders.internal"));
    let answer = client.post("/save").same_instance(&at_a).body("order").send().await.unwrap();
    assert_eq!((answer.attempts(), answer.upstream_address(), a.count()), (2, at_b.as_str(), 0));

    // A signature that is not trusted.
    let client = orders(&[&at_b], &[&of_a], |c| c.tls_name("orders.internal").retries_next(0));
    let error = client.get("/").send().await.unwrap_err();
    assert_eq!((error.kind(), error.may_have_been_sent()), (CallErrorKind::AllTried, false));
    assert!(error.chain().to_lowercase().contains("certificate"), "{}", error.chain());
    assert_eq!(b.count(), 1);
}
