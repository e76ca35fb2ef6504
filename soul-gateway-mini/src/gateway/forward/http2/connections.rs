//! The connections of one lane that many requests share.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::Instant,
};
use tokio_util::task::AbortOnDropHandle;

use super::{super::link::Open, broken, pulse::Pulse};

/// Bytes of one answer that an upstream may send ahead. What all of a connection may is no limit of its own: those who do not
/// take their answers must not hold up the others.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// Bytes of one body that wait for the upstream to take them.
const SEND_BUFFER: usize = 64 * 1024;

/// Bytes of the head of an answer, as with HTTP/1.1.
const MAX_HEAD: u32 = 128 * 1024;

/// Connections by where the text of the address is in memory, as in the pool.
#[derive(Debug, Default)]
pub(in crate::gateway::forward) struct Connections(Mutex<HashMap<usize, Vec<Arc<Connection>>>>);

/// One connection.
pub(in crate::gateway::forward) struct Connection {
    /// Which keeps its place in memory.
    address: Arc<str>,
    send: SendRequest<Bytes>,
    pulse: Arc<Pulse>,
    used: Mutex<Instant>,
    _driver: AbortOnDropHandle<()>,
    _open: Open,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A place on a connection, for one request.
#[derive(Debug)]
pub(in crate::gateway::forward) struct UnderWay {
    connection: Arc<Connection>,
    /// Whether the connection has served a request before.
    pub(super) reused: bool,
}

/// Begins to speak HTTP/2, whatever the upstream will say to that.
///
/// # Errors
/// When the connection breaks off.
pub(in crate::gateway::forward) async fn open<S>(
    stream: S,
    address: &Arc<str>,
    count: Open,
) -> io::Result<Arc<Connection>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_header_list_size(MAX_HEAD)
        .enable_push(false);
    let (send, mut connection) = builder.handshake(stream).await.map_err(broken)?;
    let pulse = Arc::<Pulse>::default();
    let (watched, pings) = (Arc::clone(&pulse), connection.ping_pong());
    let upstream = Arc::clone(address);
    let driver = tokio::spawn(async move {
        let vanishes = async {
            match pings {
                Some(pings) => watched.watch(pings).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = connection => if let Err(error) = ended {
                tracing::debug!(%upstream, %error, "a connection to an upstream ended early");
            },
            () = vanishes => tracing::debug!(%upstream, "an upstream does not answer a PING: its connection ends"),
        }
        watched.retire();
    });
    Ok(Arc::new(Connection {
        address: Arc::clone(address),
        send,
        pulse,
        used: Mutex::new(Instant::now()),
        _driver: AbortOnDropHandle::new(driver),
        _open: count,
    }))
}

impl Connections {
    /// Whether there is a place for one more request.
    pub(in crate::gateway::forward) fn has_room(&self, address: &Arc<str>) -> bool {
        let connections = self.lock();
        let those = connections.get(&address.as_ptr().addr());
        those.is_some_and(|those| those.iter().any(|connection| connection.has_room()))
    }

    /// A place on one that is open and has room.
    pub(in crate::gateway::forward) fn place(&self, address: &Arc<str>) -> Option<UnderWay> {
        let connections = self.lock();
        let mut those = connections.get(&address.as_ptr().addr())?.iter();
        those.find(|connection| connection.has_room()).map(|connection| UnderWay::on(connection, true))
    }

    /// A place on a new one; or on another, should one have come about meanwhile.
    pub(in crate::gateway::forward) fn add(&self, new: Arc<Connection>) -> UnderWay {
        if let Some(under_way) = self.place(&new.address) {
            return under_way;
        }
        let under_way = UnderWay::on(&new, false);
        self.lock().entry(new.address.as_ptr().addr()).or_default().push(new);
        under_way
    }

    /// Forgets those that have ended, and those that were idle for too long; they close after the last request.
    pub(in crate::gateway::forward) fn sweep(&self, idle_timeout: Duration) {
        self.lock().retain(|_, connections| {
            connections.retain(|connection| !connection.is_over(idle_timeout));
            !connections.is_empty()
        });
    }

    pub(in crate::gateway::forward) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Vec<Arc<Connection>>>> {
        // Nothing panics while it is held, and a list of connections is whole at any moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    fn has_room(&self) -> bool {
        self.pulse.is_trusted() && self.pulse.under_way() < self.send.current_max_send_streams()
    }

    fn is_over(&self, idle_timeout: Duration) -> bool {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        self.pulse.is_retired() || self.pulse.under_way() == 0 && used.elapsed() >= idle_timeout
    }
}

impl UnderWay {
    fn on(connection: &Arc<Connection>, reused: bool) -> Self {
        connection.pulse.begin();
        Self { connection: Arc::clone(connection), reused }
    }

    pub(super) fn sender(&self) -> SendRequest<Bytes> {
        self.connection.send.clone()
    }

    /// Nothing more is to be asked on this connection.
    pub(super) fn retire(&self) {
        self.connection.pulse.retire();
    }

    /// What is known of the other end.
    pub(super) fn pulse(&self) -> &Pulse {
        &self.connection.pulse
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.connection.pulse.end();
        *self.connection.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}
