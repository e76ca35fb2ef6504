//! The body of an answer on its way to the caller: read from the upstream when the caller has room, and never gathered,
//! so that a slow reader slows the writer.
//!
//! A request that was answered before all of it was sent goes on beside its answer: a caller that sends without reading is
//! not stopped by what it has not read.

use std::{
    fmt, io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::{answer::Unreadable, download::Downloading, http2::Streaming, link::TURN};
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
    #[error(
        "the request took longer than `--gateway-request-timeout`, or the caller's `grpc-timeout`, allows"
    )]
    Late,
    /// The caller sent no more of its own body while it got this one.
    #[error("the caller did not send its body to the end")]
    Caller,
}

/// The next part of a body.
pub(super) type Next = Option<Result<Frame<Bytes>, BodyError>>;

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
    Passing(Box<Passing>),
    /// The same, of a request that is still being sent.
    Early(Arc<Mutex<Passing>>),
}

impl AnswerBody {
    pub(in crate::gateway) fn whole(bytes: Bytes) -> Self {
        Self { source: Source::Whole(bytes), _turn: None }
    }

    /// - `unsent`: where the rest of the request is looked after, should there be any.
    pub(super) fn passing(passing: Passing, unsent: &Unsent) -> Self {
        let source = if passing.origin.is_sending() {
            let passing = Arc::new(Mutex::new(passing));
            unsent.set(&passing);
            Source::Early(passing)
        } else {
            Source::Passing(Box::new(passing))
        };
        Self { source, _turn: None }
    }

    /// The connection is not idle until this body has ended.
    pub(in crate::gateway) fn lasts(&mut self, turn: Turn) {
        self._turn = Some(turn);
    }
}

/// A body being passed on, with what is held until its end.
pub(super) struct Passing {
    origin: Origin,
    /// Whether it ended before its end, and why; the caller is still to be told.
    failed: bool,
    failure: Option<BodyError>,
    pause: Duration,
    /// Whether the time of a pause is running.
    paused: bool,
    /// Bytes that were passed on in this turn.
    moved: usize,
    alarm: Arc<Alarm>,
    _in_flight: InFlight,
}

/// Where a body comes from.
pub(super) enum Origin {
    Http1(Downloading),
    Http2(Streaming),
}

impl Origin {
    fn is_sending(&self) -> bool {
        match self {
            Self::Http1(downloading) => downloading.is_sending(),
            Self::Http2(streaming) => streaming.is_sending(),
        }
    }

    fn push(&mut self, cx: &mut Context<'_>) -> Result<(), BodyError> {
        match self {
            Self::Http1(downloading) => downloading.push(cx),
            Self::Http2(streaming) => streaming.push(cx),
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>, alarm: &Alarm) -> Poll<Next> {
        match self {
            Self::Http1(downloading) => downloading.poll_next(cx, alarm),
            Self::Http2(streaming) => streaming.poll_next(cx),
        }
    }

    fn cut(&mut self) {
        match self {
            Self::Http1(downloading) => downloading.cut(),
            Self::Http2(streaming) => streaming.cut(),
        }
    }
}

impl Passing {
    pub(super) fn new(origin: Origin, pause: Duration, alarm: Arc<Alarm>, in_flight: InFlight) -> Self {
        Self {
            origin,
            failed: false,
            failure: None,
            pause,
            paused: false,
            moved: 0,
            alarm,
            _in_flight: in_flight,
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        if self.failed {
            return Poll::Ready(self.failure.take().map(Err));
        }
        if self.alarm.is_over() {
            return self.fail(BodyError::Late, cx);
        }
        if let Err(error) = self.origin.push(cx) {
            return self.fail(error, cx);
        }
        if self.moved >= TURN {
            self.moved = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.origin.poll_next(cx, &self.alarm) {
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

    /// The answer ends here, and so does what it came from. The caller is told at the next poll: what it was sent so far, the
    /// head first of all, is written before.
    fn fail<T>(&mut self, error: BodyError, cx: &mut Context<'_>) -> Poll<T> {
        (self.failed, self.failure) = (true, Some(error));
        self.origin.cut();
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        !self.failed
            && match &self.origin {
                Origin::Http1(downloading) => downloading.is_end_stream(),
                Origin::Http2(streaming) => streaming.is_end_stream(),
            }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.origin {
            _ if self.failed => SizeHint::default(),
            Origin::Http1(downloading) => downloading.size_hint(),
            Origin::Http2(streaming) if streaming.is_end_stream() => SizeHint::with_exact(0),
            // What the head says of it is checked on the way in.
            Origin::Http2(_) => SizeHint::default(),
        }
    }
}

impl Drop for Passing {
    /// The caller has its time for the next request from now on, however long it took to read this answer. (With HTTP/1.1 the
    /// clock was read for the connection.)
    fn drop(&mut self) {
        if matches!(self.origin, Origin::Http2(_)) {
            self.alarm.saw(Instant::now());
        }
    }
}

/// What is still to be sent of a request that was answered early: with its answer, and known to the task of the request.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Unsent {
    /// Whether there may be any; looked at without the lock.
    any: AtomicBool,
    passing: Mutex<Weak<Mutex<Passing>>>,
}

impl Unsent {
    fn set(&self, passing: &Arc<Mutex<Passing>>) {
        *lock(&self.passing) = Arc::downgrade(passing);
        self.any.store(true, Relaxed);
    }

    /// Goes on with it, whether or not the caller takes anything of the answer; to be called when the task of the request was
    /// polled, and waits.
    pub(in crate::gateway) fn push(&self, cx: &mut Context<'_>) {
        if self.any.load(Relaxed) {
            self.push_on(cx);
        }
    }

    #[cold]
    fn push_on(&self, cx: &mut Context<'_>) {
        let passing = lock(&self.passing).upgrade();
        let still = passing.is_some_and(|passing| {
            let mut passing = lock(&passing);
            if !passing.failed
                && let Err(error) = passing.origin.push(cx)
            {
                let _ = passing.fail::<()>(error, cx);
            }
            !passing.failed && passing.origin.is_sending()
        });
        self.any.store(still, Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // All of a request is one task, so it is never waited for; and what would panic in it is not polled again.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            Source::Passing(passing) => passing.poll_frame(cx),
            Source::Early(passing) => lock(passing).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Passing(passing) => passing.is_end_stream(),
            Source::Early(passing) => lock(passing).is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Passing(passing) => passing.size_hint(),
            Source::Early(passing) => lock(passing).size_hint(),
        }
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.source {
            Source::Whole(_) => "AnswerBody::Whole",
            Source::Passing(_) => "AnswerBody::Passing",
            Source::Early(_) => "AnswerBody::Early",
        })
    }
}

impl fmt::Debug for Passing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passing").field("failed", &self.failed).finish_non_exhaustive()
    }
}
