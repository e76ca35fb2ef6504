//! What callers are shown, and how it is replaced.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    client::verify_server_name,
    crypto::aws_lc_rs,
    pki_types::ServerName,
    server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier},
    sign::CertifiedKey,
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    HTTP_1_1, HTTP_2, TlsError, TlsFiles,
    files::{Contents, Digest},
    watch::{Look, watch},
};

/// TLS as the files say.
#[derive(Debug)]
pub(crate) struct CallerTls {
    files: TlsFiles,
    /// Whether HTTP/2 is offered.
    http2: AtomicBool,
    serving: ArcSwap<ServerConfig>,
    /// The contents looked at last, whether they could be served or not.
    seen: Mutex<Digest>,
}

/// What the files held when they were read.
#[derive(Debug)]
pub(crate) struct Read {
    config: Arc<ServerConfig>,
    http2: bool,
    digest: Digest,
}

impl CallerTls {
    /// # Errors
    /// When a file cannot be read, or holds nothing that can be served.
    pub(crate) fn open(files: TlsFiles, http2: bool) -> Result<Self, TlsError> {
        let contents = files.read()?;
        let (serving, seen) = (ArcSwap::from_pointee(server_config(&contents, http2)?), contents.digest());
        Ok(Self { files, http2: AtomicBool::new(http2), serving, seen: Mutex::new(seen) })
    }

    /// Reads the files again; [`serve`](Self::serve) takes up what they hold. Blocks while it reads.
    ///
    /// # Errors
    /// When they cannot be served.
    pub(crate) fn read(&self, http2: bool) -> Result<Read, TlsError> {
        let contents = self.files.read()?;
        let digest = contents.digest();
        match server_config(&contents, http2) {
            Ok(config) => Ok(Read { config: Arc::new(config), http2, digest }),
            Err(error) => {
                *self.seen() = digest;
                Err(error)
            }
        }
    }

    /// Connections from now on are shown what was read.
    pub(crate) fn serve(&self, Read { config, http2, digest }: Read) {
        *self.seen() = digest;
        self.http2.store(http2, Relaxed);
        self.serving.store(config);
        tracing::info!(certificates = self.files.pairs.len(), "serve the certificates in the files");
    }

    /// Reads the files again; connections from now on are shown what they hold. Blocks while it reads.
    ///
    /// # Errors
    /// When they cannot be served; then what was served before stays.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        self.read(self.http2.load(Relaxed)).map(|read| self.serve(read))
    }

    /// Looks at the files now and then, for ever.
    pub(crate) async fn watch(self: Arc<Self>) {
        watch(self, "callers").await;
    }

    /// Makes a connection one of TLS.
    ///
    /// # Errors
    /// When the caller breaks off, speaks no TLS, or none that is accepted here.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.serving.load_full()).accept(stream).await
    }

    fn seen(&self) -> MutexGuard<'_, Digest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Look for CallerTls {
    fn look(&self) -> Result<(), TlsError> {
        let contents = self.files.read()?;
        if contents.digest() == *self.seen() { Ok(()) } else { self.reload() }
    }
}

/// Made anew with the certificates, and with it the key of tickets: who was let in by the old files is asked again.
fn server_config(contents: &Contents<'_>, http2: bool) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let certificates = Certificates(contents.certified(&provider)?);
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    let config = match contents.client_roots().transpose()? {
        None => config.with_no_client_auth(),
        Some(roots) => config.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|source| contents.client_ca_unusable(source))?,
        ),
    };
    let mut config = config.with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = protocols(http2);
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(TlsError::Setup)?;
    Ok(config)
}

/// What is offered, the preferred one first.
fn protocols(http2: bool) -> Vec<Vec<u8>> {
    let names: &[&[u8]] = if http2 { &[HTTP_2, HTTP_1_1] } else { &[HTTP_1_1] };
    names.iter().map(|name| name.to_vec()).collect()
}

/// Certificates with their keys, the one for callers that name no host, or an unknown one, first.
#[derive(Debug)]
struct Certificates(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let usable = |pair: &&Arc<CertifiedKey>| pair.key.choose_scheme(hello.signature_schemes()).is_some();
        let named = |pair: &&Arc<CertifiedKey>| name.as_ref().is_some_and(|name| is_of(pair, name));
        let candidates = || self.0.iter().filter(usable);
        // A hello that fits none is answered by the first one, for an error that says so.
        candidates().find(named).or_else(|| candidates().next()).or(self.0.first()).cloned()
    }
}

fn is_of(pair: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let parsed = pair.end_entity_cert().and_then(ParsedCertificate::try_from);
    parsed.is_ok_and(|certificate| verify_server_name(&certificate, name).is_ok())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey as Issued, generate_simple_self_signed};

    use super::{super::watch::LOOK_EVERY, *};

    fn write(folder: &std::path::Path) -> TlsFiles {
        let Issued { cert, signing_key } = generate_simple_self_signed(["a".to_owned()]).unwrap();
        let pair = (folder.join("a.pem"), folder.join("a.key"));
        std::fs::write(&pair.0, cert.pem()).unwrap();
        std::fs::write(&pair.1, signing_key.serialize_pem()).unwrap();
        TlsFiles { pairs: vec![pair], client_ca: None }
    }

    #[tokio::test(start_paused = true)]
    async fn files_that_changed_are_read_again_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let tls = Arc::new(CallerTls::open(write(folder.path()), true).unwrap());
        let watching = tokio::spawn(Arc::clone(&tls).watch());
        let first = tls.serving.load_full();
        tokio::time::sleep(LOOK_EVERY * 2).await;
        assert!(Arc::ptr_eq(&first, &tls.serving.load_full()), "nothing changed");
        write(folder.path());
        let changed = async {
            while Arc::ptr_eq(&first, &tls.serving.load_full()) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(LOOK_EVERY * 10_000, changed).await.unwrap();

        let second = tls.serving.load_full();
        std::fs::remove_file(folder.path().join("a.key")).unwrap();
        tls.look().unwrap_err();
        assert!(Arc::ptr_eq(&second, &tls.serving.load_full()), "the old ones stay");
        tls.read(false).unwrap_err();
        write(folder.path());
        tls.serve(tls.read(false).unwrap());
        assert_eq!(tls.serving.load().alpn_protocols, [HTTP_1_1]);
        tls.reload().unwrap();
        assert_eq!(tls.serving.load().alpn_protocols, [HTTP_1_1], "also by files that changed");
        watching.abort();
    }
}
