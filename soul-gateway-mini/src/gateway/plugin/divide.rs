//! Plugin `divide`, code 50: the service, the rule and the upstream of a request (specification, section 6).

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use soul_client::balance::{BudgetSettings, Key, Outcome, Pick, PickContext, Tried, Verdict};
use tokio::time::Instant;

use crate::{
    clock::Moment,
    gateway::{error::Refusal, forward::RoomSettings, lane},
    model::{
        DIVIDE,
        matching::{CompiledRule, CompiledSelector, RequestView},
    },
    sync::{DivideRule, DivideSelector, End, Flow, Room, SelectorStats, Snapshot},
};

/// A selector with its upstreams.
pub(in crate::gateway) type Selector = CompiledSelector<DivideSelector, DivideRule>;

/// A rule with how its requests are served.
pub(in crate::gateway) type Rule = CompiledRule<DivideRule>;

/// The first selector that takes the request. Later ones are not tried, whatever comes of it.
///
/// # Errors
/// When none does, or the request is none for `divide`.
pub(in crate::gateway) fn selector<'s>(
    snapshot: &'s Snapshot,
    view: &RequestView<'_>,
) -> Result<&'s Selector, Refusal> {
    if let Some(kind) = snapshot.rpc_kinds().other_than_http(view) {
        return Err(Refusal::NotDivided(kind));
    }
    let Some(table) = snapshot.divide() else {
        return Err(Refusal::NotDivided("plugin `divide` is switched off"));
    };
    // Here and below: an error that is made for nothing has to be dropped for nothing.
    let Some(selector) = super::select(DIVIDE, table, view)? else { return Err(Refusal::NoSelector) };
    Ok(selector)
}

/// The first rule of the selector that takes the request.
///
/// # Errors
/// When none does.
pub(in crate::gateway) fn rule<'s>(
    selector: &'s Selector,
    view: &RequestView<'_>,
) -> Result<&'s Rule, Refusal> {
    let Some(rule) = super::rule(DIVIDE, selector, view)? else { return Err(Refusal::NoRule) };
    Ok(rule)
}

/// One upstream to send a request to, where the request is counted in flight until this is dropped. How it ended is to be told
/// by [`Candidate::ended`].
pub(in crate::gateway) struct Candidate<'s> {
    pub(in crate::gateway) end: &'s End,
    /// How many requests it may get anyway, if it is watched.
    watched: Option<u32>,
    stats: &'s Arc<SelectorStats>,
    pick: Pick,
    /// Dropped after the pick, if others may wait for the room that it takes.
    room: Option<Room>,
    chosen: Instant,
}

impl<'s> Candidate<'s> {
    /// When it was chosen.
    pub(in crate::gateway) fn chosen(&self) -> Instant {
        self.chosen
    }

    /// Whether the budget of its selector's requests has one more attempt, which is then spent.
    pub(in crate::gateway) fn spend_retry(&self, budget: Option<&BudgetSettings>, now: Moment) -> bool {
        self.stats.retries.spend(budget, now.ms)
    }

    /// Whether its upstream serves as many requests as it may, besides this one. What was one once and changed its protocol is
    /// none any more, though it counts for whoever chooses the least busy.
    pub(in crate::gateway) fn is_at_limit(&self, settings: &RoomSettings) -> bool {
        let (limit, tunnels) = (settings.limit_of(self.flow()), self.end.flow().tunnels());
        // Whether tunnels come and go is nothing to those that have room beside all of them.
        !self.pick.fits(limit) && (tunnels == 0 || !self.pick.fits(limit.saturating_add(tunnels)))
    }

    fn flow(&self) -> Option<&'s Flow> {
        self.watched.map(|_| &**self.end.flow())
    }

    /// It is at its limit: whether that is none any more.
    fn gets_more(&self, settings: &RoomSettings, now: Moment) -> bool {
        self.watched.is_some_and(|most| {
            self.end.flow().met(now.ms, self.end.requests(self.pick.member()), most);
            !self.is_at_limit(settings)
        })
    }

    /// The time of the request was over before there was an answer.
    pub(in crate::gateway) fn ran_out(self, now: Moment) -> InFlight {
        if let Some(most) = self.watched {
            self.end.flow().timed_out(now.ms, self.end.requests(self.pick.member()), most);
        }
        self.ended(Outcome::TimedOut, now)
    }

    /// Tells the balance core how the request went, which passes the upstream over, lets it back or makes it dearer. Gives what
    /// keeps counting the request in flight, to the end of the answer.
    pub(in crate::gateway) fn ended(self, outcome: Outcome, now: Moment) -> InFlight {
        let Self { end, watched, stats, mut pick, mut room, chosen } = self;
        let took = now.at.saturating_duration_since(chosen);
        if let Some(most) = watched.filter(|_| !matches!(outcome, Outcome::Refused | Outcome::TimedOut)) {
            end.flow().answered(
                took,
                now.ms,
                || end.requests(pick.member()),
                most,
                || lane::is_strained(now),
            );
            if room.is_none() && stats.queue.waiting() > 0 {
                room = Some(stats.queue.room());
            }
        }
        match pick.record(outcome, took, now.ms) {
            Some(Verdict::Ejected { .. }) => {
                tracing::debug!(upstream = %end.destination.address(), ?outcome, "the upstream is passed over");
            }
            Some(Verdict::Restored) => {
                tracing::debug!(upstream = %end.destination.address(), "the upstream serves again");
            }
            _ => {}
        }
        InFlight { _pick: pick, _room: room }
    }
}

/// A request that is counted in flight at its upstream.
pub(in crate::gateway) struct InFlight {
    _pick: Pick,
    _room: Option<Room>,
}

impl InFlight {
    /// It is no request any more, and whoever waits for one to end may have its place; it still counts for whoever chooses the
    /// least busy.
    pub(in crate::gateway) fn changed(self) -> Self {
        Self { _room: None, ..self }
    }
}

/// What an answer tells of its upstream's health.
pub(in crate::gateway) fn outcome_of(status: StatusCode, headers: &HeaderMap) -> Outcome {
    let retry_after = || {
        let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds))
    };
    match status {
        StatusCode::TOO_MANY_REQUESTS => Outcome::Overloaded { retry_after: retry_after() },
        StatusCode::SERVICE_UNAVAILABLE if headers.contains_key(RETRY_AFTER) => {
            Outcome::Overloaded { retry_after: retry_after() }
        }
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Outcome::BadGateway
        }
        _ => Outcome::Success,
    }
}

/// The upstreams for one request, one after the other and none twice.
pub(in crate::gateway) struct Candidates<'s, 'k> {
    upstreams: &'s DivideSelector,
    rule: &'s Rule,
    key: &'k str,
    watched: Option<u32>,
    tried: Tried,
    current: Option<Candidate<'s>>,
    /// How many requests may wait for those passed over, which are finding out how many they can do with.
    most_waiting: u32,
}

impl<'s, 'k> Candidates<'s, 'k> {
    /// Those for a request, of which none is chosen yet.
    ///
    /// - `watched`: how many requests an upstream may get, if it is watched how it bears them.
    pub(in crate::gateway) fn of(
        selector: &'s Selector,
        rule: &'s Rule,
        key: &'k str,
        watched: Option<u32>,
    ) -> Self {
        let upstreams = selector.payload();
        Self { upstreams, rule, key, watched, tried: Tried::new(), current: None, most_waiting: 0 }
    }

    /// Chooses the first one.
    ///
    /// # Errors
    /// When there is none that may be chosen.
    pub(in crate::gateway) fn pick(&mut self, now: Moment) -> Result<(), Refusal> {
        if self.advance(now) {
            Ok(())
        } else if self.upstreams.upstreams().members().is_empty() {
            Err(Refusal::NoUpstreamConfigured { rule: self.rule.name().into() })
        } else {
            Err(Refusal::NoUpstream)
        }
    }

    /// The one to send to now; once for each [`advance`](Self::advance).
    pub(in crate::gateway) fn take(&mut self) -> Option<Candidate<'s>> {
        self.current.take()
    }

    /// How its requests are served.
    pub(in crate::gateway) fn rule(&self) -> &'s DivideRule {
        self.rule.payload()
    }

    /// What the requests of this selector have in common.
    pub(in crate::gateway) fn stats(&self) -> &'s Arc<SelectorStats> {
        self.upstreams.stats()
    }

    /// Takes back the one that was to be sent to now.
    pub(in crate::gateway) fn put_back(&mut self, candidate: Candidate<'s>) {
        self.current = Some(candidate);
    }

    /// The one to send to now, or one after it, that is not at its limit; `None` if all are. Nothing was asked of those that are
    /// passed over, so nothing is counted of them.
    pub(in crate::gateway) fn with_room(
        &mut self,
        settings: &RoomSettings,
        now: Moment,
    ) -> Option<Candidate<'s>> {
        loop {
            if self.current.is_none() && !self.advance(now) {
                return None;
            }
            let mut candidate = self.current.take()?;
            if !candidate.is_at_limit(settings) || candidate.gets_more(settings, now) {
                candidate.room = (settings.queue > 0).then(|| self.stats().queue.room());
                return Some(candidate);
            }
            self.pass_over(candidate, settings);
        }
    }

    /// How many requests are to wait rather than to be refused, since it is not known yet whether one of those that were found at their
    /// limit may get more.
    pub(in crate::gateway) fn most_waiting(&self) -> usize {
        let current = self.current.as_ref().and_then(Candidate::flow).map_or(0, Flow::most_waiting);
        self.most_waiting.saturating_add(current) as usize
    }

    /// The same for all upstreams, whether they were looked at or not.
    pub(in crate::gateway) fn most_waiting_anywhere(&self) -> usize {
        if self.watched.is_none() {
            return 0;
        }
        let upstreams = self.upstreams;
        let ends = upstreams.upstreams().members().iter().filter_map(|member| upstreams.end(member));
        ends.fold(0_u32, |sum, end| sum.saturating_add(end.flow().most_waiting())) as usize
    }

    /// Begins anew, as if none was tried.
    pub(in crate::gateway) fn anew(&mut self, settings: &RoomSettings) {
        self.tried = Tried::new();
        if let Some(candidate) = self.current.take() {
            self.pass_over(candidate, settings);
        }
        self.most_waiting = 0;
    }

    fn pass_over(&mut self, candidate: Candidate<'s>, settings: &RoomSettings) {
        let (member, end, flow) = (Arc::clone(candidate.pick.member()), candidate.end, candidate.flow());
        drop(candidate);
        self.most_waiting = self.most_waiting.saturating_add(flow.map_or(0, Flow::most_waiting));
        if end.requests(&member) < settings.limit_of(flow) {
            // Another one may have looked in this moment, counted this one, and not taken the place: it may look again.
            self.stats().queue.wake();
        }
    }

    /// Goes on to one that was not tried; `false` if there is none.
    ///
    /// One that could not be connected to lately is chosen only if all others were tried.
    pub(in crate::gateway) fn advance(&mut self, now: Moment) -> bool {
        let context = PickContext::at(now.ms).key(Key::Text(self.key)).tried(&self.tried);
        let Some(pick) = self.upstreams.upstreams().choose(self.rule().way, &context) else { return false };
        let Some(end) = self.upstreams.end(pick.member()) else { return false };
        self.tried.insert(pick.state());
        let stats = self.upstreams.stats();
        let watched = self.watched;
        self.current = Some(Candidate { end, watched, stats, pick, room: None, chosen: now.at });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_of_its_upstream() {
        let outcome = |status: u16, retry_after: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = retry_after {
                headers.insert(RETRY_AFTER, value.parse().unwrap());
            }
            outcome_of(StatusCode::from_u16(status).unwrap(), &headers)
        };
        let spare =
            |seconds: Option<u64>| Outcome::Overloaded { retry_after: seconds.map(Duration::from_secs) };
        for (status, retry_after, expected) in [
            (200, None, Outcome::Success),
            (404, None, Outcome::Success),
            (500, None, Outcome::Success),
            (502, None, Outcome::BadGateway),
            (503, None, Outcome::BadGateway),
            (504, None, Outcome::BadGateway),
            (503, Some("7"), spare(Some(7))),
            (503, Some("Wed, 21 Oct 2026 07:28:00 GMT"), spare(None)),
            (429, None, spare(None)),
            (429, Some(" 7 "), spare(Some(7))),
        ] {
            assert_eq!(outcome(status, retry_after), expected, "{status} {retry_after:?}");
        }
    }
}
