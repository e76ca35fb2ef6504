//! What can go wrong while configuration is learned.

use std::fmt;

use soul_client::wire::soul::{ConfigGroup, answer::BadAnswer};

use super::RequestError;

/// Why a source has nothing to say at present. Asking again later is right in every case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The request did not get through, or took too long.
    #[error("{attempt} at `{admin}`")]
    Request {
        /// What was attempted.
        attempt: Attempt,
        /// The admin asked.
        admin: String,
        /// Why it failed.
        source: RequestError,
    },
    /// The admin answered, but not with what was asked for.
    #[error("{attempt} at `{admin}`")]
    Answer {
        /// What was attempted.
        attempt: Attempt,
        /// The admin asked.
        admin: String,
        /// What is wrong with the answer.
        source: AnswerError,
    },
    /// None of the admins could be used; each was logged with its reason.
    #[error("none of {admins} admins could be used, the last one failed")]
    NoAdmin {
        /// How many were tried.
        admins: usize,
        /// The last reason.
        source: Box<SyncError>,
    },
    /// The answer was not read to its end, because the process stops or the reader failed.
    #[error("read the configuration of `{admin}`")]
    Interrupted {
        /// The admin asked.
        admin: String,
        /// Why not.
        source: tokio::task::JoinError,
    },
    /// There is no admin to ask.
    #[error("no admin is given, name at least one")]
    NoAdminGiven,
    /// The admin in this process has stopped.
    #[error("the admin in this process has stopped")]
    LocalAdminGone,
}

/// What is wrong with an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Another HTTP status than 200.
    #[error("it has status {status} and begins with `{body}`")]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// It carries nothing.
    #[error(transparent)]
    Bad(#[from] BadAnswer),
    /// A group that was asked for is absent, or has no list or no checksum.
    #[error("group `{0}` is missing or incomplete")]
    Incomplete(ConfigGroup),
}

/// What was attempted at an admin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Fetching groups.
    Fetch,
    /// Waiting for a change.
    Poll,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fetch => "fetch the configuration",
            Self::Poll => "wait for a change of the configuration",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::chain;

    #[test]
    fn the_chain_tells_what_and_why_once() {
        let error = SyncError::NoAdmin {
            admins: 2,
            source: Box::new(SyncError::Answer {
                attempt: Attempt::Fetch,
                admin: "http://127.0.0.1:9095".to_owned(),
                source: AnswerError::Incomplete(ConfigGroup::Rule),
            }),
        };
        assert_eq!(
            chain(&error),
            "none of 2 admins could be used, the last one failed: fetch the configuration at \
             `http://127.0.0.1:9095`: group `RULE` is missing or incomplete"
        );
    }
}
