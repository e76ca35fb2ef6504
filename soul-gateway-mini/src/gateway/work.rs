//! What a lane does: it takes connections in, from the first configuration to the drain.

use std::{
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwap;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connection::{self, Serving},
    lane::Lane,
    port::Port,
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
    /// Whether nobody else has the listeners, who could take what is left.
    pub(super) alone: Arc<AtomicBool>,
    /// How many lanes take connections.
    pub(super) open: Arc<watch::Sender<usize>>,
}

impl Work {
    /// Opens the port once there is something to answer with, and accepts connections until the gateway drains.
    pub(super) async fn run(self: Arc<Self>, lane: Arc<Lane>, port: Port) {
        let drain = self.drain.clone();
        if drain.run_until_cancelled(self.sync.ready()).await == Some(true) {
            match port.open() {
                Ok(listeners) => {
                    self.open.send_modify(|lanes| *lanes += 1);
                    let mut accepting: JoinSet<_> = listeners
                        .into_iter()
                        .map(|listener| Arc::clone(&self).accept(Arc::clone(&lane), listener))
                        .collect();
                    drain.cancelled().await;
                    while accepting.join_next().await.is_some() {}
                    self.open.send_modify(|lanes| *lanes -= 1);
                }
                Err(error) => {
                    tracing::error!(%error, "the port for requests cannot be opened");
                    drain.cancel();
                }
            }
        }
        lane.drain();
    }

    /// Takes connections in until the drain, and then those that wait already: they were made before the end.
    async fn accept(self: Arc<Self>, lane: Arc<Lane>, listener: TcpListener) {
        let mut acceptor = Acceptor::new(listener, "gateway", self.places.clone());
        while let Some(accepted) = self.drain.run_until_cancelled(acceptor.next()).await {
            self.serve(&lane, accepted);
        }
        let mut waiting = acceptor.end();
        if self.alone.load(Relaxed) {
            while let Some(accepted) = waiting.next().await {
                self.serve(&lane, accepted);
            }
        } else {
            iter::from_fn(|| waiting.next_placed()).for_each(|accepted| self.serve(&lane, accepted));
        }
    }

    fn serve(&self, lane: &Arc<Lane>, Accepted { stream, peer, place }: Accepted) {
        let (lane, serving) = (Arc::clone(lane), self.serving.load_full());
        let connection = connection::serve(stream, peer.ip(), lane, serving);
        self.callers.spawn(async move {
            connection.await;
            drop(place);
        });
    }
}
