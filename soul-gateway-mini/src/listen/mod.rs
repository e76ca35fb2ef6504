//! What admin and gateway do alike with the connections they take.

mod accept;
mod patience;

pub(crate) use accept::{Accepted, Acceptor};
pub(crate) use patience::Patience;
