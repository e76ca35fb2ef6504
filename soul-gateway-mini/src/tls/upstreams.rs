//! TLS towards upstreams: whom they are believed to be, who the gateway is to them, and what is spoken inside.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    sign::{CertifiedKey, SingleCertAndKey},
};
use rustls_platform_verifier::Verifier;
use tokio::{net::TcpStream, sync::OnceCell};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{
    HTTP_1_1, HTTP_2, TlsError,
    files::{self, Digest, File},
    watch::{Look, watch},
};

const CA: &str = "--upstream-ca";
const CERTIFICATE: &str = "--upstream-certificate";
const KEY: &str = "--upstream-key";

/// How upstreams of `https://` are spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpstreamTrust {
    /// Authorities that are believed besides those of the system.
    pub(crate) ca: Option<PathBuf>,
    /// Certificate, with the chain behind it, and key that are shown to upstreams that ask for one.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    /// Whether anybody is believed.
    pub(crate) anybody: bool,
    /// Whether HTTP/2 is offered.
    pub(crate) http2: bool,
}

/// TLS towards upstreams, by what is trusted now.
#[derive(Debug)]
pub(crate) struct UpstreamTls {
    trusting: ArcSwap<Trusting>,
    /// The contents of the files looked at last, whether they could be used or not.
    seen: Mutex<Digest>,
}

#[derive(Debug)]
struct Trusting {
    trust: UpstreamTrust,
    authorities: Vec<CertificateDer<'static>>,
    identity: Option<Arc<CertifiedKey>>,
    /// Of the files.
    digest: Digest,
    /// Made at the first upstream of `https://`: the authorities of the system take time and memory, and most gateways never
    /// need them.
    config: OnceCell<Arc<ClientConfig>>,
}

impl UpstreamTls {
    /// # Errors
    /// When a file cannot be read, or holds nothing that can be used.
    pub(crate) fn open(trust: UpstreamTrust) -> Result<Self, TlsError> {
        trust.warn();
        let trusting = Contents::read(&trust)?.trusting(&trust)?;
        Ok(Self { seen: Mutex::new(trusting.digest), trusting: ArcSwap::from_pointee(trusting) })
    }

    /// Reads the files again; connections go by them once what this gives was called. Blocks while it reads.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn read(self: &Arc<Self>, trust: UpstreamTrust) -> Result<impl FnOnce() + use<>, TlsError> {
        trust.warn();
        let (this, new) = (Arc::clone(self), Contents::read(&trust)?.trusting(&trust)?);
        Ok(move || {
            let (old, digest) = (this.trusting.load(), new.digest);
            if new.trust != old.trust || digest != old.digest {
                this.trusting.store(Arc::new(new));
            }
            // After it: what a look took up meanwhile serves no more.
            *this.seen() = digest;
        })
    }

    /// Looks at the files now and then, for ever.
    pub(crate) async fn watch(self: Arc<Self>) {
        watch(self, "upstreams").await;
    }

    /// Takes up what the files hold now, unless it is what was seen last.
    ///
    /// - `old`: what served before they were looked at.
    fn take_up(&self, old: &Arc<Trusting>) -> Result<(), TlsError> {
        let contents = Contents::read(&old.trust)?;
        let digest = contents.digest();
        if std::mem::replace(&mut *self.seen(), digest) != digest {
            let new = Arc::new(contents.trusting(&old.trust)?);
            let before = self.trusting.compare_and_swap(old, new);
            if Arc::ptr_eq(&before, old) {
                tracing::info!("upstreams are spoken to by the new certificates in the files");
            } else {
                // Other settings that came meanwhile count more; the next look goes by them.
                *self.seen() = before.digest;
            }
        }
        Ok(())
    }

    fn seen(&self) -> MutexGuard<'_, Digest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
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
        let trusting = self.trusting.load_full();
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

impl Look for UpstreamTls {
    fn look(&self) -> Result<(), TlsError> {
        self.take_up(&self.trusting.load_full())
    }
}

impl UpstreamTrust {
    fn warn(&self) {
        if self.anybody {
            tracing::warn!(
                "upstreams of `https://` are believed whatever certificate they show (`--upstream-tls-insecure`)"
            );
        }
    }
}

/// The files as they were at one time.
struct Contents<'f> {
    ca: Option<File<'f>>,
    identity: Option<(File<'f>, File<'f>)>,
}

impl<'f> Contents<'f> {
    fn read(trust: &'f UpstreamTrust) -> Result<Self, TlsError> {
        let ca = trust.ca.as_deref().map(|path| File::read(CA, path)).transpose()?;
        let identity = trust.identity.as_ref();
        let identity = identity
            .map(|(certificate, key)| Ok((File::read(CERTIFICATE, certificate)?, File::read(KEY, key)?)));
        Ok(Self { ca, identity: identity.transpose()? })
    }

    fn digest(&self) -> Digest {
        let identity = self.identity.iter().flat_map(|(certificate, key)| [certificate, key]);
        files::digest(self.ca.iter().chain(identity))
    }

    fn trusting(&self, trust: &UpstreamTrust) -> Result<Trusting, TlsError> {
        let provider = aws_lc_rs::default_provider();
        let identity = self.identity.as_ref();
        let identity = identity.map(|(certificate, key)| files::certified(certificate, key, &provider));
        Ok(Trusting {
            trust: trust.clone(),
            authorities: self.ca.as_ref().map(File::certificates).transpose()?.unwrap_or_default(),
            identity: identity.transpose()?,
            digest: self.digest(),
            config: OnceCell::new(),
        })
    }
}

impl Trusting {
    fn config(&self) -> io::Result<ClientConfig> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = if self.trust.anybody {
            Arc::new(Anybody(Arc::clone(&provider)))
        } else {
            let authorities = self.authorities.iter().cloned();
            let verifier = Verifier::new_with_extra_roots(authorities, Arc::clone(&provider));
            Arc::new(verifier.map_err(io::Error::other)?)
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.identity {
            None => config.with_no_client_auth(),
            Some(identity) => {
                config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(identity))))
            }
        };
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

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey as Issued, generate_simple_self_signed};

    use super::*;

    #[test]
    fn files_that_changed_are_taken_up_and_those_that_cannot_be_used_are_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["a.pem", "a.key"].map(|name| folder.path().join(name));
        let issue = || {
            let Issued { cert, signing_key } = generate_simple_self_signed(["a".to_owned()]).unwrap();
            std::fs::write(&certificate, cert.pem()).unwrap();
            std::fs::write(&key, signing_key.serialize_pem()).unwrap();
        };
        issue();
        let identity = Some((certificate.clone(), key.clone()));
        let trust = UpstreamTrust { identity, ..UpstreamTrust::default() };
        let tls = Arc::new(UpstreamTls::open(trust.clone()).unwrap());
        let first = tls.trusting.load_full();
        tls.look().unwrap();
        tls.read(trust.clone()).unwrap()();
        assert!(Arc::ptr_eq(&first, &tls.trusting.load_full()), "nothing changed");

        issue();
        tls.look().unwrap();
        let second = tls.trusting.load_full();
        assert!(!Arc::ptr_eq(&first, &second));

        // A reload in the midst of a look counts more, and the next look goes on from there.
        let insecure = UpstreamTrust { anybody: true, ..trust.clone() };
        tls.read(insecure).unwrap()();
        issue();
        tls.take_up(&second).unwrap();
        let third = tls.trusting.load_full();
        assert!(third.trust.anybody && third.digest == second.digest);
        tls.look().unwrap();
        let second = tls.trusting.load_full();
        assert!(second.trust.anybody && second.digest != third.digest, "the renewal is not forgotten");

        std::fs::write(&key, "none").unwrap();
        assert!(tls.look().unwrap_err().to_string().contains("a.key` (`--upstream-key`)"));
        tls.look().unwrap();
        assert!(tls.read(trust.clone()).is_err());
        std::fs::remove_file(&key).unwrap();
        for _ in 0..2 {
            tls.look().unwrap_err();
        }
        assert!(Arc::ptr_eq(&second, &tls.trusting.load_full()), "the old ones stay");
        tls.read(UpstreamTrust { identity: None, ..trust }).unwrap()();
        assert!(tls.trusting.load().identity.is_none(), "none is shown any more");
    }
}
