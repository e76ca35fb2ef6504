//! How many files and sockets the process may have open.

use tracing::{debug, warn};

/// Raises the limit to the most the system lets this process have.
///
/// Shells and service managers often start programs with 1024, fewer than the polls an admin can hold or the callers a
/// gateway can have. The low default only protects programs that use `select`; none of this one's parts do.
#[cfg(unix)]
pub(super) fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => debug!(from = ?current, to = ?maximum, "raise the limit of open files"),
        Err(error) => warn!(%error, limit = ?current, "raise the limit of open files"),
    }
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub(super) fn raise_limit() {
    debug!("no limit of open files to raise");
}
