//! The gateway's own probing of upstreams: off by default, as in Soul, where the admin probes (specification, section
//! 6.3).
//!
//! What is probed is always what is configured, so nothing is ever forgotten: health is a mark on an upstream, and no
//! verdict takes it from the list. An upstream that is switched off stays off, however well it answers.

use std::{collections::HashMap, future::pending, sync::Arc, time::Duration};

use soul_client::balance::{CheckSettings, Health, HealthTrack, Member};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{MissedTickBehavior, interval_at, timeout},
};

use super::GatewayConfig;
use crate::{
    clock::now_ms,
    dial::{self, Dialer},
    sync::{ConfigSync, Destination, Snapshot},
};

/// Probes under way at once; one round over many dead upstreams takes little more than one timeout.
const AT_ONCE: usize = 256;

/// As in Soul, one miss is out and one answer is in.
const SETTINGS: CheckSettings = CheckSettings::soul();

/// Probes every upstream of the serving configuration once an interval, if the settings name one, for ever.
pub(super) async fn rounds(sync: ConfigSync, mut config: watch::Receiver<Arc<GatewayConfig>>) {
    let dialer = Dialer::new();
    let mut tracks = HashMap::new();
    loop {
        let (interval, limit) = {
            let config = config.borrow_and_update();
            (config.check_interval, config.check_timeout)
        };
        let rounds = async {
            if interval.is_zero() {
                return pending().await;
            }
            let mut ticks = interval_at(tokio::time::Instant::now() + interval, interval);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if let Some(snapshot) = sync.snapshot() {
                    round(&snapshot, &mut tracks, &dialer, limit).await;
                }
            }
        };
        let set_anew = config.wait_for(|new| (new.check_interval, new.check_timeout) != (interval, limit));
        tokio::select! {
            () = rounds => {}
            Ok(_) = set_anew => {}
        }
    }
}

/// One probe an address, whatever the number of selectors it is in.
struct Probed {
    destination: Arc<Destination>,
    members: Vec<Arc<Member>>,
    track: HealthTrack,
}

/// What was found so far, by address.
type Tracks = HashMap<Arc<str>, HealthTrack>;

async fn round(snapshot: &Snapshot, tracks: &mut Tracks, dialer: &Dialer, limit: Duration) {
    let before = std::mem::take(tracks);
    let mut probes = JoinSet::new();
    let mut note = |ended: Option<Result<_, _>>| {
        ended.is_some_and(|ended| {
            if let Ok((address, track)) = ended {
                tracks.insert(address, track);
            }
            true
        })
    };
    for mut probed in addresses(snapshot, &before) {
        while probes.len() >= AT_ONCE {
            note(probes.join_next().await);
        }
        let dialer = dialer.clone();
        probes.spawn(async move {
            let answers = answers(&probed.destination, &dialer, limit).await;
            probed.track.observe(&SETTINGS, answers);
            conclude(&probed);
            (Arc::clone(probed.destination.address()), probed.track)
        });
    }
    while note(probes.join_next().await) {}
}

fn addresses(snapshot: &Snapshot, before: &Tracks) -> impl Iterator<Item = Probed> + use<> {
    let mut addresses: HashMap<Arc<str>, Probed> = HashMap::new();
    for selector in snapshot.divide().into_iter().flat_map(|table| table.selectors()) {
        for member in selector.payload().upstreams().members() {
            let Some(end) = selector.payload().end(member) else { continue };
            let destination = &end.destination;
            let track = || before.get(destination.address()).copied().unwrap_or_default();
            let new = || Probed { destination: Arc::clone(destination), members: Vec::new(), track: track() };
            let probed = addresses.entry(Arc::clone(destination.address())).or_insert_with(new);
            probed.members.push(Arc::clone(member));
        }
    }
    addresses.into_values()
}

/// Whether a TCP connection can be made.
async fn answers(destination: &Destination, dialer: &Dialer, limit: Duration) -> bool {
    let connected = async { dial::connect(dialer.resolve(destination.target()).await?).await };
    matches!(timeout(limit, connected).await, Ok(Ok(())))
}

/// Notes the verdict, and tells of a change in Soul's words.
fn conclude(probed: &Probed) {
    let (health, now_ms) = (probed.track.health(), now_ms());
    let before = probed.members.iter().map(|member| member.probed(health, now_ms));
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
