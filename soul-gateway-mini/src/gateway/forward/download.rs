//! The body of an answer over HTTP/1.1.

use std::{
    io,
    task::{Context, Poll, ready},
};

use http_body::{Frame, SizeHint};
use tokio::time::Instant;

use super::{
    body::{BodyError, Next},
    client::Lease,
    framing::{Chunk, Chunks, Framing},
    upload::{PushError, Upload},
};
use crate::gateway::alarm::Alarm;

/// A body that is read from a connection.
pub(super) struct Downloading {
    lease: Option<Lease>,
    rest: Rest,
    /// What the upstream has not taken yet of the request, which it answered early.
    upload: Option<Box<Upload>>,
    /// Whether the connection may carry another request afterwards.
    keep: bool,
}

/// What is still to come.
enum Rest {
    Length(u64),
    Chunked(Chunks),
    Close,
    End,
}

impl Downloading {
    pub(super) fn new(lease: Lease, framing: Framing, keep: bool, upload: Option<Box<Upload>>) -> Self {
        let rest = match framing {
            Framing::Length(0) => Rest::End,
            Framing::Length(length) => Rest::Length(length),
            Framing::Chunked => Rest::Chunked(Chunks::new()),
            Framing::Close => Rest::Close,
        };
        Self { lease: Some(lease), rest, upload, keep }
    }

    /// Whether part of the request is still to be sent.
    pub(super) fn is_sending(&self) -> bool {
        self.upload.is_some()
    }

    /// Goes on with the request, should the upstream have answered before it took all of it. That it takes no more is
    /// not held against its answer.
    pub(super) fn push(&mut self, cx: &mut Context<'_>) -> Result<(), BodyError> {
        let (Some(upload), Some(lease)) = (&mut self.upload, &mut self.lease) else { return Ok(()) };
        match upload.poll_push(&mut lease.link, cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(())) => {
                self.upload = None;
                Ok(())
            }
            Poll::Ready(Err(PushError::Upstream(_))) => {
                (self.upload, self.keep) = (None, false);
                Ok(())
            }
            Poll::Ready(Err(PushError::Caller(_))) => Err(BodyError::Caller),
        }
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>, alarm: &Alarm) -> Poll<Next> {
        let Some(lease) = &mut self.lease else { return Poll::Ready(None) };
        let link = &mut lease.link;
        loop {
            match &mut self.rest {
                Rest::End => {
                    self.end(alarm);
                    return Poll::Ready(None);
                }
                Rest::Length(left) if !link.input.is_empty() => {
                    let piece = usize::try_from(*left).unwrap_or(usize::MAX).min(link.input.len());
                    *left -= piece as u64;
                    let data = link.input.split_to(piece).freeze();
                    if *left == 0 {
                        self.end(alarm);
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Rest::Chunked(chunks) => match chunks.next(&mut link.input) {
                    Err(error) => return Poll::Ready(Some(Err(BodyError::Unreadable(error)))),
                    Ok(Some(Chunk::Data(data))) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    Ok(Some(Chunk::Trailers(trailers))) => {
                        self.end(alarm);
                        return Poll::Ready(Some(Ok(Frame::trailers(*trailers))));
                    }
                    Ok(Some(Chunk::End)) => {
                        self.end(alarm);
                        return Poll::Ready(None);
                    }
                    Ok(None) => {}
                },
                Rest::Close if !link.input.is_empty() => {
                    return Poll::Ready(Some(Ok(Frame::data(link.input.split().freeze()))));
                }
                Rest::Length(_) | Rest::Close => {}
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
    fn end(&mut self, alarm: &Alarm) {
        self.rest = Rest::End;
        let now = Instant::now();
        // The caller has its time for the next request from now on, however long it took to read this answer.
        alarm.saw(now);
        if let Some(lease) = self.lease.take()
            && self.keep
            && self.upload.is_none()
        {
            lease.give_back(now);
        }
    }

    /// Nothing more is wanted of it: the connection ends.
    pub(super) fn cut(&mut self) {
        self.lease = None;
    }

    pub(super) fn is_end_stream(&self) -> bool {
        matches!(self.rest, Rest::End)
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self.rest {
            Rest::Length(left) => SizeHint::with_exact(left),
            Rest::End => SizeHint::with_exact(0),
            Rest::Chunked(_) | Rest::Close => SizeHint::default(),
        }
    }
}
