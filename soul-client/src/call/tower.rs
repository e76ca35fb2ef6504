//! Balancing as a layer of tower, around any service that sends a request to the authority of its URI.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context as TaskContext, Poll},
};

use http::{HeaderValue, Method, header::HOST};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    Answer, AttemptError, CallError, Destination, Failed, LbClient, Transport, config::HostHeader,
    options::CallOptions, over_reqwest::keep_host, uri::rewrite_uri,
};

/// Who answered a call through [`LbService`], in the extensions of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedBy {
    /// The address of the upstream, `host:port`.
    pub upstream: String,
    /// How many attempts it took.
    pub attempts: u64,
}

/// Makes the body of a further attempt. Closures do so too.
pub trait Replay<B> {
    /// The body once more; `None` if that cannot be.
    fn replay(&self, body: &B) -> Option<B>;
}

impl<B, F: Fn(&B) -> Option<B>> Replay<B> for F {
    fn replay(&self, body: &B) -> Option<B> {
        self(body)
    }
}

/// Only a body that is empty can be sent again; right for every kind of body that has an empty one.
#[derive(Clone, Copy, Debug, Default)]
pub struct IfEmpty;

impl<B: Body + Default> Replay<B> for IfEmpty {
    fn replay(&self, body: &B) -> Option<B> {
        body.is_end_stream().then(B::default)
    }
}

/// Every body can be sent again, by cloning it: right for bodies that are held whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByClone;

impl<B: Clone> Replay<B> for ByClone {
    fn replay(&self, body: &B) -> Option<B> {
        Some(body.clone())
    }
}

/// How an error of the inner service is read.
pub type Classify = fn(&(dyn std::error::Error + 'static)) -> Failed;

/// A refused connection was surely not used; of every other error nobody knows.
fn refused_or_broken(error: &(dyn std::error::Error + 'static)) -> Failed {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::ConnectionRefused
        {
            return Failed::Refused;
        }
        cause = error.source();
    }
    Failed::Broken
}

/// Puts [`LbService`] around a service.
///
/// # Examples
/// ```
/// use std::convert::Infallible;
/// use soul_client::{balance::Upstream, call::{ByClone, CallOptions, ClientFactory, LbLayer, ServedBy}};
/// use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let factory =
///     ClientFactory::builder().service("orders", |c| c.servers([Upstream::new("10.0.0.2:8188")])).build()?;
/// // Stands for the client of hyper-util, or any other that goes where the URI says.
/// let inner = service_fn(|request: http::Request<String>| async move {
///     Ok::<_, Infallible>(http::Response::new(request.uri().to_string()))
/// });
/// let layer = LbLayer::new(&factory.client("orders")?).replay(ByClone);
/// let mut orders = ServiceBuilder::new().layer(layer).service(inner);
///
/// let mut request = http::Request::new(String::new());
/// *request.uri_mut() = "/api/hello".parse()?;
/// request.extensions_mut().insert(CallOptions::new().hash_key("user 7"));
/// let answer = orders.ready().await?.call(request).await?;
/// assert_eq!(answer.body(), "http://10.0.0.2:8188/api/hello");
/// assert_eq!(answer.extensions().get::<ServedBy>().map(|by| by.attempts), Some(1));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct LbLayer<R = IfEmpty> {
    client: LbClient,
    replay: R,
    classify: Classify,
}

impl LbLayer {
    /// A layer that calls the service of `client`. Only requests without a body are repeated; see [`replay`](Self::replay).
    #[must_use]
    pub fn new(client: &LbClient) -> Self {
        Self { client: client.clone(), replay: IfEmpty, classify: refused_or_broken }
    }
}

impl<R> LbLayer<R> {
    /// Sets how the body of a further attempt is made.
    #[must_use]
    pub fn replay<R2>(self, replay: R2) -> LbLayer<R2> {
        LbLayer { client: self.client, replay, classify: self.classify }
    }

    /// Sets how an error of the inner service is read. Unless set, a refused connection was surely not used, and everything else may
    /// have been.
    #[must_use]
    pub fn classify(self, classify: Classify) -> Self {
        Self { classify, ..self }
    }
}

impl<S, R: Clone> Layer<S> for LbLayer<R> {
    type Service = LbService<S, R>;

    fn layer(&self, inner: S) -> Self::Service {
        let Self { client, replay, classify } = self;
        LbService { inner, client: client.clone(), replay: replay.clone(), classify: *classify }
    }
}

/// Sends each request to an upstream of one service, and to others if that fails.
///
/// The inner service gets the request with the upstream in its URI, and with `Host` as the setting has it. It is cloned for each attempt, and
/// asked for its readiness then: nothing is polled before there is a request, and no request waits for another. [`CallOptions`] in the
/// extensions of a request hold for it; [`ServedBy`] is in those of the answer. The outcome is recorded when the inner service has answered; what becomes of
/// the body is not looked at.
#[derive(Clone)]
pub struct LbService<S, R = IfEmpty> {
    inner: S,
    client: LbClient,
    replay: R,
    classify: Classify,
}

impl<S: fmt::Debug, R> fmt::Debug for LbService<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LbService")
            .field("service", &self.client.service())
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<S, R, B, A> Service<http::Request<B>> for LbService<S, R>
where
    S: Service<http::Request<B>, Response = http::Response<A>, Future: Send> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    R: Replay<B> + Clone + Send + Sync + 'static,
    B: Send + 'static,
    A: Send + 'static,
{
    type Response = http::Response<A>;
    type Error = CallError;
    type Future = BoxFuture<Result<Self::Response, CallError>>;

    /// Always: which inner service has to be ready is not known before the request is.
    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        let Self { inner, client, replay, classify } = self.clone();
        let options = request.extensions_mut().remove::<CallOptions>().unwrap_or_default();
        Box::pin(async move {
            let transport = Around { inner, replay, classify, body: std::marker::PhantomData };
            let served = client.execute_with(&transport, request, &options).await?;
            let mut response = served.response;
            let upstream = served.upstream.upstream().address().to_owned();
            response.extensions_mut().insert(ServedBy { upstream, attempts: served.attempts });
            Ok(response)
        })
    }
}

/// Sends by a service of tower.
struct Around<S, R, B> {
    inner: S,
    replay: R,
    classify: Classify,
    body: std::marker::PhantomData<fn(B)>,
}

impl<S, R, B, A> Transport for Around<S, R, B>
where
    S: Service<http::Request<B>, Response = http::Response<A>, Future: Send> + Clone + Send + Sync,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    R: Replay<B> + Send + Sync,
    B: Send,
    A: Send,
{
    type Request = http::Request<B>;
    type Response = http::Response<A>;

    async fn send(
        &self,
        mut request: http::Request<B>,
        to: Destination<'_>,
    ) -> Result<http::Response<A>, AttemptError> {
        let uri = rewrite_uri(request.uri(), to.upstream)
            .map_err(|error| AttemptError::new(Failed::Invalid, error))?;
        match to.settings.host_header {
            HostHeader::Service => keep_host(request.headers_mut(), to.service),
            HostHeader::Upstream => {
                let authority = uri.authority().map_or("", |a| a.as_str());
                let host = authority.rsplit('@').next().unwrap_or_default();
                if let Ok(host) = HeaderValue::from_str(host) {
                    request.headers_mut().insert(HOST, host);
                }
            }
        }
        *request.uri_mut() = uri;
        let mut inner = self.inner.clone();
        let failed = |error: S::Error| {
            let error = error.into();
            AttemptError::new((self.classify)(&*error), error)
        };
        poll_fn(|task| inner.poll_ready(task)).await.map_err(failed)?;
        inner.call(request).await.map_err(failed)
    }

    fn replay(&self, request: &http::Request<B>) -> Option<http::Request<B>> {
        let mut again = http::Request::new(self.replay.replay(request.body())?);
        request.method().clone_into(again.method_mut());
        request.uri().clone_into(again.uri_mut());
        *again.version_mut() = request.version();
        request.headers().clone_into(again.headers_mut());
        request.extensions().clone_into(again.extensions_mut());
        Some(again)
    }

    fn answer(&self, response: &http::Response<A>) -> Answer {
        Answer::of_http(response.status(), response.headers())
    }

    fn method(&self, request: &http::Request<B>) -> Method {
        request.method().clone()
    }
}
