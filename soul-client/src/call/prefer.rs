//! Whom a call would rather go to; anybody else will do if they are not there.

use crate::balance::{Balancer, Health, Member, Pick, PickContext, Upstream};

/// What a call prefers. It changes who is chosen for that call only, and no counter or table of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Preference {
    /// Words of the metadata, all of which are wanted.
    pub(super) metadata: Vec<(String, String)>,
    pub(super) zone: Option<String>,
    /// One upstream.
    pub(super) address: Option<String>,
}

impl Preference {
    fn is_none(&self) -> bool {
        self.address.is_none() && !self.is_of_some()
    }

    fn is_of_some(&self) -> bool {
        self.zone.is_some() || !self.metadata.is_empty()
    }

    fn is_met_by(&self, upstream: &Upstream) -> bool {
        self.zone.as_deref().is_none_or(|zone| upstream.zone() == Some(zone))
            && self.metadata.iter().all(|(key, value)| upstream.metadata().get(key) == Some(value))
    }

    /// Chooses: the one upstream, else one of the preferred ones by the policy, else anyone by the policy.
    pub(super) fn choose(&self, balancer: &Balancer, context: &PickContext<'_>) -> Option<Pick> {
        if self.is_none() {
            return balancer.choose(context);
        }
        let snapshot = balancer.snapshot();
        let may_be_chosen = |member: &Member| {
            let state = member.state();
            member.upstream().takes_traffic()
                && state.health() != Health::Down
                && state.ejected_until_ms().is_none()
                && !context.tried.contains(state)
        };
        if let Some(address) = &self.address
            && let Some(member) = snapshot.all_at(address).find(|member| may_be_chosen(member))
        {
            return Some(member.begin(context.now_ms));
        }
        // A look at each upstream, which only calls with a preference pay.
        let is_preferred = |member: &Member| may_be_chosen(member) && self.is_met_by(member.upstream());
        let preferred = self.is_of_some().then(|| snapshot.choose_among(is_preferred, context));
        preferred.flatten().or_else(|| balancer.choose(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::{Settings, Tried, policy, policy::RoundRobin};

    fn balancer() -> Balancer {
        let list = vec![
            Upstream::new("a:1")
                .with_zone("east")
                .with_metadata("hint", "blue")
                .with_metadata("version", "1"),
            Upstream::new("b:1")
                .with_zone("west")
                .with_metadata("hint", "blue")
                .with_metadata("version", "2"),
            Upstream::new("c:1").with_zone("west"),
        ];
        Balancer::new(list, Settings::with_policy(RoundRobin), 1)
    }

    fn chosen(balancer: &Balancer, preference: &Preference, tried: &[&str]) -> Vec<String> {
        let snapshot = balancer.snapshot();
        let mut already = Tried::new();
        snapshot
            .all()
            .iter()
            .filter(|m| tried.contains(&m.upstream().address()))
            .for_each(|m| already.insert(m.state()));
        let context = PickContext::at(1).tried(&already);
        let mut chosen: Vec<_> = (0..12)
            .filter_map(|_| preference.choose(balancer, &context))
            .map(|pick| pick.upstream().address().to_owned())
            .collect();
        chosen.sort();
        chosen.dedup();
        chosen
    }

    fn words(words: &[(&str, &str)]) -> Preference {
        let metadata = words.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        Preference { metadata, ..Preference::default() }
    }

    #[test]
    fn preferred_ones_are_chosen_as_long_as_there_are_any() {
        let balancer = balancer();
        let west = Preference { zone: Some("west".to_owned()), ..Preference::default() };
        let one = Preference { address: Some("c:1".to_owned()), ..Preference::default() };
        for (preference, tried, whom) in [
            (&Preference::default(), &[][..], &["a:1", "b:1", "c:1"][..]),
            (&words(&[("hint", "blue")]), &[], &["a:1", "b:1"]),
            (&words(&[("hint", "blue")]), &["a:1"], &["b:1"]),
            (&words(&[("hint", "blue")]), &["a:1", "b:1"], &["c:1"]),
            (&words(&[("hint", "blue"), ("version", "2")]), &[], &["b:1"]),
            (&words(&[("hint", "green")]), &[], &["a:1", "b:1", "c:1"]),
            (&west, &[], &["b:1", "c:1"]),
            (&west, &["b:1", "c:1"], &["a:1"]),
            (&one, &[], &["c:1"]),
            (&one, &["c:1"], &["a:1", "b:1"]),
        ] {
            assert_eq!(chosen(&balancer, preference, tried), whom, "{preference:?}, tried {tried:?}");
        }
    }

    #[test]
    fn over_every_policy_nobody_else_is_chosen_while_a_preferred_one_is_left() {
        let list: Vec<_> = (0..12)
            .map(|i| {
                Upstream::new(format!("a:{i}")).with_metadata("hint", if i % 4 == 0 { "blue" } else { "" })
            })
            .collect();
        for name in policy::KNOWN {
            let settings = Settings { policy: policy::by_name(name).unwrap(), ..Settings::default() };
            let balancer = Balancer::new(list.clone(), settings, 1);
            let blue = words(&[("hint", "blue")]);
            let by_key = |tried: &[&str]| {
                let mut seen = std::collections::BTreeSet::new();
                for key in 0..200 {
                    let snapshot = balancer.snapshot();
                    let mut already = Tried::new();
                    tried
                        .iter()
                        .filter_map(|a| snapshot.at_address(a))
                        .for_each(|m| already.insert(m.state()));
                    let key = key.to_string();
                    let context = PickContext::at(1).tried(&already).key(crate::balance::Key::Text(&key));
                    seen.insert(blue.choose(&balancer, &context).unwrap().upstream().address().to_owned());
                }
                seen.into_iter().collect::<Vec<_>>()
            };
            let all = by_key(&[]);
            assert!(
                !all.is_empty() && all.iter().all(|a| ["a:0", "a:4", "a:8"].contains(&&**a)),
                "{name} {all:?}"
            );
            assert_eq!(by_key(&["a:0", "a:8"]), ["a:4"], "{name}");
            assert!(by_key(&["a:0", "a:4", "a:8"]).iter().all(|a| !all.contains(a)), "{name}");
            let left: u32 = balancer.snapshot().all().iter().map(|m| m.state().in_flight()).sum();
            assert_eq!(left, 0);
        }
    }

    #[test]
    fn one_that_is_down_is_not_preferred() {
        let balancer = balancer();
        balancer.set_health("c:1", Health::Down, 1);
        let one = Preference { address: Some("c:1".to_owned()), ..Preference::default() };
        assert_eq!(chosen(&balancer, &one, &[]), ["a:1", "b:1"]);
        balancer.set_health("a:1", Health::Down, 1);
        // Two of three are down: panic, and health is not heeded by the policy; but nobody who is down is preferred.
        assert_eq!(chosen(&balancer, &words(&[("version", "2")]), &[]), ["b:1"]);
        for member in balancer.snapshot().all() {
            assert_eq!(member.state().in_flight(), 0);
        }
    }
}
