//! What two gateways say to each other, and the sockets that go along.
//!
//! | who | says | with |
//! |---|---|---|
//! | the old | `1`, the version of what follows; or `n` and nothing more, to another user than its own and root | |
//! | the old | `r` for each socket for requests, `s` for the one for status | the socket |
//! | the old | `.` | |
//! | the new | `R`, it is ready | |

use std::{
    io::{self, IoSlice, IoSliceMut, Read as _},
    mem::MaybeUninit,
    net::TcpListener,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::{
    cmsg_space,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, recvmsg, sendmsg,
    },
};

use crate::gateway::Sockets;

const VERSION: u8 = b'1';
/// To another user than its own and root.
pub(super) const NO: u8 = b'n';
const REQUESTS: u8 = b'r';
const STATUS: u8 = b's';
const END: u8 = b'.';
/// What the new one says in the end.
pub(super) const READY: u8 = b'R';

/// Sends all of them.
pub(super) fn send(stream: &UnixStream, sockets: &Sockets) -> io::Result<()> {
    say(stream, VERSION, None)?;
    for socket in &sockets.requests {
        say(stream, REQUESTS, Some(socket.as_fd()))?;
    }
    if let Some(socket) = &sockets.status {
        say(stream, STATUS, Some(socket.as_fd()))?;
    }
    say(stream, END, None)
}

/// Sends a byte, and a socket along with it.
fn say(stream: &UnixStream, what: u8, socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut along = SendAncillaryBuffer::new(&mut space);
    let sockets = socket.map(|socket| [socket]);
    if let Some(sockets) = &sockets
        && !along.push(SendAncillaryMessage::ScmRights(sockets))
    {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    sendmsg(stream, &[IoSlice::new(&[what])], &mut along, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives all of them.
pub(super) fn receive(mut stream: &UnixStream) -> io::Result<Sockets> {
    let mut version = [0];
    stream.read_exact(&mut version)?;
    match version[0] {
        VERSION => {}
        NO => return Err(stranger()),
        other => return Err(unexpected(other)),
    }
    let mut sockets = Sockets { shared: true, ..Sockets::default() };
    loop {
        match hear(stream)? {
            (REQUESTS, Some(socket)) => sockets.requests.push(socket),
            (STATUS, Some(socket)) => sockets.status = Some(socket),
            (END, None) => return Ok(sockets),
            (other, _) => return Err(unexpected(other)),
        }
    }
}

/// Receives a byte, and the socket that came with it. One byte at a time, so that it is clear which came with which.
fn hear(stream: &UnixStream) -> io::Result<(u8, Option<TcpListener>)> {
    let mut what = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut along = RecvAncillaryBuffer::new(&mut space);
    let came = recvmsg(stream, &mut [IoSliceMut::new(&mut what)], &mut along, flags())?;
    if came.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let sockets = along.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    let socket: Option<OwnedFd> = sockets.flatten().last();
    Ok((what[0], socket.map(TcpListener::from)))
}

/// The sockets are not for programs that this one may start.
fn flags() -> RecvFlags {
    #[cfg(target_os = "linux")]
    return RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    RecvFlags::empty()
}

pub(super) fn stranger() -> io::Error {
    let said = "who listens there runs as another user; run this one as that user, or name a file of its own";
    io::Error::new(io::ErrorKind::PermissionDenied, said)
}

pub(super) fn unexpected(byte: u8) -> io::Error {
    let said = format!("the other gateway said {byte:#04x}, which this version does not understand");
    io::Error::new(io::ErrorKind::InvalidData, said)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(&[NO]).unwrap();
        let refused = receive(&near).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(refused.to_string().contains("run this one as that user"), "{refused}");
    }
}
