//! Connections that are made before a new upstream is used.
//!
//! A source around a source: it passes a list on when its new upstreams have been connected to. The connections are those that
//! calls over reqwest use then; calls by other transports gain only that the upstream has shown itself to work.

use std::{collections::HashSet, sync::Arc, time::Duration};

use http::{HeaderMap, Method};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    Destination, Discover, DiscoverError, Refresh, Transport,
    clock::ENDLESS,
    config::Effective,
    context::Common,
    discover::{BoxFuture, Feed, Listed, Listing, Publisher, feed, poll},
    over_reqwest::{Clients, Http, HttpRequest, Payload},
};
use crate::balance::Upstream;

/// The pause after an attempt is so much longer than the one before; Ribbon's.
const PAUSE: Duration = Duration::from_millis(100);

/// Passes lists on when their newcomers have been connected to, or have had their attempts or their time.
#[doc(alias = "PrimeConnections")]
pub(super) struct Priming {
    source: Arc<dyn Discover>,
    refresh: Refresh,
    settings: Arc<Effective>,
    clients: Clients,
}

impl Priming {
    pub(super) fn new(source: Arc<dyn Discover>, settings: &Effective, common: &Common) -> Self {
        let settings = Arc::new(settings.clone());
        Self { source, refresh: settings.refresh, settings, clients: common.clients.clone() }
    }
}

impl Discover for Priming {
    fn fetch<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
        self.source.fetch(service)
    }

    fn watch(&self, service: &str) -> Option<Feed> {
        let pushed = match self.refresh {
            Refresh::Watch => self.source.watch(service),
            Refresh::Polling { .. } => None,
        };
        let (asks, asked) = feed();
        let (source, service, refresh) = (Arc::clone(&self.source), Arc::<str>::from(service), self.refresh);
        let asking = {
            let is_pushed = pushed.is_some();
            let service = Arc::clone(&service);
            async move {
                if is_pushed {
                    std::future::pending().await
                } else {
                    poll(source, service, refresh, asks, Arc::new(Notify::new())).await;
                }
            }
        };
        let (publisher, primed) = feed();
        let mut primer = Primer {
            service,
            settings: Arc::clone(&self.settings),
            clients: self.clients.clone(),
            heard: pushed.unwrap_or(asked),
            publisher: publisher.clone(),
            listing: Listing::default(),
            done: HashSet::new(),
            under_way: JoinSet::new(),
            begun: HashSet::new(),
            is_first: true,
        };
        // Ends when nobody listens any more.
        tokio::spawn(async move {
            tokio::select! {
                () = publisher.closed() => {}
                () = asking => {}
                () = primer.run() => {}
            }
        });
        Some(primed)
    }

    fn describe(&self) -> String {
        format!("{}, connected to beforehand", self.source.describe())
    }
}

struct Primer {
    service: Arc<str>,
    settings: Arc<Effective>,
    clients: Clients,
    heard: Feed,
    publisher: Publisher,
    listing: Listing,
    /// Those that have been connected to, or had their attempts; by their address with scheme.
    done: HashSet<String>,
    under_way: JoinSet<String>,
    /// Those under way.
    begun: HashSet<String>,
    /// Whether nothing was passed on yet.
    is_first: bool,
}

impl Primer {
    async fn run(&mut self) {
        let mut source_lives = true;
        loop {
            self.take();
            tokio::select! {
                heard = self.heard.changed(), if source_lives => source_lives = heard,
                Some(done) = self.under_way.join_next() => {
                    if let Ok(done) = done {
                        self.begun.remove(&done);
                        self.done.insert(done);
                    }
                    self.pass_on();
                }
                // A source that ended has said all, and the listener must not hear of an end.
                else => std::future::pending().await,
            }
        }
    }

    /// Hears what the source says now.
    fn take(&mut self) {
        let before = std::mem::replace(&mut self.listing, self.heard.take());
        if let Some(error) = self.listing.error.clone().filter(|_| self.listing.failures > before.failures) {
            self.publisher.fail(passed_on(&error));
        }
        if self.listing.upstreams.is_none() || self.listing.confirmed == before.confirmed {
            return;
        }
        let listed = self.listing.upstreams.clone().unwrap_or_default();
        let names: HashSet<&str> = listed.iter().map(Upstream::base_url).collect();
        // One that left and comes back is new.
        self.done.retain(|name| names.contains(name.as_str()));
        for upstream in listed.iter() {
            let name = upstream.base_url();
            if self.done.contains(name) || self.begun.contains(name) || !upstream.takes_traffic() {
                continue;
            }
            self.begun.insert(name.to_owned());
            let (upstream, settings) = (upstream.clone(), Arc::clone(&self.settings));
            let (clients, service) = (self.clients.clone(), Arc::clone(&self.service));
            self.under_way.spawn(async move {
                let connected = connect(&service, &upstream, &settings, &clients);
                if !timeout(settings.prime_time, connected).await.unwrap_or(false) {
                    let upstream = upstream.base_url();
                    tracing::warn!(
                        service = &*service,
                        upstream,
                        "the upstream could not be connected to beforehand"
                    );
                }
                upstream.base_url().to_owned()
            });
        }
        self.pass_on();
    }

    /// Passes on whom calls may go to.
    fn pass_on(&mut self) {
        let Some(listed) = &self.listing.upstreams else { return };
        let is_due =
            |upstream: &&Upstream| !upstream.takes_traffic() || self.done.contains(upstream.base_url());
        let due: Vec<Upstream> = listed.iter().filter(is_due).cloned().collect();
        #[allow(clippy::cast_precision_loss)]
        let enough = due.len() as f64 >= listed.len() as f64 * self.settings.prime_ratio;
        if self.is_first && !enough {
            return;
        }
        self.is_first = false;
        self.publisher.publish(due);
    }
}

/// The same error, for another listener.
fn passed_on(error: &Arc<DiscoverError>) -> DiscoverError {
    let text = error.to_string();
    let passed_on = if error.is_unknown_service() {
        DiscoverError::unknown_service(text)
    } else {
        DiscoverError::new(text)
    };
    match std::error::Error::source(&**error) {
        Some(source) => passed_on.with_source(source.to_string()),
        None => passed_on,
    }
}

/// Connects by a request, whatever is answered; gives whether anything was.
async fn connect(service: &str, upstream: &Upstream, settings: &Effective, clients: &Clients) -> bool {
    for attempt in 0..settings.prime_attempts {
        if attempt > 0 {
            sleep(PAUSE * attempt).await;
        }
        let within = settings.read_timeout.max(settings.connect_timeout);
        let request = HttpRequest {
            method: Method::GET,
            target: settings.prime_uri.clone(),
            headers: HeaderMap::new(),
            payload: Payload::Empty,
        };
        let to = Destination { service, upstream, settings, deadline: Instant::now() + within.min(ENDLESS) };
        let answered = async {
            let answer = Http(clients).send(request, to).await.ok()?;
            // Read to its end, or the connection could not be used again.
            answer.bytes().await.ok()
        };
        if matches!(timeout(within, answered).await, Ok(Some(_))) {
            return true;
        }
    }
    false
}
