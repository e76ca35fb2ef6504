//! Admins for tests, in this process: no Java, no container (feature `testing`).
//!
//! A [`FakeAdmin`] speaks one dialect as far as a service sees it: it wants a login where that release does, knows the
//! paths of that release and no others, keeps what was registered, and can be told to fail.
//!
//! # Examples
//!
//! ```
//! use soul_client::{ClientConfig, Dialect, ShenyuVersion, SoulClient, route::{Annotation, Route}};
//! use soul_client::testing::{FakeAdmin, Reply};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let admin = FakeAdmin::start(Dialect::Shenyu(ShenyuVersion::V2_7)).await?;
//! // The first two requests meet an error.
//! admin.script(|request| if request.number < 2 { Reply::Text(500, "<html>oops".into()) } else { Reply::Usual });
//!
//! let config = ClientConfig::builder()
//!     .admin_url(admin.url())
//!     .username(FakeAdmin::USERNAME)
//!     .password(FakeAdmin::PASSWORD)
//!     .context_path("/orders");
//! let client = SoulClient::builder(config.build()?)
//!     .routes([Route::new(Annotation::new("/item/{id}"))])
//!     .start("127.0.0.1:3000".parse()?)?;
//! client.registered_within(std::time::Duration::from_secs(10)).await?;
//!
//! assert_eq!(admin.routes(), ["/orders/item/*"]);
//! assert_eq!(admin.instances(), ["127.0.0.1:3000"]);
//! client.offline().await?;
//! assert!(admin.instances().is_empty());
//! # Ok(())
//! # }
//! ```

mod book;
mod reply;
mod server;
mod shenyu;
mod soul;
#[cfg(feature = "axum")]
mod unserved;

use std::{
    fmt, io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use reply::{Recorded, Reply};
#[cfg(feature = "axum")]
pub use unserved::{unserved, unserved_of};

use crate::plan::Dialect;
use book::Book;
use server::Server;

type Script = Box<dyn FnMut(&Recorded) -> Reply + Send>;

/// An admin in this process, at a port of its own on 127.0.0.1. It ends when it is dropped.
pub struct FakeAdmin {
    shared: Arc<Shared>,
    address: SocketAddr,
    server: Mutex<Option<Server>>,
}

/// What the server answers from.
struct Shared {
    dialect: Dialect,
    state: Mutex<State>,
}

struct State {
    script: Script,
    requests: Vec<Recorded>,
    /// How many there ever were.
    count: usize,
    book: Book,
    /// Number of the token that is good; others are refused.
    token: u64,
    token_life_ms: i64,
    logins: usize,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request, and says how to answer it.
    fn note(&self, mut request: Recorded) -> (Recorded, Reply) {
        let mut state = self.state();
        request.number = state.count;
        state.count += 1;
        state.requests.push(request.clone());
        let reply = (state.script)(&request);
        (request, reply)
    }

    /// The usual answer.
    fn usual(&self, request: &Recorded) -> (u16, String) {
        match self.dialect {
            Dialect::Shenyu(version) => shenyu::answer(&mut self.state(), version, request),
            Dialect::Auto => shenyu::answer(&mut self.state(), crate::ShenyuVersion::V2_7, request),
            dialect => soul::answer(&mut self.state(), dialect, request),
        }
    }
}

impl FakeAdmin {
    /// The user that may log in, as in every fresh admin.
    pub const USERNAME: &str = "admin";
    /// Its password.
    pub const PASSWORD: &str = "123456";

    /// Starts an admin of a dialect; [`Dialect::Auto`] stands for the latest ShenYu.
    ///
    /// # Errors
    /// When no port can be opened.
    pub async fn start(dialect: Dialect) -> io::Result<Self> {
        let state = State {
            script: Box::new(|_| Reply::Usual),
            requests: Vec::new(),
            count: 0,
            book: Book::default(),
            token: 0,
            token_life_ms: 24 * 60 * 60 * 1000,
            logins: 0,
        };
        let shared = Arc::new(Shared { dialect, state: Mutex::new(state) });
        let server = Server::start(Arc::clone(&shared), SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        Ok(Self { shared, address: server.address(), server: Mutex::new(Some(server)) })
    }

    /// Its address, for `admin_url`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Decides from now on how each request is answered. The request is noted in any case; the script must not call
    /// this admin.
    pub fn script(&self, script: impl FnMut(&Recorded) -> Reply + Send + 'static) {
        self.shared.state().script = Box::new(script);
    }

    /// Answers as usual again.
    pub fn unscript(&self) {
        self.script(|_| Reply::Usual);
    }

    /// Every request since the last [`take`](Self::take), in the order they came in.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.state().requests.clone()
    }

    /// Gives the requests and forgets them.
    #[must_use]
    pub fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut self.shared.state().requests)
    }

    /// Full paths of the routes that it has, sorted.
    #[must_use]
    pub fn routes(&self) -> Vec<String> {
        self.shared.state().book.routes()
    }

    /// `host:port` of the instances that it has, sorted. In Soul's dialects they stay when a client leaves: as Soul's own, this
    /// admin knows no farewell there.
    #[must_use]
    pub fn instances(&self) -> Vec<String> {
        self.shared.state().book.instances()
    }

    /// How many logins were accepted.
    #[must_use]
    pub fn logins(&self) -> usize {
        self.shared.state().logins
    }

    /// Refuses every token that was given so far.
    pub fn revoke_tokens(&self) {
        self.shared.state().token += 1;
    }

    /// Says of tokens that are given from now on that they live this long (default: a day). They are not refused
    /// afterwards.
    pub fn set_token_life(&self, life: std::time::Duration) {
        self.shared.state().token_life_ms = i64::try_from(life.as_millis()).unwrap_or(i64::MAX);
    }

    /// Forgets everything that was registered, as after a restart with an empty store.
    pub fn forget(&self) {
        self.shared.state().book = Book::default();
    }

    /// Closes the port and every connection, until [`up`](Self::up).
    pub async fn down(&self) {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(server) = server {
            server.stop().await;
        }
    }

    /// Opens the port again, the same one.
    ///
    /// # Errors
    /// When somebody else took it meanwhile.
    pub async fn up(&self) -> io::Result<()> {
        let server = Server::start(Arc::clone(&self.shared), self.address).await?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        Ok(())
    }
}

impl fmt::Debug for FakeAdmin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeAdmin")
            .field("url", &self.url())
            .field("dialect", &self.shared.dialect)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
