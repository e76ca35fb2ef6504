//! The listener: accepts connections, bounds them in number, size and time, and drains them at the end.

use std::{convert::Infallible, future::Future, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{Request, Response},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::OwnedSemaphorePermit,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::metrics::Metrics;
use crate::listen::{Accepted, Acceptor, Asked, Patience, Places};

/// Bytes of the read buffer of a connection, and so of a request's head. The least hyper takes: thousands of polls
/// wait with one each.
const READ_BUFFER: usize = 8 * 1024;
/// Headers of one request.
const MAX_HEADERS: usize = 64;

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
    let mut acceptor = Acceptor::new(listener, "admin", Places::new(limits.connections));
    loop {
        let Accepted { stream, peer, place } = tokio::select! {
            () = end.stop.cancelled() => return,
            accepted = acceptor.next() => accepted,
        };
        let connection = Connection {
            peer,
            service: Arc::clone(&service),
            limits: limits.clone(),
            metrics: Arc::clone(&metrics),
            _place: place,
        };
        tracker.spawn(connection.serve(stream, end.clone()));
    }
}

struct Connection<S> {
    peer: SocketAddr,
    service: Arc<S>,
    limits: Limits,
    metrics: Arc<Metrics>,
    _place: OwnedSemaphorePermit,
}

impl<S: Service> Connection<S> {
    async fn serve(self, stream: TcpStream, end: End) {
        self.metrics.connections.inc();
        // Answers are small and complete: waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        let asked = Asked::default();
        let service = service_fn(|request| {
            asked.note();
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
                    () = asked.nothing() => Ok(()),
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
