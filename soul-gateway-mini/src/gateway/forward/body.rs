//! The body of an answer on its way to the caller: read from the upstream when the caller has room, and never gathered,
//! so that a slow reader slows the writer.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::{
    answer::Unreadable,
    client::Lease,
    framing::{Chunk, Chunks, Framing},
    http2::Streaming,
    link::TURN,
    upload::Upload,
};
use crate::gateway::{alarm::Alarm, connection::Turn, plugin::divide::InFlight};

/// Why a body ended before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The upstream broke off.
    #[error("the body broke off")]
    Broken(#[source] io::Error),
    /// The upstream sent what is no body.
    #[error("the body cannot be read")]
    Unreadable(#[source] Unreadable),
    /// The upstream paused for longer than is allowed.
    #[error("nothing came for {} ms", .0.as_millis())]
    Stalled(Duration),
    /// The whole request took longer than is allowed.
    #[error("the request took longer than `--request-timeout` allows")]
    Late,
    /// The caller sent no more of its own body while it got this one.
    #[error("the caller did not send its body to the end")]
    Caller,
}

/// The body of an answer, towards the caller.
pub(crate) struct AnswerBody {
    source: Source,
    /// Until it ends, the connection is not idle.
    _turn: Option<Turn>,
}

enum Source {
    /// All of it is here: the gateway's own words, or a short answer of an upstream.
    Whole(Bytes),
    /// An upstream's, passed on as it comes.
    Upstream(Box<Downloading>),
    /// The same, over HTTP/2.
    Http2(Box<Streaming>),
}

impl AnswerBody {
    pub(in crate::gateway) fn whole(bytes: Bytes) -> Self {
        Self { source: Source::Whole(bytes), _turn: None }
    }

    pub(super) fn upstream(downloading: Downloading) -> Self {
        Self { source: Source::Upstream(Box::new(downloading)), _turn: None }
    }

    pub(super) fn http2(streaming: Streaming) -> Self {
        Self { source: Source::Http2(Box::new(streaming)), _turn: None }
    }

    /// The connection is not idle until this body has ended.
    pub(in crate::gateway) fn lasts(&mut self, turn: Turn) {
        self._turn = Some(turn);
    }
}

/// A body being passed on, with what is held until its end.
pub(super) struct Downloading {
    lease: Option<Lease>,
    rest: Rest,
    /// What the upstream has not taken yet of the request, which it answered early.
    upload: Option<Box<Upload>>,
    /// Whether the connection may carry another request afterwards.
    keep: bool,
    pause: Duration,
    /// Whether the time of a pause is running.
    paused: bool,
    /// Bytes that were passed on in this turn.
    moved: usize,
    alarm: Arc<Alarm>,
    _in_flight: InFlight,
}

/// What is still to come.
enum Rest {
    Length(u64),
    Chunked(Chunks),
    Close,
    End,
    /// Nothing, since it failed; the caller is still to be told.
    Failed(Option<BodyError>),
}

impl Downloading {
    pub(super) fn new(
        lease: Lease,
        framing: Framing,
        keep: bool,
        upload: Option<Box<Upload>>,
        pause: Duration,
        alarm: Arc<Alarm>,
        in_flight: InFlight,
    ) -> Self {
        let rest = match framing {
            Framing::Length(0) => Rest::End,
            Framing::Length(length) => Rest::Length(length),
            Framing::Chunked => Rest::Chunked(Chunks::new()),
            Framing::Close => Rest::Close,
        };
        let lease = Some(lease);
        Self { lease, rest, upload, keep, pause, paused: false, moved: 0, alarm, _in_flight: in_flight }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Rest::Failed(error) = &mut self.rest {
            return Poll::Ready(error.take().map(Err));
        }
        if self.alarm.is_over() {
            return self.fail(BodyError::Late, cx);
        }
        if let Err(error) = self.push(cx) {
            return self.fail(error, cx);
        }
        if self.moved >= TURN {
            self.moved = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.poll_next(cx) {
            Poll::Ready(frame) => {
                if self.paused {
                    self.paused = false;
                    self.alarm.clear();
                }
                match frame {
                    Some(Err(error)) => self.fail(error, cx),
                    frame => {
                        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
                        self.moved += data.map_or(0, Bytes::len);
                        Poll::Ready(frame)
                    }
                }
            }
            Poll::Pending if !self.paused => {
                (self.paused, self.moved) = (true, 0);
                self.alarm.set_pause(self.pause);
                Poll::Pending
            }
            Poll::Pending if self.alarm.has_rung() => self.fail(BodyError::Stalled(self.pause), cx),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Goes on with the request, should the upstream have answered before it took all of it. That it takes no more is
    /// not held against its answer.
    fn push(&mut self, cx: &mut Context<'_>) -> Result<(), BodyError> {
        let (Some(upload), Some(lease)) = (&mut self.upload, &mut self.lease) else { return Ok(()) };
        match upload.poll_push(&mut lease.link, cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(())) => {
                self.upload = None;
                Ok(())
            }
            Poll::Ready(Err(super::upload::PushError::Upstream(_))) => {
                (self.upload, self.keep) = (None, false);
                Ok(())
            }
            Poll::Ready(Err(super::upload::PushError::Caller(_))) => Err(BodyError::Caller),
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(lease) = &mut self.lease else { return Poll::Ready(None) };
        let link = &mut lease.link;
        loop {
            match &mut self.rest {
                Rest::End => {
                    self.end();
                    return Poll::Ready(None);
                }
                Rest::Length(left) if !link.input.is_empty() => {
                    let piece = usize::try_from(*left).unwrap_or(usize::MAX).min(link.input.len());
                    *left -= piece as u64;
                    let data = link.input.split_to(piece).freeze();
                    if *left == 0 {
                        self.end();
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Rest::Chunked(chunks) => match chunks.next(&mut link.input) {
                    Err(error) => return Poll::Ready(Some(Err(BodyError::Unreadable(error)))),
                    Ok(Some(Chunk::Data(data))) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    Ok(Some(Chunk::Trailers(trailers))) => {
                        self.end();
                        return Poll::Ready(Some(Ok(Frame::trailers(*trailers))));
                    }
                    Ok(Some(Chunk::End)) => {
                        self.end();
                        return Poll::Ready(None);
                    }
                    Ok(None) => {}
                },
                Rest::Close if !link.input.is_empty() => {
                    return Poll::Ready(Some(Ok(Frame::data(link.input.split().freeze()))));
                }
                Rest::Length(_) | Rest::Close => {}
                Rest::Failed(_) => return Poll::Ready(None),
            }
            match ready!(link.poll_fill(cx)) {
                Ok(0) if matches!(self.rest, Rest::Close) => self.rest = Rest::End,
                Ok(0) => {
                    let error = io::ErrorKind::UnexpectedEof.into();
                    return Poll::Ready(Some(Err(BodyError::Broken(error))));
                }
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(BodyError::Broken(error)))),
            }
        }
    }

    /// The answer was read to its end: the connection is free, unless the request is still on it and nobody can say when
    /// it would be.
    fn end(&mut self) {
        self.rest = Rest::End;
        let now = Instant::now();
        // The caller has its time for the next request from now on, however long it took to read this answer.
        self.alarm.saw(now);
        if let Some(lease) = self.lease.take()
            && self.keep
            && self.upload.is_none()
        {
            lease.give_back(now);
        }
    }

    /// The answer ends here, and so does the connection. The caller is told at the next poll: what it was sent so far, the
    /// head first of all, is written before.
    fn fail<T>(&mut self, error: BodyError, cx: &mut Context<'_>) -> Poll<T> {
        (self.rest, self.lease) = (Rest::Failed(Some(error)), None);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().source {
            Source::Whole(bytes) if bytes.has_remaining() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes)))))
            }
            Source::Whole(_) => Poll::Ready(None),
            Source::Upstream(downloading) => downloading.poll_frame(cx),
            Source::Http2(streaming) => streaming.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Upstream(downloading) => matches!(downloading.rest, Rest::End),
            Source::Http2(streaming) => streaming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Upstream(downloading) => match downloading.rest {
                Rest::Length(left) => SizeHint::with_exact(left),
                Rest::End => SizeHint::with_exact(0),
                Rest::Chunked(_) | Rest::Close | Rest::Failed(_) => SizeHint::default(),
            },
            Source::Http2(streaming) if streaming.is_end_stream() => SizeHint::with_exact(0),
            // What the head says of it is checked on the way in.
            Source::Http2(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.source {
            Source::Whole(_) => "AnswerBody::Whole",
            Source::Upstream(_) => "AnswerBody::Upstream",
            Source::Http2(_) => "AnswerBody::Http2",
        })
    }
}
