//! TLS to the admins: rustls with aws-lc-rs, built for this crate's client alone. The program's own choice of a
//! provider, or the lack of one, is not touched.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;

use crate::{
    config,
    error::{Error, Problem},
};

/// Reads the certificates that the settings name. What the system trusts is only looked at where an admin has an
/// `https` address and no authority of its own is set.
pub(super) fn config(settings: &config::ClientConfig) -> Result<ClientConfig, Error> {
    let problem = |field, text: String| Error::config(vec![Problem::new(field, text)]);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| problem("admin_url", format!("TLS cannot be set up: {error}")))?;
    let is_needed = settings.admin_urls().any(|url| url.starts_with("https:"));
    let builder = match settings.tls().ca_file.as_deref() {
        Some(file) => builder.with_root_certificates(roots(file)?),
        None if is_needed => {
            let verifier = system(provider).map_err(|error| {
                problem("ca_file", format!("is missing, and what this system trusts cannot be used: {error}"))
            })?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        None => builder.with_root_certificates(RootCertStore::empty()),
    };
    let mut tls = match &settings.tls().client {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain = certificates("client_cert_file", chain)?;
            let shown = key.display();
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                problem("client_key_file", format!("`{shown}` holds no private key: {error}"))
            })?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                problem("client_cert_file", format!("does not go with its key `{shown}`: {error}"))
            })?
        }
    };
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(tls)
}

/// For a client that speaks no TLS: what the system trusts need not be read for it, and may be missing. `None` never happens with
/// the versions that are built in.
#[cfg(feature = "call")]
pub(crate) fn trusting_nobody() -> Option<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.ok().map(|b| b.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// Not "dangerous" at all: rustls calls every verifier but its own so.
fn system(provider: Arc<CryptoProvider>) -> Result<Verifier, rustls::Error> {
    Verifier::new(provider)
}

fn roots(file: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("ca_file", file)? {
        roots.add(certificate).map_err(|error| {
            let text =
                format!("`{}` holds a certificate that is none of an authority: {error}", file.display());
            Error::config(vec![Problem::new("ca_file", text)])
        })?;
    }
    Ok(roots)
}

fn certificates(field: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let shown = file.display();
    let problem = |text: String| Error::config(vec![Problem::new(field, text)]);
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| problem(format!("`{shown}` cannot be read as PEM: {error}")))?;
    if certificates.is_empty() {
        return Err(problem(format!(
            "`{shown}` holds no certificate: it must have PEM blocks of the kind CERTIFICATE"
        )));
    }
    Ok(certificates)
}
