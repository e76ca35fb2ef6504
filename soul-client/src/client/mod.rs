//! The life of a client: register, stay registered, stop.
//!
//! | room | does |
//! |---|---|
//! | `start` | checks that there is a plan, and starts the tasks |
//! | `lane` | the loop of one group of admins that are told together: round, wait, round |
//! | `heart` | when to say that the instance is still there |
//! | `leave` | says that it leaves |
//! | `announce` | before a round: which address, and so which bodies |
//! | `round` | sends what is pending, a few at a time |
//! | `status` | what is known of every admin and route, for those who ask |
//! | `report` | what of it stands in the log |
//!
//! Nothing is shared between two clients of one process.

mod announce;
mod heart;
mod lane;
mod leave;
mod report;
mod round;
mod start;
mod status;

#[cfg(test)]
mod tests;

use std::{fmt, net::SocketAddr, time::Duration};

use tokio::sync::watch;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

pub use start::SoulClientBuilder;
pub use status::{AdminStatus, InstanceStatus, RouteState, RouteStatus, Status};

use crate::{
    config::ClientConfig,
    error::{Error, Kind},
};

/// Registers the routes of this service and keeps them registered, in the background.
///
/// Starting returns at once: no admin is waited for, and none that is away keeps the service from
/// serving. A registration that failed is tried again, first after about a second and at most every half minute,
/// for ever; when all are accepted, all are repeated every half minute, so that an admin that was restarted
/// empty, or that dropped this instance, learns it again.
///
/// Dropping the client stops it without waiting; [`shutdown`](Self::shutdown) waits.
///
/// # Examples
///
#[cfg_attr(feature = "macros", doc = "```no_run")]
#[cfg_attr(not(feature = "macros"), doc = "```ignore")]
/// use soul_client::{ClientConfig, SoulClient, soul_client};
///
/// #[soul_client(path = "/order/save", desc = "Save order")]
/// async fn save() -> &'static str {
///     "saved"
/// }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let app = axum::Router::new().route("/order/save", axum::routing::post(save));
/// let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await?;
///
/// let config = ClientConfig::builder().admin_url("http://127.0.0.1:9095").context_path("/http").app_name("http");
/// let client = SoulClient::start(config.build()?, listener.local_addr()?)?;
///
/// axum::serve(listener, app).with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) }).await?;
/// client.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct SoulClient {
    status: watch::Receiver<Status>,
    /// The loops that register.
    running: TaskTracker,
    /// Everything, the farewell included.
    tasks: TaskTracker,
    /// No registration begins any more.
    stop: CancellationToken,
    /// Those under way are given up, too; includes `stop`.
    give_up: CancellationToken,
    /// Once all has ended, the admins are told.
    leave: CancellationToken,
    shutdown_timeout: Duration,
    /// Gives up when the client is dropped.
    _guard: DropGuard,
}

impl SoulClient {
    /// Starts registering every annotated route of this program.
    ///
    /// # Shape
    /// - `listener`: what the service is bound to, `local_addr()` of the bound listener. Its port is announced
    ///   unless the configuration names another, and its address unless it is `0.0.0.0` or `[::]`
    ///   (see [`Announced`](crate::Announced)).
    ///
    /// # Errors
    /// When there is nothing to register, when a route cannot be registered with this configuration, or when this
    /// is not called from within a Tokio runtime. Never because of an admin.
    pub fn start(config: ClientConfig, listener: SocketAddr) -> Result<Self, Error> {
        Self::builder(config).start(listener)
    }

    /// Starts a client that is told its routes, instead of those that were collected.
    #[must_use = "a builder does nothing until `start`"]
    pub fn builder(config: ClientConfig) -> SoulClientBuilder {
        SoulClientBuilder::new(config)
    }

    /// Waits until everything is registered, for as long as it takes.
    ///
    /// # Errors
    /// When the client is shut down before.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn registered(&self) -> Result<(), Error> {
        let mut status = self.status.clone();
        let done = status.wait_for(|status| status.is_registered() || status.is_stopped()).await;
        match done {
            Ok(status) if status.is_registered() => Ok(()),
            // The tasks are gone: stopped, or the runtime is.
            _ => Err(Error::new(Kind::Stopped, "register with the admin: the client was shut down")),
        }
    }

    /// Waits until everything is registered, but no longer than `limit`. Registering goes on all the same.
    ///
    /// # Errors
    /// When the time is over ([`Error::is_timeout`], its cause is the last failure), or as
    /// [`registered`](Self::registered).
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn registered_within(&self, limit: Duration) -> Result<(), Error> {
        match tokio::time::timeout(limit, self.registered()).await {
            Ok(result) => result,
            Err(_) => Err(self.status().unfinished(limit)),
        }
    }

    /// How things stand.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// How things stand, now and whenever it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Stops registering, and waits until nothing is under way any more.
    ///
    /// Registrations under way are given [`ClientConfig::shutdown_timeout`] to end and are then given up. After
    /// this returns, none of this client leaves the process. It may be called again.
    ///
    /// # Cancel safety
    /// The client stops even if this future is dropped.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        if tokio::time::timeout(self.shutdown_timeout, self.running.wait()).await.is_err() {
            self.give_up.cancel();
        }
        // Bounded: what is left is at most the farewell, which has a time of its own.
        self.tasks.wait().await;
    }

    /// Says to every admin that this instance leaves, after [`shutdown`](Self::shutdown).
    ///
    /// Nothing of this client registers the instance again: what is under way has ended, or was given up, before the
    /// first word of this leaves. It takes no longer than [`ClientConfig::shutdown_timeout`] and
    /// [`ClientConfig::offline_timeout`] together. The port should stay open for the few seconds that gateways need
    /// to hear of it, and close then. Soul and ShenYu before 2.4.3 know no such message: their probe finds the
    /// closed port. An admin that says so when it accepts a registration, as this project's does, is told in Soul's
    /// dialects, too.
    ///
    /// # Errors
    /// When an admin that was told of this instance did not take the message; its probe will then find out. When
    /// the client was shut down before, or its runtime was.
    ///
    /// # Cancel safety
    /// Going offline goes on even if this future is dropped.
    pub async fn offline(&self) -> Result<(), Error> {
        self.leave.cancel();
        self.shutdown().await;
        self.status.borrow().not_left()
    }
}

impl fmt::Debug for SoulClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SoulClient").field("status", &*self.status.borrow()).finish_non_exhaustive()
    }
}
