//! The files: read as bytes first, so that it can be told whether they changed, and then for what they hold.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    RootCertStore,
    crypto::CryptoProvider,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
    sign::CertifiedKey,
};
use sha2::{Digest as _, Sha256};

use super::TlsError;

const CERTIFICATE: &str = "--tls-certificate";
const KEY: &str = "--tls-key";
const CLIENT_CA: &str = "--tls-client-ca";

/// The names of the files that say who the gateway is, and whom it lets in.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    /// Certificate with the chain behind it, and key.
    pub(crate) pairs: Vec<(PathBuf, PathBuf)>,
    /// Whose certificates callers must have, if they must have one.
    pub(crate) client_ca: Option<PathBuf>,
}

/// The files as they were at one time.
pub(super) struct Contents<'f> {
    pairs: Vec<(File<'f>, File<'f>)>,
    client_ca: Option<File<'f>>,
}

/// One file, read.
pub(super) struct File<'f> {
    flag: &'static str,
    path: &'f Path,
    bytes: Vec<u8>,
}

impl TlsFiles {
    /// Reads all of them.
    ///
    /// # Errors
    /// When one cannot be read.
    pub(super) fn read(&self) -> Result<Contents<'_>, TlsError> {
        let pairs = self
            .pairs
            .iter()
            .map(|(certificate, key)| Ok((File::read(CERTIFICATE, certificate)?, File::read(KEY, key)?)));
        let client_ca = self.client_ca.as_deref().map(|path| File::read(CLIENT_CA, path)).transpose()?;
        Ok(Contents { pairs: pairs.collect::<Result<_, TlsError>>()?, client_ca })
    }
}

impl Contents<'_> {
    /// See [`digest`].
    pub(super) fn digest(&self) -> Digest {
        let files = self.pairs.iter().flat_map(|(certificate, key)| [certificate, key]);
        digest(files.chain(&self.client_ca))
    }

    /// The certificates with their keys.
    ///
    /// # Errors
    /// When one is none, or a key is another's.
    pub(super) fn certified(&self, provider: &CryptoProvider) -> Result<Vec<Arc<CertifiedKey>>, TlsError> {
        self.pairs.iter().map(|(certificate, key)| certified(certificate, key, provider)).collect()
    }

    /// Who may have signed the certificates of callers.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(super) fn client_roots(&self) -> Option<Result<RootCertStore, TlsError>> {
        self.client_ca.as_ref().map(File::roots)
    }

    /// They cannot be used after all.
    pub(super) fn client_ca_unusable(
        &self,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> TlsError {
        match &self.client_ca {
            Some(file) => file.unusable(source),
            None => TlsError::Setup(rustls::Error::General(source.to_string())),
        }
    }
}

/// What tells contents of files from others.
pub(super) type Digest = [u8; 32];

pub(super) fn digest<'a, 'f: 'a>(files: impl Iterator<Item = &'a File<'f>>) -> Digest {
    let mut digest = Sha256::new();
    for file in files {
        digest.update((file.bytes.len() as u64).to_be_bytes());
        digest.update(&file.bytes);
    }
    digest.finalize().into()
}

/// A certificate, with the chain behind it, and its key.
///
/// # Errors
/// When one is none, or the key is another's.
pub(super) fn certified(
    certificate: &File<'_>,
    key: &File<'_>,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = certificate.certificates()?;
    let signing = provider.key_provider.load_private_key(key.key()?);
    let signing = signing.map_err(|source| key.unusable(source))?;
    let pair = CertifiedKey::new(chain, signing);
    match pair.keys_match() {
        // Some keys do not tell; the first handshake does.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
            Ok(Arc::new(pair))
        }
        Err(rustls::Error::InconsistentKeys(_)) => Err(TlsError::Mismatch {
            flags: [certificate.flag, key.flag],
            certificate: certificate.path.to_owned(),
            key: key.path.to_owned(),
        }),
        Err(source) => Err(certificate.unusable(source)),
    }
}

impl<'f> File<'f> {
    pub(super) fn read(flag: &'static str, path: &'f Path) -> Result<Self, TlsError> {
        match fs::read(path) {
            Ok(bytes) => Ok(Self { flag, path, bytes }),
            Err(source) => Err(TlsError::Unreadable { flag, file: path.to_owned(), source }),
        }
    }

    /// Every certificate in it; there is at least one.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        match read {
            Ok(certificates) if certificates.is_empty() => Err(self.nothing("certificate", "CERTIFICATE")),
            Ok(certificates) => Ok(certificates),
            Err(source) => Err(self.not_pem(source)),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        match PrivateKeyDer::from_pem_slice(&self.bytes) {
            Ok(key) => Ok(key),
            Err(pem::Error::NoItemsFound) => {
                Err(self.nothing("private key without a passphrase", "PRIVATE KEY"))
            }
            Err(source) => Err(self.not_pem(source)),
        }
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates()? {
            roots.add(certificate).map_err(|source| self.unusable(source))?;
        }
        Ok(roots)
    }

    fn nothing(&self, what: &'static str, label: &'static str) -> TlsError {
        TlsError::Nothing { flag: self.flag, file: self.path.to_owned(), what, label }
    }

    fn not_pem(&self, source: pem::Error) -> TlsError {
        TlsError::NotPem { flag: self.flag, file: self.path.to_owned(), source }
    }

    fn unusable(&self, source: impl std::error::Error + Send + Sync + 'static) -> TlsError {
        TlsError::Unusable { flag: self.flag, file: self.path.to_owned(), source: Box::new(source) }
    }
}
