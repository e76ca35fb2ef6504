//! The gateway's HTTP/1.1 client: one exchange with one upstream.
//!
//! Connecting and sending are separate steps, so that it is known of every failure whether the upstream can have
//! seen any of the request.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpStream, lookup_host},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    body::{CallerFault, RequestBody, Upload},
    names::Names,
    pool::{Lease, Pool},
};
use crate::model::Target;

/// Header lines an upstream may answer with.
const MAX_HEADERS: usize = 256;

/// Bytes of the head of an answer, and what a connection may hold of a body that its caller is slow to take.
const BUFFER: usize = 128 * 1024;

/// How an exchange failed.
pub(super) enum Failed {
    /// No connection was made: the upstream has seen nothing, and the request is still whole.
    Connect { request: Box<Request<RequestBody>>, cause: ConnectError },
    /// Part of the request may have been seen.
    Sent { cause: SendError },
}

/// Why no connection was made.
pub(super) enum ConnectError {
    Refused(io::Error),
    Late(Duration),
}

impl ConnectError {
    /// Whether it is the gateway that can open no more connections, whatever the upstream.
    pub(super) fn is_ours(&self) -> bool {
        /// "Too many open files", in the system and in the process, on every Unix.
        const NO_DESCRIPTOR: [i32; 2] = [23, 24];
        match self {
            // Out of local ports, out of descriptors.
            Self::Refused(error) => {
                error.kind() == io::ErrorKind::AddrNotAvailable
                    || cfg!(unix) && error.raw_os_error().is_some_and(|code| NO_DESCRIPTOR.contains(&code))
            }
            Self::Late(_) => false,
        }
    }
}

/// Why no answer came.
pub(super) enum SendError {
    /// The upstream broke off. On a `reused` connection it may just have closed what it took for idle.
    Broken { reused: bool, source: hyper::Error },
    /// The caller did not send its body as it should.
    Caller(CallerFault),
    /// The time was over.
    Late,
}

/// Which connection an exchange may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    /// One that waits, else a new one.
    Any,
    /// A new one.
    Fresh,
}

/// The client for all upstreams.
pub(super) struct Client {
    pool: Arc<Pool>,
    names: Arc<Names>,
    http: http1::Builder,
    connect_timeout: Duration,
    connections: TaskTracker,
    stop: CancellationToken,
}

impl Client {
    pub(super) fn new(
        max_idle: usize,
        idle_timeout: Duration,
        connect_timeout: Duration,
        connections: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let mut http = http1::Builder::new();
        http.max_headers(MAX_HEADERS).max_buf_size(BUFFER);
        Self {
            pool: Pool::new(max_idle, idle_timeout),
            names: Names::new(stop.clone()),
            http,
            connect_timeout,
            connections,
            stop,
        }
    }

    /// Closes and forgets what has been idle for too long, again and again.
    pub(super) fn sweep(&self) -> impl Future<Output = ()> + Send + use<> {
        let names = Arc::clone(&self.names);
        Arc::clone(&self.pool).sweep_for_ever(move || names.sweep())
    }

    /// How many connections are open.
    pub(super) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Sends `request` and waits for the head of the answer, at most until `deadline` (see [`Upload`] for what
    /// else the time depends on). The lease is of the connection, if that is still open.
    pub(super) async fn exchange(
        &self,
        target: &Target,
        address: &Arc<str>,
        mut request: Box<Request<RequestBody>>,
        which: Connection,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<(Response<Incoming>, Option<Lease>), Failed> {
        let mut which = which;
        loop {
            let mut lease = match self.connection(target, address, which, deadline).await {
                Ok(lease) => lease,
                Err(cause) => return Err(Failed::Connect { request, cause }),
            };
            let upload = request.body().upload();
            lease.carries(upload.clone());
            let reused = lease.reused;
            let response = lease.sender.try_send_request(*request);
            let mut lease = Some(lease);
            let response = answered(response, &mut lease, async |l| l.sender.ready().await.is_err());
            match in_time(response, upload.as_deref(), deadline, timeout).await {
                Some(Ok(response)) => return Ok((response, lease)),
                Some(Err(mut error)) => match error.take_message() {
                    // Nothing of it was written. A connection that was idle has just been closed: take another.
                    Some(unsent) if reused => {
                        request = Box::new(unsent);
                        which = Connection::Any;
                    }
                    Some(unsent) => {
                        let cause = ConnectError::Refused(io::Error::other(error.into_error()));
                        return Err(Failed::Connect { request: Box::new(unsent), cause });
                    }
                    None => {
                        let cause = match upload.and_then(|upload| upload.caller_fault()) {
                            Some(fault) => SendError::Caller(fault),
                            None => SendError::Broken { reused, source: error.into_error() },
                        };
                        return Err(Failed::Sent { cause });
                    }
                },
                None => return Err(Failed::Sent { cause: SendError::Late }),
            }
        }
    }

    async fn connection(
        &self,
        target: &Target,
        address: &Arc<str>,
        which: Connection,
        deadline: Instant,
    ) -> Result<Lease, ConnectError> {
        if which == Connection::Any
            && let Ok(Some(sender)) = timeout_at(deadline, self.pool.take(address)).await
        {
            return Ok(Lease::new(sender, true, Arc::clone(address), &self.pool));
        }
        let asked = Instant::now();
        let until = deadline.min(asked + self.connect_timeout);
        match timeout_at(until, self.connect(target)).await {
            Ok(Ok(sender)) => Ok(Lease::new(sender, false, Arc::clone(address), &self.pool)),
            Ok(Err(error)) => Err(ConnectError::Refused(error)),
            Err(_) => Err(ConnectError::Late(until - asked)),
        }
    }

    async fn connect(&self, target: &Target) -> io::Result<http1::SendRequest<RequestBody>> {
        let stream = TcpStream::connect(&*self.addresses(target).await?).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) =
            self.http.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let stop = self.stop.clone();
        self.connections.spawn(async move {
            // How it ends is told to the exchange that is on it; an idle one just closes.
            stop.run_until_cancelled_owned(connection).await;
        });
        Ok(sender)
    }

    async fn addresses(&self, target: &Target) -> io::Result<Arc<[SocketAddr]>> {
        let (host, port) = (target.host(), target.port());
        let lookup = || {
            let host = host.to_owned();
            async move { Ok(lookup_host((host, port)).await?.collect()) }
        };
        self.names.addresses(host, port, lookup).await
    }

    /// Closes the connections that wait.
    pub(super) fn close_idle(&self) {
        self.pool.clear();
    }
}

/// The response, also if the connection ended just as the request was handed to it.
///
/// The request may then lie in a channel that nobody reads any more, and would wait there for its time to be over:
/// the channel lives as long as its sender, which is in `lease`. So that is let go once the connection is `closed`,
/// and the request comes back unsent.
async fn answered<F: Future, L>(
    response: F,
    lease: &mut Option<L>,
    closed: impl AsyncFnOnce(&mut L) -> bool,
) -> F::Output {
    let mut response = std::pin::pin!(response);
    if let Some(open) = lease {
        let ended = tokio::select! {
            biased;
            response = response.as_mut() => return response,
            ended = closed(open) => ended,
        };
        if ended {
            *lease = None;
        }
    }
    response.await
}

/// The response, or `None` if the time is over before.
async fn in_time<F: Future>(
    response: F,
    upload: Option<&Upload>,
    deadline: Instant,
    timeout: Duration,
) -> Option<F::Output> {
    let mut deadline = deadline;
    let mut response = std::pin::pin!(response);
    loop {
        if let Ok(output) = timeout_at(deadline, response.as_mut()).await {
            return Some(output);
        }
        deadline = upload?.extended(Instant::now(), timeout)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_handed_to_a_connection_that_ended_is_not_waited_for() {
        // As long as the sender lives, nothing answers.
        let (sender, response) = tokio::sync::oneshot::channel::<()>();
        let mut sender = Some(sender);
        let answer = answered(response, &mut sender, async |_| true);
        assert!(timeout_at(Instant::now() + Duration::from_secs(5), answer).await.expect("an end").is_err());
        assert!(sender.is_none());
    }

    #[tokio::test]
    async fn an_open_connection_keeps_its_sender() {
        let (answering, response) = tokio::sync::oneshot::channel();
        let mut sender = Some(());
        let mut answering = Some(answering);
        let answer = answered(response, &mut sender, async |()| {
            let _ = answering.take().map(|answering| answering.send(7));
            false
        });
        assert_eq!(answer.await, Ok(7));
        assert_eq!(sender, Some(()));
    }

    #[test]
    #[cfg(unix)]
    fn an_upstream_is_not_blamed_for_what_the_gateway_has_run_out_of() {
        let refused = |code| ConnectError::Refused(io::Error::from_raw_os_error(code));
        assert!(refused(24).is_ours(), "EMFILE");
        assert!(refused(23).is_ours(), "ENFILE");
        assert!(ConnectError::Refused(io::ErrorKind::AddrNotAvailable.into()).is_ours());
        assert!(!ConnectError::Refused(io::ErrorKind::ConnectionRefused.into()).is_ours());
        assert!(!ConnectError::Late(Duration::ZERO).is_ours());
    }
}
