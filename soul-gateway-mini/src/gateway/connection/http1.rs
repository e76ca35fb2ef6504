//! A connection that speaks HTTP/1.1: all of it is one task, and one request at a time.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll};

use http::Request;
use hyper::{
    body::{Body as _, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;

use super::{
    Caller, Serving, Watch,
    ending::{CallerStream, Ending, Sending},
    interim::{Interims, Telling},
};
use crate::{
    causes::chain,
    gateway::{Requests, spare},
    listen::{Asked, Patience},
};

/// Serves it to its end, and the tunnel that it may become.
pub(super) async fn serve<S>(stream: S, mut caller: Caller, serving: &Serving, mut watch: Watch<'_, '_>)
where
    S: CallerStream,
{
    let interims = Arc::<Interims>::default();
    caller.interims = Some(Arc::clone(&interims));
    let caller = &caller;
    let asked = Asked::default();
    let (asked, sending) = (&asked, Sending::default());
    let stream = Ending::new(Telling::new(stream, interims), Arc::clone(&caller.alarm), sending.clone());
    let io = TokioIo::new(Patience::new(stream, serving.body_idle_timeout));
    let service = service_fn(move |request: Request<Incoming>| {
        asked.note();
        sending.note(!request.body().is_end_stream());
        // Now, and not when the answer is first asked for: an end of the caller's side may be seen in between.
        caller.alarm.begin();
        let (mut head, body) = request.into_parts();
        // The head stays in this block: what is given to an `async fn` by value moves once more, and is kept twice.
        async move {
            let answered = Requests::answer(&mut head, body, caller).await;
            spare::give_back(head.headers);
            answered
        }
    });
    let mut connection = pin!(serving.http1(S::BARE).serve_connection(io, service).with_upgrades());
    let alarm = &*caller.alarm;
    let mut once_more = pin!(asked.once_more());
    let mut told = false;
    let served = poll_fn(|cx| {
        if watch.timer.ring() && alarm.is_idle() {
            // It has asked nothing for too long, or half a question.
            return Poll::Ready(Ok(()));
        }
        watch.drains(cx);
        // One that is just about to ask is not closed in its face.
        if watch.ending && !told && (!alarm.is_idle() || once_more.as_mut().poll(cx).is_ready()) {
            if !asked.at_all() {
                return Poll::Ready(Ok(()));
            }
            told = true;
            connection.as_mut().graceful_shutdown();
        }
        if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return Poll::Ready(ended);
        }
        caller.unsent.push(cx);
        watch.timer.arm(cx);
        Poll::Pending
    });
    if let Err(error) = served.await {
        // A caller that went away, sent nonsense, or was left without the rest of an answer.
        tracing::debug!(peer = %caller.peer.address(), error = chain(&error), "a connection ended early");
        return;
    }
    let tunnel = caller.waiting_tunnel().take();
    if let Some(tunnel) = tunnel
        && let Err(error) = tunnel.run(alarm).await
    {
        tracing::debug!(peer = %caller.peer.address(), %error, "a tunnel ended early");
    }
}
