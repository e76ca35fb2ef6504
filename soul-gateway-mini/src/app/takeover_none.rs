//! Taking over from another gateway, where sockets cannot be handed from process to process.

use std::{future::pending, io, path::Path};

use crate::gateway::Sockets;

#[derive(Debug)]
pub(super) struct Turn;

impl Turn {
    pub(super) async fn take(_: &Path) -> io::Result<Self> {
        Ok(Self)
    }
}

#[derive(Debug)]
pub(super) struct Predecessor;

pub(super) async fn ask(_: &Path) -> io::Result<Option<(Sockets, Predecessor)>> {
    Ok(None)
}

impl Predecessor {
    pub(super) fn relieve(self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Successors;

impl Successors {
    pub(super) fn listen(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) async fn relieved(&self, _: impl Fn() -> io::Result<Sockets>, _: impl Fn()) {
        pending().await
    }
}
