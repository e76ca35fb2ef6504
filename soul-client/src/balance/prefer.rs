//! Who is preferred to the others, over any policy.

use std::{any::Any, collections::BTreeSet, sync::Arc};

use super::{
    choose::choose,
    context::PickContext,
    list::{Member, MemberList},
    members::{Members, Up},
    pick::Pick,
    policy::{BuildContext, Picker, Policy},
    set::Choice,
    upstream::Upstream,
};

/// Who is preferred to the others, whatever the policy. A preference narrows the choice as long as somebody is left to choose:
/// if nobody preferred may serve (down, ejected, tried), the next ones do.
///
/// A request may prefer one upstream besides, the one of its session or the one that served it before:
/// [`PickContext::sticky`]. Among those preferred the policy chooses, with counters of its own.
///
/// # Examples
/// ```
/// use soul_client::balance::{Balancer, PickContext, Prefer, Settings, Upstream};
///
/// let list = vec![
///     Upstream::new("10.0.0.2:80").with_zone("eu").with_metadata("version", "v1"),
///     Upstream::new("10.0.0.3:80").with_zone("us").with_metadata("version", "v2"),
/// ];
/// let prefer = Prefer { zone: Some("eu".into()), hint: Some("version".into()), ..Prefer::default() };
/// let balancer = Balancer::new(list, Settings { prefer, ..Settings::default() }, 0);
/// let chosen = |context| balancer.choose(&context).map(|pick| pick.upstream().address().to_owned());
/// assert_eq!(chosen(PickContext::at(0)).as_deref(), Some("10.0.0.2:80"));
/// assert_eq!(chosen(PickContext::at(0).hint("v2")).as_deref(), Some("10.0.0.3:80"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefer {
    /// Upstreams of this zone, usually the caller's own.
    pub zone: Option<Box<str>>,
    /// The word in the metadata that ranks upstreams by number, the lowest first: who has none has rank 0.
    pub priority: Option<Box<str>>,
    /// The word in the metadata that the hint of a request is compared with, for example `version`. A hint counts more than
    /// zone and priority.
    pub hint: Option<Box<str>>,
    /// Whether a request with a hint goes to nobody rather than to one that differs. Default false.
    pub hint_only: bool,
}

/// Those of one hint, or all, up to a rank; and who chooses among them.
pub(super) struct Tier {
    hint: Option<Box<str>>,
    up: Up,
    picker: Box<dyn Picker>,
}

/// How far an upstream is from what is preferred; less is better.
type Rank = (bool, i64);

impl Prefer {
    fn rank(&self, upstream: &Upstream) -> Rank {
        let elsewhere = self.zone.as_deref().is_some_and(|zone| upstream.zone() != Some(zone));
        let priority = self.priority.as_deref().and_then(|key| upstream.metadata().get(key));
        (elsewhere, priority.and_then(|number| number.trim().parse().ok()).unwrap_or(0))
    }

    fn hint_of<'u>(&self, upstream: &'u Upstream) -> Option<&'u str> {
        upstream.metadata().get(self.hint.as_deref()?).map(String::as_str)
    }

    /// The tiers in the order in which they are asked; none where all are alike.
    ///
    /// - `up`: those that are healthy, all tiers taken together.
    pub(super) fn tiers(
        &self,
        list: &MemberList,
        up: &Up,
        policy: &dyn Policy,
        previous: &[Tier],
        context: &BuildContext<'_>,
    ) -> Box<[Tier]> {
        if *self == Self::default() {
            return Box::default();
        }
        let configured = || list.members.iter().map(|m| m.upstream()).filter(|u| u.takes_traffic());
        let ranks: BTreeSet<Rank> = configured().map(|u| self.rank(u)).collect();
        let hints: BTreeSet<&str> = configured().filter_map(|u| self.hint_of(u)).collect();
        let last = ranks.last().copied();
        let of = |hint: Option<&str>, most: Rank| {
            let belongs = |member: &Arc<Member>| {
                let upstream = member.upstream();
                self.rank(upstream) <= most && (hint.is_none() || self.hint_of(upstream) == hint)
            };
            let only: Box<[bool]> = list.members.iter().map(belongs).collect();
            let indexes = up.indexes.iter().copied();
            let indexes = indexes.filter(|&index| only.get(index as usize) == Some(&true)).collect();
            let up = Up::only(indexes, only, Choice::Strict, up.heed);
            let before = previous.iter().find(|tier| tier.hint.as_deref() == hint && tier.up.only == up.only);
            let previous = before.map(|tier| &*tier.picker as &dyn Any);
            let picker = policy.build(Members::new(list, &up), &BuildContext { previous, ..*context });
            Tier { hint: hint.map(Into::into), up, picker }
        };
        let hinted = hints.iter().flat_map(|hint| ranks.iter().map(|&rank| (Some(*hint), rank)));
        // The last rank takes in everybody, which is the choice without a preference.
        let plain = ranks.iter().filter(|&&rank| Some(rank) != last).map(|&rank| (None, rank));
        hinted.chain(plain).map(|(hint, rank)| of(hint, rank)).collect()
    }

    /// Whether a request that found nobody in its tiers must not go to anybody else.
    pub(super) fn refuses(&self, context: &PickContext<'_>) -> bool {
        self.hint_only && self.hint.is_some() && context.hint.is_some()
    }
}

/// Chooses of those that are preferred; `None` if none of them may serve.
pub(super) fn choose_preferred(
    list: &MemberList,
    members: Members<'_>,
    tiers: &[Tier],
    by_key: bool,
    configured: &Up,
    hint_only: bool,
    context: &PickContext<'_>,
) -> Option<Pick> {
    let sticky = context.sticky.and_then(|address| list.at_address(address));
    if let Some(pick) = sticky.and_then(|index| members.begin_at(index, context)) {
        return Some(pick);
    }
    // A hint that nobody has is no hint, unless nothing else will do.
    let is_known = |hint: &&str| tiers.iter().any(|tier| tier.hint.as_deref() == Some(*hint));
    let hint = context.hint.filter(|hint| hint_only || is_known(hint));
    let mut own = tiers.iter().filter(|tier| tier.hint.as_deref() == hint);
    own.find_map(|tier| choose(&*tier.picker, by_key, Members::new(list, &tier.up), configured, context))
}
