//! Instances of the two services, all in this process, each with a port of its own.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    error::Error,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use http_body_util::Full;
use hyper::{Request, Response, StatusCode, body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use soul_client::call::{CallError, ClientFactory};
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};

/// How many calls each instance has answered, by its name.
pub(crate) type Answered = Arc<Mutex<BTreeMap<String, u32>>>;

/// What an instance is and does.
struct Work {
    name: String,
    /// How it calls the other service.
    calls: ClientFactory,
    /// Time that it takes for each answer, milliseconds.
    takes_ms: AtomicU64,
    answered: Answered,
}

/// One instance; it ends, with all its connections, when it is killed or dropped.
pub(crate) struct Instance {
    pub(crate) address: SocketAddr,
    work: Arc<Work>,
    task: JoinHandle<()>,
}

impl Instance {
    /// Starts an instance at any free port.
    pub(crate) async fn start(
        name: &str,
        calls: &ClientFactory,
        answered: &Answered,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let work = Arc::new(Work {
            name: name.to_owned(),
            calls: calls.clone(),
            takes_ms: AtomicU64::new(1),
            answered: Arc::clone(answered),
        });
        Ok(Self { address, task: tokio::spawn(serve(listener, Arc::clone(&work))), work })
    }

    /// Closes its port and breaks its connections, as the end of a process does.
    pub(crate) async fn kill(&mut self) {
        self.task.abort();
        // OK to ignore: it says that it was cancelled.
        let _ = (&mut self.task).await;
    }

    /// Starts it again at the same port.
    pub(crate) async fn restart(&mut self) -> std::io::Result<()> {
        let listener = TcpListener::bind(self.address).await?;
        self.task = tokio::spawn(serve(listener, Arc::clone(&self.work)));
        Ok(())
    }

    /// From now on each answer takes so long.
    pub(crate) fn take(&self, time: Duration) {
        self.work.takes_ms.store(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Relaxed);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, work: Arc<Work>) {
    // Connections end with this future.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let work = Arc::clone(&work);
        let answer = service_fn(move |request| answer(Arc::clone(&work), request));
        connections.spawn(async move {
            // OK to ignore: a caller that goes away is no matter for an instance.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer<B>(work: Arc<Work>, request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
    tokio::time::sleep(Duration::from_millis(work.takes_ms.load(Relaxed))).await;
    *work.answered.lock().unwrap_or_else(|e| e.into_inner()).entry(work.name.clone()).or_default() += 1;
    let text = match request.uri().path() {
        // The first service asks the second, and the second asks the first in its turn.
        "/order/7" => ask(&work, "lb://stock/stock/7").await,
        "/stock/7" => ask(&work, "lb://orders/price/7").await,
        "/price/7" => Ok("95".to_owned()),
        _ => Ok(String::new()),
    };
    let (status, text) = match text {
        Ok(text) => (StatusCode::OK, format!("{} < {text}", work.name)),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    Ok(response)
}

async fn ask(work: &Work, address: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
    let answer = work.calls.get(address).send().await.map_err(|error: CallError| error.chain())?;
    let status = answer.status();
    let text = answer.text().await?;
    if status.is_success() { Ok(text) } else { Err(text.into()) }
}
