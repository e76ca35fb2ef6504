//! How a connection without TLS begins: with a request of HTTP/1.1, or with the words by which HTTP/2 is spoken where both
//! sides know it before (RFC 9113, section 3.4).

use std::{
    future::poll_fn,
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::{
    Watch,
    ending::{Ahead, CallerStream},
};
use crate::{gateway::joined, listen::GRACE};

/// The beginning of every connection of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What is read at once: most heads, whole.
const PIECE: usize = 4 * 1024;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    Http1,
    Http2,
}

/// What these first bytes are the beginning of; `None` if it could be either.
fn speaks(begun: &[u8]) -> Option<Speaks> {
    if begun.starts_with(PREFACE) {
        Some(Speaks::Http2)
    } else if PREFACE.starts_with(begun) {
        None
    } else {
        Some(Speaks::Http1)
    }
}

/// A connection of which the beginning was read.
pub(super) struct Begun<S> {
    begun: Bytes,
    stream: S,
}

impl<S> Begun<S> {
    /// One that was not looked at.
    pub(super) fn unread(stream: S) -> Self {
        Self { begun: Bytes::new(), stream }
    }
}

impl<S: AsyncRead + Unpin> Begun<S> {
    /// Reads as much as it takes to tell what is spoken; most often, all of the first head. `None` if the caller leaves, or
    /// says too little in time.
    pub(super) async fn read(mut stream: S, watch: &mut Watch<'_, '_>) -> Option<(Self, Speaks)> {
        let mut begun = BytesMut::new();
        let speaks = poll_fn(|cx| {
            if watch.timer.ring() {
                return Poll::Ready(None);
            }
            if watch.drains(cx) {
                // What is on its way may still come.
                watch.timer.alarm().set_pause(GRACE);
            }
            let speaks = poll_begin(&mut stream, &mut begun, cx);
            if speaks.is_pending() {
                watch.timer.arm(cx);
            }
            speaks
        });
        let speaks = speaks.await?;
        Some((Self { begun: begun.freeze(), stream }, speaks))
    }
}

/// `None` if the caller has left.
fn poll_begin(
    stream: &mut (impl AsyncRead + Unpin),
    begun: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<Option<Speaks>> {
    loop {
        // On the stack of this call: a connection that says nothing takes no memory for it.
        let mut piece = [MaybeUninit::uninit(); PIECE];
        let mut piece = ReadBuf::uninit(&mut piece);
        match Pin::new(&mut *stream).poll_read(cx, &mut piece) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(())) if !piece.filled().is_empty() => begun.extend_from_slice(piece.filled()),
            Poll::Ready(_) => return Poll::Ready(None),
        }
        if let Some(speaks) = speaks(begun) {
            return Poll::Ready(Some(speaks));
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.begun.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let length = self.begun.len().min(buffer.remaining());
        buffer.put_slice(&self.begun[..length]);
        self.begun.advance(length);
        if self.begun.is_empty() {
            self.begun = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Begun<TcpStream> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        joined::poll_write(Pin::new(&mut self.stream), cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl CallerStream for Begun<TcpStream> {
    const BARE: bool = true;

    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Ahead>> {
        if !self.begun.is_empty() {
            return Poll::Ready(Ok(Ahead::Something));
        }
        let mut byte = [MaybeUninit::uninit()];
        let seen = ready!(self.stream.poll_peek(cx, &mut ReadBuf::uninit(&mut byte)))?;
        Poll::Ready(Ok(if seen == 0 { Ahead::End } else { Ahead::Something }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_and_nothing_else_is_http_2() {
        for length in 1..PREFACE.len() {
            assert_eq!(speaks(&PREFACE[..length]), None, "{length}");
        }
        assert_eq!(speaks(b""), None);
        assert_eq!(speaks(PREFACE), Some(Speaks::Http2));
        assert_eq!(speaks(&[PREFACE, b"\0\0\0"].concat()), Some(Speaks::Http2));
        for other in ["G", "PUT / HTTP/1.1\r\n", "PRI * HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\nx", "\0"]
        {
            assert_eq!(speaks(other.as_bytes()), Some(Speaks::Http1), "{other}");
        }
    }
}
