//! The body of a request on its way to the upstream: passed on frame by frame, never gathered, so that a slow upstream
//! slows the caller.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body as _;
use hyper::body::Incoming;

use super::{
    headers::{self, Announced},
    link::{Link, TURN},
};

/// What a caller did wrong while it sent its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerFault {
    /// It left.
    Left,
    /// It sent what is no body.
    Malformed,
    /// It paused for longer than is allowed.
    Stalled,
    /// It sends more than is allowed.
    TooLarge,
}

impl CallerFault {
    fn of(error: &hyper::Error) -> Self {
        let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
        let malformed =
            |io: &io::Error| matches!(io.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData);
        if cause.is_some_and(malformed) { Self::Malformed } else { Self::Left }
    }
}

/// Why a request was not sent.
pub(super) enum PushError {
    /// The upstream takes no more.
    Upstream(io::Error),
    /// The caller sends no more.
    Caller(CallerFault),
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The upstream has to take what was sent.
    Upstream,
    /// The caller has to send more.
    Caller,
    /// The upstream has to say that it wants the body.
    Continue,
}

/// A part of a body, as frames carry it.
pub(super) enum Piece {
    /// Bytes, and whether they are the last ones.
    Data(Bytes, bool),
    /// What comes behind the last ones.
    Trailers(HeaderMap),
    End,
}

/// A body being passed on.
pub(super) struct Upload {
    body: Incoming,
    announced: Announced,
    chunked: bool,
    /// Whether the caller waits to be told that its body is wanted. It is told once the body is asked for here.
    held: bool,
    /// How many more bytes it may be.
    allowed: u64,
    /// Of the frame that is being written: the line with its size, its bytes, the end of its line.
    size: Vec<u8>,
    frame: Bytes,
    end: &'static [u8],
    /// How much of them was written.
    sent: usize,
    /// Nothing more will come out of `body`.
    read: bool,
    /// Frames that were taken from the caller, and their bytes.
    frames: u64,
    received: u64,
    awaits: Awaited,
    /// Bytes that were taken from the caller in this turn.
    moved: usize,
    kept: Option<Kept>,
}

/// All that came so far, to be sent once more if need be.
#[derive(Default)]
struct Kept {
    pieces: Vec<Bytes>,
    /// How many more bytes may be kept.
    room: usize,
    /// The next piece to be sent again.
    next: usize,
    /// Whether the body ended with the last one.
    ended: bool,
}

impl Upload {
    /// What a request brings; `None` if it has no body.
    ///
    /// - `limit`: how many bytes it may be.
    /// - `keep`: how many of them are kept, so that it can be sent once more; a longer one is not kept at all.
    pub(super) fn new(body: Incoming, expects_continue: bool, limit: u64, keep: usize) -> Option<Self> {
        if body.is_end_stream() {
            return None;
        }
        let least = body.size_hint().lower();
        let announced = body.size_hint().exact().map_or(Announced::Chunked, Announced::Length);
        let chunked = announced == Announced::Chunked;
        Some(Self {
            body,
            announced,
            chunked,
            held: expects_continue,
            allowed: limit,
            size: Vec::new(),
            frame: Bytes::new(),
            end: b"",
            sent: 0,
            read: false,
            frames: 0,
            received: 0,
            awaits: Awaited::Upstream,
            moved: 0,
            kept: (keep > 0 && least <= keep as u64).then(|| Kept { room: keep, ..Kept::default() }),
        })
    }

    pub(super) fn announced(&self) -> Announced {
        self.announced
    }

    /// Whether all of it is still here, so that it can be sent to another upstream.
    pub(super) fn is_whole(&self) -> bool {
        self.frames == 0 || self.frames == 1 && self.sent == 0
    }

    /// Whether all that came of it is kept, so that it can be sent once more, whatever was sent.
    pub(super) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Keeps it no longer.
    pub(super) fn forget(&mut self) {
        // Pieces that are still to be sent again are kept for that.
        if self.kept.as_ref().is_some_and(|kept| kept.next >= kept.pieces.len()) {
            self.kept = None;
        }
    }

    /// Begins anew with what is kept.
    pub(super) fn rewind(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.next = 0;
            (self.sent, self.end, self.frame, self.read) = (0, b"", Bytes::new(), false);
            self.size.clear();
        }
    }

    /// Whether all of it was written.
    pub(super) fn is_done(&self) -> bool {
        self.read && self.is_written()
    }

    /// A number that changes with whatever of it is passed on.
    pub(super) fn progress(&self) -> u64 {
        let again = self.kept.as_ref().map_or(0, |kept| kept.next);
        (self.frames + again as u64) << 32 | self.sent as u64
    }

    /// How many bytes the caller has sent.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn awaits(&self) -> Awaited {
        self.awaits
    }

    /// The body is wanted.
    pub(super) fn release(&mut self) {
        self.held = false;
    }

    /// Notes who is waited for.
    pub(super) fn wait_for(&mut self, awaited: Awaited) {
        self.awaits = awaited;
    }

    /// What was taken from the caller for an upstream that did nothing about it, and whether that is all.
    pub(super) fn again(&self) -> (Bytes, bool) {
        let kept = self.frames == 1 && self.sent == 0 && !self.frame.is_empty();
        if kept { (self.frame.clone(), self.read) } else { (Bytes::new(), false) }
    }

    /// The next part, for an upstream that takes frames. The first one is kept, so that another upstream, of whatever protocol,
    /// can be sent it too.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, CallerFault>> {
        if self.read {
            return Poll::Ready(Ok(Piece::End));
        }
        if self.take_again() {
            return Poll::Ready(Ok(Piece::Data(self.frame.clone(), self.read)));
        }
        let next = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            None if self.frames == 1 => {
                self.last();
                return Poll::Ready(Ok(Piece::End));
            }
            next => next,
        };
        let trailers = next.as_ref().and_then(|frame| frame.as_ref().ok()?.trailers_ref().cloned());
        let ended = next.is_none();
        if let Err(PushError::Caller(fault)) = self.take(next) {
            return Poll::Ready(Err(fault));
        }
        Poll::Ready(Ok(match trailers {
            Some(trailers) => Piece::Trailers(
                trailers
                    .iter()
                    .filter(|(name, _)| headers::may_trail(name))
                    .map(|(n, v)| (n.clone(), v.clone()))
                    .collect(),
            ),
            None if ended => Piece::End,
            None => Piece::Data(self.frame.clone(), self.read),
        }))
    }

    fn is_written(&self) -> bool {
        self.sent == self.size.len() + self.frame.len() + self.end.len()
    }

    /// Writes what is in the link, and as much of the body as there is.
    ///
    /// Ready when all of it is written.
    pub(super) fn poll_push(&mut self, link: &mut Link, cx: &mut Context<'_>) -> Poll<Result<(), PushError>> {
        loop {
            if self.moved >= TURN {
                (self.moved, self.awaits) = (0, Awaited::Upstream);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.is_written() && !self.read && !self.held && !self.take_again() {
                // The first frame goes out together with the head, if it is there already.
                match Pin::new(&mut self.body).poll_frame(cx) {
                    Poll::Ready(frame) => self.take(frame)?,
                    Poll::Pending => {
                        self.awaits = Awaited::Upstream;
                        ready!(self.poll_write(link, cx))?;
                        (self.awaits, self.moved) = (Awaited::Caller, 0);
                        return Poll::Pending;
                    }
                }
            }
            self.awaits = Awaited::Upstream;
            ready!(self.poll_write(link, cx))?;
            if self.read {
                return Poll::Ready(Ok(()));
            }
            if self.held {
                self.awaits = Awaited::Continue;
                return Poll::Pending;
            }
        }
    }

    fn poll_write(&mut self, link: &mut Link, cx: &mut Context<'_>) -> Poll<Result<(), PushError>> {
        let mut skipped = self.sent;
        let mut pieces = [&self.size[..], &self.frame[..], self.end].map(|piece| {
            let of_it = skipped.min(piece.len());
            skipped -= of_it;
            &piece[of_it..]
        });
        let all = self.size.len() + self.frame.len() + self.end.len();
        let written = link.poll_write(cx, &mut pieces);
        self.sent = all - pieces.iter().map(|piece| piece.len()).sum::<usize>();
        written.map_err(PushError::Upstream)
    }

    /// Makes a piece that was sent before the next to be written; `false` if there is none.
    fn take_again(&mut self) -> bool {
        let Some(kept) = self.kept.as_mut().filter(|kept| kept.next < kept.pieces.len()) else {
            return false;
        };
        let piece = kept.pieces[kept.next].clone();
        kept.next += 1;
        let last = kept.ended && kept.next == kept.pieces.len();
        self.put(piece);
        if last {
            self.last();
        }
        true
    }

    /// Makes a piece the next to be written.
    fn put(&mut self, piece: Bytes) {
        (self.sent, self.end) = (0, b"");
        self.size.clear();
        // An empty chunk would be the last one.
        if self.chunked && !piece.is_empty() {
            use io::Write as _;
            // OK to ignore: a vector takes everything.
            let _ = write!(self.size, "{:x}\r\n", piece.len());
            self.end = b"\r\n";
        }
        self.frame = piece;
    }

    /// Notes a piece, as long as there is room.
    fn keep(&mut self, piece: &Bytes) {
        let Some(kept) = &mut self.kept else { return };
        match kept.room.checked_sub(piece.len()) {
            Some(room) => {
                kept.room = room;
                kept.pieces.push(piece.clone());
                kept.next = kept.pieces.len();
            }
            None => self.kept = None,
        }
    }

    /// Makes what the caller sent the next to be written.
    fn take(
        &mut self,
        frame: Option<Result<http_body::Frame<Bytes>, hyper::Error>>,
    ) -> Result<(), PushError> {
        (self.sent, self.end, self.frame) = (0, b"", Bytes::new());
        self.size.clear();
        let frame = match frame {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                self.read = true;
                return Err(PushError::Caller(CallerFault::of(&error)));
            }
            None => {
                self.finish(None);
                return Ok(());
            }
        };
        self.frames += 1;
        match frame.into_data() {
            Ok(data) if data.len() as u64 > self.allowed => {
                self.read = true;
                return Err(PushError::Caller(CallerFault::TooLarge));
            }
            Ok(data) => {
                self.allowed -= data.len() as u64;
                self.received += data.len() as u64;
                self.moved += data.len();
                self.keep(&data);
                self.put(data);
                if self.body.is_end_stream() {
                    self.last();
                }
            }
            Err(frame) => self.finish(frame.into_trailers().ok()),
        }
        Ok(())
    }

    /// The frame at hand is the last one, so what ends the body goes along with it.
    fn last(&mut self) {
        self.read = true;
        if let Some(kept) = &mut self.kept {
            kept.ended = true;
        }
        if self.chunked {
            self.end = if self.frame.is_empty() { b"0\r\n\r\n" } else { b"\r\n0\r\n\r\n" };
        }
    }

    /// The body has ended, with these trailers.
    fn finish(&mut self, trailers: Option<HeaderMap>) {
        self.read = true;
        if trailers.is_some() {
            // They would have to be kept too, and hardly anybody sends any.
            self.kept = None;
        }
        if let Some(kept) = &mut self.kept {
            kept.ended = true;
        }
        if !self.chunked {
            return;
        }
        self.size.extend_from_slice(b"0\r\n");
        for (name, value) in trailers.iter().flatten().filter(|(name, _)| headers::may_trail(name)) {
            headers::line(&mut self.size, name.as_str(), value.as_bytes());
        }
        self.end = b"\r\n";
    }
}
