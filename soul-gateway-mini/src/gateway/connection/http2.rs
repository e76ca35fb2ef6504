//! A connection that speaks HTTP/2: many requests at a time. Each is a task of its own in the same lane, with its own timer,
//! and all of them end with the connection.
//!
//! What a request is inside does not depend on how it came: it is made what it would have been in HTTP/1.1, and goes the
//! same way from there.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::{Poll, Waker},
    time::Duration,
};

use http::{
    HeaderMap, HeaderValue, Request, Response, Uri,
    header::{COOKIE, HOST},
    uri::Scheme,
};
use hyper::{body::Incoming, rt::Executor, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Caller, Watch, websocket};
use crate::{
    causes::chain,
    gateway::{AnswerBody, GatewayConfig, Requests, alarm::Timer, error::Refusal, spare},
    listen::{GRACE, Patience},
};

/// Bytes of a body that a caller may send ahead, for one request and for all of a connection: a connection whose bodies
/// nobody takes holds no more than the latter.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Bytes of one answer that wait for a caller to take them.
const SEND_BUFFER: usize = 64 * 1024;

/// How often a caller with requests under way is asked whether it is still there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PONG_WITHIN: Duration = Duration::from_secs(20);

/// How long a caller that was told that the connection ends, with no request under way, may take to end it.
const FAREWELL: Duration = Duration::from_secs(5);

/// What one connection may ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    streams: u32,
    head: u32,
    headers: usize,
    /// How long a caller may take nothing of an answer.
    pause: Duration,
}

impl Limits {
    /// `None` if HTTP/2 is not spoken.
    pub(super) fn of(config: &GatewayConfig) -> Option<Self> {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        config.speaks_http2().then(|| Self {
            streams: number(config.http2_max_streams),
            head: number(config.max_head_bytes),
            headers: config.max_headers,
            pause: config.body_idle_timeout,
        })
    }

    /// Whether a head has more lines than may be, or is longer (RFC 9113, section 6.5.2).
    fn are_exceeded_by<B>(&self, request: &Request<B>) -> bool {
        /// What each line costs besides its name and value.
        const LINE: usize = 32;
        let uri = request.uri();
        let length = |text: Option<&str>| text.map_or(0, |text| LINE + text.len());
        let pseudo = LINE
            + request.method().as_str().len()
            + length(uri.scheme_str())
            + length(uri.authority().map(|address| address.as_str()))
            + length(uri.path_and_query().map(|target| target.as_str()))
            + ":method:scheme:authority:path".len();
        let lines = request.headers().iter().map(|(name, value)| LINE + name.as_str().len() + value.len());
        request.headers().len() > self.headers || pseudo + lines.sum::<usize>() > self.head as usize
    }

    fn builder(&self, spawner: Spawner) -> http2::Builder<Spawner> {
        let mut builder = http2::Builder::new(spawner);
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.streams)
            // Of what is longer h2 tells nobody, so it is given more than may be.
            .max_header_list_size(self.head.saturating_mul(2))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PONG_WITHIN)
            .enable_connect_protocol();
        builder
    }
}

/// Serves it to its end.
pub(super) async fn serve<S>(stream: S, caller: Caller, limits: &Limits, mut watch: Watch<'_, '_>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let streams = Arc::new(Streams::new(caller, *limits));
    // Whatever ends this future ends the requests.
    let _cut = streams.cut.clone().drop_guard();
    let service = {
        let streams = Arc::clone(&streams);
        service_fn(move |request| {
            let stream = Streams::begin(&streams);
            async move { Ok::<_, Infallible>(stream.answer(request).await) }
        })
    };
    let io = TokioIo::new(Patience::new(stream, limits.pause));
    let spawner = Spawner(Arc::clone(&streams));
    let mut connection = pin!(limits.builder(spawner).serve_connection(io, service));
    let alarm = &streams.caller.alarm;
    let mut told = false;
    let served = poll_fn(|cx| {
        streams.wake_by(cx.waker());
        if watch.timer.ring() && alarm.is_idle() {
            if streams.leaving.load(Relaxed) {
                return Poll::Ready(Ok(()));
            }
            // It has asked nothing for too long.
            streams.leave();
        }
        loop {
            // First of all, so that what has come already is a request and not lost.
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                return Poll::Ready(ended);
            }
            if watch.drains(cx) || watch.ending && !told {
                streams.leave();
            }
            if told || !streams.leaving.load(Relaxed) {
                break;
            }
            told = true;
            connection.as_mut().graceful_shutdown();
        }
        watch.timer.arm(cx);
        Poll::Pending
    });
    if let Err(error) = served.await {
        let peer = streams.caller.peer.address();
        tracing::debug!(%peer, error = chain(&error), "a connection ended early");
    }
    streams.cut.cancel();
    streams.tasks.close();
    streams.tasks.wait().await;
}

/// The requests of one connection.
struct Streams {
    caller: Caller,
    limits: Limits,
    /// How many are under way.
    open: AtomicUsize,
    /// Whether any ever was.
    asked: AtomicBool,
    /// The connection takes no more.
    leaving: AtomicBool,
    /// The one that has begun and has no task yet.
    begun: Mutex<Option<Arc<Stream>>>,
    /// Wakes the connection.
    waker: Mutex<Option<Waker>>,
    tasks: TaskTracker,
    cut: CancellationToken,
}

impl Streams {
    fn new(caller: Caller, limits: Limits) -> Self {
        Self {
            caller,
            limits,
            open: AtomicUsize::new(0),
            asked: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            begun: Mutex::default(),
            waker: Mutex::default(),
            tasks: TaskTracker::new(),
            cut: CancellationToken::new(),
        }
    }

    /// A request has come: until it is dropped, the connection is not idle.
    fn begin(this: &Arc<Self>) -> Arc<Stream> {
        this.open.fetch_add(1, Relaxed);
        this.asked.store(true, Relaxed);
        this.caller.alarm.begin();
        let stream = Arc::new(Stream {
            caller: this.caller.again(),
            answered: AtomicBool::new(false),
            streams: Arc::clone(this),
        });
        *lock(&this.begun) = Some(Arc::clone(&stream));
        stream
    }

    /// The connection takes no more requests, and ends after those under way.
    fn leave(&self) {
        self.leaving.store(true, Relaxed);
        if self.open.load(Relaxed) == 0 {
            // Who has asked nothing is owed nothing.
            self.caller.alarm.idle(if self.asked.load(Relaxed) { FAREWELL } else { GRACE });
        }
    }

    fn wake_by(&self, waker: &Waker) {
        let mut own = lock(&self.waker);
        if own.as_ref().is_none_or(|own| !own.will_wake(waker)) {
            *own = Some(waker.clone());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request and its answer.
struct Stream {
    caller: Caller,
    /// Whether what is left to do is to write the answer.
    answered: AtomicBool,
    streams: Arc<Streams>,
}

impl Stream {
    async fn answer(&self, mut request: Request<Incoming>) -> Response<AnswerBody> {
        let too_large = self.streams.limits.are_exceeded_by(&request);
        // With that it gets lines that its caller did not send.
        let tunnels = websocket::is_asked(&mut request);
        let (mut head, body) = as_of_http1(request).into_parts();
        let mut response = if too_large {
            Requests::refuse(&head, Refusal::HeadTooLarge, &self.caller)
        } else {
            let Ok(response) = Requests::answer(&mut head, body, &self.caller).await;
            response
        };
        spare::give_back(head.headers);
        if tunnels {
            websocket::answer(&mut response);
        }
        self.answered.store(true, Relaxed);
        response
    }

    /// Runs the request in its task, and the tunnel that it may become.
    async fn run(self: Arc<Self>, exchange: impl Future<Output = ()>) {
        self.watch(exchange).await;
        let tunnel = self.caller.waiting_tunnel().take();
        if let Some(tunnel) = tunnel
            && let Err(error) = tunnel.run(&self.caller.alarm).await
        {
            tracing::debug!(peer = %self.caller.peer.address(), %error, "a tunnel ended early");
        }
    }

    /// Runs the request with the times that it sets itself, and one for a caller that takes nothing of the answer.
    async fn watch(&self, exchange: impl Future<Output = ()>) {
        let (alarm, pause) = (&self.caller.alarm, self.streams.limits.pause);
        let mut timer = Timer::new(&**alarm);
        let mut exchange = pin!(exchange);
        let mut untaken = false;
        poll_fn(|cx| {
            let rang = timer.ring();
            if untaken {
                if rang {
                    return Poll::Ready(());
                }
                alarm.clear();
            }
            if exchange.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            self.caller.unsent.push(cx);
            // There is something to write, and nobody waits for the upstream: it is the caller that is waited for.
            untaken = self.answered.load(Relaxed) && !alarm.is_set() && !alarm.has_rung();
            if untaken {
                alarm.set_pause(pause);
            }
            timer.arm(cx);
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let streams = &self.streams;
        if streams.open.fetch_sub(1, Relaxed) > 1 {
            return;
        }
        let leaving = streams.leaving.load(Relaxed);
        streams.caller.alarm.idle(if leaving { FAREWELL } else { streams.caller.header_read_timeout });
        if let Some(waker) = &*lock(&streams.waker) {
            waker.wake_by_ref();
        }
    }
}

/// Gives each request its task, in the lane of the connection.
#[derive(Clone)]
struct Spawner(Arc<Streams>);

impl<F> Executor<F> for Spawner
where
    F: Future<Output = ()> + Send + 'static,
{
    /// Follows at once on the beginning of the request that it is for.
    fn execute(&self, exchange: F) {
        let stream = lock(&self.0.begun).take();
        let cut = self.0.cut.clone();
        self.0.tasks.spawn(async move {
            match stream {
                Some(stream) => cut.run_until_cancelled(stream.run(exchange)).await,
                None => cut.run_until_cancelled(exchange).await,
            }
        });
    }
}

/// Makes of a request what it would be in HTTP/1.1.
///
/// - The address it is for becomes `Host`, whatever that says (RFC 9113, section 8.3.1).
/// - A `Cookie` that was sent in crumbs is put together again (section 8.2.3): not every service reads several.
/// - Of a scheme that is foreign here the whole address stays in the request line, where it is refused.
fn as_of_http1<B>(mut request: Request<B>) -> Request<B> {
    let uri = request.uri();
    let ours = uri.scheme().is_none_or(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS);
    if let (Some(target), authority, true) = (uri.path_and_query().cloned(), uri.authority().cloned(), ours) {
        if let Some(host) = authority.and_then(|name| HeaderValue::from_str(name.as_str()).ok()) {
            request.headers_mut().insert(HOST, host);
        }
        *request.uri_mut() = Uri::from(target);
    }
    join_cookies(request.headers_mut());
    request
}

fn join_cookies(headers: &mut HeaderMap) {
    let mut crumbs = headers.get_all(COOKIE).iter();
    if let (Some(first), Some(second)) = (crumbs.next(), crumbs.next()) {
        let mut whole = first.as_bytes().to_vec();
        for crumb in [second].into_iter().chain(crumbs) {
            whole.extend_from_slice(b"; ");
            whole.extend_from_slice(crumb.as_bytes());
        }
        // Values between which a separator stands are a value.
        if let Ok(whole) = HeaderValue::from_bytes(&whole) {
            headers.insert(COOKIE, whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_becomes_one_of_http_1() {
        let request = Request::get("https://shop.example:8443/a%2Fb?c")
            .header(HOST, "other.example")
            .header(COOKIE, "a=1")
            .header("x-a", "1")
            .header(COOKIE, "b=2; c=3")
            .header(COOKIE, "d=4");
        let request = as_of_http1(request.body(()).unwrap());
        assert_eq!(request.uri(), "/a%2Fb?c");
        let all = |name| request.headers().get_all(name).iter().cloned().collect::<Vec<_>>();
        assert_eq!(all("host"), ["shop.example:8443"]);
        assert_eq!(all("cookie"), ["a=1; b=2; c=3; d=4"]);
        let plain = Request::get("/x").header(COOKIE, "a=1").body(()).unwrap();
        let plain = as_of_http1(plain);
        assert_eq!((plain.uri().path(), &plain.headers()[COOKIE]), ("/x", &HeaderValue::from_static("a=1")));
        let foreign = as_of_http1(Request::get("ftp://a/x").body(()).unwrap());
        assert_eq!(foreign.uri(), "ftp://a/x");
    }

    #[test]
    fn a_head_is_as_large_as_its_lines_and_what_is_counted_for_each() {
        let limits = |head, headers| Limits { streams: 1, head, headers, pause: Duration::ZERO };
        let request = Request::get("http://a/x").header("x-a", "12345").body(()).unwrap();
        let size = (7 + 3 + 32) + (7 + 4 + 32) + (10 + 1 + 32) + (5 + 2 + 32) + (3 + 5 + 32);
        assert!(!limits(size, 1).are_exceeded_by(&request));
        assert!(limits(size - 1, 1).are_exceeded_by(&request));
        assert!(limits(size, 0).are_exceeded_by(&request));
    }
}
