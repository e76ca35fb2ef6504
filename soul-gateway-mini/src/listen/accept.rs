//! Accepting connections: only so many at once, and trouble told now and then instead of every time.

use std::{future, io, net, net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep},
};

use super::Places;

/// Pause after an error of `accept`, usually that the process may open no more files.
const PAUSE: Duration = Duration::from_millis(50);

/// Shortest time between two lines of the log about the same trouble.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Takes connections from a listener, each with its place.
pub(crate) struct Acceptor {
    listener: TcpListener,
    /// What this is, for the log.
    part: &'static str,
    places: Places,
    /// Accepted, and without a place yet.
    waiting: Option<(TcpStream, SocketAddr)>,
    full: Trouble,
    failing: Trouble,
}

/// A connection, and the place it takes until this is dropped.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) place: OwnedSemaphorePermit,
}

impl Acceptor {
    pub(crate) fn new(listener: TcpListener, part: &'static str, places: Places) -> Self {
        let (full, failing) = (Trouble::default(), Trouble::default());
        Self { listener, part, places, waiting: None, full, failing }
    }

    /// The next connection. One that finds no place waits for it, and the others behind it in the system's queue, where they
    /// cost nothing. (A place first and then a connection would be better still, but for places that are shared: the
    /// one that is left would be held where nobody calls.)
    ///
    /// # Cancel safety
    /// Dropping the future loses no connection.
    pub(crate) async fn next(&mut self) -> Accepted {
        if self.waiting.is_none() {
            self.waiting = Some(self.accept().await);
        }
        let place = self.place().await;
        match self.waiting.take() {
            Some((stream, peer)) => Accepted { stream, peer, place },
            // Put there above, and taken by nobody else.
            None => future::pending().await,
        }
    }

    /// The end: no connections but those that wait already.
    pub(crate) fn end(self) -> Waiting {
        // What the runtime knows of the listener may be older than the newest connection, so the system is asked.
        let listener = self.listener.into_std().ok();
        Waiting { listener, places: self.places, accepted: self.waiting }
    }

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    if let Some(times) = self.failing.happened() {
                        tracing::warn!(%error, part = self.part, times, "no connection can be accepted at present");
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn place(&mut self) -> OwnedSemaphorePermit {
        if let Some(place) = self.places.free() {
            return place;
        }
        if let Some(times) = self.full.happened() {
            let (part, limit) = (self.part, self.places.limit());
            tracing::warn!(part, limit, times, "as many connections as allowed, further ones wait");
        }
        self.places.next().await
    }
}

/// The connections that wait at the end: they were made before it, and closing the listener would reset them.
pub(crate) struct Waiting {
    listener: Option<net::TcpListener>,
    places: Places,
    /// Accepted, and without a place yet.
    accepted: Option<(TcpStream, SocketAddr)>,
}

impl Waiting {
    /// The next of them, once there is a place for it.
    pub(crate) async fn next(&mut self) -> Option<Accepted> {
        let (stream, peer) = match self.accepted.take() {
            Some(accepted) => accepted,
            None => self.accept()?,
        };
        Some(Accepted { stream, peer, place: self.places.next().await })
    }

    /// The next of them that finds a place at once: others are left to whoever else has the listener.
    pub(crate) fn next_placed(&mut self) -> Option<Accepted> {
        let place = self.places.free()?;
        let (stream, peer) = match self.accepted.take() {
            Some(accepted) => accepted,
            None => self.accept()?,
        };
        Some(Accepted { stream, peer, place })
    }

    fn accept(&self) -> Option<(TcpStream, SocketAddr)> {
        let (stream, peer) = accept_now(self.listener.as_ref()?)?;
        Some((TcpStream::from_std(stream).ok()?, peer))
    }
}

/// A connection, if one waits.
fn accept_now(listener: &net::TcpListener) -> Option<(net::TcpStream, SocketAddr)> {
    loop {
        match listener.accept() {
            Ok((stream, peer)) => return stream.set_nonblocking(true).ok().map(|()| (stream, peer)),
            Err(error) if is_of_one_connection(&error) || error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// The caller went away before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | ConnectionRefused)
}

/// Something that may happen a thousand times a second, and is worth a line a minute.
#[derive(Debug, Default)]
struct Trouble {
    told_at: Option<Instant>,
    times: u64,
}

impl Trouble {
    /// How often it has happened since it was last told, if it is to be told now.
    fn happened(&mut self) -> Option<u64> {
        self.times += 1;
        let now = Instant::now();
        if self.told_at.is_some_and(|told_at| now < told_at + TELL_EVERY) {
            return None;
        }
        self.told_at = Some(now);
        Some(std::mem::take(&mut self.times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn trouble_is_told_at_once_and_then_once_a_minute_with_its_count() {
        let mut trouble = Trouble::default();
        assert_eq!(trouble.happened(), Some(1));
        for _ in 0..1000 {
            assert_eq!(trouble.happened(), None);
        }
        tokio::time::advance(TELL_EVERY).await;
        assert_eq!(trouble.happened(), Some(1001));
        assert_eq!(trouble.happened(), None);
    }

    #[tokio::test]
    async fn connections_that_wait_at_the_end_are_taken_in_as_places_get_free() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let callers: Vec<_> = (0..3).map(|_| net::TcpStream::connect(address).unwrap()).collect();
        let mut waiting = Acceptor::new(listener, "test", Places::new(1)).end();
        let mut peers = Vec::new();
        while let Some(accepted) = waiting.next().await {
            peers.push(accepted.peer);
        }
        drop(waiting);
        let mut expected: Vec<_> = callers.iter().map(|caller| caller.local_addr().unwrap()).collect();
        peers.sort();
        expected.sort();
        assert_eq!(peers, expected);
        assert!(net::TcpStream::connect(address).is_err(), "and no more");
    }

    #[tokio::test]
    async fn those_beyond_the_limit_are_left_to_whoever_else_listens() {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let others = TcpListener::from_std(listener.try_clone().unwrap()).unwrap();
        let callers: Vec<_> = (0..3).map(|_| net::TcpStream::connect(address).unwrap()).collect();
        let own = TcpListener::from_std(listener).unwrap();
        let mut waiting = Acceptor::new(own, "test", Places::new(2)).end();
        let placed: Vec<_> = std::iter::from_fn(|| waiting.next_placed()).collect();
        assert_eq!(placed.len(), 2);
        let (_, peer) = others.accept().await.unwrap();
        assert_eq!(peer, callers[2].local_addr().unwrap());
    }
}
