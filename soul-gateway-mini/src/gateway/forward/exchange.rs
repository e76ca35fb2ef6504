//! One exchange: a request goes out on a connection, the head of its answer comes in.
//!
//! Both directions are looked after at once, all in the task of the request: an upstream may answer before it took the
//! whole body, and must not be held up by it.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
    time::Duration,
};

use http::Method;
use tokio::time::Instant;

use super::{
    answer::{self, Head, Parsed, Unreadable},
    interim::Listener,
    link::Link,
    upload::{Awaited, CallerFault, PushError, Upload},
};
use crate::gateway::alarm::Alarm;

/// How long an upstream is waited for that was asked whether it wants the body. Many never say, and a caller may be left
/// waiting by them no longer than it would wait by itself (RFC 9110, section 10.1.1).
const CONTINUE_AFTER: Duration = Duration::from_secs(1);

/// Why no answer came.
pub(super) enum SendError {
    /// The upstream broke off.
    Broken(io::Error),
    /// What came is no answer.
    Unreadable(Unreadable),
    /// The caller did not send its body as it should.
    Caller(CallerFault),
    /// The time was over.
    Late,
}

/// How long an exchange may take.
///
/// The time a rule allows is meant for the upstream. So it runs anew from whatever of the body was passed on, and stands
/// still while the gateway waits for the caller, whose pauses have a limit of their own.
#[derive(Clone, Copy)]
pub(super) struct Times<'a> {
    pub(super) alarm: &'a Alarm,
    /// Until when the upstream may take, should the body add nothing to it.
    pub(super) deadline: Instant,
    pub(super) timeout: Duration,
    /// How long the caller may pause, and how many bytes it has to send in such a time.
    pub(super) pause: Duration,
    pub(super) least: u64,
}

/// Sends what was written into the link and the body, and reads the head of the answer into `head`.
///
/// - `listener`: who is told of interim answers.
pub(super) fn exchange<'a>(
    link: &'a mut Link,
    method: &'a Method,
    upload: &'a mut Option<Box<Upload>>,
    times: Times<'a>,
    listener: Option<Listener<'a>>,
    head: &'a mut Head,
) -> impl Future<Output = Result<(), SendError>> {
    let mut exchange = Exchange {
        link,
        method,
        upload,
        times,
        listener,
        head,
        pushing: true,
        broken: None,
        watching: Watching::default(),
        looked: 0,
        interim: 0,
    };
    // A block, for an `async fn` would keep all of it twice: as it was given and as it is used.
    async move {
        let Times { alarm, deadline, .. } = exchange.times;
        alarm.set(deadline);
        let outcome = poll_fn(|cx| exchange.poll(cx)).await;
        alarm.clear();
        outcome
    }
}

struct Exchange<'a> {
    link: &'a mut Link,
    method: &'a Method,
    upload: &'a mut Option<Box<Upload>>,
    times: Times<'a>,
    listener: Option<Listener<'a>>,
    head: &'a mut Head,
    /// Whether part of the request is still to be written.
    pushing: bool,
    /// Why the upstream took no more of the request. It may have answered all the same.
    broken: Option<io::Error>,
    watching: Watching,
    /// How much of what came was looked at, and is no whole head.
    looked: usize,
    /// Bytes of interim answers that came.
    interim: usize,
}

/// What came of reading.
enum Pulled {
    /// The head of the answer.
    Head,
    /// The upstream wants the body that it was asked about.
    Continue,
}

impl Exchange<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        loop {
            if self.pushing {
                self.push(cx)?;
            }
            let released = match self.pull(cx) {
                Poll::Ready(Ok(Pulled::Head)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(Pulled::Continue)) => true,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => self.watch_time()?,
            };
            if !released {
                return Poll::Pending;
            }
        }
    }

    fn push(&mut self, cx: &mut Context<'_>) -> Result<(), SendError> {
        let pushed = match self.upload {
            Some(upload) => upload.poll_push(self.link, cx),
            None => self.link.poll_write(cx, &mut [&[]; 3]).map_err(PushError::Upstream),
        };
        match pushed {
            Poll::Pending => return Ok(()),
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(PushError::Caller(fault))) => return Err(SendError::Caller(fault)),
            Poll::Ready(Err(PushError::Upstream(error))) if !self.link.wrote() => {
                return Err(SendError::Broken(error));
            }
            Poll::Ready(Err(PushError::Upstream(error))) => self.broken = Some(error),
        }
        self.pushing = false;
        Ok(())
    }

    /// Reads on.
    fn pull(&mut self, cx: &mut Context<'_>) -> Poll<Result<Pulled, SendError>> {
        loop {
            // Without the end of another line there is nothing new to see.
            if self.link.input[self.looked..].contains(&b'\n')
                || self.looked == 0 && !self.link.input.is_empty()
            {
                let Link { input, lines, .. } = &mut *self.link;
                let before = input.len();
                match lines.parse(input, self.method, self.head).map_err(SendError::Unreadable)? {
                    Parsed::Final => return Poll::Ready(Ok(Pulled::Head)),
                    Parsed::Interim(interim) => {
                        self.looked = 0;
                        self.interim += before - self.link.input.len();
                        if self.interim > answer::MAX_INTERIM {
                            return Poll::Ready(Err(SendError::Unreadable(Unreadable::Endless)));
                        }
                        if let Some(listener) = &mut self.listener {
                            listener.tell(&interim);
                        }
                        if let Some(upload) = self.upload.as_mut().filter(|u| u.awaits() == Awaited::Continue)
                        {
                            upload.release();
                            return Poll::Ready(Ok(Pulled::Continue));
                        }
                        continue;
                    }
                    Parsed::Partial => {}
                }
            }
            self.looked = self.link.input.len();
            if self.looked > answer::MAX_HEAD {
                return Poll::Ready(Err(SendError::Unreadable(Unreadable::TooLong)));
            }
            match self.link.poll_fill(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => {
                    let end = || io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection");
                    return Poll::Ready(Err(SendError::Broken(self.broken.take().unwrap_or_else(end))));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(SendError::Broken(error))),
            }
        }
    }

    /// See [`Watching::watch`].
    fn watch_time(&mut self) -> Result<bool, SendError> {
        let pushing = self.pushing;
        let upload = self.upload.as_deref_mut().map(|upload| {
            let waits = if pushing { upload.awaits() } else { Awaited::Upstream };
            let progress = upload.progress();
            (upload, waits, progress)
        });
        self.watching.watch(self.times, upload)
    }
}

/// Who is waited for, and how long.
#[derive(Default)]
pub(super) struct Watching {
    /// What the alarm was last told: who is waited for, and how much of the body had gone by then.
    told: Option<(Awaited, u64)>,
    /// How many bytes the caller had sent when its pause began to run.
    received: u64,
}

impl Watching {
    /// Sets how long is waited for whom; says whether the body may go now because the upstream did not say.
    ///
    /// - `upload`: the body, for whom it waits, and a number that changes with whatever of it is passed on.
    pub(super) fn watch(
        &mut self,
        times: Times<'_>,
        upload: Option<(&mut Upload, Awaited, u64)>,
    ) -> Result<bool, SendError> {
        let Times { alarm, timeout, pause, least, .. } = times;
        let Some((upload, waits, progress)) = upload else {
            return if alarm.has_rung() { Err(SendError::Late) } else { Ok(false) };
        };
        let now = (waits, progress);
        if self.told != Some(now) {
            let before = self.told.replace(now).map(|(waited, _)| waited);
            // A drop now and then is as good as a pause.
            let drips = waits == Awaited::Caller
                && before == Some(Awaited::Caller)
                && upload.received() - self.received < least;
            match waits {
                // At first the whole time is set already.
                Awaited::Upstream if before.is_none() => {}
                Awaited::Upstream => alarm.set(Instant::now() + timeout),
                Awaited::Caller if drips => {}
                Awaited::Caller => {
                    self.received = upload.received();
                    alarm.set_pause(pause);
                }
                Awaited::Continue => alarm.set(Instant::now() + timeout.min(CONTINUE_AFTER)),
            }
            if !drips {
                return Ok(false);
            }
        }
        match waits {
            _ if !alarm.has_rung() => Ok(false),
            Awaited::Upstream => Err(SendError::Late),
            Awaited::Caller => Err(SendError::Caller(CallerFault::Stalled)),
            Awaited::Continue if timeout <= CONTINUE_AFTER => Err(SendError::Late),
            Awaited::Continue => {
                upload.release();
                Ok(true)
            }
        }
    }
}
