//! Calls to one service.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use serde::Serialize;

use super::{
    CallError, CallErrorKind, CallResponse, Effective, Membership, Retry, Transport,
    config::ServiceConfig,
    context::Context,
    execute::{self, Served},
    options::CallOptions,
    over_reqwest::{Http, HttpRequest, Payload},
    uri::{ServiceUri, UriError},
};
use crate::balance::{Balancer, Pick, PickContext};

/// Calls one service. Cheap to clone; all clones share list, statistics, health and settings.
///
/// # Examples
/// ```no_run
/// use soul_client::call::ClientFactory;
///
/// # async fn calls(user: u64) -> Result<(), Box<dyn std::error::Error>> {
/// let factory = ClientFactory::builder().build()?;
/// let orders = factory.client("orders")?;
/// let answer = orders.get("/api/hello").hash_key(user).send().await?;
/// println!("{} of {} after {} attempts", answer.status(), answer.upstream_address(), answer.attempts());
/// # Ok(()) }
/// ```
#[doc(alias = "LoadBalancerClient")]
#[derive(Clone)]
pub struct LbClient {
    pub(super) context: Arc<Context>,
}

impl LbClient {
    /// Name of the service.
    #[must_use]
    pub fn service(&self) -> &str {
        self.context.name()
    }

    /// A GET of a path, `/api/hello`, or of an address of this service, `lb://orders/api/hello`.
    pub fn get(&self, target: impl Into<String>) -> CallRequest {
        self.request(Method::GET, target)
    }

    /// A POST.
    pub fn post(&self, target: impl Into<String>) -> CallRequest {
        self.request(Method::POST, target)
    }

    /// A PUT.
    pub fn put(&self, target: impl Into<String>) -> CallRequest {
        self.request(Method::PUT, target)
    }

    /// A DELETE.
    pub fn delete(&self, target: impl Into<String>) -> CallRequest {
        self.request(Method::DELETE, target)
    }

    /// A HEAD.
    pub fn head(&self, target: impl Into<String>) -> CallRequest {
        self.request(Method::HEAD, target)
    }

    /// A request of any method.
    pub fn request(&self, method: Method, target: impl Into<String>) -> CallRequest {
        let target = target.into();
        let problem = self.check(&target).err();
        CallRequest::new(Ok(self.clone()), method, target, problem)
    }

    /// An address has to name this service, or none.
    fn check(&self, target: &str) -> Result<(), UriError> {
        if target.starts_with(['/', '?']) || target.is_empty() {
            return Ok(());
        }
        let uri = ServiceUri::parse(target)?;
        // A request of reqwest has its host in small letters.
        if uri.service().eq_ignore_ascii_case(self.service()) {
            return Ok(());
        }
        let remedy = format!(
            "names the service `{}`, and this client calls `{}`: call it by `ClientFactory::get`, or write only the path",
            uri.service(),
            self.service()
        );
        Err(UriError::new(target, remedy))
    }

    /// Sends a request of reqwest, whose host is the name of the service. Its own timeout takes the place of `total_timeout`.
    ///
    /// # Errors
    /// As [`CallRequest::send`].
    #[doc(alias = "executeWithLoadBalancer")]
    pub async fn execute(&self, request: reqwest::Request) -> Result<CallResponse, CallError> {
        CallRequest::of(self, request).send().await
    }

    /// Makes a call by any transport: the same choice, retries, times and statistics.
    ///
    /// # Errors
    /// As [`CallRequest::send`].
    ///
    /// # Examples
    /// See [`Transport`].
    #[doc(alias = "LoadBalancerCommand")]
    pub async fn execute_with<T: Transport>(
        &self,
        transport: &T,
        request: T::Request,
        options: &CallOptions,
    ) -> Result<Served<T::Response>, CallError> {
        execute::execute(&self.context, transport, request, options).await
    }

    /// Chooses an upstream and sends nothing: for protocols whose calls have no end. The outcome is for the caller to record.
    #[must_use]
    #[doc(alias = "chooseServer")]
    pub fn choose(&self) -> Option<Pick> {
        self.context.balancer().choose(&PickContext::at(self.context.now_ms()))
    }

    /// What chooses, with all and the healthy upstreams and what is known of them.
    #[must_use]
    pub fn balancer(&self) -> &Arc<Balancer> {
        self.context.balancer()
    }

    /// Where the list comes from and how its upstreams are. Another one after a change of settings that the list is made by.
    #[must_use]
    pub fn membership(&self) -> Arc<Membership> {
        Arc::clone(self.context.state().membership())
    }

    /// The settings that hold, each from whoever said it first: service, defaults, built in.
    #[must_use]
    pub fn config(&self) -> Arc<Effective> {
        Arc::clone(self.context.state().effective())
    }

    /// Returns when the first list is there.
    ///
    /// # Errors
    /// If it is not within the time.
    pub async fn ready(&self, within: Duration) -> Result<(), CallError> {
        self.context.state().ready(&self.context, within).await
    }
}

impl fmt::Debug for LbClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LbClient").field("service", &self.service()).finish_non_exhaustive()
    }
}

/// A call that is being prepared.
#[must_use = "a request does nothing until it is sent"]
#[derive(Debug)]
pub struct CallRequest {
    client: Result<LbClient, CallError>,
    request: HttpRequest,
    options: CallOptions,
    /// The first thing that was wrong.
    problem: Option<Problem>,
}

#[derive(Debug)]
enum Problem {
    Uri(UriError),
    Request(String),
}

impl CallRequest {
    pub(super) fn new(
        client: Result<LbClient, CallError>,
        method: Method,
        target: String,
        problem: Option<UriError>,
    ) -> Self {
        let request = HttpRequest { method, target, headers: HeaderMap::new(), payload: Payload::default() };
        Self { client, request, options: CallOptions::new(), problem: problem.map(Problem::Uri) }
    }

    fn of(client: &LbClient, mut request: reqwest::Request) -> Self {
        let timeout = request.timeout().copied();
        let payload = request.body_mut().take().map_or(Payload::Empty, Payload::of);
        let mut call = client.request(request.method().clone(), request.url().as_str());
        call.request.headers = std::mem::take(request.headers_mut());
        call.request.payload = payload;
        match timeout {
            Some(timeout) => call.total_timeout(timeout),
            None => call,
        }
    }

    /// Adds a header.
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName, Error: fmt::Display>,
        V: TryInto<HeaderValue, Error: fmt::Display>,
    {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => drop(self.request.headers.append(name, value)),
            (Err(error), _) => self.wrong(format!("the name of a header is none: {error}")),
            (_, Err(error)) => self.wrong(format!("the value of a header is none: {error}")),
        }
        self
    }

    /// Adds headers; each takes the place of all of its name.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.request.headers.extend(headers);
        self
    }

    /// Says who is calling, by a token.
    pub fn bearer_auth(mut self, token: impl fmt::Display) -> Self {
        match HeaderValue::from_str(&format!("Bearer {token}")) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.request.headers.insert(AUTHORIZATION, value);
            }
            Err(_) => self.wrong("the token cannot stand in a header".to_owned()),
        }
        self
    }

    /// Sets the body. One of bytes can be sent again, a stream cannot.
    pub fn body(mut self, body: impl Into<reqwest::Body>) -> Self {
        self.request.payload = Payload::of(body.into());
        self
    }

    /// Sets a body of JSON.
    pub fn json<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => {
                self.request.payload = Payload::Bytes(Bytes::from(bytes));
                let json = HeaderValue::from_static("application/json");
                self.request.headers.entry(CONTENT_TYPE).or_insert(json);
            }
            Err(error) => self.wrong(format!("the body cannot be written as JSON: {error}")),
        }
        self
    }

    /// Sets what policies by key hash: calls with the same go to the same upstream.
    pub fn hash_key(self, key: impl fmt::Display) -> Self {
        self.with(|options| options.hash_key(key))
    }

    /// Prefers upstreams whose metadata has this word as its `hint`.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.with(|options| options.hint(hint))
    }

    /// Prefers one upstream, by its address `host:port`: the instance that [answered](CallResponse::upstream_address) before.
    pub fn same_instance(self, address: impl Into<String>) -> Self {
        self.with(|options| options.same_instance(address))
    }

    /// Sets everything that tells this call from others.
    pub fn options(self, options: CallOptions) -> Self {
        Self { options, ..self }
    }

    /// Says settings for this call only.
    pub fn config(self, config: &ServiceConfig) -> Self {
        self.with(|options| options.config(config))
    }

    /// Sets the time for opening a connection.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        self.config(&ServiceConfig::default().connect_timeout(timeout))
    }

    /// Sets the time from sending to the head of the answer, and for each pause in its body.
    pub fn read_timeout(self, timeout: Duration) -> Self {
        self.config(&ServiceConfig::default().read_timeout(timeout))
    }

    /// Sets the time of the whole call with all its attempts and its body.
    pub fn total_timeout(self, timeout: Duration) -> Self {
        self.config(&ServiceConfig::default().total_timeout(timeout))
    }

    /// Sets how this call is repeated.
    pub fn retry(self, retry: Retry) -> Self {
        self.config(&ServiceConfig::default().retry(retry))
    }

    fn with(self, change: impl FnOnce(CallOptions) -> CallOptions) -> Self {
        Self { options: change(self.options), ..self }
    }

    fn wrong(&mut self, text: String) {
        self.problem.get_or_insert(Problem::Request(text));
    }

    /// Calls.
    ///
    /// # Errors
    /// If there is no answer; [`CallError::kind`] says why. An answer that says that something is wrong, such as 503, is one.
    ///
    /// # Cancel safety
    /// When it is dropped, what was sent may have been acted on. The upstream is not charged with it.
    pub async fn send(self) -> Result<CallResponse, CallError> {
        let client = self.client?;
        let service = client.service();
        match self.problem {
            None => {}
            Some(Problem::Uri(error)) => {
                return Err(CallError::new(CallErrorKind::InvalidUri, service).with_source(error));
            }
            Some(Problem::Request(text)) => {
                return Err(CallError::new(CallErrorKind::InvalidRequest, service).with_detail(text));
            }
        }
        let http = Http(client.context.clients());
        let served = client.execute_with(&http, self.request, &self.options).await?;
        Ok(CallResponse::new(client.service(), served))
    }
}
