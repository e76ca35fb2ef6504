//! The gateway's HTTP/1.1 client: one exchange with one upstream.
//!
//! Connecting and sending are separate steps, so that it is known of every failure whether the upstream can have
//! seen any of the request.

use std::{io, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    body::{CallerFault, RequestBody, Upload},
    pool::{Lease, Pool},
};
use crate::model::Target;

/// Header lines an upstream may answer with.
const MAX_HEADERS: usize = 256;

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
        http.max_headers(MAX_HEADERS);
        Self { pool: Pool::new(max_idle, idle_timeout), http, connect_timeout, connections, stop }
    }

    /// Closes what has been idle for too long, again and again.
    pub(super) fn sweep(&self) -> impl Future<Output = ()> + Send + use<> {
        Arc::clone(&self.pool).sweep_for_ever()
    }

    /// How many connections are open.
    pub(super) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Sends `request` and waits for the head of the answer, at most until `deadline` (see [`Upload`] for what
    /// else the time depends on).
    pub(super) async fn exchange(
        &self,
        target: &Target,
        address: &Arc<str>,
        mut request: Box<Request<RequestBody>>,
        which: Connection,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<(Response<Incoming>, Lease), Failed> {
        let mut which = which;
        loop {
            let mut lease = match self.connection(target, address, which, deadline).await {
                Ok(lease) => lease,
                Err(cause) => return Err(Failed::Connect { request, cause }),
            };
            let upload = request.body().upload();
            lease.carries(upload.clone());
            let response = lease.sender.try_send_request(*request);
            match in_time(response, upload.as_deref(), deadline, timeout).await {
                Some(Ok(response)) => return Ok((response, lease)),
                Some(Err(mut error)) => match error.take_message() {
                    // Nothing of it was written. A connection that was idle has just been closed: take another.
                    Some(unsent) if lease.reused => {
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
                            None => SendError::Broken { reused: lease.reused, source: error.into_error() },
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
        let stream = TcpStream::connect((target.host(), target.port())).await?;
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

    /// Closes the connections that wait.
    pub(super) fn close_idle(&self) {
        self.pool.clear();
    }
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
