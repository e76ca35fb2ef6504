//! Certificates, and callers that speak TLS, for the stories.

use std::{
    fs, io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{
    ClientConfig, HandshakeKind, RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};
use tokio_util::task::AbortOnDropHandle;

use super::{
    super::GatewayConfig,
    peers::{Message, Reply, Script, Wire, converse, ok, within},
    setup::config,
};

/// An authority that issues certificates.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub(super) struct Identity {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) pem: String,
    pub(super) key: KeyPair,
}

impl Authority {
    pub(super) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let mut params = CertificateParams::new([]).unwrap();
        // Two of one name would be told apart by their keys alone.
        params
            .distinguished_name
            .push(DnType::CommonName, format!("authority {}", NEXT.fetch_add(1, Relaxed)));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(super) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        roots
    }

    /// A certificate of names and addresses.
    pub(super) fn issue(&self, names: &[&str]) -> Identity {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.0).unwrap();
        Identity { certificate: certificate.der().clone(), pem: certificate.pem(), key }
    }
}

impl Identity {
    pub(super) fn key_der(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.serialize_der().into())
    }
}

/// Files that are gone with it.
pub(super) struct Files(TempDir);

impl Files {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes certificate and key as `<name>.pem` and `<name>.key`.
    pub(super) fn identity(&self, name: &str, identity: &Identity) -> (PathBuf, PathBuf) {
        (
            self.write(&format!("{name}.pem"), &identity.pem),
            self.write(&format!("{name}.key"), &identity.key.serialize_pem()),
        )
    }

    /// Settings of a gateway that speaks TLS by these identities.
    pub(super) fn config(&self, identities: &[&Identity]) -> GatewayConfig {
        let pairs = identities
            .iter()
            .enumerate()
            .map(|(index, identity)| self.identity(&index.to_string(), identity));
        let (tls_certificates, tls_keys) = pairs.unzip();
        GatewayConfig { tls_certificates, tls_keys, ..config() }
    }
}

/// A caller that speaks TLS.
pub(super) struct Dialer<'a> {
    pub(super) authority: &'a Authority,
    pub(super) protocols: &'a [&'a str],
    pub(super) identity: Option<&'a Identity>,
}

impl<'a> Dialer<'a> {
    pub(super) fn trusting(authority: &'a Authority) -> Self {
        Self { authority, protocols: &[], identity: None }
    }

    pub(super) async fn dial(
        &self,
        gateway: SocketAddr,
        name: &str,
    ) -> io::Result<Wire<TlsStream<TcpStream>>> {
        let stream = within(TcpStream::connect(gateway)).await?;
        self.over(stream, name).await
    }

    /// Over a connection on which something may have been said.
    pub(super) async fn over(&self, stream: TcpStream, name: &str) -> io::Result<Wire<TlsStream<TcpStream>>> {
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.authority.roots());
        let mut config = match self.identity {
            None => config.with_no_client_auth(),
            Some(own) => config.with_client_auth_cert(vec![own.certificate.clone()], own.key_der()).unwrap(),
        };
        config.alpn_protocols = self.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await.map(Wire::new)
    }
}

/// What came of a handshake.
type Shaken = Result<Option<HandshakeKind>, String>;

/// An upstream that speaks HTTP/1.1 inside TLS and keeps what it is asked.
pub(super) struct SecureUpstream {
    pub(super) address: SocketAddr,
    pub(super) seen: Arc<Mutex<Vec<Message>>>,
    /// What came of its handshakes: whether one was whole or taken up again, or why there was none.
    pub(super) shaken: Arc<Mutex<Vec<Shaken>>>,
    /// The certificates that it was shown.
    pub(super) shown: Arc<Mutex<Vec<CertificateDer<'static>>>>,
    _accepting: AbortOnDropHandle<()>,
}

impl SecureUpstream {
    pub(super) async fn start(
        identity: &Identity,
        script: impl Fn(&Message) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::with(identity, WebPkiClientVerifier::no_client_auth(), script).await
    }

    /// One that lets nobody in without a certificate of an authority.
    pub(super) async fn asking(identity: &Identity, authority: &Authority) -> Self {
        let (roots, provider) = (Arc::new(authority.roots()), Arc::new(aws_lc_rs::default_provider()));
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build().unwrap();
        Self::with(identity, verifier, |_| ok("one")).await
    }

    async fn with(
        identity: &Identity,
        verifier: Arc<dyn ClientCertVerifier>,
        script: impl Fn(&Message) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![identity.certificate.clone()], identity.key_der())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, shaken): (Arc<Mutex<Vec<Message>>>, Arc<Mutex<Vec<_>>>) = Default::default();
        let (script, keep, told) = (Arc::new(script) as Script, Arc::clone(&seen), Arc::clone(&shaken));
        let shown: Arc<Mutex<Vec<_>>> = Arc::default();
        let keep_shown = Arc::clone(&shown);
        let accepting = tokio::spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, script) = (acceptor.clone(), Arc::clone(&script));
                let (seen, told, shown) = (Arc::clone(&keep), Arc::clone(&told), Arc::clone(&keep_shown));
                open.spawn(async move {
                    match acceptor.accept(stream).await {
                        Ok(stream) => {
                            let connection = stream.get_ref().1;
                            told.lock().unwrap().push(Ok(connection.handshake_kind()));
                            let certificates = connection.peer_certificates().unwrap_or_default();
                            shown
                                .lock()
                                .unwrap()
                                .extend(certificates.first().map(|c| c.clone().into_owned()));
                            converse(Wire::new(stream), script, seen, Arc::default()).await;
                        }
                        Err(error) => told.lock().unwrap().push(Err(error.to_string())),
                    }
                });
            }
        });
        Self { address, seen, shaken, shown, _accepting: AbortOnDropHandle::new(accepting) }
    }
}

/// The certificate that the other side showed, and the protocol that it chose.
pub(super) fn shown(wire: &Wire<TlsStream<TcpStream>>) -> (CertificateDer<'static>, Option<String>) {
    let connection = wire.stream.get_ref().1;
    let protocol = connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
    (connection.peer_certificates().unwrap()[0].clone().into_owned(), protocol)
}
