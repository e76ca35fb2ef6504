//! TLS towards upstreams: whom they are believed to be, and what is spoken inside.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use rustls_platform_verifier::Verifier;
use tokio::{net::TcpStream, sync::OnceCell};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{HTTP_1_1, HTTP_2, TlsError, files::File};

const CA: &str = "--upstream-ca";

/// How upstreams of `https://` are spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpstreamTrust {
    /// Authorities that are believed besides those of the system.
    pub(crate) ca: Option<PathBuf>,
    /// Whether anybody is believed.
    pub(crate) anybody: bool,
    /// Whether HTTP/2 is offered.
    pub(crate) http2: bool,
}

/// TLS towards upstreams, by what is trusted now.
#[derive(Debug)]
pub(crate) struct UpstreamTls(ArcSwap<Trusting>);

#[derive(Debug)]
struct Trusting {
    trust: UpstreamTrust,
    authorities: Vec<CertificateDer<'static>>,
    /// Made at the first upstream of `https://`: the authorities of the system take time and memory, and most gateways never
    /// need them.
    config: OnceCell<Arc<ClientConfig>>,
}

impl UpstreamTls {
    /// # Errors
    /// When the file of authorities cannot be read, or holds none.
    pub(crate) fn open(trust: UpstreamTrust) -> Result<Self, TlsError> {
        Ok(Self(ArcSwap::from_pointee(Trusting::read(trust)?)))
    }

    /// Reads the authorities again; connections go by them once what this gives was called. Blocks while it reads.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn read(self: &Arc<Self>, trust: UpstreamTrust) -> Result<impl FnOnce() + use<>, TlsError> {
        let (this, new) = (Arc::clone(self), Trusting::read(trust)?);
        Ok(move || {
            let old = this.0.load();
            if new.trust != old.trust || new.authorities != old.authorities {
                this.0.store(Arc::new(new));
            }
        })
    }

    /// Makes a connection one of TLS, with an upstream that proves to be `name`.
    ///
    /// # Errors
    /// When it proves to be nobody that is believed, or speaks no TLS.
    pub(crate) async fn connect(
        &self,
        name: ServerName<'static>,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let trusting = self.0.load_full();
        let made = || async {
            let trusting = Arc::clone(&trusting);
            let made = tokio::task::spawn_blocking(move || trusting.config().map(Arc::new));
            made.await.map_err(io::Error::other)?
        };
        let config = Arc::clone(trusting.config.get_or_try_init(made).await?);
        TlsConnector::from(config).connect(name, stream).await.map_err(|error| {
            // Which part of making a connection failed cannot be told from these words alone.
            io::Error::new(error.kind(), format!("TLS: {error}"))
        })
    }
}

impl Trusting {
    fn read(trust: UpstreamTrust) -> Result<Self, TlsError> {
        let read = |path: &Path| File::read(CA, path)?.certificates();
        if trust.anybody {
            tracing::warn!(
                "upstreams of `https://` are believed whatever certificate they show (`--upstream-tls-insecure`)"
            );
        }
        let authorities = trust.ca.as_deref().map(read).transpose()?.unwrap_or_default();
        Ok(Self { trust, authorities, config: OnceCell::new() })
    }

    fn config(&self) -> io::Result<ClientConfig> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = if self.trust.anybody {
            Arc::new(Anybody(Arc::clone(&provider)))
        } else {
            let authorities = self.authorities.iter().cloned();
            let verifier = Verifier::new_with_extra_roots(authorities, Arc::clone(&provider));
            Arc::new(verifier.map_err(io::Error::other)?)
        };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let protocols: &[&[u8]] = if self.trust.http2 { &[HTTP_2, HTTP_1_1] } else { &[HTTP_1_1] };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }
}

/// Believes everybody: what is sent cannot be read by others, and may go to anybody.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
