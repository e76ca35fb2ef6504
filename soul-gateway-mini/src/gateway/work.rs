//! What a lane does: it takes connections in, from the first configuration to the drain.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use arc_swap::ArcSwap;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connection::{self, Serving},
    lane::Lane,
    port::Port,
    spread::{Handed, Taken},
};
use crate::{
    listen::{Accepted, Acceptor, Places},
    sync::ConfigSync,
};

/// What a lane is to do.
pub(super) struct Work {
    pub(super) sync: ConfigSync,
    /// How connections are served that are accepted from now on.
    pub(super) serving: Arc<ArcSwap<Serving>>,
    pub(super) places: Places,
    pub(super) callers: TaskTracker,
    pub(super) drain: CancellationToken,
    /// How many others have the listeners, who can take what is left.
    pub(super) others: Arc<AtomicUsize>,
    /// How many lanes take connections.
    pub(super) open: Arc<watch::Sender<usize>>,
}

impl Work {
    /// Opens the port once there is something to answer with, and serves connections until the gateway drains.
    pub(super) async fn run(self: Arc<Self>, lane: Arc<Lane>, port: Port, handed: Handed) {
        let mut accepting = JoinSet::new();
        if self.drain.run_until_cancelled(self.sync.ready()).await == Some(true) {
            match port.open() {
                Ok(listeners) => {
                    self.open.send_modify(|lanes| *lanes += 1);
                    for listener in listeners {
                        accepting.spawn(Arc::clone(&self).accept(Arc::clone(&lane), listener));
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "the port for requests cannot be opened");
                    self.drain.cancel();
                }
            }
        }
        let opened = !accepting.is_empty();
        self.take_over(&lane, handed).await;
        while accepting.join_next().await.is_some() {}
        if opened {
            self.open.send_modify(|lanes| *lanes -= 1);
        }
        lane.drain();
    }

    /// Takes connections in until the drain, and then those that wait already: they were made before the end.
    async fn accept(self: Arc<Self>, lane: Arc<Lane>, listener: TcpListener) {
        let mut acceptor = Acceptor::new(listener, "gateway", self.places.clone());
        while let Some(accepted) = self.drain.run_until_cancelled(acceptor.next()).await {
            if let Some(taken) = lane.share().spread(accepted) {
                self.serve(&lane, taken);
            }
        }
        let keep = |accepted| self.serve(&lane, lane.share().keep(accepted));
        let mut waiting = acceptor.end();
        if self.others.load(Relaxed) == 0 {
            while let Some(accepted) = waiting.next().await {
                keep(accepted);
            }
        } else {
            while let Some(accepted) = waiting.next_placed().await {
                keep(accepted);
            }
        }
    }

    /// Takes connections over from other lanes until the drain, and then those that are on their way.
    async fn take_over(&self, lane: &Arc<Lane>, mut handed: Handed) {
        while let Some(Some(taken)) = self.drain.run_until_cancelled(handed.next()).await {
            self.serve(lane, taken);
        }
        handed.close();
        while let Some(taken) = handed.next().await {
            self.serve(lane, taken);
        }
    }

    fn serve(&self, lane: &Arc<Lane>, Taken { accepted, count }: Taken) {
        let Accepted { stream, peer, place } = accepted;
        let (lane, serving) = (Arc::clone(lane), self.serving.load_full());
        // A task moves what it runs several times, and this is thousands of bytes.
        self.callers.spawn(Box::pin(async move {
            connection::serve(stream, peer.ip(), lane, serving).await;
            drop((place, count));
        }));
    }
}
