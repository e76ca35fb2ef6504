//! Certificates, and callers that speak TLS, for the stories.

use std::{fs, io, net::SocketAddr, path::PathBuf, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{
    super::GatewayConfig,
    peers::{Wire, within},
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
        let mut params = CertificateParams::new([]).unwrap();
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
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.authority.roots());
        let mut config = match self.identity {
            None => config.with_no_client_auth(),
            Some(own) => config.with_client_auth_cert(vec![own.certificate.clone()], own.key_der()).unwrap(),
        };
        config.alpn_protocols = self.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let stream = within(TcpStream::connect(gateway)).await?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await.map(Wire::new)
    }
}

/// The certificate that the other side showed, and the protocol that it chose.
pub(super) fn shown(wire: &Wire<TlsStream<TcpStream>>) -> (CertificateDer<'static>, Option<String>) {
    let connection = wire.stream.get_ref().1;
    let protocol = connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
    (connection.peer_certificates().unwrap()[0].clone().into_owned(), protocol)
}
