//! What can be wrong with a file for TLS.

use std::{io, path::PathBuf};

use rustls::pki_types::pem;

use crate::causes::is_of_the_name;

/// Why TLS cannot be spoken with the files that were given; each names the file and the setting that does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file cannot be read.
    #[error("read `{}` (`{flag}`), expected a file that this user may read", file.display())]
    Unreadable {
        /// The setting that names the file.
        flag: &'static str,
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is no PEM.
    #[error("`{}` (`{flag}`) cannot be read as PEM, expected what begins with `-----BEGIN`", file.display())]
    NotPem {
        /// The setting that names the file.
        flag: &'static str,
        /// The file.
        file: PathBuf,
        /// Why not.
        source: pem::Error,
    },
    /// Nothing in it is what it should hold.
    #[error("`{}` (`{flag}`) holds no {what}, expected PEM with `-----BEGIN {label}-----`", file.display())]
    Nothing {
        /// The setting that names the file.
        flag: &'static str,
        /// The file.
        file: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// How that begins.
        label: &'static str,
    },
    /// What it holds cannot be used.
    #[error("`{}` (`{flag}`) cannot be used, put another in its place", file.display())]
    Unusable {
        /// The setting that names the file.
        flag: &'static str,
        /// The file.
        file: PathBuf,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Certificate and key do not belong together.
    #[error(
        "the key in `{}` (`{}`) is not that of the first certificate in `{}` (`{}`); name the key that it was made with",
        key.display(), flags[1], certificate.display(), flags[0]
    )]
    Mismatch {
        /// The settings that name the files.
        flags: [&'static str; 2],
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
    },
    /// The library refuses its own defaults.
    #[error("set up TLS")]
    Setup(#[source] rustls::Error),
}

impl TlsError {
    /// Whether a file, or the setting that names it, has to be put right.
    pub(crate) fn is_of_a_setting(&self) -> bool {
        match self {
            Self::Unreadable { source, .. } => is_of_the_name(source),
            Self::NotPem { .. } | Self::Nothing { .. } | Self::Unusable { .. } | Self::Mismatch { .. } => {
                true
            }
            Self::Setup(_) => false,
        }
    }
}
