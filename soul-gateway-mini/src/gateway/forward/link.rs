//! One connection to an upstream: a socket with what came and was not taken yet, and what is still to be written.
//!
//! There is no task behind it. Whoever holds it reads and writes, within the task of the request, so that nothing is
//! handed from task to task and a request that is given up takes its connection along.

use std::{
    future::Future as _,
    io::{self, IoSlice},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWrite};

use super::{answer::Lines, framing::Framing, stream::Stream};

/// Room for what is read at once, to begin with: any usual answer to a small question.
const INPUT_MIN: usize = 8 * 1024;

/// And where that is filled each time. Above it a system call moves no more, and memory is taken by every slow reader.
const INPUT_MAX: usize = 64 * 1024;

/// Bytes of one body that are passed on before others of the lane have their turn. The sockets of a fast caller and a fast
/// upstream are ready for megabytes, and small requests would wait for all of them.
pub(super) const TURN: usize = 256 * 1024;

/// An open connection.
#[derive(Debug)]
pub(super) struct Link {
    stream: Stream,
    address: Arc<str>,
    /// What came and was not taken yet.
    pub(super) input: BytesMut,
    /// Of the last head that came from this upstream.
    pub(super) lines: Arc<Lines>,
    /// How much room is made for the next read: what answers of this upstream were seen to need.
    room: usize,
    /// How much came since the exchange began.
    came: usize,
    /// What is to be written before anything else.
    pub(super) output: Vec<u8>,
    /// How much of it was.
    sent: usize,
    /// Whether anything was written since the last [`Link::begin`].
    wrote: bool,
    /// Whether it served a request before.
    pub(super) reused: bool,
    open: Open,
}

/// Counts a connection as long as it is open.
#[derive(Debug)]
pub(super) struct Open(Arc<AtomicUsize>);

impl Open {
    pub(super) fn count(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Link {
    pub(super) fn new(stream: Stream, address: Arc<str>, lines: Arc<Lines>, open: Open) -> Self {
        Self {
            stream,
            address,
            input: BytesMut::new(),
            lines,
            room: INPUT_MIN,
            came: 0,
            output: Vec::with_capacity(1024),
            sent: 0,
            wrote: false,
            reused: false,
            open,
        }
    }

    /// The socket, what came of it and was not taken, and what counts it as open.
    pub(super) fn into_parts(self) -> (Stream, BytesMut, Open) {
        (self.stream, self.input, self.open)
    }

    pub(super) fn address(&self) -> &Arc<str> {
        &self.address
    }

    /// Another exchange begins.
    pub(super) fn begin(&mut self) {
        self.output.clear();
        self.sent = 0;
        self.wrote = false;
    }

    /// Whether any byte of the exchange was handed to the system.
    pub(super) fn wrote(&self) -> bool {
        self.wrote
    }

    /// Whether it can carry another request: nobody closed it, and nothing came that nobody asked for. Costs no system
    /// call where nothing happened.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.stream.is_quiet() && self.input.is_empty()
    }

    /// It will wait for its next request: large buffers are for others meanwhile.
    pub(super) fn rest(&mut self) {
        if self.input.capacity() > 2 * INPUT_MIN {
            self.input = BytesMut::new();
        }
        if self.output.capacity() > INPUT_MIN {
            self.output = Vec::new();
        }
        if self.came < self.room / 4 {
            self.room = (self.room / 2).max(INPUT_MIN);
        }
        self.came = 0;
        self.reused = true;
    }

    /// All of a body, if it is here already.
    pub(super) fn take_whole(&mut self, framing: Framing) -> Option<Bytes> {
        let Framing::Length(length) = framing else { return None };
        let length = usize::try_from(length).ok().filter(|length| *length <= self.input.len())?;
        Some(self.input.split_to(length).freeze())
    }

    /// Reads more; 0 is the end.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // From the beginning of its memory, if nobody holds any of it: what was used last is what is quick.
        let left = self.input.capacity() - self.input.len();
        if left < self.room && !self.input.try_reclaim(self.room) && left < self.room / 4 {
            self.input.reserve(self.room);
        }
        let room = self.input.capacity() - self.input.len();
        let read = ready!(pin!(self.stream.read_buf(&mut self.input)).poll(cx))?;
        self.came += read;
        if read == room {
            self.room = (self.room * 2).min(INPUT_MAX);
        }
        Poll::Ready(Ok(read))
    }

    /// Writes what is in `output`, and then all of `pieces`, as much of it as goes. Gives how many bytes of the pieces
    /// were taken; with all of them taken it is ready.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &mut [&[u8]; 3],
    ) -> Poll<io::Result<()>> {
        loop {
            let unsent = &self.output[self.sent..];
            let left = unsent.len() + pieces.iter().map(|piece| piece.len()).sum::<usize>();
            if left == 0 {
                return self.stream.poll_passed_on(cx);
            }
            let stream = Pin::new(&mut self.stream);
            let written = if pieces.iter().all(|piece| piece.is_empty()) {
                ready!(stream.poll_write(cx, unsent))?
            } else {
                let slices = [unsent, pieces[0], pieces[1], pieces[2]].map(IoSlice::new);
                ready!(stream.poll_write_vectored(cx, &slices))?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.wrote = true;
            self.take(written, pieces);
        }
    }

    /// Notes that so much was written.
    fn take(&mut self, written: usize, pieces: &mut [&[u8]; 3]) {
        let own = written.min(self.output.len() - self.sent);
        self.sent += own;
        let mut rest = written - own;
        for piece in pieces {
            let of_it = rest.min(piece.len());
            *piece = &piece[of_it..];
            rest -= of_it;
        }
    }
}
