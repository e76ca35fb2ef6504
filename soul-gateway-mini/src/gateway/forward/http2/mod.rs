//! Upstreams that speak HTTP/2: many requests at a time on one connection, or a few, of each lane.
//!
//! The connection has a task of its own, which moves frames. All else is as with HTTP/1.1: whoever asks writes its body and
//! reads its answer within the task of its request.

mod body;
mod connections;
mod exchange;
mod head;
mod pulse;

use std::{io, sync::Arc, time::Duration};

use http::{HeaderMap, Response};
use soul_client::balance::Outcome;
use tokio::time::Instant;

pub(super) use body::Streaming;
pub(super) use connections::{Connections, UnderWay, open};

use super::{
    AnswerBody, Elsewhere, Failure, Origin, Passing, Sending, Times, client::Fresh, exchange::SendError,
    headers::Role, listener, not_answered, unusable,
};
use crate::{
    clock::Moment,
    gateway::{
        error::Refusal,
        plugin::divide::{Candidate, outcome_of},
    },
};

impl Sending<'_> {
    /// Tries one upstream that speaks HTTP/2. Notes when it answered.
    ///
    /// - `first`: a place on a connection that was just made for it.
    pub(super) async fn attempt_http2(
        &mut self,
        candidate: Candidate<'_>,
        mut first: Option<UnderWay>,
        deadline: Instant,
        timeout: Duration,
        answered: &mut Option<Moment>,
    ) -> Result<Response<AnswerBody>, Failure> {
        let destination = &candidate.end.destination;
        let address = destination.address();
        let client = self.caller.lane.client();
        if self.only_upgrade {
            let what = "it speaks HTTP/2, and is asked for WebSockets in HTTP/1.1 only";
            return Err(unusable(address, what, Elsewhere::Freely));
        }
        let mut repetitions = REPETITIONS;
        loop {
            let under_way = match first.take() {
                Some(under_way) => under_way,
                None => {
                    destination.count_attempt();
                    match client.place(destination, self.forwarder.connect_timeout, deadline).await {
                        Ok(Fresh::Http2(under_way)) => under_way,
                        Ok(Fresh::Http1(_)) => {
                            let refusal = Refusal::NoHttp2 { upstream: Arc::clone(address) };
                            return Err(Failure { refusal, elsewhere: Elsewhere::Freely });
                        }
                        Err(cause) => return Err(self.not_connected(candidate, cause)),
                    }
                }
            };
            let Some(request) = self.asked().request(destination, self.target.text(&self.head.uri)) else {
                let what = "neither its address nor the caller's `Host` is one for HTTP/2";
                return Err(unusable(address, what, Elsewhere::Freely));
            };
            let pause = self.forwarder.body_idle_timeout;
            let least = self.forwarder.least_upload;
            let times = Times { alarm: &self.caller.alarm, deadline, timeout, pause, least };
            let listener = listener(self.caller, self.head, &self.said);
            let exchange::Failed { cause, unsent, is_of_stream } =
                match exchange::exchange(&under_way, request, &mut self.upload, times, listener).await {
                    Ok((response, pushing)) => {
                        under_way.pulse().hear();
                        let now = self.caller.lane.now();
                        *answered = Some(now);
                        let in_flight =
                            candidate.ended(outcome_of(response.status(), response.headers()), now);
                        let mut push = pushing.zip(self.upload.take());
                        if let Some((_, upload)) = &mut push {
                            // An answer is not asked for again.
                            upload.forget();
                        }
                        let alarm = Arc::clone(&self.caller.alarm);
                        let (mut head, answer) = response.into_parts();
                        end_hop(&mut head.headers);
                        let origin = Origin::Http2(Streaming::new(answer, push, under_way));
                        let passing = Passing::new(origin, pause, alarm, in_flight);
                        let mut response = Response::new(AnswerBody::passing(passing, &self.caller.unsent));
                        *response.status_mut() = head.status;
                        *response.headers_mut() = head.headers;
                        return Ok(response);
                    }
                    Err(failed) => failed,
                };
            let is_there = self.upload.as_ref().is_none_or(|upload| upload.is_whole() || upload.is_kept());
            self.whole = self.is_repeatable() || unsent && is_there;
            if let Some(upload) = self.upload.as_mut().filter(|upload| upload.is_kept()) {
                upload.rewind();
            }
            if matches!(cause, SendError::Late)
                && let Some(given_up) = self.given_up(address)
            {
                under_way.pulse().miss();
                return Err(given_up);
            }
            match cause {
                // It may be dead without anybody having said so.
                SendError::Late => under_way.pulse().doubt(),
                SendError::Broken(_) if !is_of_stream => under_way.retire(),
                _ => {}
            }
            // It went away just as it was used again, or has no time for this one.
            let again = unsent || under_way.reused && !is_of_stream;
            if self.whole && again && repetitions > 0 && matches!(cause, SendError::Broken(_)) {
                // A connection that went away is what an idle one does once; all else is a further attempt.
                let is_free = !is_of_stream && repetitions == REPETITIONS;
                let budget = self.forwarder.retry_budget.as_ref();
                if is_free || candidate.spend_retry(budget, self.caller.lane.now()) {
                    repetitions -= 1;
                    continue;
                }
            }
            if !matches!(cause, SendError::Caller(_)) {
                destination.count_failure();
                let now = self.caller.lane.now();
                match cause {
                    SendError::Late => candidate.ran_out(now),
                    _ => candidate.ended(Outcome::TimedOut, now),
                };
            }
            let went_away = !is_of_stream && matches!(cause, SendError::Broken(_));
            return Err(Failure {
                refusal: not_answered(address, cause, timeout),
                elsewhere: Elsewhere::after(unsent, went_away),
            });
        }
    }
}

/// Takes out what is meant for the gateway alone. What HTTP/2 forbids does not get as far as here.
fn end_hop(headers: &mut HeaderMap) {
    let of_one_hop = headers.keys().filter(|name| Role::of(name).is_of_one_hop());
    for name in of_one_hop.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
}

/// How often a request that reached nobody is asked of the same upstream again.
const REPETITIONS: usize = 2;

fn broken(error: h2::Error) -> io::Error {
    if error.is_io() {
        return error.into_io().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
    }
    io::Error::other(error)
}
