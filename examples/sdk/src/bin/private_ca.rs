//! An admin behind TLS whose certificate is signed by an authority of one's own. The authority, the certificate and the
//! admin are made here, at start, in real life they are there: what a service says is `https://` and `.ca_file(…)`.
//! Needs the feature `axum` of soul-client, and `testing` for the admin.
//!
//! ```sh
//! cargo run -p sdk-examples --bin private_ca
//! ```
//!
//! Expect:
//!
//! ```text
//! without its authority: register within 5s: … invalid peer certificate: UnknownIssuer
//! with it: registered /shop/order/save at https://localhost:42817
//! ```

use std::{error::Error, net::SocketAddr, sync::Arc, time::Duration};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use soul_client::{ClientConfig, Dialect, ShenyuVersion, SoulClient, soul_client, testing::FakeAdmin};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer},
};

#[soul_client(post, path = "/order/save", desc = "Save an order")]
async fn save() {}

/// The authority as PEM, and a server that has a certificate of it.
fn certificates() -> Result<(String, TlsAcceptor), Box<dyn Error>> {
    let mut authority = CertificateParams::new([])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(["localhost".to_owned()])?.signed_by(&key, &authority)?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let server = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    Ok((authority.pem(), TlsAcceptor::from(Arc::new(server))))
}

/// Takes TLS off in front of `admin`.
async fn take_tls_off(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    admin: SocketAddr,
) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let mut inside = acceptor.accept(stream).await?;
            copy_bidirectional(&mut inside, &mut TcpStream::connect(admin).await?).await
        });
    }
}

/// Registers and leaves again; no server answers at this address, which no admin minds at first.
async fn register(config: ClientConfig) -> Result<(), soul_client::Error> {
    let client = SoulClient::start(config, SocketAddr::from(([127, 0, 0, 1], 8188)))?;
    let registered = client.registered_within(Duration::from_secs(5)).await;
    client.offline().await.ok();
    registered
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let admin = FakeAdmin::start(Dialect::Shenyu(ShenyuVersion::V2_7)).await?;
    let (authority, acceptor) = certificates()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://localhost:{}", listener.local_addr()?.port());
    let server = tokio::spawn(take_tls_off(listener, acceptor, admin.url().replace("http://", "").parse()?));
    let folder = tempfile::tempdir()?;
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, authority)?;

    let config = ClientConfig::builder()
        .admin_url(&url)
        .context_path("/shop")
        .username(FakeAdmin::USERNAME)
        .password(FakeAdmin::PASSWORD);
    if let Err(error) = register(config.clone().build()?).await {
        println!("without its authority: {}", error.chain());
    }
    register(config.ca_file(ca_file).build()?).await?;
    println!("with it: registered {} at {url}", admin.routes().join(", "));
    server.abort();
    Ok(())
}
