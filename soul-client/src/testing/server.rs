//! The sockets of a fake admin.

use std::{io, net::SocketAddr, sync::Arc};

use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderName},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    task::{JoinHandle, JoinSet},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Recorded, Reply, Shared};

/// No body of a registration is larger.
const MAX_BODY: usize = 1 << 20;

/// Listens until it is stopped or dropped.
pub(super) struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
    _guard: DropGuard,
}

impl Server {
    pub(super) async fn start(shared: Arc<Shared>, address: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // The port was ours before, and connections to it may still be dying.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(1024)?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let task = tokio::spawn(accept(shared, listener, stop.clone()));
        Ok(Self { address, _guard: stop.clone().drop_guard(), stop, task })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns when the port and every connection are closed.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        // A panic in there is one of a script, which the test sees as a closed connection.
        drop(self.task.await);
    }
}

async fn accept(shared: Arc<Shared>, listener: TcpListener, stop: CancellationToken) {
    // Dropped at the end, which closes the connections.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(Arc::clone(&shared), stream));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    // Answers are small and waited for.
    drop(stream.set_nodelay(true));
    let service = service_fn(|request| answer(Arc::clone(&shared), request));
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // Clients close when they like, and `Reply::Close` is an error here.
    drop(connection.await);
}

/// An error closes the connection.
async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, io::Error> {
    let (request, reply) = shared.note(record(request).await?);
    let (status, text) = match reply {
        Reply::Usual => shared.usual(&request),
        Reply::UsualAfter(time) => {
            tokio::time::sleep(time).await;
            shared.usual(&request)
        }
        Reply::Text(status, text) => (status, text),
        Reply::KeptBut(status, text) => {
            drop(shared.usual(&request));
            (status, text)
        }
        Reply::Hang => std::future::pending().await,
        Reply::Close => return Err(io::ErrorKind::ConnectionAborted.into()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok(response)
}

async fn record(request: Request<Incoming>) -> Result<Recorded, io::Error> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await.map_err(io::Error::other)?.to_bytes();
    let header =
        |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(Recorded {
        number: 0,
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        content_type: header(CONTENT_TYPE),
        token: header(HeaderName::from_static("x-access-token")),
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}
