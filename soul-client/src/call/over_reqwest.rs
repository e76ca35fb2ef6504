//! Over reqwest: one client for each way to connect, shared by all services.

use std::{
    collections::HashMap,
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header::HOST};
use reqwest::{Body, Client, ClientBuilder, Url, redirect};
use tokio::time::Instant;

use super::{
    Answer, AttemptError, Destination, Failed, Transport,
    clock::ENDLESS,
    config::{Effective, HostHeader},
    uri::reconstruct_uri,
};
use crate::{balance::Upstream, transport};

/// What is done with the builder of every client: certificates, proxies, protocols.
pub(super) type Customise = Arc<dyn Fn(ClientBuilder) -> ClientBuilder + Send + Sync>;

/// Most clients that are kept; beyond that they are made anew. There is one for each upstream that is called under another name,
/// and one for each time for connecting, which every request may say.
const KEPT: usize = 1_024;

/// What tells one way to connect from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Way {
    connect_timeout: Duration,
    idle_connections: usize,
    idle_timeout: Duration,
    follow_redirects: bool,
    /// Without it what the system trusts need not be read, and may be missing.
    tls: bool,
    /// `host:port` that every name stands for.
    pinned: Option<String>,
}

/// The clients of a factory, made when they are needed.
#[derive(Clone, Default)]
pub(super) struct Clients {
    customise: Option<Customise>,
    made: Arc<Mutex<HashMap<Way, Client>>>,
}

impl Clients {
    pub(super) fn new(customise: Option<Customise>) -> Self {
        Self { customise, made: Arc::default() }
    }

    /// The client for a way to connect. What takes a lock here is a look into a small table.
    fn get(&self, way: Way) -> Result<Client, AttemptError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = made.get(&way) {
            return Ok(client.clone());
        }
        let client = self.make(&way).map_err(|error| AttemptError::new(Failed::Invalid, error))?;
        if made.len() >= KEPT {
            // Calls under way keep theirs.
            made.clear();
        }
        made.insert(way, client.clone());
        Ok(client)
    }

    fn make(&self, way: &Way) -> reqwest::Result<Client> {
        let redirects =
            if way.follow_redirects { redirect::Policy::default() } else { redirect::Policy::none() };
        let mut builder = Client::builder();
        #[cfg(feature = "rustls")]
        if !way.tls
            && let Some(tls) = transport::trusting_nobody()
        {
            builder = builder.tls_backend_preconfigured(tls);
        }
        builder = builder
            .connect_timeout(way.connect_timeout)
            .pool_max_idle_per_host(way.idle_connections)
            .pool_idle_timeout(way.idle_timeout)
            .redirect(redirects)
            // Attempts would multiply.
            .retry(reqwest::retry::never())
            // Another service in the same network must not be called through a proxy that happens to stand in the environment.
            .no_proxy()
            .user_agent(transport::USER_AGENT);
        if let Some(place) = &way.pinned {
            builder = builder.dns_resolver(Pinned(place.clone()));
        }
        if let Some(customise) = &self.customise {
            builder = customise(builder);
        }
        builder.build()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("Clients").field("made", &made).finish_non_exhaustive()
    }
}

/// Resolves every name to one place.
struct Pinned(String);

impl reqwest::dns::Resolve for Pinned {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let place = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host(place).await?.collect();
            Ok(Box::new(found.into_iter()) as reqwest::dns::Addrs)
        })
    }
}

/// A body, and whether it can be sent again.
#[derive(Debug, Default)]
pub(super) enum Payload {
    #[default]
    Empty,
    Bytes(Bytes),
    Stream(Body),
}

impl Payload {
    pub(super) fn of(body: Body) -> Self {
        match body.as_bytes() {
            Some([]) => Self::Empty,
            Some(bytes) => Self::Bytes(Bytes::copy_from_slice(bytes)),
            None => Self::Stream(body),
        }
    }

    fn replay(&self) -> Option<Self> {
        match self {
            Self::Empty => Some(Self::Empty),
            Self::Bytes(bytes) => Some(Self::Bytes(bytes.clone())),
            Self::Stream(_) => None,
        }
    }
}

/// A request whose authority is not settled yet.
#[derive(Debug)]
pub(super) struct HttpRequest {
    pub(super) method: Method,
    /// As the caller wrote it: an address of the service, or only a path.
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) payload: Payload,
}

/// Sends by the clients of a factory.
pub(super) struct Http<'a>(pub(super) &'a Clients);

impl Transport for Http<'_> {
    type Request = HttpRequest;
    type Response = reqwest::Response;

    async fn send(
        &self,
        request: HttpRequest,
        to: Destination<'_>,
    ) -> Result<reqwest::Response, AttemptError> {
        let HttpRequest { method, target, mut headers, payload } = request;
        let place = Place::of(&target, to.upstream, to.settings)?;
        set_host(&mut headers, &place, to);
        let client = self.0.get(place.way)?;
        // The rest of the whole call's time, for the body as well.
        let left = to.deadline.saturating_duration_since(Instant::now());
        let mut builder = client.request(method, place.url).headers(headers).timeout(left);
        builder = match payload {
            Payload::Empty => builder,
            Payload::Bytes(bytes) => builder.body(bytes),
            Payload::Stream(body) => builder.body(body),
        };
        builder.send().await.map_err(|error| AttemptError::new(failed(&error), error.without_url()))
    }

    fn replay(&self, request: &HttpRequest) -> Option<HttpRequest> {
        let payload = request.payload.replay()?;
        let HttpRequest { method, target, headers, .. } = request;
        Some(HttpRequest {
            method: method.clone(),
            target: target.clone(),
            headers: headers.clone(),
            payload,
        })
    }

    fn answer(&self, response: &reqwest::Response) -> Answer {
        Answer::of_http(response.status(), response.headers())
    }

    fn method(&self, request: &HttpRequest) -> Method {
        request.method.clone()
    }
}

/// What became of a request that has no answer.
fn failed(error: &reqwest::Error) -> Failed {
    if error.is_connect() {
        Failed::Refused
    } else if error.is_timeout() {
        Failed::TimedOut
    } else if error.is_builder() || error.is_redirect() {
        Failed::Invalid
    } else {
        Failed::Broken
    }
}

/// Where a request goes, and by which client.
struct Place {
    url: Url,
    way: Way,
}

impl Place {
    fn of(target: &str, upstream: &Upstream, settings: &Effective) -> Result<Self, AttemptError> {
        let uri =
            reconstruct_uri(target, upstream).map_err(|error| AttemptError::new(Failed::Invalid, error))?;
        let mut url: Url = uri.parse().map_err(|error| AttemptError::new(Failed::Invalid, error))?;
        let is_tls = url.scheme() == "https";
        let mut pinned = None;
        if let Some(name) = settings.tls_name.as_deref().filter(|_| is_tls) {
            let port = url.port_or_known_default().unwrap_or(443);
            pinned = url.host_str().map(|host| format!("{host}:{port}"));
            url.set_host(Some(name)).map_err(|error| AttemptError::new(Failed::Invalid, error))?;
        }
        let way = Way {
            connect_timeout: settings.connect_timeout.min(ENDLESS),
            idle_connections: settings.idle_connections,
            idle_timeout: settings.idle_timeout.min(ENDLESS),
            follow_redirects: settings.follow_redirects,
            tls: is_tls || settings.follow_redirects,
            pinned,
        };
        Ok(Self { url, way })
    }
}

/// Rewritten, which the client does by itself if there is none; or kept, and then the name of the service unless the caller says otherwise.
fn set_host(headers: &mut HeaderMap, place: &Place, to: Destination<'_>) {
    match to.settings.host_header {
        // Under the name of another the upstream's own address would otherwise be lost.
        HostHeader::Upstream if place.way.pinned.is_none() => drop(headers.remove(HOST)),
        HostHeader::Upstream => {
            let address = to.upstream.address().split('/').next().unwrap_or_default();
            if let Ok(host) = HeaderValue::from_str(address) {
                headers.insert(HOST, host);
            }
        }
        HostHeader::Service => keep_host(headers, to.service),
    }
}

/// Keeps what the caller says, else says the name of the service.
pub(super) fn keep_host(headers: &mut HeaderMap, service: &str) {
    if !headers.contains_key(HOST)
        && let Ok(host) = HeaderValue::from_str(service)
    {
        headers.insert(HOST, host);
    }
}
