//! The end of a listener: no new handshakes, while those under way come to theirs.
//!
//! A connection is made by the system, and by then the caller may have sent its request; the program only takes it from a queue.
//! Closing the listener resets what is in the queue, and what the queue would get next: handshakes under way. So before that, the
//! system is told to pass over the packets that begin one. Their senders take them for lost and send them again, after a second: by
//! then somebody else listens, or the port is closed and says so. Everything that was under way gets in meanwhile.

use std::{io, net::TcpListener, time::Duration};

use super::GRACE;

/// How long a handshake may be under way: the way to the caller and back, which no call of the system tells of a listener. Callers
/// that begin one in this time lose a second, so it is short.
pub(crate) const UNDER_WAY: Duration = GRACE;

/// Has the system pass over handshakes that begin from now on, for as long as the socket is open: in other processes, too. What is
/// connected already, also what is not accepted yet, does not notice. Where the system cannot, nothing changes.
#[cfg(target_os = "linux")]
pub(crate) fn begin_none(listener: &TcpListener) -> io::Result<()> {
    socket2::SockRef::from(listener).attach_filter(&FILTER)
}

/// Takes handshakes again, should somebody have stopped that.
#[cfg(target_os = "linux")]
pub(crate) fn begin_again(listener: &TcpListener) -> io::Result<()> {
    match socket2::SockRef::from(listener).detach_filter() {
        // There was none.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        detached => detached,
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn begin_none(_: &TcpListener) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn begin_again(_: &TcpListener) -> io::Result<()> {
    Ok(())
}

/// What the system runs on each packet, in its own small language; a packet begins with the TCP header here, whatever the version of
/// IP below. One with SYN and without ACK is dropped, any other is kept.
#[cfg(target_os = "linux")]
const FILTER: [socket2::SockFilter; 5] = {
    use socket2::SockFilter;

    /// Where the flags are in a TCP header.
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    // As in `linux/filter.h`.
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;

    [
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        // Goes on with the next one, or skips it.
        SockFilter::new(IF_EQUAL, 0, 1, SYN),
        // So many bytes are kept.
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ]
};

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpStream,
    };

    use super::*;

    /// Longer than a handshake here takes, shorter than the second after which a caller begins again.
    const A_WHILE: Duration = Duration::from_millis(300);

    #[test]
    fn what_is_connected_lives_on_and_nobody_else_gets_in_until_it_is_allowed_again() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let at = listener.local_addr().unwrap();
            let mut waiting = TcpStream::connect(at).unwrap();
            begin_none(&listener).unwrap();
            waiting.write_all(b"hello").unwrap();
            let late = TcpStream::connect_timeout(&at, A_WHILE).unwrap_err();
            assert_eq!(late.kind(), io::ErrorKind::TimedOut, "{address}");

            let (mut accepted, _) = listener.accept().unwrap();
            let mut said = [0; 5];
            accepted.read_exact(&mut said).unwrap();
            accepted.write_all(&said).unwrap();
            waiting.read_exact(&mut said).unwrap();
            assert_eq!(&said, b"hello");

            begin_again(&listener).unwrap();
            begin_again(&listener).unwrap();
            TcpStream::connect(at).unwrap();
            begin_none(&listener).unwrap();
            drop(listener);
            assert_eq!(TcpStream::connect(at).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        }
    }
}
