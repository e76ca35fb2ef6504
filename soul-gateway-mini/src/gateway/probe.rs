//! The gateway's own probing of upstreams: off by default, as in Soul, where the admin probes (specification, section
//! 6.3).
//!
//! What is probed is always what is configured, so nothing is ever forgotten: health is a mark on an upstream, and no
//! verdict takes it from the list. An upstream that is switched off stays off, however well it answers.

use std::{collections::HashMap, sync::Arc, time::Duration};

use soul_client::balance::{Health, UpstreamState};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval_at, timeout},
};

use crate::{
    dial::{self, Dialer},
    sync::{ConfigSync, Destination, Snapshot},
};

/// Probes under way at once; one round over many dead upstreams takes little more than one timeout.
const AT_ONCE: usize = 256;

/// Probes every upstream of the serving configuration once an interval, for ever.
pub(super) async fn rounds(sync: ConfigSync, interval: Duration, limit: Duration) {
    let dialer = Dialer::new();
    let mut ticks = interval_at(tokio::time::Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(snapshot) = sync.snapshot() {
            round(&snapshot, &dialer, limit).await;
        }
    }
}

/// One probe an address, whatever the number of selectors it is in.
struct Probed {
    destination: Arc<Destination>,
    states: Vec<Arc<UpstreamState>>,
}

async fn round(snapshot: &Snapshot, dialer: &Dialer, limit: Duration) {
    let mut probes = JoinSet::new();
    for probed in addresses(snapshot) {
        while probes.len() >= AT_ONCE {
            probes.join_next().await;
        }
        let dialer = dialer.clone();
        probes.spawn(async move {
            let health = probe(&probed.destination, &dialer, limit).await;
            conclude(&probed, health);
        });
    }
    while probes.join_next().await.is_some() {}
}

fn addresses(snapshot: &Snapshot) -> impl Iterator<Item = Probed> + use<> {
    let mut addresses: HashMap<Arc<str>, Probed> = HashMap::new();
    for selector in snapshot.divide().into_iter().flat_map(|table| table.selectors()) {
        for member in selector.payload().upstreams().members() {
            let Some(destination) = selector.payload().destination(member) else { continue };
            let new = || Probed { destination: Arc::clone(destination), states: Vec::new() };
            let probed = addresses.entry(Arc::clone(destination.address())).or_insert_with(new);
            probed.states.push(Arc::clone(member.state()));
        }
    }
    addresses.into_values()
}

/// Whether a TCP connection can be made.
async fn probe(destination: &Destination, dialer: &Dialer, limit: Duration) -> Health {
    let connected = async { dial::connect(dialer.resolve(destination.target()).await?).await };
    match timeout(limit, connected).await {
        Ok(Ok(())) => Health::Up,
        Ok(Err(_)) | Err(_) => Health::Down,
    }
}

/// Notes the verdict, and tells of a change in Soul's words.
fn conclude(probed: &Probed, health: Health) {
    let before = probed.states.iter().map(|state| state.set_health(health));
    let changed: Vec<Health> = before.filter(|before| *before != health).collect();
    let url = probed.destination.address();
    match health {
        Health::Down if !changed.is_empty() => {
            tracing::warn!(upstream = %url, "check the url={url} is fail ")
        }
        Health::Up if changed.contains(&Health::Down) => {
            let host = probed.destination.target().host();
            tracing::info!(upstream = %url, "UpstreamCacheManager detect success the url: {url}, host: {host} ");
        }
        _ => {}
    }
}
