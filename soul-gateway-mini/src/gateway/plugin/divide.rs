//! Plugin `divide`, code 50: the service, the rule and the upstream of a request (specification, section 6).

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use soul_client::balance::{Key, Member, PickContext, Tried};

use crate::{
    gateway::error::Refusal,
    model::{
        DIVIDE,
        matching::{CompiledRule, CompiledSelector, RequestView},
    },
    sync::{Destination, DivideRule, DivideSelector, Snapshot},
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
    let table = snapshot.divide().ok_or(Refusal::NotDivided("plugin `divide` is switched off"))?;
    super::select(DIVIDE, table, view)?.ok_or(Refusal::NoSelector)
}

/// The first rule of the selector that takes the request.
///
/// # Errors
/// When none does.
pub(in crate::gateway) fn rule<'s>(
    selector: &'s Selector,
    view: &RequestView<'_>,
) -> Result<&'s Rule, Refusal> {
    super::rule(DIVIDE, selector, view)?.ok_or(Refusal::NoRule)
}

/// The upstream for a request, and who is next should it fail.
///
/// # Errors
/// When there is none that may be chosen.
pub(in crate::gateway) fn pick<'s>(
    selector: &'s Selector,
    rule: &'s Rule,
    key: &'s str,
    suspicion: &'s Suspicion,
) -> Result<Candidates<'s>, Refusal> {
    let upstreams = selector.payload();
    let mut candidates =
        Candidates { upstreams, rule: rule.payload(), key, suspicion, tried: Tried::new(), current: None };
    if candidates.advance() {
        Ok(candidates)
    } else if upstreams.upstreams().members().is_empty() {
        Err(Refusal::NoUpstreamConfigured { rule: rule.name().into() })
    } else {
        Err(Refusal::NoUpstream)
    }
}

/// One upstream to send a request to.
#[derive(Clone, Copy)]
pub(in crate::gateway) struct Candidate<'s> {
    pub(in crate::gateway) member: &'s Member,
    pub(in crate::gateway) destination: &'s Arc<Destination>,
}

/// The upstreams for one request, one after the other and none twice.
pub(in crate::gateway) struct Candidates<'s> {
    upstreams: &'s DivideSelector,
    rule: &'s DivideRule,
    key: &'s str,
    suspicion: &'s Suspicion,
    tried: Tried,
    current: Option<Candidate<'s>>,
}

impl<'s> Candidates<'s> {
    /// The one to send to now.
    pub(in crate::gateway) fn current(&self) -> Option<Candidate<'s>> {
        self.current
    }

    /// How its requests are served.
    pub(in crate::gateway) fn rule(&self) -> &'s DivideRule {
        self.rule
    }

    /// Goes on to one that was not tried; `false` if there is none, and then the current one stays.
    ///
    /// One that could not be connected to lately is chosen only if all others were tried.
    pub(in crate::gateway) fn advance(&mut self) -> bool {
        let now_ms = now_ms();
        let passed_over = self.suspicion.is_active(now_ms).then(|| self.without_suspects(now_ms));
        let chosen = passed_over
            .and_then(|tried| self.choose(now_ms, &tried))
            .or_else(|| self.choose(now_ms, &self.tried));
        let Some(candidate) = chosen else { return false };
        self.tried.insert(candidate.member.state());
        self.current = Some(candidate);
        true
    }

    fn choose(&self, now_ms: i64, tried: &Tried) -> Option<Candidate<'s>> {
        let context = PickContext::at(now_ms).key(Key::Text(self.key)).tried(tried);
        let member = self.upstreams.upstreams().pick(self.rule.balance, &context)?;
        Some(Candidate { member, destination: self.upstreams.destination(member)? })
    }

    fn without_suspects(&self, now_ms: i64) -> Tried {
        let mut tried = self.tried.clone();
        for member in self.upstreams.upstreams().members() {
            if self.upstreams.destination(member).is_some_and(|d| d.is_suspect(now_ms)) {
                tried.insert(member.state());
            }
        }
        tried
    }
}

/// Which upstreams were found unreachable by requests themselves, as far as one number can tell: it spares every
/// request the look at each upstream while none is suspected.
#[derive(Debug)]
pub(in crate::gateway) struct Suspicion {
    lasts: Duration,
    until_ms: AtomicI64,
}

impl Suspicion {
    /// A zero `lasts` suspects nobody.
    pub(in crate::gateway) fn new(lasts: Duration) -> Self {
        Self { lasts, until_ms: AtomicI64::new(0) }
    }

    /// A destination could not be connected to.
    pub(in crate::gateway) fn raise(&self, destination: &Destination) {
        if !self.lasts.is_zero() {
            let until_ms = destination.suspect(now_ms(), self.lasts);
            self.until_ms.fetch_max(until_ms, Relaxed);
        }
    }

    fn is_active(&self, now_ms: i64) -> bool {
        self.until_ms.load(Relaxed) > now_ms
    }
}

/// Milliseconds since the epoch.
pub(in crate::gateway) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
