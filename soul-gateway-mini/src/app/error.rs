//! Why the process cannot run, and what it then ends with.

use std::{io, net::SocketAddr, path::PathBuf};

use crate::{admin::AdminError, causes::is_of_the_name, gateway::GatewayError};

/// Why the process cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// The machine refused threads, timers or signals.
    #[error("start the runtime")]
    Runtime(#[source] io::Error),
    /// An address cannot be listened on.
    #[error("listen on `{address}` (`{flag}`)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The flag that sets it.
        flag: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The admin did not start.
    #[error(transparent)]
    Admin(AdminError),
    /// The gateway did not start.
    #[error(transparent)]
    Gateway(GatewayError),
    /// No gateway could be taken over from, or found for it.
    #[error(
        "take over by `{}` (`--takeover`), expected the name of a socket in a folder in which this user may write",
        path.display()
    )]
    Takeover {
        /// The socket file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The gateway has its first configuration, and its port cannot be opened after all; the log says why.
    #[error("open the port for requests (`--gateway-listen`)")]
    NotServing,
}

impl AppError {
    /// What the process ends with: 2 where a setting has to be put right, as for those that cannot be read, else 1.
    pub(super) fn exit_code(&self) -> u8 {
        let of_a_setting = match self {
            Self::Admin(error) => error.is_of_a_setting(),
            Self::Gateway(error) => error.is_of_a_setting(),
            Self::Takeover { source, .. } => is_of_the_name(source),
            // Another program may have the address, or the machine may get it later.
            Self::Runtime(_) | Self::Listen { .. } | Self::NotServing => false,
        };
        if of_a_setting { 2 } else { 1 }
    }
}

impl From<AdminError> for AppError {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Bind { address, source } => Self::Listen { address, flag: "--admin-listen", source },
            error => Self::Admin(error),
        }
    }
}

impl From<GatewayError> for AppError {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::Listen { address, purpose, source } => {
                let flag = if purpose == "status" { "--status-listen" } else { "--gateway-listen" };
                Self::Listen { address, flag, source }
            }
            error => Self::Gateway(error),
        }
    }
}
