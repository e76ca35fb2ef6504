use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::*;
use crate::balance::{Balancer, Member, Outcome, Settings};

const NOW: i64 = 1_612_500_000_000;

fn run(filter: &dyn Filter, listed: &[Upstream], snapshot: &Snapshot, run: FilterRun) -> Vec<String> {
    let context = FilterContext { service: "orders", snapshot, now_ms: NOW, run };
    filter.filter(listed.to_vec(), &context).iter().map(|u| u.address().to_owned()).collect()
}

fn many(count: usize) -> Vec<Upstream> {
    (0..count).map(|i| Upstream::new(format!("10.0.0.{i}:80"))).collect()
}

fn balancer(listed: &[Upstream]) -> Balancer {
    Balancer::new(listed.to_vec(), Settings::default(), NOW)
}

fn member<'s>(snapshot: &'s Snapshot, address: &str) -> &'s Arc<Member> {
    snapshot.all().iter().find(|m| m.upstream().address() == address).unwrap()
}

mod zone {
    use super::*;

    /// Four in the own zone, two elsewhere, one nowhere.
    fn listed() -> Vec<Upstream> {
        let zones =
            [Some("eu-1"), Some("EU-1"), Some("eu-1"), Some("eu-1"), Some("eu-2"), Some("eu-2"), None];
        let zoned = |(upstream, zone): (Upstream, Option<&str>)| match zone {
            Some(zone) => upstream.with_zone(zone),
            None => upstream,
        };
        many(7).into_iter().zip(zones).map(zoned).collect()
    }

    fn kept(filter: &ZoneAffinity, balancer: &Balancer) -> usize {
        run(filter, &listed(), &balancer.snapshot(), FilterRun::List).len()
    }

    #[test]
    fn a_zone_that_is_well_is_kept_to() {
        assert_eq!(kept(&ZoneAffinity::new("eu-1"), &balancer(&listed())), 4);
        let (stranger, only) = (ZoneAffinity::new("eu-3"), ZoneAffinity::exclusive("eu-3"));
        assert_eq!(kept(&stranger, &balancer(&listed())), 7);
        assert_eq!(kept(&only, &balancer(&listed())), 0);
    }

    #[test]
    fn too_few_that_live_let_the_other_zones_help() {
        let balancer = balancer(&listed());
        let filter = ZoneAffinity::new("eu-1");
        for (address, left) in [("10.0.0.0:80", 4), ("10.0.0.1:80", 4), ("10.0.0.2:80", 7)] {
            balancer.set_health(address, Health::Down, NOW);
            assert_eq!(kept(&filter, &balancer), left, "after {address}");
        }
        // One of four is left: three quarters are below the share, one is below the number.
        assert_eq!(kept(&ZoneAffinity { min_available: 1, ..filter.clone() }, &balancer), 4);
        assert_eq!(
            kept(&ZoneAffinity { min_available: 1, max_tripped: 0.75, ..filter.clone() }, &balancer),
            7
        );
        assert_eq!(kept(&ZoneAffinity { exclusive: true, ..filter }, &balancer), 4);
    }

    #[test]
    fn load_lets_the_other_zones_help() {
        let balancer = balancer(&listed());
        let snapshot = balancer.snapshot();
        let filter = ZoneAffinity::new("eu-1");
        let first = member(&snapshot, "10.0.0.0:80");
        let mut under_way = vec![first.begin(NOW), first.begin(NOW)];
        assert_eq!(kept(&filter, &balancer), 4, "0.5 a server");
        under_way.push(member(&snapshot, "10.0.0.3:80").begin(NOW));
        assert_eq!(kept(&filter, &balancer), 7, "0.75 a server");
        drop(under_way);
        assert_eq!(kept(&filter, &balancer), 4);
    }
}

mod subset {
    use super::*;

    #[test]
    fn a_short_list_is_left_whole() {
        let listed = many(20);
        let snapshot = balancer(&listed).snapshot();
        for filter in [&Subset::ribbon() as &dyn Filter, &DeterministicSubset::new(20, 3)] {
            assert_eq!(run(filter, &listed, &snapshot, FilterRun::List).len(), 20);
        }
    }

    #[test]
    fn each_refresh_exchanges_a_tenth_and_a_change_of_health_nobody() {
        let listed = many(60);
        let filter = Subset::from_rng(20, fastrand::Rng::with_seed(1));
        let snapshot = balancer(&listed).snapshot();
        let mut before = run(&filter, &listed, &snapshot, FilterRun::List);
        for round in 0..20 {
            assert_eq!(run(&filter, &listed, &snapshot, FilterRun::Health), before);
            let now = run(&filter, &listed, &snapshot, FilterRun::List);
            let stayed = now.iter().filter(|address| before.contains(address)).count();
            assert_eq!((now.len(), stayed), (20, 18), "round {round}");
            before = now;
        }
    }

    #[test]
    fn who_vanished_or_failed_leaves_first() {
        let listed = many(40);
        let balancer = balancer(&listed);
        let filter = Subset::from_rng(20, fastrand::Rng::with_seed(1));
        let first = run(&filter, &listed, &balancer.snapshot(), FilterRun::List);
        let snapshot = balancer.snapshot();
        for address in &first[..3] {
            member(&snapshot, address).begin(NOW).complete(Outcome::TimedOut, Duration::from_secs(1), NOW);
        }
        let left: Vec<_> = listed.into_iter().filter(|u| u.address() != first[3]).collect();
        let second = run(&filter, &left, &snapshot, FilterRun::List);
        assert_eq!(second.len(), 20);
        assert!(first[..4].iter().all(|address| !second.contains(address)), "{second:?}");
        // Four are more than a tenth, so nobody else had to go.
        assert!(first[4..].iter().all(|address| second.contains(address)), "{second:?}");
    }

    #[test]
    fn ribbon_drops_the_busy_too() {
        let listed = many(40);
        let snapshot = balancer(&listed).snapshot();
        let filter = Subset::ribbon();
        let first = run(&filter, &listed, &snapshot, FilterRun::List);
        let busy: Vec<_> = first.iter().map(|address| member(&snapshot, address).begin(NOW)).collect();
        let second = run(&filter, &listed, &snapshot, FilterRun::List);
        assert!(second.len() == 20 && second.iter().all(|address| !first.contains(address)));
        drop(busy);
    }

    #[test]
    fn callers_together_call_everyone_alike_whatever_the_order_of_the_list() {
        let mut listed = many(60);
        let snapshot = balancer(&listed).snapshot();
        let mut calls = BTreeMap::<String, u32>::new();
        for caller in 0..30 {
            let filter = DeterministicSubset::new(20, caller);
            let mine = run(&filter, &listed, &snapshot, FilterRun::List);
            assert_eq!(mine.len(), 20);
            listed.rotate_left(7);
            assert_eq!(run(&filter, &listed, &snapshot, FilterRun::List), mine);
            mine.into_iter().for_each(|address| *calls.entry(address).or_default() += 1);
        }
        assert_eq!(calls.len(), 60);
        assert!(calls.values().all(|&count| count == 10), "{calls:?}");
    }
}
