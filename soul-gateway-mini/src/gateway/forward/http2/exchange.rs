//! One exchange on a shared connection: a request goes out, the head of its answer comes in.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use h2::{
    Reason, RecvStream, SendStream,
    client::{ResponseFuture, SendRequest},
};
use http::{Request, Response};

use super::{
    super::{
        exchange::{SendError, Times, Watching},
        interim::{Interim, Listener},
        upload::{Awaited, Piece, PushError, Upload},
    },
    UnderWay, broken,
};

/// Why no answer came.
pub(super) struct Failed {
    pub(super) cause: SendError,
    /// Whether the upstream can have done nothing about the request.
    pub(super) unsent: bool,
    /// Whether it is a matter of this request, and the connection lives on.
    pub(super) is_of_stream: bool,
}

impl Failed {
    /// The request did not come to be.
    fn before(cause: SendError) -> Self {
        Self { cause, unsent: true, is_of_stream: false }
    }

    /// Nobody's fault but that of time or the caller.
    fn given_up(cause: SendError) -> Self {
        Self { cause, unsent: false, is_of_stream: true }
    }

    /// By the upstream, which may have said that it did nothing (RFC 9113, section 8.7), after it took no more of the body
    /// because of `earlier`.
    fn by(error: h2::Error, earlier: Option<io::Error>) -> Self {
        let gone = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
        let unsent = error.is_remote() && (gone || error.reason() == Some(Reason::REFUSED_STREAM));
        let is_of_stream = error.is_reset();
        let cause = earlier.filter(|_| !unsent).unwrap_or_else(|| broken(error));
        Self { cause: SendError::Broken(cause), unsent, is_of_stream }
    }
}

/// Sends a request and its body, and gives the head of the answer; also what is left to do about the body, if the answer came
/// before its end.
///
/// - `listener`: who is told of interim answers.
pub(super) async fn exchange(
    under_way: &UnderWay,
    request: Request<()>,
    upload: &mut Option<Box<Upload>>,
    times: Times<'_>,
    listener: Option<Listener<'_>>,
) -> Result<(Response<RecvStream>, Option<Pushing>), Failed> {
    times.alarm.set(times.deadline);
    let outcome = run(under_way.sender(), request, upload, times, listener).await;
    times.alarm.clear();
    outcome
}

async fn run(
    mut sender: SendRequest<Bytes>,
    request: Request<()>,
    upload: &mut Option<Box<Upload>>,
    times: Times<'_>,
    listener: Option<Listener<'_>>,
) -> Result<(Response<RecvStream>, Option<Pushing>), Failed> {
    poll_fn(|cx| match sender.poll_ready(cx) {
        Poll::Ready(ready) => Poll::Ready(ready.map_err(|error| SendError::Broken(broken(error)))),
        Poll::Pending if times.alarm.has_rung() => Poll::Ready(Err(SendError::Late)),
        Poll::Pending => Poll::Pending,
    })
    .await
    .map_err(Failed::before)?;
    let (answer, stream) = sender
        .send_request(request, upload.is_none())
        .map_err(|error| Failed::before(SendError::Broken(broken(error))))?;
    let pushing = upload.as_mut().map(|upload| Pushing::new(stream, upload));
    let mut exchange =
        Exchange { answer, pushing, upload, times, listener, watching: Watching::default(), broken: None };
    let response = poll_fn(|cx| exchange.poll(cx)).await?;
    let pushing = exchange.pushing.take();
    Ok((response, pushing))
}

struct Exchange<'a> {
    answer: ResponseFuture,
    /// `None` once all of the body was sent, or the upstream takes no more.
    pushing: Option<Pushing>,
    upload: &'a mut Option<Box<Upload>>,
    times: Times<'a>,
    listener: Option<Listener<'a>>,
    watching: Watching,
    /// Why the upstream took no more of the request. It may have answered all the same.
    broken: Option<io::Error>,
}

impl Exchange<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<RecvStream>, Failed>> {
        if let (Some(pushing), Some(upload)) = (&mut self.pushing, self.upload.as_mut()) {
            match pushing.poll_push(upload, cx) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.pushing = None,
                Poll::Ready(Err(PushError::Caller(fault))) => {
                    return Poll::Ready(Err(Failed::given_up(SendError::Caller(fault))));
                }
                Poll::Ready(Err(PushError::Upstream(error))) => {
                    (self.pushing, self.broken) = (None, Some(error));
                }
            }
        }
        while let Some(listener) = &mut self.listener
            && let Poll::Ready(Some(Ok(interim))) = self.answer.poll_informational(cx)
        {
            listener.tell(&Interim::of_http2(interim.status(), interim.headers()));
        }
        match std::pin::Pin::new(&mut self.answer).poll(cx) {
            Poll::Ready(Ok(response)) => Poll::Ready(Ok(response)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(Failed::by(error, self.broken.take()))),
            Poll::Pending => {
                let (waits, progress) = match (&self.pushing, &self.upload) {
                    (Some(pushing), Some(upload)) => (upload.awaits(), pushing.progress(upload)),
                    _ => (Awaited::Upstream, u64::MAX),
                };
                let upload = self.upload.as_mut();
                match self.watching.watch(self.times, upload.map(|upload| (&mut **upload, waits, progress))) {
                    Ok(_) => Poll::Pending,
                    Err(cause) => Poll::Ready(Err(Failed::given_up(cause))),
                }
            }
        }
    }
}

/// A body on its way.
pub(super) struct Pushing {
    stream: SendStream<Bytes>,
    /// Taken from the caller, and not taken by the upstream yet.
    data: Bytes,
    /// Whether that is the end.
    last: bool,
    sent: u64,
}

impl Pushing {
    fn new(stream: SendStream<Bytes>, upload: &mut Upload) -> Self {
        // The caller is told to go on as soon as its body is asked for.
        upload.release();
        let (data, last) = upload.again();
        Self { stream, data, last, sent: 0 }
    }

    /// A number that changes with whatever is passed on.
    fn progress(&self, upload: &Upload) -> u64 {
        self.sent.wrapping_add(upload.progress())
    }

    /// Sends as much of the body as there is, and as the upstream takes. Ready when all of it is sent.
    pub(super) fn poll_push(
        &mut self,
        upload: &mut Upload,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), PushError>> {
        loop {
            if !self.data.is_empty() {
                upload.wait_for(Awaited::Upstream);
                ready!(self.poll_send(cx)).map_err(PushError::Upstream)?;
                continue;
            }
            if self.last {
                return Poll::Ready(Ok(()));
            }
            if let Poll::Ready(reset) = self.stream.poll_reset(cx) {
                return Poll::Ready(Err(PushError::Upstream(reset_by(reset))));
            }
            upload.wait_for(Awaited::Caller);
            match ready!(upload.poll_piece(cx)).map_err(PushError::Caller)? {
                Piece::Data(data, last) if data.is_empty() && last => self.end()?,
                Piece::Data(data, last) => (self.data, self.last) = (data, last),
                Piece::Trailers(trailers) => {
                    self.last = true;
                    self.stream.send_trailers(trailers).map_err(|e| PushError::Upstream(broken(e)))?;
                }
                Piece::End => self.end()?,
            }
        }
    }

    fn end(&mut self) -> Result<(), PushError> {
        self.last = true;
        self.stream.send_data(Bytes::new(), true).map_err(|error| PushError::Upstream(broken(error)))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.reserve_capacity(self.data.len());
        while self.stream.capacity() == 0 {
            match ready!(self.stream.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(broken(error))),
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
        let piece = self.data.split_to(self.stream.capacity().min(self.data.len()));
        self.sent += piece.len() as u64;
        let last = self.last && self.data.is_empty();
        Poll::Ready(self.stream.send_data(piece, last).map_err(broken))
    }
}

fn reset_by(reset: Result<Reason, h2::Error>) -> io::Error {
    match reset {
        Ok(reason) => io::Error::other(format!("it takes no more of the request: {reason}")),
        Err(error) => broken(error),
    }
}
