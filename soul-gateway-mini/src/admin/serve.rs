//! The listener: accepts connections, bounds them in number, size and time, and drains them at the end.

use std::{convert::Infallible, future::Future, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{Request, Response},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{metrics::Metrics, patience::Patience};

/// Bytes of the read buffer of a connection, and so of a request's head. The least hyper takes: thousands of polls
/// wait with one each.
const READ_BUFFER: usize = 8 * 1024;
/// Headers of one request.
const MAX_HEADERS: usize = 64;
/// Wait after a failed accept, for example when there are no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An answer to come. Boxed, because a connection otherwise is as large as the largest handler.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// What answers requests.
pub(crate) trait Service: Send + Sync + 'static {
    /// Answers one request of a peer.
    fn call(&self, request: Request<Incoming>, peer: SocketAddr) -> Answer;
}

/// Bounds of the listener.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Connections at once.
    pub(crate) connections: usize,
    /// Time for the head of a request, and of an idle connection.
    pub(crate) header_timeout: Duration,
    /// Time a peer may take nothing of its answer.
    pub(crate) write_timeout: Duration,
}

/// How serving ends.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// Nothing new is accepted; connections finish the request they are at.
    pub(crate) stop: CancellationToken,
    /// Connections are cut.
    pub(crate) abort: CancellationToken,
}

/// Accepts until it is told to stop; every connection is a task of `tracker`.
pub(crate) async fn run<S: Service>(
    listener: TcpListener,
    service: Arc<S>,
    limits: Limits,
    metrics: Arc<Metrics>,
    tracker: TaskTracker,
    end: End,
) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let mut trouble = Trouble::default();
    loop {
        let accepted = tokio::select! {
            () = end.stop.cancelled() => return,
            accepted = accept(&listener, &permits, &mut trouble) => accepted,
        };
        let Some((stream, peer, permit)) = accepted else { return };
        let connection = Connection {
            peer,
            service: Arc::clone(&service),
            limits: limits.clone(),
            metrics: Arc::clone(&metrics),
            _permit: permit,
        };
        tracker.spawn(connection.serve(stream, end.clone()));
    }
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    trouble: &mut Trouble,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                trouble.over();
                return Some((stream, peer, permit));
            }
            Err(error) => {
                trouble.again(&error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Failed accepts since the last good one: the first is logged, and the end with their number.
#[derive(Default)]
struct Trouble(u64);

impl Trouble {
    fn again(&mut self, error: &io::Error) {
        if self.0 == 0 {
            tracing::warn!(%error, "accept a connection; it is tried again and again");
        }
        self.0 += 1;
    }

    fn over(&mut self) {
        if self.0 > 0 {
            tracing::info!(failures = self.0, "connections are accepted again");
        }
        self.0 = 0;
    }
}

struct Connection<S> {
    peer: SocketAddr,
    service: Arc<S>,
    limits: Limits,
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
}

impl<S: Service> Connection<S> {
    async fn serve(self, stream: TcpStream, end: End) {
        self.metrics.connections.inc();
        // Answers are small and complete: waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|request| {
            let answer = self.service.call(request, self.peer);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout)
            .max_buf_size(READ_BUFFER)
            .max_headers(MAX_HEADERS)
            .serve_connection(TokioIo::new(Patience::new(stream, self.limits.write_timeout)), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = end.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection => ended,
                    () = end.abort.cancelled() => Ok(()),
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, peer = %self.peer, "a connection ended");
        }
        self.metrics.connections.dec();
    }
}
