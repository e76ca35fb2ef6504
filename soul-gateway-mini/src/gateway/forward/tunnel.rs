//! A connection that has changed its protocol: bytes go through in both directions, and nobody looks at them.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, BytesMut};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::client::Lease;
use crate::{
    gateway::{
        alarm::{Alarm, Timer},
        plugin::divide::InFlight,
    },
    sync::OpenTunnel,
};

/// Bytes that are on their way in one direction.
const BUFFER: usize = 16 * 1024;

/// What is left to do once the answer to the caller is written.
pub(in crate::gateway) struct Tunnel {
    caller: OnUpgrade,
    upstream: Lease,
    idle: Duration,
    /// What counts it at the upstream. No tunnel any more before it is nothing any more: else there would be room for a request too many.
    _held: (OpenTunnel, InFlight),
}

impl Tunnel {
    pub(super) fn new(
        caller: OnUpgrade,
        upstream: Lease,
        idle: Duration,
        held: (OpenTunnel, InFlight),
    ) -> Self {
        Self { caller, upstream, idle, _held: held }
    }

    /// Passes bytes on until both sides have ended, one of them breaks off, or neither says anything for too long.
    ///
    /// # Errors
    /// When a side breaks off.
    pub(in crate::gateway) async fn run(self, alarm: &Alarm) -> io::Result<()> {
        let mut caller = TokioIo::new(self.caller.await.map_err(io::Error::other)?);
        let (mut upstream, early, _open) = self.upstream.link.into_parts();
        let (mut up, mut down) = (Pipe::new(BytesMut::new()), Pipe::new(early));
        let mut timer = Timer::new(alarm);
        alarm.set_pause(self.idle);
        poll_fn(|cx| {
            if timer.ring() {
                return Poll::Ready(Ok(()));
            }
            let sent = up.poll(cx, &mut caller, &mut upstream)?;
            let received = down.poll(cx, &mut upstream, &mut caller)?;
            if sent.is_ready() && received.is_ready() {
                return Poll::Ready(Ok(()));
            }
            if std::mem::take(&mut up.moved) | std::mem::take(&mut down.moved) {
                alarm.set_pause(self.idle);
            }
            timer.arm(cx);
            Poll::Pending
        })
        .await
    }
}

/// One direction.
struct Pipe {
    buffer: BytesMut,
    /// Whether the reading side has ended.
    ended: bool,
    /// Whether anything moved since it was last asked.
    moved: bool,
}

impl Pipe {
    fn new(early: BytesMut) -> Self {
        Self { buffer: early, ended: false, moved: false }
    }

    /// Ready when all was written and the end passed on.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Poll<()>, io::Error> {
        loop {
            while !self.buffer.is_empty() {
                let Poll::Ready(written) = Pin::new(&mut *to).poll_write(cx, &self.buffer)? else {
                    return Ok(Poll::Pending);
                };
                if written == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                self.buffer.advance(written);
                self.moved = true;
            }
            if Pin::new(&mut *to).poll_flush(cx)?.is_pending() {
                return Ok(Poll::Pending);
            }
            if self.ended {
                // A side that has closed already need not be told.
                return Ok(Pin::new(&mut *to).poll_shutdown(cx).map(drop));
            }
            match poll_read(cx, from, &mut self.buffer) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(read) => self.ended = read? == 0,
            }
        }
    }
}

fn poll_read(
    cx: &mut Context<'_>,
    from: &mut (impl AsyncRead + Unpin),
    into: &mut BytesMut,
) -> Poll<io::Result<usize>> {
    let mut piece = [0; BUFFER];
    let mut buffer = ReadBuf::new(&mut piece);
    ready!(Pin::new(from).poll_read(cx, &mut buffer))?;
    into.extend_from_slice(buffer.filled());
    Poll::Ready(Ok(buffer.filled().len()))
}
