//! Admins with an `https` address, and proxies.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig, crypto,
        pki_types::{CertificateDer, PrivateKeyDer},
        server::WebPkiClientVerifier,
    },
};
use tokio_util::task::AbortOnDropHandle;

use super::{LISTENER, until_within};
use crate::{
    ClientConfig, Dialect, ShenyuVersion, SoulClient,
    config::ClientConfigBuilder,
    route::{Annotation, Route},
    testing::FakeAdmin,
};

const LIMIT: Duration = Duration::from_secs(20);

/// An authority of its own, its files, and one certificate for each side.
struct Certificates {
    folder: PathBuf,
    authority: CertificateDer<'static>,
    server: (CertificateDer<'static>, PrivateKeyDer<'static>),
}

impl Drop for Certificates {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

impl Certificates {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("soul-client-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let issue = |name: &str| {
            let key = KeyPair::generate().unwrap();
            (CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap(), key)
        };
        let (server, server_key) = issue("localhost");
        let (client, client_key) = issue("orders");
        std::fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
        std::fs::write(folder.join("client.pem"), client.pem()).unwrap();
        std::fs::write(folder.join("client.key"), client_key.serialize_pem()).unwrap();
        let server_key = PrivateKeyDer::Pkcs8(server_key.serialize_der().into());
        Self { folder, authority: authority.der().clone(), server: (server.der().clone(), server_key) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Takes TLS off in front of `admin`; gives the port.
    async fn in_front_of(
        &self,
        admin: &FakeAdmin,
        asks_for_certificate: bool,
    ) -> (u16, AbortOnDropHandle<()>) {
        let provider = Arc::new(crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if asks_for_certificate {
            let mut roots = RootCertStore::empty();
            roots.add(self.authority.clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let config =
            builder.with_single_cert(vec![self.server.0.clone()], self.server.1.clone_key()).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let to = admin.url().trim_start_matches("http://").to_owned();
        let task: JoinHandle<()> = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, to) = (acceptor.clone(), to.clone());
                tokio::spawn(async move {
                    let Ok(mut inside) = acceptor.accept(stream).await else { return };
                    let mut outside = TcpStream::connect(to).await.unwrap();
                    drop(copy_bidirectional(&mut inside, &mut outside).await);
                });
            }
        });
        (port, AbortOnDropHandle::new(task))
    }
}

fn config(url: &str) -> ClientConfigBuilder {
    ClientConfig::builder()
        .admin_url(url)
        .context_path("/orders")
        .host("192.168.1.20")
        .port(3000)
        .username(FakeAdmin::USERNAME)
        .password(FakeAdmin::PASSWORD)
        .retry_delay(Duration::from_millis(5), Duration::from_millis(20))
}

fn start(config: ClientConfigBuilder) -> SoulClient {
    let routes = [Route::new(Annotation::new("/list"))];
    SoulClient::builder(config.build().unwrap()).routes(routes).start(LISTENER).unwrap()
}

async fn admin() -> FakeAdmin {
    FakeAdmin::start(Dialect::Shenyu(ShenyuVersion::V2_7)).await.unwrap()
}

async fn failure(client: &SoulClient) -> String {
    until_within(LIMIT, client, "a failure", |status| status.admins[0].last_error.is_some()).await;
    client.status().admins[0].last_error.as_ref().unwrap().chain()
}

#[tokio::test]
async fn authority_of_ones_own_is_trusted_and_no_other() {
    let (admin, certificates) = (admin().await, Certificates::new("ca"));
    let (port, _server) = certificates.in_front_of(&admin, false).await;
    let url = format!("https://localhost:{port}");
    let client = start(config(&url).ca_file(certificates.file("ca.pem")));
    client.registered_within(LIMIT).await.unwrap();
    assert_eq!(admin.instances().len(), 1);
    client.offline().await.unwrap();
    assert!(admin.instances().is_empty());

    let stranger = Certificates::new("stranger");
    let client = start(config(&url).ca_file(stranger.file("ca.pem")));
    let text = failure(&client).await;
    assert!(text.contains("certificate"), "{text}");
    // Another name than that of the certificate.
    let client = start(config(&format!("https://127.0.0.1:{port}")).ca_file(certificates.file("ca.pem")));
    let text = failure(&client).await;
    assert!(text.contains("certificate"), "{text}");
}

#[tokio::test]
async fn certificate_of_the_client_is_shown() {
    let (admin, certificates) = (admin().await, Certificates::new("client"));
    let (port, _server) = certificates.in_front_of(&admin, true).await;
    let with_ca = || config(&format!("https://localhost:{port}")).ca_file(certificates.file("ca.pem"));
    failure(&start(with_ca())).await;
    assert!(admin.requests().is_empty());
    let client =
        start(with_ca().client_certificate(certificates.file("client.pem"), certificates.file("client.key")));
    client.registered_within(LIMIT).await.unwrap();
}

#[tokio::test]
async fn files_that_are_no_good_are_named() {
    let certificates = Certificates::new("files");
    let (ca, key) = (certificates.file("ca.pem"), certificates.file("client.key"));
    let config = || config("https://localhost:1");
    let routes = [Route::new(Annotation::new("/list"))];
    for (config, field, words) in [
        (config().ca_file(certificates.file("none")), "ca_file", "cannot be read"),
        (config().ca_file(&key), "ca_file", "holds no certificate"),
        (
            config().ca_file(&ca).client_certificate(&ca, certificates.file("none")),
            "client_key_file",
            "no private key",
        ),
        (config().ca_file(&ca).client_certificate(&key, &key), "client_cert_file", "holds no certificate"),
        (config().ca_file(&ca).client_certificate(&ca, &key), "client_cert_file", "does not go with its key"),
    ] {
        let error = SoulClient::builder(config.build().unwrap()).routes(routes).start(LISTENER).unwrap_err();
        assert!(error.is_config() && error.problems()[0].field() == field, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn everything_goes_through_a_proxy_that_was_set() {
    // Whatever name the admin has, the proxy answers: here it is the admin itself.
    let admin = admin().await;
    let client =
        start(config("http://admin.invalid:9095").proxy(admin.url().replace("//", "//user:geheim@")));
    client.registered_within(LIMIT).await.unwrap();
    assert!(!admin.requests().is_empty());
    client.offline().await.unwrap();
    let config = config("http://admin.invalid").proxy("user:geheim@proxy");
    assert!(!format!("{config:?} {:?}", config.validate()).contains("geheim"));
    assert_eq!(config.validate()[0].field(), "proxy");
}

/// A proxy that opens a way to wherever it is asked, for who says the password; keeps what it was asked.
struct Proxy {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
    _task: AbortOnDropHandle<()>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://user:geheim@{}", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(tunnel(stream, Arc::clone(&kept)));
            }
        });
        Self { url, heads, _task: AbortOnDropHandle::new(task) }
    }
}

async fn tunnel(mut inside: TcpStream, heads: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = inside.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    heads.lock().unwrap().push(head.clone());
    // `user:geheim`.
    if !head.to_lowercase().contains("proxy-authorization: basic ") || !head.contains("dXNlcjpnZWhlaW0=") {
        drop(
            inside
                .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
                .await,
        );
        return;
    }
    let to = head.split(' ').nth(1).unwrap().to_owned();
    let mut outside = TcpStream::connect(to).await.unwrap();
    inside.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    drop(copy_bidirectional(&mut inside, &mut outside).await);
}

#[tokio::test]
async fn tls_goes_through_a_tunnel_of_the_proxy() {
    let (admin, certificates, proxy) = (admin().await, Certificates::new("proxy"), Proxy::start().await);
    let (port, _server) = certificates.in_front_of(&admin, false).await;
    let config = || config(&format!("https://localhost:{port}")).ca_file(certificates.file("ca.pem"));
    let client = start(config().proxy(proxy.url.clone()));
    client.registered_within(LIMIT).await.unwrap();
    client.offline().await.unwrap();
    let heads = std::mem::take(&mut *proxy.heads.lock().unwrap());
    assert!(!heads.is_empty());
    for head in &heads {
        assert!(head.starts_with(&format!("CONNECT localhost:{port} HTTP/1.1\r\n")), "{head}");
        assert!(!head.contains("123456"), "the login is inside the tunnel: {head}");
    }

    // A proxy that says no is a failure like others, and nobody is told its password.
    let client = start(config().proxy(proxy.url.replace("geheim", "verkehrt")));
    let text = failure(&client).await;
    let all = format!("{text} {client:?} {:?}", client.status());
    assert!(!all.contains("verkehrt") && !all.contains("123456"), "{all}");
    assert!(!client.status().is_registered());
}

#[test]
fn a_client_of_the_programs_own_can_be_built_beside_ours() {
    // With `reqwest/rustls-no-provider` this panics, in whatever crate of the program it stands.
    assert!(reqwest::Client::builder().build().is_ok());
}
