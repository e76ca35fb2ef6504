//! The body of an answer over HTTP/2, on its way to the caller.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;
use http_body::Frame;
use tokio::time::Instant;

use super::{
    super::{
        body::BodyError,
        headers,
        upload::{PushError, Upload},
    },
    UnderWay, broken,
    exchange::Pushing,
};
use crate::gateway::{alarm::Alarm, plugin::divide::InFlight};

/// A body being passed on, with what is held until its end.
pub(in crate::gateway::forward) struct Streaming {
    /// `None` once it has ended or failed; then the upstream is told.
    answer: Option<RecvStream>,
    failed: Option<BodyError>,
    /// What the upstream has not taken yet of the request, which it answered early.
    push: Option<(Pushing, Box<Upload>)>,
    pause: Duration,
    /// Whether the time of a pause is running.
    paused: bool,
    alarm: Arc<Alarm>,
    _under_way: UnderWay,
    _in_flight: InFlight,
}

impl Streaming {
    pub(super) fn new(
        answer: RecvStream,
        push: Option<(Pushing, Box<Upload>)>,
        under_way: UnderWay,
        pause: Duration,
        alarm: Arc<Alarm>,
        in_flight: InFlight,
    ) -> Self {
        Self {
            answer: Some(answer),
            failed: None,
            push,
            pause,
            paused: false,
            alarm,
            _under_way: under_way,
            _in_flight: in_flight,
        }
    }

    pub(in crate::gateway::forward) fn is_end_stream(&self) -> bool {
        self.failed.is_none() && self.answer.as_ref().is_none_or(RecvStream::is_end_stream)
    }

    pub(in crate::gateway::forward) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        if self.alarm.is_over() {
            return self.fail(BodyError::Late, cx);
        }
        if let Err(error) = self.push(cx) {
            return self.fail(error, cx);
        }
        match self.poll_next(cx) {
            Poll::Ready(frame) => {
                if self.paused {
                    self.paused = false;
                    self.alarm.clear();
                }
                match frame {
                    Some(Err(error)) => self.fail(error, cx),
                    frame => Poll::Ready(frame),
                }
            }
            Poll::Pending if !self.paused => {
                self.paused = true;
                self.alarm.set_pause(self.pause);
                Poll::Pending
            }
            Poll::Pending if self.alarm.has_rung() => self.fail(BodyError::Stalled(self.pause), cx),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Goes on with the request. That the upstream takes no more of it is not held against its answer.
    fn push(&mut self, cx: &mut Context<'_>) -> Result<(), BodyError> {
        let Some((pushing, upload)) = &mut self.push else { return Ok(()) };
        match pushing.poll_push(upload, cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(()) | Err(PushError::Upstream(_))) => {
                self.push = None;
                Ok(())
            }
            Poll::Ready(Err(PushError::Caller(_))) => Err(BodyError::Caller),
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(answer) = &mut self.answer else { return Poll::Ready(None) };
        match ready!(answer.poll_data(cx)) {
            Some(Ok(data)) => {
                // It is the caller's from here on, who takes the next one when it has room. An error says that the stream has
                // ended, which the next look tells too.
                let _ = answer.flow_control().release_capacity(data.len());
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(BodyError::Broken(broken(error))))),
            None => {}
        }
        let trailers = ready!(answer.poll_trailers(cx));
        self.answer = None;
        Poll::Ready(match trailers {
            Ok(None) => None,
            Ok(Some(trailers)) => Some(Ok(Frame::trailers(passed(trailers)))),
            Err(error) => Some(Err(BodyError::Broken(broken(error)))),
        })
    }

    /// The answer ends here. The caller is told at the next poll: what it was sent so far is written before.
    fn fail<T>(&mut self, error: BodyError, cx: &mut Context<'_>) -> Poll<T> {
        (self.failed, self.answer, self.push) = (Some(error), None, None);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Streaming {
    /// The caller has its time for the next request from now on, however long it took to read this answer.
    fn drop(&mut self) {
        self.alarm.saw(Instant::now());
    }
}

fn passed(mut trailers: HeaderMap) -> HeaderMap {
    if trailers.keys().any(|name| !headers::may_trail(name)) {
        let kept = trailers.iter().filter(|(name, _)| headers::may_trail(name));
        trailers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    trailers
}
