//! Clients of many services, each with a context of its own.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use http::Method;

use super::{
    CallError, CallErrorKind, CallListener, Discover, LbClient, MemberListener,
    client::CallRequest,
    config::{CallConfig, ServiceConfig},
    context::{Common, Context},
    listen::Listeners,
    over_reqwest::{Clients, Customise},
    probe::Probers,
    uri::{ServiceUri, check_name},
};

/// Makes and keeps the clients of services.
///
/// Each service has a context of its own: list, balancer, health, statistics, retry budget and settings. It is made when the service is
/// called for the first time, or at once if it is said to be eager. What services share has nothing of them in it: connections and
/// probes, by address.
///
/// A setting is taken from the first who says it: the request, the service, the defaults of the factory; else it is the built-in one.
///
/// # Examples
/// ```no_run
/// use std::time::Duration;
/// use soul_client::balance::{Upstream, policy::PeakEwma};
/// use soul_client::call::{ClientFactory, Retry, ServiceConfig, Timeouts};
///
/// # async fn calls() -> Result<(), Box<dyn std::error::Error>> {
/// let second = Duration::from_secs(1);
/// let factory = ClientFactory::builder()
///     .defaults(ServiceConfig::default().read_timeout(2 * second))
///     .service("orders", |c| {
///         c.policy(PeakEwma::default())
///             .timeouts(Timeouts { connect: second, read: second, total: 3 * second })
///             .retry(Retry { next: 2, ..Retry::default() })
///             .servers([Upstream::new("10.0.0.2:8188"), Upstream::new("10.0.0.3:8188")])
///     })
///     .build()?;
/// let answer = factory.get("lb://orders/api/hello").send().await?;
/// println!("{}", answer.text().await?);
/// # Ok(()) }
/// ```
#[doc(alias = "SpringClientFactory")]
#[derive(Clone)]
pub struct ClientFactory(Arc<Inner>);

struct Inner {
    contexts: ArcSwap<HashMap<String, Arc<Context>>>,
    said: Mutex<Said>,
    common: Arc<Common>,
}

/// What was said so far, and by whom.
#[derive(Clone, Default)]
struct Said {
    /// By the program, for all services.
    defaults: ServiceConfig,
    services: HashMap<String, ServiceConfig>,
    /// By a configuration; the program wins where both speak.
    config: CallConfig,
}

impl Said {
    fn of(&self, service: &str) -> ServiceConfig {
        let own = self.services.get(service).cloned().unwrap_or_default();
        let all = self.defaults.over(self.config.defaults());
        own.over(&self.config.service(service)).over(&all)
    }
}

impl ClientFactory {
    /// Prepares a factory.
    pub fn builder() -> ClientFactoryBuilder {
        ClientFactoryBuilder::default()
    }

    /// The client of a service, which is made if it is the first.
    ///
    /// # Errors
    /// If the name is none, if nothing knows the upstreams of the service, or outside of a Tokio runtime.
    pub fn client(&self, service: &str) -> Result<LbClient, CallError> {
        if let Some(context) = self.0.contexts.load().get(service) {
            return Ok(LbClient { context: Arc::clone(context) });
        }
        check_name(service).map_err(|remedy| {
            CallError::new(CallErrorKind::InvalidUri, service).with_detail(format!("it {remedy}"))
        })?;
        // Held while the context is made, so that there are never two.
        let said = self.0.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = self.0.contexts.load().get(service) {
            return Ok(LbClient { context: Arc::clone(context) });
        }
        let context = Arc::new(Context::new(service, said.of(service), Arc::clone(&self.0.common))?);
        self.0.contexts.rcu(|contexts| {
            let mut contexts = HashMap::clone(contexts);
            contexts.insert(service.to_owned(), Arc::clone(&context));
            contexts
        });
        Ok(LbClient { context })
    }

    /// A GET of an address, `lb://orders/api/hello`.
    pub fn get(&self, address: impl Into<String>) -> CallRequest {
        self.request(Method::GET, address)
    }

    /// A POST to an address.
    pub fn post(&self, address: impl Into<String>) -> CallRequest {
        self.request(Method::POST, address)
    }

    /// A request of any method to an address. What is wrong with the address is told when it is sent.
    pub fn request(&self, method: Method, address: impl Into<String>) -> CallRequest {
        let address = address.into();
        let client = match ServiceUri::parse(&address) {
            Ok(uri) => self.client(uri.service()),
            Err(error) => Err(CallError::new(CallErrorKind::InvalidUri, "").with_source(error)),
        };
        CallRequest::new(client, method, address, None)
    }

    /// Says other settings for a service, in place of what the program said before; gives the names of those that are different now. Only what
    /// they change is made anew: statistics and health of upstreams stay, and so does the list until another source has spoken.
    ///
    /// # Errors
    /// If the service cannot be called by them; the former ones hold then.
    pub fn configure(&self, service: &str, config: ServiceConfig) -> Result<Vec<&'static str>, CallError> {
        self.change(|said| {
            said.services.insert(service.to_owned(), config);
        })
        .map(|changed| {
            changed.into_iter().find(|(name, _)| name == service).map_or_else(Vec::new, |(_, c)| c)
        })
    }

    /// Says other defaults for all services, in place of those that the program said before.
    ///
    /// # Errors
    /// As [`configure`](Self::configure).
    pub fn configure_defaults(&self, defaults: ServiceConfig) -> Result<(), CallError> {
        self.change(|said| said.defaults = defaults).map(drop)
    }

    /// Takes another configuration, as one that was changed in its file.
    ///
    /// # Errors
    /// As [`configure`](Self::configure).
    pub fn reload(&self, config: CallConfig) -> Result<(), CallError> {
        self.change(|said| said.config = config).map(drop)
    }

    fn change(&self, change: impl FnOnce(&mut Said)) -> Result<Vec<(String, Vec<&'static str>)>, CallError> {
        let mut said = self.0.said.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = said.clone();
        change(&mut next);
        let mut changed = Vec::new();
        let contexts = self.0.contexts.load_full();
        for (service, context) in contexts.iter() {
            match context.replace(next.of(service)) {
                Ok(names) => changed.push((service.clone(), names)),
                Err(error) => {
                    // All or none. They held before, so they hold again.
                    for (service, _) in &changed {
                        if let Some(context) = contexts.get(service) {
                            drop(context.replace(said.of(service)));
                        }
                    }
                    return Err(error);
                }
            }
        }
        *said = next;
        Ok(changed)
    }

    /// Names of the services that have been called, or are eager.
    #[must_use]
    pub fn services(&self) -> Vec<String> {
        let mut names: Vec<_> = self.0.contexts.load().keys().cloned().collect();
        names.sort();
        names
    }

    /// Returns when every service that is there has its first list.
    ///
    /// # Errors
    /// If one has none within the time.
    pub async fn ready(&self, within: Duration) -> Result<(), CallError> {
        let started = tokio::time::Instant::now();
        let contexts = self.0.contexts.load_full();
        for context in contexts.values() {
            context.state().ready(context, within.saturating_sub(started.elapsed())).await?;
        }
        Ok(())
    }
}

impl fmt::Debug for ClientFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientFactory").field("services", &self.services()).finish_non_exhaustive()
    }
}

/// Prepares a [`ClientFactory`].
#[derive(Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct ClientFactoryBuilder {
    said: Said,
    registry: Option<Arc<dyn Discover>>,
    eager: Vec<String>,
    customise: Option<Customise>,
    probers: Option<Arc<Probers>>,
    listeners: Listeners,
    member_listeners: Vec<Arc<dyn MemberListener>>,
}

impl ClientFactoryBuilder {
    /// Sets the registry that knows the upstreams of services. It wins over lists in the configuration, unless a service says otherwise.
    pub fn discover(self, registry: impl Discover) -> Self {
        Self { registry: Some(Arc::new(registry)), ..self }
    }

    /// Sets what holds for services that do not say otherwise.
    pub fn defaults(mut self, defaults: ServiceConfig) -> Self {
        self.said.defaults = defaults;
        self
    }

    /// Sets what holds for one service; once more for the same one adds to it.
    pub fn service(
        mut self,
        name: impl Into<String>,
        config: impl FnOnce(ServiceConfig) -> ServiceConfig,
    ) -> Self {
        let said = self.said.services.entry(name.into()).or_default();
        *said = config(said.clone());
        self
    }

    /// Takes a configuration from a map, the environment or a file. Where the program says something, the program wins.
    pub fn config(mut self, config: CallConfig) -> Self {
        self.said.config = config;
        self
    }

    /// Makes the contexts of these services at once, so that their lists are there when they are called.
    #[doc(alias = "eager-load")]
    pub fn eager<S: Into<String>>(mut self, services: impl IntoIterator<Item = S>) -> Self {
        self.eager.extend(services.into_iter().map(Into::into));
        self
    }

    /// Sets what is done with the builder of every HTTP client: certificates, a proxy, HTTP/2.
    pub fn http(
        self,
        customise: impl Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + Sync + 'static,
    ) -> Self {
        Self { customise: Some(Arc::new(customise)), ..self }
    }

    /// Shares probes with other parts of the program.
    pub fn probers(self, probers: Arc<Probers>) -> Self {
        Self { probers: Some(probers), ..self }
    }

    /// Adds one who hears of calls.
    pub fn listener(mut self, listener: impl CallListener) -> Self {
        self.listeners.0.push(Arc::new(listener));
        self
    }

    /// Adds one who hears of lists and upstreams.
    pub fn member_listener(mut self, listener: impl MemberListener) -> Self {
        self.member_listeners.push(Arc::new(listener));
        self
    }

    /// Makes the factory.
    ///
    /// # Errors
    /// If an eager service cannot be called.
    #[cfg_attr(not(feature = "metrics"), allow(unused_mut, reason = "only the meter is added"))]
    pub fn build(mut self) -> Result<ClientFactory, CallError> {
        #[cfg(feature = "metrics")]
        {
            self.listeners.0.push(Arc::new(super::metrics::Meter));
            self.member_listeners.push(Arc::new(super::metrics::Meter));
        }
        let common = Common {
            registry: self.registry,
            clients: Clients::new(self.customise),
            probers: self.probers.unwrap_or_default(),
            listeners: self.listeners,
            member_listeners: self.member_listeners,
        };
        let factory = ClientFactory(Arc::new(Inner {
            contexts: ArcSwap::default(),
            said: Mutex::new(self.said),
            common: Arc::new(common),
        }));
        for service in self.eager {
            factory.client(&service)?;
        }
        Ok(factory)
    }
}

impl fmt::Debug for ClientFactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientFactoryBuilder")
            .field("defaults", &self.said.defaults)
            .field("services", &self.said.services)
            .field("eager", &self.eager)
            .finish_non_exhaustive()
    }
}
