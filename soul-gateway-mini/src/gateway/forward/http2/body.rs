//! The body of an answer over HTTP/2.

use std::task::{Context, Poll, ready};

use h2::RecvStream;
use http::HeaderMap;
use http_body::Frame;

use super::{
    super::{
        body::{BodyError, Next},
        headers,
        upload::{PushError, Upload},
    },
    UnderWay, broken,
    exchange::Pushing,
};

/// A body that is read from a stream.
pub(in crate::gateway::forward) struct Streaming {
    /// `None` once it has ended or was given up; then the upstream is told.
    answer: Option<RecvStream>,
    /// What the upstream has not taken yet of the request, which it answered early.
    push: Option<(Pushing, Box<Upload>)>,
    under_way: UnderWay,
}

impl Streaming {
    pub(super) fn new(answer: RecvStream, push: Option<(Pushing, Box<Upload>)>, under_way: UnderWay) -> Self {
        Self { answer: Some(answer), push, under_way }
    }

    pub(in crate::gateway::forward) fn is_end_stream(&self) -> bool {
        self.answer.as_ref().is_none_or(RecvStream::is_end_stream)
    }

    /// Whether part of the request is still to be sent.
    pub(in crate::gateway::forward) fn is_sending(&self) -> bool {
        self.push.is_some()
    }

    /// Goes on with the request. That the upstream takes no more of it is not held against its answer.
    pub(in crate::gateway::forward) fn push(&mut self, cx: &mut Context<'_>) -> Result<(), BodyError> {
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

    pub(in crate::gateway::forward) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let Some(answer) = &mut self.answer else { return Poll::Ready(None) };
        match ready!(answer.poll_data(cx)) {
            Some(Ok(data)) => {
                self.under_way.pulse().hear();
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

    /// Nothing more is wanted of it: the upstream is told.
    pub(in crate::gateway::forward) fn cut(&mut self) {
        (self.answer, self.push) = (None, None);
    }
}

fn passed(mut trailers: HeaderMap) -> HeaderMap {
    if trailers.keys().any(|name| !headers::may_trail(name)) {
        let kept = trailers.iter().filter(|(name, _)| headers::may_trail(name));
        trailers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    trailers
}
