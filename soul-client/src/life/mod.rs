//! The whole life of a service: serve, register, and leave without losing a request.

mod signal;

use std::{error::Error as StdError, fmt, future::Future, net::SocketAddr, pin::Pin, time::Duration};

use tokio::{sync::watch, time::Instant};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use signal::Signals;
pub use signal::stop_signal;

use crate::{
    client::{SoulClient, SoulClientBuilder, Status},
    config::ClientConfig,
    error::{Error, Kind},
};

/// Serves a router, keeps its annotated routes registered, and leaves in order on SIGINT or SIGTERM.
///
/// With a plain `Router`, what is annotated anywhere in the program is registered, by the path that the annotation says;
/// with a [`Scope`](crate::Scope), what that scope serves, below the prefixes that it is nested at.
///
/// The listener is bound, so requests are accepted before an admin is told of the port. On a signal:
///
/// 1. every admin is told that this instance leaves, and nothing registers it again;
/// 2. requests are still served for [`ClientConfig::propagation_time`], until every gateway has heard of it;
/// 3. no connection is accepted any more, and requests under way are finished;
/// 4. this returns, at the latest [`ClientConfig::stop_timeout`] after the signal, and at once on a second one.
///
/// For more than this takes, such as routes that were not annotated or another signal, see [`Life`]; for other
/// servers [`Life::serve_with`].
///
/// # Errors
/// As [`SoulClient::start`], or when the server fails. Never because of an admin.
///
/// # Examples
///
/// ```no_run
/// use soul_client::{ClientConfig, soul_client};
///
/// #[soul_client(path = "/order/save", desc = "Save order")]
/// async fn save() -> &'static str {
///     "saved"
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let router = axum::Router::new().route("/order/save", axum::routing::post(save));
///     let listener = tokio::net::TcpListener::bind("0.0.0.0:8188").await?;
///     soul_client::serve(listener, router, ClientConfig::from_env()?).await?;
///     Ok(())
/// }
/// ```
#[cfg(feature = "axum")]
pub async fn serve(
    listener: tokio::net::TcpListener,
    app: impl Into<crate::Scope>,
    config: ClientConfig,
) -> Result<(), Error> {
    Life::new(config).serve(listener, app).await
}

/// What `soul_client::serve` (feature `axum`) does, in the parts that a service may want otherwise.
#[must_use = "nothing is served until `serve` or `serve_with`"]
pub struct Life {
    client: SoulClientBuilder,
    /// `None`: the signals of the system.
    stop: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    on_start: Option<OnStart>,
}

type OnStart = Box<dyn FnOnce(watch::Receiver<Status>) + Send>;

/// Resolves when a server shall stop accepting connections and finish its requests.
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct Stop(Pin<Box<WaitForCancellationFutureOwned>>);

impl Future for Stop {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl Life {
    /// The life of a service that registers what was annotated.
    pub fn new(config: ClientConfig) -> Self {
        Self::of(SoulClient::builder(config))
    }

    /// The life of a service that registers what this builder says.
    pub fn of(client: SoulClientBuilder) -> Self {
        Self { client, stop: None, on_start: None }
    }

    /// Ends the life when this resolves, instead of on a signal.
    pub fn until(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        self.stop = Some(Box::pin(stop));
        self
    }

    /// Hands out how things stand, once registering has begun.
    pub fn on_start(mut self, watch: impl FnOnce(watch::Receiver<Status>) + Send + 'static) -> Self {
        self.on_start = Some(Box::new(watch));
        self
    }

    /// Serves a router or a [`Scope`](crate::Scope); see [`serve`]. Routes that the client's builder was given are
    /// registered instead of those of the scope.
    ///
    /// # Errors
    /// As [`serve`].
    #[cfg(feature = "axum")]
    pub async fn serve(
        mut self,
        listener: tokio::net::TcpListener,
        app: impl Into<crate::Scope>,
    ) -> Result<(), Error> {
        let (router, declarations) = app.into().into_parts()?;
        self.client = self.client.or_declarations(declarations);
        let address = listener.local_addr().map_err(|error| {
            Error::new(Kind::Serve, "find out what the listener is bound to").with_source(error)
        })?;
        self.serve_with(address, |stop| async {
            axum::serve(listener, router).with_graceful_shutdown(stop).await
        })
        .await
    }

    /// Runs any server; see `soul_client::serve` (feature `axum`) for what is done around it.
    ///
    /// # Shape
    /// - `address`: what the server is bound to. It must listen already.
    /// - `server`: gets a future that resolves when to stop accepting, and gives the server's own, which ends when
    ///   its last request has.
    ///
    /// # Errors
    /// As [`SoulClient::start`], or what the server fails with.
    ///
    /// # Examples
    ///
    /// A router that sees the address of its callers:
    ///
    /// ```no_run
    /// # async fn run(config: soul_client::ClientConfig, router: axum::Router) -> Result<(), Box<dyn std::error::Error>> {
    /// let listener = tokio::net::TcpListener::bind("0.0.0.0:8188").await?;
    /// let service = router.into_make_service_with_connect_info::<std::net::SocketAddr>();
    /// soul_client::Life::new(config)
    ///     .serve_with(listener.local_addr()?, |stop| async {
    ///         axum::serve(listener, service).with_graceful_shutdown(stop).await
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve_with<F, S, E>(self, address: SocketAddr, server: F) -> Result<(), Error>
    where
        F: FnOnce(Stop) -> S,
        S: Future<Output = Result<(), E>>,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        // Before anything else, so that a signal while starting is not lost.
        let mut signals = Signals::new(self.stop)?;
        let times = Times::of(self.client.config());
        let client = self.client.start(address)?;
        if let Some(on_start) = self.on_start {
            on_start(client.watch());
        }
        let stop = CancellationToken::new();
        let server = server(Stop(Box::pin(stop.clone().cancelled_owned())));
        tokio::pin!(server);

        // While all is well.
        let ended = tokio::select! {
            ended = &mut server => Some(ended),
            () = signals.next() => None,
        };
        let Some(ended) = ended else {
            return leave(&client, server, &stop, &mut signals, times).await;
        };
        tracing::warn!("the server has ended by itself");
        say_goodbye_until(&client, Instant::now() + times.all, &mut signals).await;
        ended.map_err(failed)
    }
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life").field("client", &self.client).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy)]
struct Times {
    propagation: Duration,
    all: Duration,
}

impl Times {
    fn of(config: &ClientConfig) -> Self {
        Self { propagation: config.propagation_time(), all: config.stop_timeout() }
    }
}

/// Everything after the signal. The server is kept going until it ends, or time is over.
async fn leave<S, E>(
    client: &SoulClient,
    mut server: Pin<&mut S>,
    stop: &CancellationToken,
    signals: &mut Signals,
    times: Times,
) -> Result<(), Error>
where
    S: Future<Output = Result<(), E>>,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    let deadline = Instant::now() + times.all;
    tracing::info!(at_most = ?times.all, "stopping");
    let goodbye = async {
        say_goodbye(client).await;
        if client.status().was_told_to_leave() {
            tokio::time::sleep(times.propagation).await;
        }
    };
    tokio::select! {
        // It heard of the signal by itself: the admins are told all the same.
        ended = &mut server => {
            say_goodbye_until(client, deadline, signals).await;
            return ended.map_err(failed);
        }
        () = goodbye => {}
        () = tokio::time::sleep_until(deadline) => {}
        () = signals.again() => tracing::warn!("stopping at once, by a second signal"),
    }
    stop.cancel();
    tokio::select! {
        ended = &mut server => ended.map_err(failed)?,
        () = tokio::time::sleep_until(deadline) => {
            tracing::warn!(after = ?times.all, "stopped with requests under way, which are cut off");
        }
        () = signals.again() => tracing::warn!("requests under way are cut off, by a second signal"),
    }
    tracing::info!("stopped");
    Ok(())
}

/// No longer than until `deadline`, or another signal.
async fn say_goodbye_until(client: &SoulClient, deadline: Instant, signals: &mut Signals) {
    tokio::select! {
        () = say_goodbye(client) => {}
        () = tokio::time::sleep_until(deadline) => {}
        () = signals.again() => tracing::warn!("stopping at once, by a second signal"),
    }
}

/// What goes wrong here stands in the log already.
async fn say_goodbye(client: &SoulClient) {
    drop(client.offline().await);
}

fn failed(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::new(Kind::Serve, "serve requests").with_source(error)
}

#[cfg(test)]
#[cfg(feature = "axum")]
mod tests;
