//! What the gateway keeps for the selectors and rules of `divide`: their handles, parsed and prepared.

use std::{
    cell::OnceCell,
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use soul_client::{
    balance::{Member, SetSettings, SharedSettings, Upstream, UpstreamSet, Way},
    wire::{
        gson,
        soul::{ConfigGroup, DivideRuleHandle, DivideUpstream, RuleData, SelectorData},
    },
};

use super::{
    destination::{Destination, Key},
    flow::Flow,
    label,
    stats::{SelectorStats, StatusStats},
};
use crate::{
    clock::now_ms,
    model::{address, matching::PluginTable},
    slices,
    sync::Refused,
};

/// The selectors and rules of `divide`.
pub(crate) type DivideTable = PluginTable<DivideSelector, DivideRule>;

/// A selector's upstreams.
#[derive(Debug)]
pub(crate) struct DivideSelector {
    upstreams: Arc<UpstreamSet>,
    /// By the address of each upstream's state in memory, ascending.
    ends: Box<[End]>,
    stats: Arc<SelectorStats>,
    /// What of it cannot be used.
    refused: Box<[Refused]>,
}

/// Where an upstream's requests go, and how it bears them.
#[derive(Debug)]
pub(crate) struct End {
    /// The address of its state in memory.
    key: usize,
    pub(crate) destination: Arc<Destination>,
    /// There once it was sent a request to: most upstreams of a large configuration are not.
    flow: OnceLock<Arc<Flow>>,
}

impl End {
    /// How it bears its requests.
    pub(crate) fn flow(&self) -> &Arc<Flow> {
        self.flow.get_or_init(Arc::default)
    }

    /// The same, of those that had any.
    pub(crate) fn known_flow(&self) -> Option<&Arc<Flow>> {
        self.flow.get()
    }

    /// Requests under way at it, which is where this member's go: a connection that changed its protocol is none.
    pub(crate) fn requests(&self, member: &Member) -> u32 {
        member.state().in_flight().saturating_sub(self.known_flow().map_or(0, |flow| flow.tunnels()))
    }
}

impl DivideSelector {
    pub(crate) fn upstreams(&self) -> &Arc<UpstreamSet> {
        &self.upstreams
    }

    pub(crate) fn stats(&self) -> &Arc<SelectorStats> {
        &self.stats
    }

    pub(super) fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Where the requests for one of its upstreams go, and how it bears them.
    pub(crate) fn end(&self, member: &Member) -> Option<&End> {
        self.end_at(address(member.state()))
    }

    fn end_at(&self, key: usize) -> Option<&End> {
        let place = self.ends.binary_search_by_key(&key, |end| end.key).ok()?;
        self.ends.get(place)
    }
}

/// How a rule's requests are served.
#[derive(Debug)]
pub(crate) struct DivideRule {
    /// How one upstream is chosen.
    pub(crate) way: Way,
    retry: u16,
    timeout_ms: u32,
    pub(crate) stats: StatusStats,
}

/// Where addresses lead: to one destination each, the one of the snapshot before if it had it.
#[derive(Default)]
pub(super) struct Destinations<'p> {
    previous: Option<&'p DivideTable>,
    /// Made when first asked for: most changes are to rules.
    known: OnceCell<HashMap<Key, Arc<Destination>>>,
    /// By the ways in them.
    settings: HashMap<Vec<Way>, SharedSettings>,
}

impl<'p> Destinations<'p> {
    pub(super) fn from(previous: Option<&'p DivideTable>) -> Self {
        Self { previous, known: OnceCell::new(), settings: HashMap::new() }
    }

    /// The one destination of an address.
    fn shared(&mut self, destination: Destination) -> Arc<Destination> {
        self.known.get_or_init(|| {
            let selectors = self.previous.into_iter().flat_map(PluginTable::selectors);
            let destinations =
                selectors.flat_map(|selector| &selector.payload().ends).map(|end| &end.destination);
            destinations.map(|destination| (destination.key(), Arc::clone(destination))).collect()
        });
        let Some(known) = self.known.get_mut() else { return Arc::new(destination) };
        Arc::clone(known.entry(destination.key()).or_insert_with(|| Arc::new(destination)))
    }

    /// The settings with some ways, which are the same to most selectors.
    fn settings(&mut self, settings: &SetSettings, ways: &[Way]) -> SharedSettings {
        if let Some(known) = self.settings.get(ways) {
            return known.clone();
        }
        let settings = SharedSettings::from(SetSettings { ways: ways.to_vec(), ..settings.clone() });
        self.settings.insert(ways.to_vec(), settings.clone());
        settings
    }

    /// What is kept for a selector. `previous` is what was kept for it before it changed.
    ///
    /// - `ways`: by which its rules choose, besides Soul's; those of `previous` if it is not known yet.
    pub(super) fn selector(
        &mut self,
        data: &SelectorData,
        previous: Option<&DivideSelector>,
        ways: Option<&Vec<Way>>,
        settings: &SetSettings,
    ) -> DivideSelector {
        let ways = ways.or_else(|| previous.map(|p| &p.upstreams.settings().ways));
        let settings = self.settings(settings, ways.map_or(&[], Vec::as_slice));
        let mut refused = Vec::new();
        let (upstreams, destinations) = self.upstreams(data, &mut refused).into_iter().unzip();
        let upstreams =
            UpstreamSet::build_with(upstreams, previous.map(|p| &p.upstreams), settings, now_ms());
        let destinations: Vec<Arc<Destination>> = destinations;
        let end = |(key, destination)| {
            let before = previous.and_then(|previous| previous.end_at(key));
            End { key, destination, flow: before.map_or_else(OnceLock::new, |end| end.flow.clone()) }
        };
        let keys = upstreams.members().iter().map(|member| address(member.state()));
        let mut ends: Vec<_> = keys.zip(destinations).map(end).collect();
        ends.sort_by_key(|end| end.key);
        let stats = previous.map_or_else(Arc::default, |p| Arc::clone(&p.stats));
        DivideSelector { upstreams, ends: ends.into(), stats, refused: refused.into() }
    }

    /// The upstreams that can be spoken to. The selector stays without the others, even without all: its requests
    /// belong to it and to no other.
    fn upstreams(
        &mut self,
        data: &SelectorData,
        refused: &mut Vec<Refused>,
    ) -> Vec<(Upstream, Arc<Destination>)> {
        let mut refuse = |reason: String| {
            refused.push(Refused {
                group: ConfigGroup::Selector,
                entry: label(&data.name, &data.id),
                reason,
            });
        };
        let listed = match DivideUpstream::read_handle(data.handle.as_deref().unwrap_or_default()) {
            Ok(listed) => listed,
            Err(error) => {
                refuse(format!("`handle`: {error}; it has no upstreams"));
                return Vec::new();
            }
        };
        let mut usable = Vec::with_capacity(listed.len());
        for upstream in listed.iter().map(Upstream::from) {
            match Destination::of(&upstream) {
                Ok(destination) => usable.push((upstream, self.shared(destination))),
                Err(reason) => refuse(format!("upstream `{}`: {reason}", upstream.base_url())),
            }
        }
        usable
    }
}

impl DivideRule {
    /// Extra attempts; nobody has so many upstreams to try that there could be more than 65,535.
    pub(crate) fn retry(&self) -> u32 {
        self.retry.into()
    }

    /// Time for one attempt, to the head of the answer.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.into())
    }

    /// What is kept for a rule. `previous` is what was kept for it before it changed.
    ///
    /// # Errors
    /// When nothing says how its requests are served.
    pub(super) fn new(data: &RuleData, previous: Option<&Self>) -> Result<Self, String> {
        let text = data.handle.as_deref().unwrap_or_default();
        let handle: DivideRuleHandle = gson::from_str(text)
            .map_err(|e| e.to_string())?
            .ok_or(r#"is blank, expected for example `{"loadBalance":"random","retry":0,"timeout":3000}`"#)?;
        let name = handle.load_balance.as_deref().unwrap_or_default();
        let way: Way = name.parse().map_err(|e| format!("{e}"))?;
        Ok(Self {
            way,
            retry: u16::try_from(handle.retry.max(0)).unwrap_or(u16::MAX),
            timeout_ms: timeout_ms(handle.timeout),
            stats: previous.map(|p| p.stats.share()).unwrap_or_default(),
        })
    }
}

/// Makes upstreams ready for the ways that their rules choose by. Gives those that they cannot be made ready for without being
/// built anew: for each such selector, by its id, all ways of its rules but Soul's, which always are there.
pub(super) fn missing(table: &DivideTable) -> HashMap<String, Vec<Way>> {
    let mut missing = HashMap::new();
    for selector in table.selectors() {
        let upstreams = selector.payload().upstreams();
        let ways = || selector.rules().inspect(|_| slices::step()).map(|rule| rule.payload().way);
        ways().for_each(|way| upstreams.prepare(way));
        if !ways().all(|way| upstreams.has(way)) {
            let mut ways: Vec<_> = ways().filter(|way| matches!(way, Way::Policy(_))).collect();
            ways.sort_unstable();
            ways.dedup();
            missing.insert(selector.id().to_owned(), ways);
        }
    }
    missing
}

/// A timeout that could never be met, 0 or less, is Soul's default instead; the longest is seven weeks.
fn timeout_ms(millis: i64) -> u32 {
    let millis = if millis > 0 { millis } else { DivideRuleHandle::default().timeout };
    u32::try_from(millis).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Row;

    fn selector(upstreams: &[(&str, i32)]) -> SelectorData {
        let list: Vec<_> = upstreams
            .iter()
            .map(|(url, weight)| DivideUpstream { weight: *weight, ..DivideUpstream::registered(*url) })
            .collect();
        SelectorData {
            id: Some("1".to_owned()),
            plugin_name: Some("divide".to_owned()),
            match_mode: Some(0),
            kind: Some(0),
            enabled: Some(true),
            handle: Some(DivideUpstream::write_handle(&list)),
            ..SelectorData::default()
        }
    }

    fn table(selectors: &[SelectorData], previous: Option<&DivideTable>) -> (DivideTable, Vec<Refused>) {
        let mut destinations = Destinations::from(previous);
        let make = |data: &SelectorData, former: Option<&DivideSelector>| {
            Ok(destinations.selector(data, former, None, &SetSettings::default()))
        };
        let invalids = crate::model::matching::Invalids::Refuse;
        let no_rule = |_: &RuleData, _: Option<&DivideRule>| Err(String::new());
        let selectors: Vec<_> = selectors.iter().map(Row::from).collect();
        let (table, entries) =
            DivideTable::compile("divide", &selectors, &[], invalids, previous, make, no_rule);
        assert!(entries.is_empty(), "{entries:?}");
        let refused = table.selectors().flat_map(|selector| selector.payload().refused().to_vec()).collect();
        (table, refused)
    }

    fn only(table: &DivideTable) -> &DivideSelector {
        table.selectors().next().expect("one selector").payload()
    }

    #[test]
    fn every_upstream_has_its_destination_and_shares_it_by_address() {
        let (first, refused) =
            table(&[selector(&[("a:1", 1), (" b:2 ", 2), ("a:1", 3), ("c", 1), ("bad:", 1)])], None);
        assert_eq!(refused.len(), 1);
        let of = |selector: &DivideSelector| -> Vec<Arc<Destination>> {
            let members = selector.upstreams().members();
            members.iter().map(|m| Arc::clone(&selector.end(m).expect("an end").destination)).collect()
        };
        let destinations = of(only(&first));
        let addresses: Vec<_> = destinations.iter().map(|d| &**d.address()).collect();
        assert_eq!(addresses, ["a:1", "b:2", "a:1", "c:80"]);
        assert!(Arc::ptr_eq(&destinations[0], &destinations[2]));

        let (second, _) = table(&[selector(&[("b:2", 5), ("a:1", 1)])], Some(&first));
        let kept = of(only(&second));
        assert!(Arc::ptr_eq(&kept[0], &destinations[1]) && Arc::ptr_eq(&kept[1], &destinations[0]));
        assert!(Arc::ptr_eq(only(&first).stats(), only(&second).stats()));
    }

    #[test]
    fn a_tunnel_is_no_request_at_its_selector_and_nothing_at_others() {
        let other = SelectorData { id: Some("2".to_owned()), ..selector(&[("a:1", 1)]) };
        let (table, _) = table(&[selector(&[("a:1", 1)]), other], None);
        let [one, two] = [0, 1].map(|place| table.selectors().nth(place).expect("two").payload());
        let [first, second] = [one, two].map(|selector| &selector.upstreams().members()[0]);
        let [end, beside] = [one.end(first).expect("an end"), two.end(second).expect("an end")];
        assert!(Arc::ptr_eq(&end.destination, &beside.destination));
        let _under_way = [first, first, second, second].map(|member| member.state().begin());
        let open = end.flow().tunnel();
        assert_eq!((end.requests(first), beside.requests(second)), (1, 2));
        drop(open);
        assert_eq!((end.requests(first), beside.requests(second)), (2, 2));
    }

    #[test]
    fn a_selector_whose_handle_cannot_be_read_keeps_its_requests_and_has_no_upstream() {
        let broken = SelectorData { handle: Some("{".to_owned()), ..selector(&[]) };
        let (table, refused) = table(&[broken], None);
        assert!(only(&table).upstreams().members().is_empty());
        assert!(refused[0].reason.ends_with("; it has no upstreams"), "{refused:?}");
    }

    #[test]
    fn rules_are_read_once_and_what_cannot_be_served_is_refused() {
        let rule = |handle: &str| {
            DivideRule::new(&RuleData { handle: Some(handle.to_owned()), ..RuleData::default() }, None)
        };
        for (handle, retry, millis) in [
            (r#"{"loadBalance":"hash"}"#, 0, 3000),
            (r#"{"loadBalance":"hash","retry":"2","timeout":"150"}"#, 2, 150),
            (r#"{"loadBalance":"hash","retry":-1,"timeout":0}"#, 0, 3000),
            (r#"{"loadBalance":"hash","timeout":-5}"#, 0, 3000),
        ] {
            let rule = rule(handle).unwrap();
            assert_eq!((rule.way.as_str(), rule.retry()), ("hash", retry), "{handle}");
            assert_eq!(rule.timeout(), Duration::from_millis(millis), "{handle}");
        }
        for (handle, reason) in [
            ("", "is blank"),
            ("null", "is blank"),
            ("{}", "unknown load balance ``"),
            (r#"{"loadBalance":"Hash"}"#, "unknown load balance `Hash`, expected one of"),
            (r#"{"loadBalance":"hash","timeout":"soon"}"#, "timeout"),
        ] {
            let refused = rule(handle).unwrap_err();
            assert!(refused.contains(reason), "{handle}: {refused}");
        }
    }
}
