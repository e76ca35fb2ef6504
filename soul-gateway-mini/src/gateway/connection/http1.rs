//! A connection that speaks HTTP/1.1: all of it is one task, and one request at a time.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex},
    task::Poll,
};

use http::Request;
use hyper::{
    body::{Body as _, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    Caller, Opened,
    ending::{Ending, Sending},
};
use crate::{
    causes::chain,
    gateway::{
        Requests,
        alarm::{Alarm, Timer},
    },
    listen::{Asked, Patience},
};

/// Serves it to its end, and the tunnel that it may become.
pub(super) async fn serve<S>(opened: Opened<S>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Opened { stream, peer, secure, lane, serving } = opened;
    let super::Serving { http, body_idle_timeout, header_read_timeout, request_timeout, drain, .. } =
        &*serving;
    let caller = Caller {
        peer,
        secure,
        lane,
        alarm: Arc::new(Alarm::new()),
        header_read_timeout: *header_read_timeout,
        request_timeout: *request_timeout,
        tunnel: Mutex::new(None),
    };
    let asked = Asked::default();
    let (caller, asked) = (&caller, &asked);
    let sending = Sending::default();
    let stream = Ending::new(stream, Arc::clone(&caller.alarm), sending.clone());
    let io = TokioIo::new(Patience::new(stream, *body_idle_timeout));
    let service = service_fn(move |request: Request<Incoming>| {
        asked.note();
        sending.note(!request.body().is_end_stream());
        // Now, and not when the answer is first asked for: an end of the caller's side may be seen in between.
        caller.alarm.busy(*request_timeout);
        async move { Ok::<_, Infallible>(Requests::answer(request, caller).await) }
    });
    let mut connection = pin!(http.serve_connection(io, service).with_upgrades());
    let alarm = &*caller.alarm;
    alarm.idle(*header_read_timeout);
    let mut timer = Timer::new(alarm);
    let mut drained = pin!(drain.cancelled());
    let mut abandoned = pin!(asked.nothing());
    let (mut listening, mut ending) = (false, false);
    let served = poll_fn(|cx| {
        if timer.ring() && alarm.is_idle() {
            // It has asked nothing for too long, or half a question.
            return Poll::Ready(Ok(()));
        }
        // Registered once; the token itself has a lock, which is not for every request.
        if !ending && (!listening || caller.lane.is_draining()) {
            listening = true;
            if drained.as_mut().poll(cx).is_ready() {
                ending = true;
                connection.as_mut().graceful_shutdown();
            }
        }
        if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return Poll::Ready(ended);
        }
        if ending && abandoned.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        timer.arm(cx);
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
