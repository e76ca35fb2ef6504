//! Bodies on their way through: streamed frame by frame, never gathered, so that a slow reader slows the writer.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use soul_client::balance::InFlight;
use tokio::time::{Instant, Sleep};

use super::pool::Lease;

/// Why a body ended before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The other side broke off.
    #[error("the body broke off")]
    Broken(#[source] hyper::Error),
    /// The other side paused for longer than is allowed.
    #[error("nothing came for {} ms", .0.as_millis())]
    Stalled(Duration),
}

/// What a caller did wrong while it sent its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerFault {
    /// It left.
    Left,
    /// It sent what is no body.
    Malformed,
    /// It paused for longer than is allowed.
    Stalled,
}

impl BodyError {
    fn fault(&self) -> CallerFault {
        match self {
            Self::Broken(error) if is_malformed(error) => CallerFault::Malformed,
            Self::Broken(_) => CallerFault::Left,
            Self::Stalled(_) => CallerFault::Stalled,
        }
    }
}

/// Whether what came could not be read, where otherwise nothing more came.
fn is_malformed(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|io| matches!(io.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
}

/// A body that may pause for so long and no longer. The timer exists only while it pauses.
struct Paced {
    incoming: Incoming,
    limit: Duration,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    fn new(incoming: Incoming, limit: Duration) -> Self {
        Self { incoming, limit, pause: None }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(frame) => {
                self.pause = None;
                Poll::Ready(frame.map(|f| f.map_err(BodyError::Broken)))
            }
            Poll::Pending if self.limit.is_zero() => Poll::Pending,
            Poll::Pending => {
                let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
                ready!(pause.as_mut().poll(cx));
                Poll::Ready(Some(Err(BodyError::Stalled(self.limit))))
            }
        }
    }
}

/// How far a request's body has come; shared between the body, which the connection owns, and the request, which
/// watches the time.
///
/// The time a rule allows is meant for the upstream. So it runs anew from the last frame that was passed on, and
/// stands still while the gateway waits for the caller, whose pauses have a limit of their own.
#[derive(Debug)]
pub(super) struct Upload {
    started: Instant,
    last_frame_ms: AtomicU64,
    waits_for_caller: AtomicBool,
    caller_fault: OnceLock<CallerFault>,
    finished: AtomicBool,
}

impl Upload {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            last_frame_ms: AtomicU64::new(0),
            waits_for_caller: AtomicBool::new(false),
            caller_fault: OnceLock::new(),
            finished: AtomicBool::new(false),
        }
    }

    fn touch(&self) {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_frame_ms.store(elapsed, Relaxed);
    }

    /// What the caller did wrong, if it was the caller.
    pub(super) fn caller_fault(&self) -> Option<CallerFault> {
        self.caller_fault.get().copied()
    }

    /// Whether all of the body was passed on.
    pub(super) fn finished(&self) -> bool {
        self.finished.load(Relaxed)
    }

    /// Until when the upstream may take, if not only until `now`, which `timeout` allowed at first.
    pub(super) fn extended(&self, now: Instant, timeout: Duration) -> Option<Instant> {
        if self.waits_for_caller.load(Relaxed) {
            return Some(now + timeout);
        }
        let from_last_frame =
            self.started + Duration::from_millis(self.last_frame_ms.load(Relaxed)) + timeout;
        (from_last_frame > now).then_some(from_last_frame)
    }
}

/// The body of a request, towards the upstream.
pub(crate) enum RequestBody {
    /// There is none, so the request can be sent again.
    Empty,
    /// It is passed on as it comes.
    Stream(Box<Uploading>),
}

/// A body being passed on.
pub(crate) struct Uploading {
    body: Paced,
    upload: Arc<Upload>,
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming, pause: Duration) -> Self {
        if incoming.is_end_stream() {
            return Self::Empty;
        }
        Self::Stream(Box::new(Uploading {
            body: Paced::new(incoming, pause),
            upload: Arc::new(Upload::new()),
        }))
    }

    /// How far it has come; `None` if there is none.
    pub(super) fn upload(&self) -> Option<Arc<Upload>> {
        match self {
            Self::Empty => None,
            Self::Stream(uploading) => Some(Arc::clone(&uploading.upload)),
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Self::Stream(uploading) = self.get_mut() else { return Poll::Ready(None) };
        let Uploading { body, upload } = &mut **uploading;
        let polled = body.poll_frame(cx);
        upload.waits_for_caller.store(polled.is_pending(), Relaxed);
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Err(error))) => {
                upload.caller_fault.get_or_init(|| error.fault());
            }
            Poll::Ready(Some(Ok(_))) => {
                upload.touch();
                upload.finished.store(body.incoming.is_end_stream(), Relaxed);
            }
            Poll::Ready(None) => {
                upload.touch();
                upload.finished.store(true, Relaxed);
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Stream(uploading) => uploading.body.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Stream(uploading) => uploading.body.incoming.size_hint(),
        }
    }
}

/// The body of an answer, towards the caller.
pub(crate) enum AnswerBody {
    /// The gateway's own words.
    Own(Full<Bytes>),
    /// An upstream's, passed on as it comes.
    Upstream(Box<Downloading>),
}

/// A body being passed on, with what is held until its end.
pub(crate) struct Downloading {
    body: Paced,
    ended: bool,
    lease: Option<Lease>,
    _in_flight: InFlight,
}

impl AnswerBody {
    /// `lease` goes back to the pool at the body's end, and is given up if the body does not get there.
    pub(super) fn upstream(
        incoming: Incoming,
        pause: Duration,
        lease: Option<Lease>,
        in_flight: InFlight,
    ) -> Self {
        let ended = incoming.is_end_stream();
        let body = Paced::new(incoming, pause);
        Self::Upstream(Box::new(Downloading { body, ended, lease, _in_flight: in_flight }))
    }
}

impl Drop for Downloading {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take()
            && (self.ended || self.body.incoming.is_end_stream())
        {
            lease.give_back();
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Own(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Self::Upstream(downloading) => {
                let polled = downloading.body.poll_frame(cx);
                if let Poll::Ready(None) = &polled {
                    downloading.ended = true;
                }
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(body) => body.is_end_stream(),
            Self::Upstream(downloading) => downloading.body.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(body) => body.size_hint(),
            Self::Upstream(downloading) => downloading.body.incoming.size_hint(),
        }
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own(_) => "AnswerBody::Own",
            Self::Upstream(_) => "AnswerBody::Upstream",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_an_upload_is_not_the_upstreams() {
        let limit = Duration::from_secs(3);
        let upload = Upload::new();
        tokio::time::advance(Duration::from_secs(2)).await;
        upload.touch();
        tokio::time::advance(Duration::from_secs(1)).await;
        let now = Instant::now();
        assert_eq!(
            upload.extended(now, limit),
            Some(now + Duration::from_secs(2)),
            "3 s from the last frame"
        );
        tokio::time::advance(Duration::from_secs(2)).await;
        let now = Instant::now();
        assert_eq!(upload.extended(now, limit), None, "the upstream has taken nothing for 3 s");
        upload.waits_for_caller.store(true, Relaxed);
        assert_eq!(upload.extended(now, limit), Some(now + limit), "the caller has its own limit");
    }
}
