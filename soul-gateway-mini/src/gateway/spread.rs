//! Spreading the connections of callers evenly over lanes.
//!
//! The system spreads them over listeners by a hash, as dice would: of 16 connections 11 may come to one of two lanes, whose
//! callers then wait while the other lane sleeps. So a lane that takes a connection in while another one has fewer hands it
//! on to that, before a byte of it was read. Where connections are short this is not worth its price and not done: they come
//! out even over time.
//!
//! Every lane counts on memory of its own, which others look at when they take a connection in, and never for a request.

use std::{
    net::{self, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, mpsc},
};

use crate::listen::Accepted;

/// Connections on their way to one lane. With more than that waiting, a lane is not the right one to get another.
const ON_THE_WAY: usize = 64;

/// What a lane has. On cache lines of its own, and those that processors fetch along with them.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Load {
    open: AtomicUsize,
    /// Connections that ended since the last look, and between the two looks before.
    ended: AtomicUsize,
    ended_before: AtomicUsize,
}

impl Load {
    /// Whether connections end sooner than it pays to hand one on.
    fn is_of_short_ones(&self) -> bool {
        let ended = self.ended.load(Relaxed) + self.ended_before.load(Relaxed);
        ended > self.open.load(Relaxed)
    }
}

/// A connection as it goes from lane to lane.
#[derive(Debug)]
struct Passing {
    stream: net::TcpStream,
    peer: SocketAddr,
    place: OwnedSemaphorePermit,
    count: Count,
}

/// A connection that a lane is to serve.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) accepted: Accepted,
    pub(super) count: Count,
}

/// Counts a connection in its lane until this is dropped.
#[derive(Debug)]
pub(super) struct Count {
    loads: Arc<[Load]>,
    lane: usize,
}

impl Count {
    fn begin(loads: &Arc<[Load]>, lane: usize) -> Self {
        loads[lane].open.fetch_add(1, Relaxed);
        Self { loads: Arc::clone(loads), lane }
    }

    /// It is in another lane from now on.
    fn go_to(&mut self, lane: usize) {
        self.loads[self.lane].open.fetch_sub(1, Relaxed);
        self.loads[lane].open.fetch_add(1, Relaxed);
        self.lane = lane;
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        let load = &self.loads[self.lane];
        load.open.fetch_sub(1, Relaxed);
        load.ended.fetch_add(1, Relaxed);
    }
}

/// One lane's share of the connections.
#[derive(Debug)]
pub(super) struct Share {
    loads: Arc<[Load]>,
    lane: usize,
    doors: Arc<[mpsc::Sender<Passing>]>,
}

/// What other lanes hand on to this one.
#[derive(Debug)]
pub(super) struct Handed(mpsc::Receiver<Passing>);

/// Shares for so many lanes.
pub(super) fn shares(lanes: usize) -> Vec<(Share, Handed)> {
    let loads: Arc<[Load]> = (0..lanes).map(|_| Load::default()).collect();
    let (doors, handed): (Vec<_>, Vec<_>) = (0..lanes).map(|_| mpsc::channel(ON_THE_WAY)).unzip();
    let doors: Arc<[_]> = doors.into();
    let share = |lane| Share { loads: Arc::clone(&loads), lane, doors: Arc::clone(&doors) };
    (0..lanes).map(share).zip(handed.into_iter().map(Handed)).collect()
}

impl Share {
    /// Connections that are open in this lane, or on their way to it.
    pub(super) fn open(&self) -> usize {
        self.loads[self.lane].open.load(Relaxed)
    }

    /// A connection was accepted here: gives it back to be served, unless it was handed on.
    pub(super) fn spread(&self, accepted: Accepted) -> Option<Taken> {
        match self.emptier().and_then(|lane| Some((lane, self.doors[lane].try_reserve().ok()?))) {
            Some((lane, door)) => {
                let Taken { accepted: Accepted { stream, peer, place }, mut count } = self.keep(accepted);
                // An error: the system does not know the socket, so it is none any more.
                let stream = stream.into_std().ok()?;
                count.go_to(lane);
                door.send(Passing { stream, peer, place, count });
                None
            }
            None => Some(self.keep(accepted)),
        }
    }

    /// A connection was accepted here, and stays.
    pub(super) fn keep(&self, accepted: Accepted) -> Taken {
        Taken { accepted, count: Count::begin(&self.loads, self.lane) }
    }

    /// The lane that has the fewest, if with one more it still has no more than this one without.
    fn emptier(&self) -> Option<usize> {
        let own = &self.loads[self.lane];
        if self.loads.len() == 1 || own.is_of_short_ones() {
            return None;
        }
        let open = self.loads.iter().map(|load| load.open.load(Relaxed));
        let (lane, fewest) = open.enumerate().min_by_key(|(_, open)| *open)?;
        (fewest < own.open.load(Relaxed)).then_some(lane)
    }

    /// To be called now and then: what ended before the last time counts no more.
    pub(super) fn settle(&self) {
        let load = &self.loads[self.lane];
        load.ended_before.store(load.ended.swap(0, Relaxed), Relaxed);
    }
}

impl Handed {
    /// The next connection. `None` after [`close`](Self::close), once all have come that were on their way.
    ///
    /// # Cancel safety
    /// Dropping the future loses no connection.
    pub(super) async fn next(&mut self) -> Option<Taken> {
        loop {
            let Passing { stream, peer, place, count } = self.0.recv().await?;
            // An error: the system has no memory for it.
            if let Ok(stream) = TcpStream::from_std(stream) {
                return Some(Taken { accepted: Accepted { stream, peer, place }, count });
            }
        }
    }

    /// From now on lanes keep what they would have handed on.
    pub(super) fn close(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::listen::{Acceptor, Places};

    /// Takes connections, and holds the callers' ends of them.
    struct Door {
        acceptor: Acceptor,
        address: SocketAddr,
        callers: Vec<net::TcpStream>,
    }

    impl Door {
        async fn open() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            Self {
                acceptor: Acceptor::new(listener, "test", Places::new(1000)),
                address,
                callers: Vec::new(),
            }
        }

        async fn connection(&mut self) -> Accepted {
            self.callers.push(net::TcpStream::connect(self.address).unwrap());
            self.acceptor.next().await
        }
    }

    fn open(shares: &[(Share, Handed)]) -> Vec<usize> {
        shares.iter().map(|(share, _)| share.open()).collect()
    }

    #[tokio::test]
    async fn lanes_end_at_most_one_apart_wherever_connections_come_in() {
        let mut door = Door::open().await;
        let mut shares = shares(3);
        let mut served = Vec::new();
        for lane in [0, 0, 0, 0, 1, 0, 2, 2, 2, 2, 1] {
            served.extend(shares[lane].0.spread(door.connection().await));
        }
        let mut each = open(&shares);
        each.sort_unstable();
        assert_eq!(each, [3, 4, 4]);
        // Those handed on arrive, and count until they end.
        for (_, handed) in &mut shares {
            handed.close();
            while let Some(taken) = handed.next().await {
                served.push(taken);
            }
        }
        let mut peers: Vec<_> = served.iter().map(|taken| taken.accepted.peer).collect();
        let mut callers: Vec<_> = door.callers.iter().map(|caller| caller.local_addr().unwrap()).collect();
        peers.sort();
        callers.sort();
        assert_eq!(peers, callers);
        served.clear();
        assert_eq!(open(&shares), [0, 0, 0]);
    }

    #[tokio::test]
    async fn a_lane_keeps_what_nobody_can_take() {
        let mut door = Door::open().await;
        let mut shares = shares(2);
        let mut served = Vec::new();
        for _ in 0..3 * ON_THE_WAY {
            served.extend(shares[0].0.spread(door.connection().await));
        }
        assert_eq!(open(&shares), [2 * ON_THE_WAY, ON_THE_WAY], "as many are on their way as may be");
        shares[1].1.close();
        assert!(shares[0].0.spread(door.connection().await).is_some(), "it takes no more");
        let mut arrived = 0;
        while shares[1].1.next().await.is_some() {
            arrived += 1;
        }
        assert_eq!(arrived, ON_THE_WAY, "what was on its way is not lost");
    }

    #[tokio::test]
    async fn short_connections_stay_where_they_are() {
        let mut door = Door::open().await;
        let shares = shares(2);
        let share = &shares[0].0;
        let stays = share.spread(door.connection().await);
        for _ in 0..3 {
            // Each ends at once.
            assert!(share.keep(door.connection().await).count.lane == 0);
        }
        let mut served = vec![share.spread(door.connection().await).expect("more have ended than are open")];
        share.settle();
        served.push(share.spread(door.connection().await).expect("and so they had lately"));
        share.settle();
        assert!(share.spread(door.connection().await).is_none(), "now they live longer");
        drop((stays, served));
    }
}
