//! Why an admin does not start.

use std::{io, net::SocketAddr};

use soul_client::wire::gson::GsonError;
use thiserror::Error;

use super::{
    PersistError,
    problem::{Problem, sentence},
    store::DamagedRow,
    writer::OpenError,
};
use crate::causes::is_of_the_name;

/// Why an admin does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AdminError {
    /// Settings that cannot work.
    #[error("the admin's settings are wrong: {}", sentence(.0))]
    Config(Vec<Problem>),
    /// The address cannot be listened on.
    #[error("listen on `{address}`")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] PersistError),
    /// The store holds a row that this version cannot read, although its checksum is right.
    #[error("the store in `{data}` holds a row this version cannot read; run the version that wrote it")]
    Row {
        /// Where the store is kept.
        data: String,
        /// Which row.
        #[source]
        source: DamagedRow,
    },
    /// A group of the configuration cannot be written as JSON, so that there is nothing to give to gateways.
    #[error("write a group of the configuration as JSON")]
    Render(#[source] GsonError),
    /// Opening the store was given up.
    #[error("open the store")]
    Interrupted(#[source] tokio::task::JoinError),
}

impl AdminError {
    /// Whether a setting has to be put right, or the folder that it names.
    pub(crate) fn is_of_a_setting(&self) -> bool {
        match self {
            Self::Config(_) => true,
            Self::Store(PersistError::Unusable { source, .. }) => is_of_the_name(source),
            _ => false,
        }
    }

    pub(crate) fn open(error: OpenError, data: String) -> Self {
        match error {
            OpenError::Persist(error) => Self::Store(error),
            OpenError::Row(source) => Self::Row { data, source },
            OpenError::Render(source) => Self::Render(source),
        }
    }
}
