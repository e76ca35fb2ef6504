//! What probing concludes: a node that fails once is out, one that answers once is back.

use std::sync::Arc;

use soul_client::balance::{CheckSettings, Health, HealthTrack};

use super::{Change, Store, UpstreamRow, Verdict, Verdicts, row::Probed};

/// What a verdict does to an upstream.
enum Effect {
    /// Nothing that anybody keeps.
    Noted,
    /// It was alive and is dead, or the other way round.
    Turned,
}

impl Store {
    /// Takes the verdicts of one batch of probes; a verdict about an entry that is no more, or that a registration has
    /// overtaken, says nothing.
    pub(super) fn judge(&mut self, batch: &Verdicts, now_ms: i64) -> Change {
        let mut change = Change::default();
        let mut turned: Vec<u64> = Vec::new();
        for verdict in &batch.verdicts {
            let Some(place) = self.selectors.place(&verdict.selector) else { continue };
            let mut effect = Effect::Noted;
            Arc::make_mut(&mut self.selectors).edit(place, |row| {
                if let Some(upstream) = row.upstream_mut(&verdict.url) {
                    effect = take(upstream, verdict, now_ms);
                }
            });
            if matches!(effect, Effect::Turned) && !turned.contains(&place) {
                turned.push(place);
            }
        }
        let forgotten = batch.forget_before_ms.map(|before| self.forget(before)).unwrap_or_default();
        turned.extend(forgotten);
        turned.sort_unstable();
        turned.dedup();
        for place in turned {
            change.row(self.change_selector(place, |_| {}));
        }
        change
    }

    /// Drops the upstreams that are dead since before a time; returns the places of their selectors.
    fn forget(&mut self, before_ms: i64) -> Vec<u64> {
        let stays = |upstream: &UpstreamRow| upstream.dead_since.is_none_or(|since| since > before_ms);
        let places: Vec<u64> = self
            .selectors
            .places()
            .filter(|(_, row)| !row.upstreams.iter().flatten().all(stays))
            .map(|(place, _)| place)
            .collect();
        for place in &places {
            Arc::make_mut(&mut self.selectors).edit(*place, |row| {
                if let Some(list) = &mut row.upstreams {
                    list.retain(stays);
                }
            });
        }
        places
    }
}

fn take(upstream: &mut UpstreamRow, verdict: &Verdict, now_ms: i64) -> Effect {
    if upstream.incarnation != verdict.incarnation || upstream.unchecked {
        return Effect::Noted;
    }
    // A node that registered after the probe began has spoken later than the probe. That it was found alive
    // before still holds.
    if verdict.error.is_some() && upstream.touched != verdict.touched {
        return Effect::Noted;
    }
    upstream.probed = Some(Probed { at_ms: verdict.at_ms, error: verdict.error.clone() });
    let alive = verdict.error.is_none();
    let mut track = HealthTrack::from_health(if upstream.healthy { Health::Up } else { Health::Down });
    if track.observe(&CheckSettings::soul(), alive).is_none() {
        return Effect::Noted;
    }
    upstream.healthy = alive;
    upstream.dead_since = (!alive).then_some(now_ms);
    // Soul starts a warm-up of ten minutes on every return; ours only where one is configured.
    if alive && upstream.entry.warmup > 0 {
        upstream.entry.timestamp = now_ms;
    }
    Effect::Turned
}
