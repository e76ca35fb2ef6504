//! What two gateways say to each other, and the sockets that go along.
//!
//! | who | says | with |
//! |---|---|---|
//! | the old | `1`, the version of what follows; or `n` and nothing more, to another user than its own and root | |
//! | the old | `r` for each socket for requests, `s` for the one for status | the socket |
//! | the old | `.`, and `o` at once if a gateway opened the sockets for requests, so that no service manager has them | |
//! | the new | `R`, it is ready | |
//!
//! Gateways that do not know `o` never say it, and leave it unread.

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
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, recv, recvmsg, sendmsg,
    },
};

use crate::gateway::Sockets;

const VERSION: u8 = b'1';
/// To another user than its own and root.
pub(super) const NO: u8 = b'n';
const REQUESTS: u8 = b'r';
const STATUS: u8 = b's';
const END: u8 = b'.';
const OWN: u8 = b'o';
/// What the new one says in the end.
pub(super) const READY: u8 = b'R';

/// Sends all of them.
pub(super) fn send(stream: &UnixStream, sockets: &Sockets) -> io::Result<()> {
    say(stream, &[VERSION], None)?;
    for socket in &sockets.requests {
        say(stream, &[REQUESTS], Some(socket.as_fd()))?;
    }
    if let Some(socket) = &sockets.status {
        say(stream, &[STATUS], Some(socket.as_fd()))?;
    }
    // In one piece: whoever has heard the end need not wait to know whether there is more.
    let end: &[u8] = if sockets.own { &[END, OWN] } else { &[END] };
    say(stream, end, None)
}

/// Sends a few bytes, and a socket along with them.
fn say(stream: &UnixStream, what: &[u8], socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut along = SendAncillaryBuffer::new(&mut space);
    let sockets = socket.map(|socket| [socket]);
    if let Some(sockets) = &sockets
        && !along.push(SendAncillaryMessage::ScmRights(sockets))
    {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let said = sendmsg(stream, &[IoSlice::new(what)], &mut along, SendFlags::NOSIGNAL)?;
    if said == what.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
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
            (END, None) => {
                sockets.own = hear_more(stream)? == Some(OWN);
                return Ok(sockets);
            }
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

/// A byte that came together with the one before it.
fn hear_more(stream: &UnixStream) -> io::Result<Option<u8>> {
    let mut what = [0];
    match recv(stream, &mut what, RecvFlags::DONTWAIT) {
        Ok((_, came)) => Ok((came > 0).then_some(what[0])),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
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

    fn sockets(own: bool) -> Sockets {
        let socket = || TcpListener::bind("127.0.0.1:0").unwrap();
        Sockets { requests: vec![socket(), socket()], status: Some(socket()), own, ..Sockets::default() }
    }

    fn addresses(sockets: &Sockets) -> Vec<std::net::SocketAddr> {
        let all = sockets.requests.iter().chain(&sockets.status);
        all.map(|socket| socket.local_addr().unwrap()).collect()
    }

    #[test]
    fn sockets_arrive_with_whose_they_are() {
        for own in [true, false] {
            let (near, far) = UnixStream::pair().unwrap();
            let sent = sockets(own);
            send(&far, &sent).unwrap();
            let received = receive(&near).unwrap();
            assert_eq!(addresses(&received), addresses(&sent));
            assert_eq!((received.own, received.shared), (own, true));
        }
    }

    #[test]
    fn one_that_does_not_say_whose_they_are_is_not_waited_for_and_has_none_of_its_own() {
        let (near, far) = UnixStream::pair().unwrap();
        let sent = sockets(false);
        say(&far, &[VERSION], None).unwrap();
        say(&far, &[REQUESTS], Some(sent.requests[0].as_fd())).unwrap();
        say(&far, &[END], None).unwrap();
        near.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let received = receive(&near).unwrap();
        assert_eq!((received.requests.len(), received.own), (1, false));
    }

    #[test]
    fn one_that_does_not_ask_whose_they_are_can_still_say_that_it_is_ready() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        send(&far, &sockets(true)).unwrap();
        let mut version = [0];
        near.read_exact(&mut version).unwrap();
        while hear(&near).unwrap().0 != END {}
        near.write_all(&[READY]).unwrap();
        // With a byte unread.
        drop(near);
        let mut said = [0];
        far.read_exact(&mut said).unwrap();
        assert_eq!(said, [READY]);
    }
}
