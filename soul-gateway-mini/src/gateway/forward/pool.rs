//! Connections to upstreams that wait for their next request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use hyper::client::conn::http1::SendRequest;
use tokio::time::Instant;

use super::body::{RequestBody, Upload};

/// Shortest pause between two looks at all idle connections.
const SWEEP_INTERVAL_MIN: Duration = Duration::from_millis(100);

type Sender = SendRequest<RequestBody>;

/// Idle connections by address, the one used last on top.
///
/// Invariant: a connection in here has ended its last exchange or is about to, so waiting for it to be ready is a
/// matter of microseconds.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<HashMap<Arc<str>, Vec<Idle>>>,
    max_idle: usize,
    idle_timeout: Duration,
}

#[derive(Debug)]
struct Idle {
    sender: Sender,
    since: Instant,
}

impl Pool {
    pub(super) fn new(max_idle: usize, idle_timeout: Duration) -> Arc<Self> {
        Arc::new(Self { idle: Mutex::default(), max_idle, idle_timeout })
    }

    /// A connection that is open and not too old.
    pub(super) async fn take(&self, address: &str) -> Option<Sender> {
        loop {
            let mut sender = self.pop(address)?;
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    fn pop(&self, address: &str) -> Option<Sender> {
        let mut idle = self.lock();
        let connections = idle.get_mut(address)?;
        while let Some(Idle { sender, since }) = connections.pop() {
            if since.elapsed() >= self.idle_timeout {
                // The ones below were put away earlier still.
                connections.clear();
            } else if !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }

    fn put(&self, address: &Arc<str>, sender: Sender) {
        if self.max_idle == 0 || self.idle_timeout.is_zero() || sender.is_closed() {
            return;
        }
        let mut idle = self.lock();
        let connections = match idle.get_mut(address) {
            Some(connections) => connections,
            None => idle.entry(Arc::clone(address)).or_default(),
        };
        if connections.len() < self.max_idle {
            connections.push(Idle { sender, since: Instant::now() });
        }
    }

    /// Closes what has been idle for too long, again and again, and does what else is to be done then.
    pub(super) async fn sweep_for_ever(self: Arc<Self>, also: impl Fn()) {
        let mut ticks = tokio::time::interval(self.idle_timeout.max(SWEEP_INTERVAL_MIN));
        loop {
            ticks.tick().await;
            self.sweep();
            also();
        }
    }

    fn sweep(&self) {
        self.lock().retain(|_, connections| {
            connections.retain(|c| c.since.elapsed() < self.idle_timeout && !c.sender.is_closed());
            !connections.is_empty()
        });
    }

    /// Closes everything.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Vec<Idle>>> {
        // Nothing panics while it is held, and a list of connections is whole at any moment.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection in use.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) sender: Sender,
    pub(super) reused: bool,
    address: Arc<str>,
    pool: Weak<Pool>,
    upload: Option<Arc<Upload>>,
}

impl Lease {
    pub(super) fn new(sender: Sender, reused: bool, address: Arc<str>, pool: &Arc<Pool>) -> Self {
        Self { sender, reused, address, pool: Arc::downgrade(pool), upload: None }
    }

    /// The connection is about to carry a request with this body.
    pub(super) fn carries(&mut self, upload: Option<Arc<Upload>>) {
        self.upload = upload;
    }

    /// Puts the connection away, after all of the answer was read. One whose request is still being sent (the
    /// upstream answered early) is given up: nobody can say when it would be free.
    pub(super) fn give_back(self) {
        if self.upload.is_some_and(|upload| !upload.finished()) {
            return;
        }
        if let Some(pool) = self.pool.upgrade() {
            pool.put(&self.address, self.sender);
        }
    }
}
