//! What admin and gateway do alike with the connections they take.

mod accept;
mod asked;
pub(crate) mod handshakes;
mod patience;
mod places;

pub(crate) use accept::{Accepted, Acceptor};
pub(crate) use asked::{Asked, GRACE};
pub(crate) use patience::Patience;
pub(crate) use places::Places;
