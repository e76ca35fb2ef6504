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
        let Self { part, places, waiting: accepted, failing, .. } = self;
        Waiting { listener, part, places, accepted, failing }
    }

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => self.failing.pause(&error, self.part).await,
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
    /// What this is, for the log.
    part: &'static str,
    places: Places,
    /// Accepted, and without a place yet.
    accepted: Option<(TcpStream, SocketAddr)>,
    failing: Trouble,
}

impl Waiting {
    /// The next of them, once there is a place for it. While none can be accepted, as where the process may open no more files,
    /// it tries again: they would be lost otherwise.
    pub(crate) async fn next(&mut self) -> Option<Accepted> {
        if self.accepted.is_none() {
            self.accepted = loop {
                match accept_now(self.listener.as_ref()?) {
                    Ok(accepted) => break accepted,
                    Err(error) => self.failing.pause(&error, self.part).await,
                }
            };
        }
        self.accepted().await
    }

    /// The next of them that finds a place at once: others are left to whoever else has the listener. But one that is accepted
    /// already nobody else can take, so that one waits for its place.
    pub(crate) async fn next_placed(&mut self) -> Option<Accepted> {
        if self.accepted.is_some() {
            return self.accepted().await;
        }
        let place = self.places.free()?;
        let (stream, peer) = accept_now(self.listener.as_ref()?).ok()??;
        Some(Accepted { stream, peer, place })
    }

    /// The one that is accepted already, once there is a place for it.
    async fn accepted(&mut self) -> Option<Accepted> {
        let (stream, peer) = self.accepted.take()?;
        Some(Accepted { stream, peer, place: self.places.next().await })
    }
}

/// A connection, if one waits.
fn accept_now(listener: &net::TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    loop {
        match listener.accept() {
            Ok((stream, peer)) => {
                stream.set_nonblocking(true)?;
                return Ok(Some((TcpStream::from_std(stream)?, peer)));
            }
            Err(error) if is_of_one_connection(&error) || error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
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

    /// Waits a moment after an error of `accept`.
    async fn pause(&mut self, error: &io::Error, part: &'static str) {
        if let Some(times) = self.happened() {
            tracing::warn!(%error, part, times, "no connection can be accepted at present");
        }
        sleep(PAUSE).await;
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
        let placed = [waiting.next_placed().await, waiting.next_placed().await];
        assert!(placed.iter().all(Option::is_some) && waiting.next_placed().await.is_none());
        let (_, peer) = others.accept().await.unwrap();
        assert_eq!(peer, callers[2].local_addr().unwrap());
    }

    #[tokio::test]
    async fn one_that_is_accepted_already_waits_for_its_place_whoever_else_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let [first, second] = [(); 2].map(|()| net::TcpStream::connect(address).unwrap());
        let places = Places::new(1);
        let mut acceptor = Acceptor::new(listener, "test", places.clone());
        let served = acceptor.next().await;
        assert_eq!(served.peer, first.local_addr().unwrap());
        // The second is accepted, and finds no place until the end.
        while acceptor.waiting.is_none() {
            let _ = tokio::time::timeout(Duration::from_millis(1), acceptor.next()).await;
        }
        let mut waiting = acceptor.end();
        let (last, ()) = tokio::join!(waiting.next_placed(), async { drop(served) });
        assert_eq!(last.unwrap().peer, second.local_addr().unwrap());
        assert!(waiting.next_placed().await.is_none());
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn those_that_wait_at_the_end_are_tried_again_while_none_can_be_accepted() {
        use socket2::{Domain, Socket, Type};

        // Until it listens, every `accept` is an error.
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let mut waiting = Waiting {
            listener: Some(socket.try_clone().unwrap().into()),
            part: "test",
            places: Places::new(1),
            accepted: None,
            failing: Trouble::default(),
        };
        let (accepted, caller) = tokio::join!(waiting.next(), async {
            socket.listen(1).unwrap();
            net::TcpStream::connect(address).unwrap()
        });
        assert_eq!(accepted.map(|accepted| accepted.peer), caller.local_addr().ok());
        assert!(waiting.next().await.is_none());
    }
}
