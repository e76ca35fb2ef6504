//! A service behind the gateway that tells what reached it.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Bytes, to_bytes},
    extract::{Request, State},
    response::IntoResponse as _,
};
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use serde::{Deserialize, Serialize};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use super::{address::own_address, wait::DEADLINE};

/// What an upstream saw of a request; every answer is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The upstream that answers.
    pub served_by: String,
    /// Method.
    pub method: String,
    /// Path and query, byte for byte.
    pub target: String,
    /// Headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body as text.
    pub body: String,
}

impl Seen {
    /// The values of one header.
    #[must_use]
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str()).collect()
    }
}

#[derive(Clone, Debug)]
struct Shared {
    addr: SocketAddr,
    count: Arc<AtomicUsize>,
    delay: Duration,
}

/// A running upstream. It answers every path with what it saw.
#[derive(Debug)]
pub struct Upstream {
    shared: Shared,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Upstream {
    /// Starts one on a free port of an address of its own.
    pub async fn start() -> Self {
        Self::start_at(SocketAddr::new(own_address(), 0), Duration::ZERO).await
    }

    /// Starts one that takes its time over every answer.
    pub async fn slow(delay: Duration) -> Self {
        Self::start_at(SocketAddr::new(own_address(), 0), delay).await
    }

    /// Starts one at an address, for example where another has just stopped.
    ///
    /// # Panics
    /// When the address is taken.
    pub async fn start_at(addr: SocketAddr, delay: Duration) -> Self {
        let listener = TcpListener::bind(addr).await.unwrap_or_else(|e| panic!("listen on `{addr}`: {e}"));
        let addr = listener.local_addr().expect("a listener has an address");
        let shared = Shared { addr, count: Arc::default(), delay };
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            tokio::select! {
                () = serve(listener, router) => {}
                // Every connection is cut: the upstream is gone as when its process is killed.
                _ = stopped => {}
            }
        });
        Self { shared, stop, server }
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.shared.addr
    }

    /// Requests it has begun to answer.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.count.load(Ordering::Relaxed)
    }

    /// Stops listening, and gives the address, where nothing answers from now on.
    ///
    /// # Panics
    /// When it panicked before.
    pub async fn stop(self) -> SocketAddr {
        // OK to ignore: a server that has ended needs no word.
        let _ = self.stop.send(());
        timeout(DEADLINE, self.server)
            .await
            .expect("the upstream stops")
            .expect("the upstream did not panic");
        self.shared.addr
    }
}

/// Serves until it is dropped, and its connections no longer than that: `axum::serve` would leave them open.
async fn serve(listener: TcpListener, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let service = TowerToHyperService::new(router.clone());
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(State(shared): State<Shared>, request: Request) -> axum::response::Response {
    shared.count.fetch_add(1, Ordering::Relaxed);
    if !shared.delay.is_zero() {
        tokio::time::sleep(shared.delay).await;
    }
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_else(|e| Bytes::from(e.to_string()));
    let headers = head.headers.iter();
    let seen = Seen {
        served_by: shared.addr.to_string(),
        method: head.method.to_string(),
        target: head.uri.path_and_query().map_or_else(|| head.uri.to_string(), ToString::to_string),
        headers: headers
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    Json(seen).into_response()
}
